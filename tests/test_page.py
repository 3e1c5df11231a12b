"""The page to play with, through its API: what is understood, walks, limits, and what it says to nonsense."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from framework import play
from framework.page_server.app import make_app
from framework.page_server.guard import LARGEST_BODY
from framework.page_server.sessions import MOST_SESSIONS
from framework.page_server.shelf import Shelf
from framework.plugin_manager import PluginHost

SHIPPED = Path(__file__).parent.parent / "plugins" / "agents"
RULE = "You can go in the water twice, no more."
HOST = PluginHost()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """What comes with Heed, and a runs folder with one damaged run, one that lost its weights, and one unfinished."""
    runs = tmp_path_factory.mktemp("runs")
    whole = next((SHIPPED / "cells").iterdir())
    for name in ("damaged", "hollow", "unfinished"):
        shutil.copytree(whole, runs / "cells" / name)
    (runs / "cells" / "damaged" / "run.json").write_text("{")
    (runs / "cells" / "unfinished" / "result.json").unlink()
    record = json.loads((runs / "cells" / "hollow" / "run.json").read_text())
    record["config"]["seed"] = 7  # another run than the shipped one
    (runs / "cells" / "hollow" / "run.json").write_text(json.dumps(record))
    (runs / "cells" / "hollow" / "policy.safetensors").write_bytes(b"nothing")
    return Shelf(HOST, runs)


@pytest.fixture(scope="module")
def client(shelf):
    with TestClient(make_app(shelf), base_url="http://127.0.0.1") as made:
        yield made


@pytest.fixture(scope="module")
def agents(client):
    """By kind of sentence."""
    return {agent["kind"]: agent["id"] for agent in reversed(client.get("/api/choices").json()["agents"])}


def wish(agents, *sentences, kind="budgetary", **more):
    walkers = more.pop("walkers", [{"agent": agents[kind]}])
    return {"sentences": list(sentences), "walkers": walkers, "seed": 1} | more


def begin(client, agents, *sentences, **more):
    answer = client.post("/api/sessions", json=wish(agents, *sentences, **more))
    assert answer.status_code == 200, answer.text
    return answer.json()


def walk(client, name, steps):
    frames = []
    while len(frames) < steps:
        frames += client.post(f"/api/sessions/{name}/steps", json={"count": 20}).json()["frames"]
    return [frame[0] for frame in frames]


def refused(answer, status, *words):
    assert answer.status_code == status
    message = answer.json()["error"]
    assert all(word in message for word in words), message
    assert "Traceback" not in answer.text


def test_files_come_with_a_strict_policy(client):
    for path in ("/", "/style.css", "/page.js", "/board.js", "/readings.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text and "innerHTML" not in answer.text


def test_there_is_an_agent_for_each_kind_without_any_runs(agents):
    assert {"budgetary", "relational", "sequential"} <= set(agents)


def test_shipped_agents_are_small():
    sizes = [file.stat().st_size for file in SHIPPED.rglob("*.safetensors")]
    assert max(sizes) < 1_000_000 and sum(sizes) < 2_100_000


def test_what_is_broken_is_told_and_the_rest_works(client, shelf, agents):
    problems = "\n".join(client.get("/api/choices").json()["problems"])
    assert "damaged" in problems and "not finished" in problems
    hollow = next(a.id for a in shelf.agents.values() if a.folder.name == "hollow")
    refused(client.post("/api/sessions", json=wish(agents, RULE, walkers=[{"agent": hollow}])), 409, "damaged")
    assert begin(client, agents, RULE)["session"]


@pytest.mark.parametrize(
    ("kind", "sentence", "meaning", "budget"),
    [
        ("budgetary", RULE, "water, at most 2 times", 2),
        ("relational", "Grass has a keep-out radius of two.", "nothing within 2 steps of grass", 0),
        ("sequential", "Enter lava first if you want to enter grass.", "no grass until lava was entered", 0),
    ],
)
def test_it_says_what_it_understood(client, agents, kind, sentence, meaning, budget):
    answer = begin(client, agents, sentence, kind=kind)
    (reading,) = answer["walkers"][0]["readings"]
    assert (reading["kind"], reading["text"]) == (kind, meaning)
    assert reading["confidence"] > 0.5 and reading["constraint"] > 0.5
    assert answer["truths"] == [meaning]
    assert answer["walks"][0]["clauses"][0]["understood"]["budget"] == budget


def test_what_is_no_constraint_forbids_nothing(client, agents):
    answer = begin(client, agents, "I don't know what to write in this box.")
    assert answer["walkers"][0]["readings"][0]["constraint"] < 0.5
    assert answer["truths"] == [None]
    assert "x" not in "".join(answer["walks"][0]["mask"] + answer["walks"][0]["whole"])


def test_masks_mark_the_water_in_view_and_on_the_whole_map(client, agents):
    answer = begin(client, agents, RULE)
    now = answer["walks"][0]
    left, top, right, bottom = now["view"]
    for y, row in enumerate(now["rows"]):
        for x, mark in enumerate(row):
            inside = left <= x < right and top <= y < bottom
            assert now["mask"][y][x] == (("x" if mark == "W" else ".") if inside else " ")
            assert now["whole"][y][x] == ("x" if mark == "W" else ".")


def test_equal_seed_sentence_and_map_give_an_equal_walk(client, agents):
    first, second = (walk(client, begin(client, agents, RULE)["session"], 40) for _ in range(2))
    assert first == second
    other = walk(client, begin(client, agents, RULE, seed=2)["session"], 40)
    assert other[-1]["trail"] != first[-1]["trail"]


def test_the_trained_agent_collects_and_keeps_to_its_budget(client, agents):
    last = walk(client, begin(client, agents, RULE)["session"], 200)[-1]
    assert last["over"] == "goal" and last["reward"] == 6
    assert last["clauses"][0]["truth"]["over"] == 0


def test_a_relational_map_leaves_a_way(client, agents):
    rule = "Grass has a keep-out radius of two."
    last = walk(client, begin(client, agents, rule, kind="relational")["session"], 200)[-1]
    assert last["over"] == "goal" and last["reward"] == 6
    assert last["clauses"][0]["truth"]["over"] == 0


def test_two_walk_on_one_map(client, agents):
    pair = [{"agent": agents["budgetary"]}, {"agent": agents["budgetary"], "interpreter": "none"}]
    answer = begin(client, agents, RULE, walkers=pair)
    assert answer["walks"][0]["rows"] == answer["walks"][1]["rows"]
    assert "x" in "".join(answer["walks"][0]["mask"]) and "x" not in "".join(answer["walks"][1]["mask"])


def test_several_sentences_have_a_budget_each(client, agents):
    answer = begin(client, agents, RULE, "Don't walk on lava, it will burn you.")
    assert [clause["understood"]["budget"] for clause in answer["walks"][0]["clauses"]] == [2, 0]


def test_the_truth_is_only_for_sentences_of_the_data_set(client, agents):
    oracle = [{"agent": agents["budgetary"], "interpreter": "oracle"}]
    assert begin(client, agents, RULE, walkers=oracle)["walks"][0]["clauses"][0]["understood"]["budget"] == 2
    refused(client.post("/api/sessions", json=wish(agents, "Mind the gap.", walkers=oracle)), 409, "nobody knows")


def test_a_drawn_map_is_walked_on(client, agents):
    layout = begin(client, agents, RULE)["layout"]
    drawn = layout.replace("W", ".").replace("L", ".")
    answer = begin(client, agents, RULE, layout=drawn)
    assert answer["layout"] == drawn and "W" not in "".join(answer["walks"][0]["rows"])


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("", "at least 4x4"),
        ("?" * 16, "wide"),
        ("####\n#>b#\n#xk#\n###W", "border"),
        ("####\n#>b#\n#xb#\n####", "second ball"),
        ("\n".join(["#" * 26] * 26), "at most 25"),
        ("<script>alert(1)</script>", "wide"),
    ],
)
def test_nonsense_maps_are_refused(client, agents, layout, words):
    answer = client.post("/api/sessions", json=wish(agents, RULE, layout=layout))
    assert answer.status_code in (409, 422)
    if answer.status_code == 409:
        refused(answer, 409, words)


@pytest.mark.parametrize(
    "change",
    [
        {"sentences": []},
        {"sentences": ["  "]},
        {"sentences": ["a"] * 4},
        {"sentences": ["x" * 301]},
        {"sentences": ["bell \x07"]},
        {"sentences": "lava"},
        {"seed": -1},
        {"seed": 2**40},
        {"seed": "1; drop table"},
        {"walkers": []},
        {"walkers": [{"agent": "../../etc/passwd", "weights": 1}]},
        {"greedy": "yes"},
        {"more": 1},
    ],
)
def test_what_is_out_of_bounds_is_refused(client, agents, change):
    refused(client.post("/api/sessions", json=wish(agents, RULE) | change), 422)


def test_text_that_cannot_be_written_down_is_refused(client, agents):
    body = json.dumps(wish(agents, "lava \ud800"))  # half a character
    refused(client.post("/api/sessions", content=body, headers={"content-type": "application/json"}), 422)


def test_unknown_names_are_told(client, agents):
    stranger = [{"agent": "../../etc/passwd"}]
    refused(client.post("/api/sessions", json=wish(agents, RULE, walkers=stranger)), 409, "no agent")
    walker = {"agent": agents["budgetary"], "interpreter": "orakle"}
    refused(client.post("/api/sessions", json=wish(agents, RULE, walkers=[walker])), 409, "did you mean 'oracle'?")
    refused(client.post("/api/sessions/none/steps", json={"count": 1}), 409, "start it again")
    refused(client.post("/api/sessions/none/steps", json={"count": 10**9}), 422)
    refused(client.get("/../../etc/passwd"), 404)
    refused(client.get("/api/sessions"), 405)


def test_a_script_in_a_sentence_is_just_text(client, agents):
    answer = begin(client, agents, "<script>alert(1)</script> & <img src=x onerror=alert(1)>")
    assert "<script>" not in json.dumps(answer)  # the page shows what was typed from its own box


def test_large_bodies_are_refused(client):
    headers = {"content-type": "application/json"}
    refused(client.post("/api/sessions", content=b" " * 1_000_000, headers=headers), 413, "too large")
    chunks = (b" " * 10_000 for _ in range(100))  # no length is announced
    refused(client.post("/api/sessions", content=chunks, headers=headers), 413, f"{LARGEST_BODY:,}")


def test_broken_json_and_other_types_are_refused(client):
    refused(client.post("/api/sessions", content=b"{", headers={"content-type": "application/json"}), 422)
    refused(client.post("/api/sessions", content=b"{}", headers={"content-type": "text/plain"}), 415, "JSON")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "192.168.0.7", "127.0.0.1.evil.example", "", "[::1"]
)
def test_foreign_hosts_are_refused(client, host):
    refused(client.get("/", headers={"host": host}), 400, "its own address")


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:1", "[::1]:8642", "127.1.2.3"])
def test_own_hosts_are_served(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


def test_a_public_server_takes_addresses_and_its_name_only(shelf):
    client = TestClient(make_app(shelf, frozenset({"box"}), public=True), base_url="http://192.168.0.7")
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"host": "box:8642"}).status_code == 200
    refused(client.get("/", headers={"host": "evil.example"}), 400)


def test_other_pages_may_not_ask(client, agents):
    headers = {"origin": "http://evil.example"}
    refused(client.post("/api/sessions", json=wish(agents, RULE), headers=headers), 403, "another page")
    own = {"origin": "http://127.0.0.1"}
    assert client.post("/api/sessions", json=wish(agents, RULE), headers=own).status_code == 200


def test_the_oldest_sessions_are_put_away(client, agents):
    names = [begin(client, agents, RULE)["session"] for _ in range(MOST_SESSIONS + 1)]
    refused(client.post(f"/api/sessions/{names[0]}/steps", json={}), 409, "put away")
    assert client.post(f"/api/sessions/{names[-1]}/steps", json={}).status_code == 200


def test_a_fault_of_ours_is_no_trace(shelf, agents, monkeypatch):
    client = TestClient(make_app(shelf), base_url="http://127.0.0.1", raise_server_exceptions=False)
    monkeypatch.setattr(Shelf, "agent", lambda *_: 1 / 0)
    refused(client.post("/api/sessions", json=wish(agents, RULE)), 500, "something broke inside")


def test_an_explain_that_goes_wrong_costs_the_words_only(client, shelf, agents, monkeypatch, capsys):
    reader = shelf.interpreter(shelf.agent(agents["budgetary"]).reader)
    monkeypatch.setattr(type(reader), "explain", lambda self, sentence: "two waters")
    [reading] = begin(client, agents, RULE)["walkers"][0]["readings"]
    assert reading["text"] is None and reading["kind"] is None and reading["threshold"] == pytest.approx(2, abs=0.5)
    told = "interpreter 'reader': explain must return an Explanation or None, not str; its words are left out"
    assert told in capsys.readouterr().err


def test_a_busy_port_is_told(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert play.main(["--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port} is in use" in said and "--port 0" in said


@pytest.mark.parametrize(
    ("words", "message"), [(["--port", "70000"], "no port"), (["--host", "no.such.host.invalid"], "no address")]
)
def test_nonsense_addresses_are_told(capsys, words, message):
    assert play.main(words) == 2
    assert message in capsys.readouterr().err
