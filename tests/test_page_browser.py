"""The page in a real browser, with real clicks and keys: `python -m framework.play` without any runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
PATIENCE = 60_000


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nothing")
    command = [sys.executable, "-m", "framework.play", "--port", "0", "--runs-dir", str(folder / "runs")]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            found = next(filter(None, (re.search(r"http://\S+", line) for line in server.stdout)), None)
            assert found, "it ended without an address"
            assert found[0].startswith("http://127.0.0.1:")
            yield found[0]
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as engine:
        made = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    made = context.new_page()
    made.set_default_timeout(PATIENCE)
    faults = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    made.on("request", lambda request: request.url.startswith((address, "data:")) or faults.append(request.url))
    made.goto(address)
    made.wait_for_selector(".reading strong")
    yield made
    context.close()
    assert not faults


def answered(page, act):
    """Do something, and wait until the server has answered and the page has shown it."""
    with page.expect_response(lambda answer: "/api/sessions" in answer.url):
        act()
    page.wait_for_selector("body:not(.busy)")


def test_type_walk_draw_and_compare(page):
    reading = page.locator(".reading").first
    assert "water, at most 2 times" in reading.inner_text()
    assert page.locator("figcaption").inner_text().count("2 of 2 left") == 1

    box = page.get_by_label("Sentence 1")
    answered(page, lambda: box.fill("Don't walk on lava, it will burn you."))
    assert "lava, at most 0 times" in reading.inner_text()

    answered(page, lambda: page.get_by_role("button", name="Step").click())
    page.locator(".status", has_text="Step 1 ").wait_for()

    page.get_by_role("radio", name="lava").click()
    before = page.locator("use[href='#tile-lava']").count()
    board = page.locator("svg.board").bounding_box()
    side = board["width"] / 13
    free = page.evaluate("""() => {  // three floor cells in a row, found in what is drawn
        const things = [...document.querySelectorAll("svg.board use[href^='#tile']")];
        const at = new Set(things.map((u) => `${u.getAttribute('x') / 24},${u.getAttribute('y') / 24}`));
        const agent = document.querySelector('.agent').getAttribute('transform').match(/[\\d.]+/g);
        at.add(agent.slice(0, 2).map((n) => Math.floor(n / 24)).join());
        for (let y = 1; y < 12; y++) for (let x = 1; x < 10; x++)
            if ([0, 1, 2].every((i) => !at.has(`${x + i},${y}`))) return [x, y];
    }""")
    middle = [(board["x"] + (free[0] + i + 0.5) * side, board["y"] + (free[1] + 0.5) * side) for i in range(3)]

    def drag():
        page.mouse.move(*middle[0])
        page.mouse.down()
        page.mouse.move(*middle[1])
        page.mouse.move(*middle[2])
        page.mouse.up()

    answered(page, drag)
    assert page.locator("svg.board use[href='#tile-lava']").count() == before - 1 + 3  # one of `before` is the button's

    answered(page, lambda: page.get_by_label("Compare with a second").check())
    assert page.locator("svg.board").count() == 2
    assert page.locator(".reading").count() == 2


def test_a_script_is_shown_as_text_and_is_no_constraint(page):
    text = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    answered(page, lambda: page.get_by_label("Sentence 1").fill(text))
    assert page.get_by_label("Sentence 1").input_value() == text
    assert page.locator("img").count() == 0
    chip = page.get_by_role("button", name="I don't know what to write in this box.")
    answered(page, chip.click)
    assert "This is not a constraint." in page.locator(".reading").inner_text()


def test_keys_alone_are_enough(page):
    page.locator("body").click(position={"x": 5, "y": 5})
    answered(page, lambda: page.keyboard.press("s"))
    answered(page, lambda: page.keyboard.press("n"))
    assert page.get_by_label("Map", exact=True).input_value() == "2"
    page.get_by_role("button", name="Add another sentence").focus()
    page.keyboard.press("Enter")
    answered(page, lambda: page.keyboard.type("No grass."))
    assert page.locator(".reading").count() == 2


def test_a_server_that_is_gone_is_told(page):
    page.route("**/api/sessions", lambda route: route.abort())
    page.get_by_role("button", name="Restart").click()
    page.wait_for_selector("#error:not([hidden])")
    assert "does not answer" in page.locator("#error").inner_text()


def test_a_narrow_screen_needs_no_sideways_scrolling(page):
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
