"""Gymnasium environments through the adapter: both autoreset protocols, every vectorization, going on, studies."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from pathlib import Path

import pytest
import torch
from stairs import (
    Climber,
    Walker,
    adapter,
    agent_of,
    assert_same_episodes,
    collect,
    ids,  # noqa: F401  a fixture for every test here
)

from framework.evaluator import evaluate
from framework.interfaces import Categorical, ConstraintEnv, NoConfig, Values
from framework.run import OK, main
from framework.testing import check_env
from framework.testing.contract import same
from plugins.envs.ford import Ford
from plugins.envs.gymnasium_adapter import Config, GymnasiumAdapter


@pytest.mark.parametrize("constraint", ["mean", "excess"])
def test_both_autoreset_protocols_give_the_same_episodes_and_advantages(constraint):
    next_step, same_step = (
        collect(adapter(autoreset=mode, limit=1), 60, constraint=constraint) for mode in ("next_step", "same_step")
    )
    assert_same_episodes(next_step, same_step, 30)
    ends = same_step.episodes.length
    assert {*ends.tolist()} > {4.0}, "some are cut off after four steps, some reach the top before"


def test_advantages_at_the_time_limit_by_hand():
    """One row climbs 0, 1, 2 and is cut off there: V(2) must count, not the value of the next episode's start."""

    class Height(Climber):
        def distribution(self, inputs):
            return Categorical.from_logits(torch.tensor([[0.0, 200.0]]).expand(len(inputs.obs), 2))

        def values(self, inputs):
            return Values(10 + inputs.obs[:, 0], inputs.obs[:, 0])

    for mode in ("next_step", "same_step"):
        env = adapter(rows=1, autoreset=mode, max_steps=2, kwargs={"random": False}, limit=3)
        rollout = collect(env, 6, Height)
        valid = rollout.valid[:, 0]
        assert valid.tolist() == ([True, True, False] * 2 if mode == "next_step" else [True] * 6)
        last = 2 + 0.5 * 12 - 11
        first = 1 + 0.5 * 11 - 10 + 0.25 * last
        assert rollout.advantage[:, 0][valid].tolist()[:4] == [first, last, first, last]
        assert rollout.value_target[:, 0][valid].tolist()[:2] == [first + 10, last + 11]
        cost_last, cost_first = 0.5 + 2 - 1, (0.5 + 1 - 0) + 0.5 * (0.5 + 2 - 1)
        assert rollout.cost_advantage[:, 0][valid].tolist()[:4] == [cost_first, cost_last] * 2
        assert rollout.episodes.reward.tolist() == [3.0] * (2 if mode == "next_step" else 3)
        assert (
            set(rollout.episodes.cost.flatten().tolist())
            == set(rollout.episodes.predicted_cost.flatten().tolist())
            == {1}
        )


class SameStep(ConstraintEnv):
    """The ford, reset within the step; all rows end together. Every episode has a sentence and budget of its own."""

    name, kinds = "same_step", Ford.kinds

    def __init__(self, rows):
        super().__init__(NoConfig(), rows, "train", 1)
        self.inner = Ford(Ford.Config(steps=5), rows, "train", 1)

    spec = property(lambda self: self.inner.spec)
    sentences = property(lambda self: self.inner.sentences)

    def reset(self):
        return self.inner.reset()

    def step(self, actions):
        now = self.inner.step(actions)
        if not bool(now.done.any()):
            return dataclasses.replace(now, final_obs=now.obs)
        new = self.inner.step(actions)
        fields = ("obs", "text", "threshold", "kind", "episode_start")
        return dataclasses.replace(now, final_obs=now.obs, **{name: getattr(new, name) for name in fields})

    def labels(self):
        return self.inner.labels()

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


class Wader(Walker):
    """From post to post through the water, and so paid in the last step, too."""

    def distribution(self, inputs):
        moves = torch.where(inputs.memory[:, 0].long() // 2 % 2 == 0, 0, 2)
        return Categorical.from_logits(torch.nn.functional.one_hot(moves, 4) * 200.0)


def test_a_finished_episode_keeps_its_own_sentence_and_budget():
    plain, reset_within = Ford(Ford.Config(steps=5), 4, "train", 1), SameStep(4)
    next_step, same_step = collect(plain, 60, Walker), collect(reset_within, 60, Walker)
    assert_same_episodes(next_step, same_step, 40)
    count = len(next_step.episodes)
    assert len(set(next_step.episodes.threshold.flatten().tolist())) > 1
    for field in dataclasses.fields(next_step.episodes):
        one, two = getattr(next_step.episodes, field.name), getattr(same_step.episodes, field.name)
        assert torch.equal(one, two[:count]), field.name
    one, two = (evaluate(env, agent_of(env, Wader), 40, 0.9, torch.Generator()) for env in (plain, reset_within))
    for name in ("reward", "discounted", "safe_reward", "cost", "threshold", "kind", "length"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    assert (one.safe_reward < one.reward).any(), "some violate before they are paid"


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_contract(mode):
    assert check_env(GymnasiumAdapter, Config(autoreset=mode))


def play(env, steps):
    """Rewards and costs of each row's episodes, in order, up to ``steps`` steps."""
    now, books = env.reset(), [[[0.0, 0.0, 0]] for _ in range(env.rows)]
    for t in range(steps):
        ready = now.done if now.final_obs is None else torch.zeros(env.rows, dtype=torch.bool)
        now = env.step(torch.full((env.rows,), t % 2))
        assert torch.equal(now.touched, now.cost)
        assert (now.cost[ready] == 0).all()
        assert (now.reward[ready] == 0).all()
        for row in torch.nonzero(~ready).flatten().tolist():
            books[row][-1] = [
                books[row][-1][0] + now.reward[row].item(),
                books[row][-1][1] + now.cost[row].item(),
                books[row][-1][2] + 1,
            ]
            if now.done[row]:
                books[row].append([0.0, 0.0, 0])
    return [row[:-1] for row in books]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("HeedStairs-v0", {"vectorization": "async", "autoreset": "next_step"}),
        ("HeedStairs-v0", {"vectorization": "async", "autoreset": "same_step"}),
        ("HeedStairsNext-v0", {"vectorization": "vector_entry_point"}),
        ("HeedStairsSame-v0", {"vectorization": "vector_entry_point"}),
    ],
)
def test_vector_environments_lose_no_cost(name, settings):
    """The last step's cost is in final_info, and a reset's info (cost 99) is no step's."""
    env = adapter(name, kwargs={"random": False}, **settings)
    same_step = "Same" in name or settings.get("autoreset") == "same_step"
    try:
        for episodes in play(env, 20):
            # Actions alternate with the clock; an episode has four steps, with NEXT_STEP every fifth step is a reset.
            stay_first, climb_first = [0 + 1 + 1 + 2, 1.0, 4], [1 + 1 + 2 + 2, 1.0, 4]
            assert episodes == ([stay_first] * 5 if same_step else [stay_first, climb_first] * 2)
    finally:
        env.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_restored_vector_environment_cuts_its_episodes_off(mode):
    settings = {"vectorization": "async", "autoreset": mode}
    source, target = adapter(**settings), adapter(seed=5, **settings)
    try:
        source.reset()
        for _ in range(4):
            now = source.step(torch.zeros(3, dtype=torch.int64))
        now = source.step(torch.zeros(3, dtype=torch.int64))
        now = source.step(torch.tensor([1, 1, 1]))
        target.reset()
        target.load_state_dict(source.state_dict())
        cut = target.step(torch.ones(3, dtype=torch.int64))
        running = ~now.done if mode == "next_step" else torch.ones(3, dtype=torch.bool)
        assert torch.equal(cut.truncated, running)
        assert (cut.reward.sum(), cut.cost.sum(), cut.terminated.sum()) == (0, 0, 0)
        last = cut.obs if mode == "next_step" else cut.final_obs
        assert torch.equal(last[running], now.obs[running])
        assert torch.equal(cut.episode_start, now.done if mode == "next_step" else cut.done)
        if mode == "next_step":
            begin = target.step(torch.ones(3, dtype=torch.int64))
            assert torch.equal(begin.episode_start, cut.done)
            assert begin.obs[:, 1].tolist() == [0, 0, 0]
        after = target.step(torch.ones(3, dtype=torch.int64))
        assert (after.cost == 0.5).all()
    finally:
        source.close()
        target.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_run_goes_on_exactly_from_any_step(mode, recwarn):
    source, target = adapter(autoreset=mode), adapter(autoreset=mode, seed=9)
    source.reset()
    target.reset()
    ended = torch.zeros(3)
    for t in range(25):
        target.load_state_dict(source.state_dict())
        actions = torch.tensor([t % 2, 1, t % 3 == 0]).long()
        one, two = source.step(actions), target.step(actions)
        assert same(one, two), t
        ended += one.done
    assert bool((ended >= 3).all())
    assert not recwarn.list


def test_every_episode_has_a_seed_of_its_own():
    env = adapter(rows=2, autoreset="same_step", max_steps=1)
    now, heights = env.reset(), []
    for _ in range(12):
        heights.append(tuple(now.obs[:, 0].tolist()))
        now = env.step(torch.zeros(2, dtype=torch.int64))
    assert len(set(heights)) > 3
    assert env.reset().obs[:, 0].tolist() == list(heights[0])


def test_a_world_that_is_not_deterministic_is_cut_off_with_a_warning():
    source, target = adapter(kwargs={"draws": True}), adapter(kwargs={"draws": True})
    source.reset()
    now = source.step(torch.zeros(3, dtype=torch.int64))
    target.reset()
    with pytest.warns(UserWarning, match=r"the episodes of rows \[0, 1, 2\] cannot be restored"):
        target.load_state_dict(source.state_dict())
    cut = target.step(torch.zeros(3, dtype=torch.int64))
    assert cut.truncated.all()
    assert torch.equal(cut.obs, now.obs)
    assert target.step(torch.zeros(3, dtype=torch.int64)).episode_start.all()


STUDY = """
study: gymnasium
training: {steps: 480, batch: 240, rows: 4, evaluation: {episodes: 4}}
experiments:
  grid:
    env:
      plugin: gymnasium_adapter
      id: HazardWorld-Budgetary-v0
      module: hazardworld
      kwargs: {labels: false}
      eval_kwargs: {split: eval}
      observation_key: image
      levels: [13, 6, 3]
      limit: 2
      max_steps: 30
    interpreter: oracle
    policy: mlp
    optimizer: ppo_lagrangian
  processes:
    env: {plugin: gymnasium_adapter, vectorization: async, autoreset: same_step}
    interpreter: oracle
    policy: mlp
    optimizer: ppo_lagrangian
"""


def test_a_study_through_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(STUDY)
    assert main(["registry.yaml", "--workers", "1"]) == OK, capsys.readouterr().out
    for folder in Path("runs/cells").iterdir():
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert [row["step"] for row in rows][:2] == [240, 480]
        assert rows[0]["episodes"] > 0
        assert rows[0]["predicted_violation"] == rows[0]["violation"], "with the oracle the ledger books the true cost"


def test_the_line_of_a_mistake_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(STUDY.replace("HazardWorld-Budgetary-v0", "HazardWorld-Budgetary-v1"))
    assert main(["registry.yaml"]) == 2
    assert capsys.readouterr().err.startswith(
        "registry.yaml:8: experiments.grid.env.id: id 'HazardWorld-Budgetary-v1' is not known to Gymnasium; "
        "did you mean 'HazardWorld-Budgetary-v0'? [env 'gymnasium_adapter'"
    )


@pytest.mark.parametrize(
    ("code", "told"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("raise SystemExit('bye')", "SystemExit: bye"),
     ("def (", "SyntaxError: invalid syntax (my_worlds.py, line 1)")],
)  # fmt: skip
def test_a_module_that_raises_at_import_is_told(code, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("my_worlds.py").write_text(code + "\n")
    Path("registry.yaml").write_text(STUDY.replace("module: hazardworld", "module: my_worlds"))
    assert main(["registry.yaml", "--check"]) == 2
    assert f"experiments.grid.env.module: module 'my_worlds' raised at import: {told} (" in capsys.readouterr().err
