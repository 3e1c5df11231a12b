"""``python -m framework.show``: pictures with their panels, films, playing, and what is told of mistakes."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from framework import run as study
from framework.agent import Agent
from framework.film import Film, gif, record
from framework.panel import OVER, Account, Caption, Clause, compose, wrap
from framework.player import Player, RandomPolicy
from framework.plugin_manager import PluginHost
from framework.show import main
from framework.terminal import half_blocks, key_map, play

CATALOG = PluginHost().catalog
PLAIN = """
from framework.hookspecs import hookimpl
from plugins.envs.ford import Ford

class Plain(Ford):
    name = "plain"

    def frame(self, row, mask=None):
        return None

@hookimpl
def heed_components():
    return [Plain]
"""


def player(name="ford", interpreter="oracle", **settings):
    cls, reader = CATALOG.get("env", name).cls, CATALOG.get("interpreter", interpreter).cls
    env = cls(cls.Config(**settings), rows=1, split="eval", seed=0)
    return Player(env, Agent(env, reader(reader.Config(), env.spec), RandomPolicy(None, env.spec)))


def show(capsys, *words):
    """Exit code, output, errors."""
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["ford", "hazardworld_grid", "lavawall"])
def test_every_drawable_env_marks_masked_cells_only(name):
    game = player(name, **({} if name == "ford" else {"eval_maps": 3}))
    cells = game.env.spec.cells
    plain, empty = game.env.frame(0), game.env.frame(0, torch.zeros(cells))
    assert plain.dtype == np.uint8 and plain.ndim == 3 and plain.shape[2] == 3
    assert (plain == empty).all()
    areas = []
    for index in ((0, 1), (1, 1)) if name == "ford" else ((2, 3), (4, 3)):
        mask = torch.zeros(cells)
        mask[index] = 1
        changed = (game.env.frame(0, mask) != plain).any(-1)
        areas.append(changed)
        y, x = np.nonzero(changed)
        tile = 104 if name == "ford" else 24
        assert len(y) and np.ptp(y) < tile and np.ptp(x) < tile, "one cell and no more"
    assert not (areas[0] & areas[1]).any()


@pytest.mark.parametrize(
    ("budget", "spent", "text"),
    [
        (3, 0, "budget 3 of 3 left"),
        (3, 1, "budget 2 of 3 left"),
        (3, 3, "budget 0 of 3 left"),
        (3, 4, "1 over the budget of 3"),
        (0, 0, "budget 0 of 0 left"),
        (25, 3.25, "budget 21.75 of 25 left"),
    ],
)
def test_budget_in_words_and_red_when_overspent(budget, spent, text):
    account = Account(budget, spent)
    assert str(account) == text
    frame = np.zeros((10, 312, 3), np.uint8)
    picture = compose(frame, Caption((Clause("Stay dry.", account, account),), 1.0, 2, 1, "oracle"))
    assert bool((picture == OVER).all(-1).any()) == (spent > budget)
    assert (picture[:10] == frame).all(), "the panel lies beneath the frame, not on it"


def test_truth_is_told_where_the_interpreter_differs():
    right, wrong = Account(2, 1), Account(0, 0)
    assert Clause("Stay dry.", right, right).remark == ""
    assert Clause("Stay dry.", wrong, right).remark == "truth: 1 of 2"
    caption = Caption((Clause("Stay dry.", wrong, right),), 1.5, 7, 2, "none")
    assert caption.text() == "Stay dry.\n  budget 0 of 0 left (truth: 1 of 2)\nstep 7   reward 1.5   episode 2"


def test_sentences_are_wrapped_and_never_lost():
    text = "Granny told of a hare that dashed onto the grass " + "very" * 40 + " often."
    lines = wrap(text, 200)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert len(lines) > 3
    assert wrap("", 200) == [""]
    assert wrap("ab", 1) == ["a", "b"], "no room at all: one letter a line"


def test_the_ledger_counts_along_with_the_truth():
    game = player()
    game.act(torch.tensor([0]))  # from the left post into the river
    clause = game.caption().clauses[0]
    assert (game.step, clause.understood.spent, clause.remark) == (1, 1, "")
    blind = player(interpreter="none")
    blind.act(torch.tensor([0]))
    assert blind.caption().clauses[0].remark.startswith("truth: ")


def test_a_film_has_each_step_and_one_size():
    game = player(steps=5)
    film = record(game, 3, torch.Generator().manual_seed(0))
    assert len(film) == 3 * 6
    assert len({picture.shape for picture in film.pictures()}) == 1
    with Image.open(io.BytesIO(gif(film, 8))) as image:
        assert (image.n_frames, image.info["loop"]) == (18, 0)
        durations = []
        for number, picture in enumerate(film.pictures()):
            image.seek(number)
            durations.append(image.info["duration"])
            error = np.abs(np.asarray(image.convert("RGB")).astype(int) - picture).max(-1)
            assert np.percentile(error, 99) <= 16, "the palette holds the colours that matter"
    assert durations == [120] * 5 + [1500] + [120] * 5 + [1500] + [120] * 5 + [1500]


def test_a_large_gif_is_thinned_and_keeps_the_ends():
    film = record(player(steps=5), 2, torch.Generator().manual_seed(0))
    assert len(film.thinned(3)) == 2 * 3  # steps 0, 3 and the last, 5
    assert isinstance(film.thinned(3), Film)


def test_recording_writes_gif_and_folder(folder, capsys):
    code, out, _ = show(capsys, "ford", "steps=4", "--episodes", 2, "--out", "deep/agent.gif")
    assert (code, out) == (0, "deep/agent.gif: 2 episodes, 10 frames\n")
    with Image.open("deep/agent.gif") as image:
        assert image.n_frames == 10
    code, out, _ = show(capsys, "ford", "steps=4", "--episodes", 1, "--out", "frames")
    assert (code, out) == (0, "frames: 1 episode, 5 frames\n")
    assert sorted(file.name for file in Path("frames").iterdir()) == [f"{n:05d}.png" for n in range(5)]
    code, out, _ = show(capsys, "ford", "--out", "small.gif", "--kilobytes", 30)
    assert code == 0 and Path("small.gif").stat().st_size <= 30_000
    assert "; only every " in out and out.endswith(" steps are in it (--kilobytes 30)\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a small finished run."""
    place = tmp_path_factory.mktemp("study")
    (place / "r.yaml").write_text(
        "study: s\ntraining: {steps: 2_400, batch: 1_200, rows: 25, evaluation: {episodes: 25}}\nseeds: [0]\n"
        "experiments:\n  heed: {env: {plugin: ford, steps: 6}, interpreter: oracle, policy: mlp, "
        "optimizer: ppo_lagrangian}\n"
    )
    assert study.main([str(place / "r.yaml"), "--runs-dir", str(place / "runs"), "--workers", "1", "--quiet"]) == 0
    return next((place / "runs" / "cells").iterdir())


def test_the_agent_of_a_run(folder, capsys, finished):
    for extra in ([], ["--greedy"], ["--interpreter", "none", "--split", "train"]):
        code, out, err = show(capsys, finished, "--episodes", 2, *extra)
        assert (code, out, err) == (0, "agent.gif: 2 episodes, 14 frames\n", "")
    one = Path("agent.gif").read_bytes()
    show(capsys, finished, "--episodes", 2, "--interpreter", "none", "--split", "train")
    assert Path("agent.gif").read_bytes() == one, "one seed, one film"


def test_runs_that_cannot_be_shown(folder, capsys, finished):
    copy = folder / "copy"
    shutil.copytree(finished, copy)
    (copy / "result.json").unlink()
    hint = "framework.run with its registry goes on with it\n"
    assert show(capsys, copy) == (2, "", f"{copy}: this run is not finished; {hint}")
    (copy / "failure.json").write_text("{}")
    assert show(capsys, copy) == (2, "", f"{copy}: this run failed; see its log.txt; {hint}")
    assert show(capsys, finished, "steps=3")[2].startswith("'steps=3': a run has its settings already")
    shutil.copy(finished / "result.json", copy)
    (copy / "policy.safetensors").write_bytes(b"junk")
    assert show(capsys, copy)[2].startswith(f"{copy}/policy.safetensors: is damaged and cannot be read: ")
    record = json.loads((copy / "run.json").read_text())
    record["config"]["policy"]["plugin"] = "absent"
    (copy / "run.json").write_text(json.dumps(record))
    message = "no policy plugin is called 'absent'; name its file: --plugin FILE"
    assert show(capsys, copy) == (2, "", f"{copy}/run.json: {message}\n")
    for text in ("{", "[]", "{}", '{"config": {"env": 3}}'):
        (copy / "run.json").write_text(text)
        assert show(capsys, copy) == (2, "", f"{copy}/run.json: is damaged and cannot be read\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fort", "no env plugin is called 'fort'; did you mean 'ford'?"),
        ("mlp", "'mlp' is a plugin of kind policy, not env"),
        (".", ".: is no run: it has no run.json; give a folder in runs/cells, or the name of an env"),
        ("runs/cells/x", "runs/cells/x: no such folder; give a folder in runs/cells, or the name of an env"),
        ("plain --plugin plain.py", "env 'plain' cannot be drawn: it has no frame() of its own"),
        ("plain --plugin plain.py --play", "env 'plain' cannot be drawn: it has no frame() of its own"),
        ("ford --interpreter orcale", "no interpreter plugin is called 'orcale'; did you mean 'oracle'?"),
        ("ford --greedy", "--greedy needs a trained agent: give the folder of a run, not the name of an env"),
        ("ford --episodes 0", "--episodes must be at least 1, not 0"),
        ("ford --fps 0", "--fps must be between 0.1 and 50, not 0"),
        ("ford --kilobytes -1", "--kilobytes must be at least 0, not -1"),
        ("ford --out a.avi", "--out: '.avi' files cannot be written; use .gif, .mp4, or a folder for PNG files"),
        ("ford --out .", "--out: the folder . is not empty"),
        ("ford steps=3 --out plain.py/a.gif", "--out: cannot write plain.py/a.gif: File exists"),
        (
            "ford stps=3",
            "command line: stps: unknown key 'stps'; did you mean 'steps'? [env 'ford' (plugins/envs/ford.py)]",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(folder, capsys, words, message):
    (folder / "plain.py").write_text(PLAIN)
    assert show(capsys, *words.split()) == (2, "", message + "\n")


def test_playing_from_a_pipe(folder, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO("d\nx9\n\x1b[C w\nq\nd\n"))
    code, out, err = show(capsys, "ford", "--play")
    assert (code, err) == (0, "")
    assert "d or 0: right, s or 1: down, a or 2: left, w or 3: up; q quits" in out
    assert [line for line in out.splitlines() if line.startswith("step ")] == [
        "step 0   reward 0   episode 1",
        "step 1   reward 0   episode 1",
        "step 2   reward 1   episode 1",
        "step 3   reward 1   episode 1",
    ]
    assert "budget 1 of 2 left" in out
    assert "'x' is no action\n'9' is no action\n" in out
    assert not list(folder.iterdir()), "playing writes nothing"


def test_playing_goes_on_to_the_next_episode_and_ends_with_the_input():
    out = io.StringIO()
    play(player(steps=2), io.StringIO("d a\n!\n"), out)
    assert "episode over; any action starts the next" in out.getvalue()
    assert out.getvalue().count("episode 2") == 1
    assert "▀" in out.getvalue()


def test_keys_follow_the_names_of_the_actions():
    compass, turn = (player("hazardworld_grid", eval_maps=3, actions=actions) for actions in ("compass", "turn"))
    assert [key_map(compass)[key] for key in "dsaw"] == [0, 1, 2, 3]
    assert [key_map(turn)[key] for key in ("\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "3")] == [0, 1, 2, 3, 3]


def test_half_blocks_fit_the_terminal():
    picture = np.zeros((104, 208, 3), np.uint8)
    picture[52:] = 255
    lines = half_blocks(picture, 80, 20).splitlines()
    assert len(lines) <= 20
    assert all(line.count("▀") <= 80 for line in lines)
    assert lines[0].startswith("\x1b[38;2;0;0;0;48;2;0;0;0m") and lines[-1].startswith("\x1b[38;2;255;255;255;")
