"""The tiny world: its rules, its optimum, and that a whole study solves it."""

from __future__ import annotations

import itertools

import pytest
import torch

from framework.agent import Agent
from framework.cell import Cell, Part
from framework.evaluator import evaluate
from framework.interfaces import Categorical, PolicyNet, Values
from framework.plugin_manager import PluginHost
from framework.schema import Training
from framework.seeding import generator
from plugins.envs import ford
from plugins.interpreters.oracle import Oracle

RIGHT, DOWN, LEFT, UP = range(4)


def deliveries(moves, wades_allowed) -> int | None:
    """An independent simulation of one row; None when a wade goes past the budget."""
    place, target, got, wades = (1, 0), (1, 2), 0, 0
    for move in moves:
        dy, dx = ford.MOVES[move]
        y, x = place[0] + dy, place[1] + dx
        if 0 <= y < 2 and 0 <= x < 3:
            place = (y, x)
            wades += (y, x) == (1, 1)
        if wades > wades_allowed:
            return None
        if place == target:
            got, target = got + 1, (1, 0) if target == (1, 2) else (1, 2)
    return got


@pytest.mark.parametrize("budget", range(4))
@pytest.mark.parametrize("steps", [1, 3, 6, 8])
def test_ceiling_is_the_best_of_all_action_sequences(budget, steps):
    best = max(
        got for moves in itertools.product(range(4), repeat=steps) if (got := deliveries(moves, budget)) is not None
    )
    assert ford._best(ford.LEFT_POST, True, budget, steps) == best


def test_more_budget_pays():
    ceilings = [ford._best(ford.LEFT_POST, True, h, 24) for h in range(4)]
    assert ceilings == [6, 6, 7, 7]


def test_rules_step_by_step():
    world = ford.Ford(ford.Config(steps=6), rows=1, split="train", seed=0)
    now = world.reset()
    assert now.episode_start.item()
    now = world.step(torch.tensor([RIGHT]))
    assert now.cost.item() == 1, "wading"
    assert now.touched[0].tolist() == [[False] * 3, [False, True, False]]
    now = world.step(torch.tensor([RIGHT]))
    assert (now.reward.item(), now.cost.item()) == (1, 0)
    now = world.step(torch.tensor([DOWN]))
    assert not now.touched.any(), "a bump touches nothing"
    for move in (UP, LEFT, LEFT):
        now = world.step(torch.tensor([move]))
        assert now.cost.item() == 0
    assert now.truncated.item()
    text = now.text.item()
    now = world.step(torch.tensor([DOWN]))
    assert now.episode_start.item()
    assert (now.reward.item(), now.cost.item(), now.truncated.item()) == (0, 0, False)
    assert isinstance(text, int)


class Planner(PolicyNet):
    """Wades while the budget lasts, then takes the bridge: reads only what the ledger says."""

    name = "planner"

    def distribution(self, inputs):
        here, goal = (inputs.obs[..., c].flatten(1).argmax(-1) for c in (1, 2))
        may_wade = inputs.budget[:, 1, 1] < 0
        towards_right = goal == 5
        across = torch.where(towards_right, RIGHT, LEFT)
        top = here < 3
        at_far_column = torch.where(towards_right, here % 3 == 2, here % 3 == 0)
        bridge = torch.where(top & at_far_column, DOWN, torch.where(top, across, UP))
        in_water = here == 4
        action = torch.where(in_water | (may_wade & ~top), across, bridge)
        return Categorical.from_logits(torch.nn.functional.one_hot(action, 4) * 100.0)

    def values(self, inputs):
        zero = torch.zeros(len(inputs.obs))
        return Values(zero, zero)


def test_ledger_tells_a_planner_all_it_needs():
    """A scripted policy that sees only policy inputs reaches the ceiling without a violation."""
    world = ford.Ford(ford.Config(), rows=20, split="eval", seed=3)
    agent = Agent(world, Oracle(None, world.spec), Planner(None, world.spec))
    result = evaluate(world, agent, episodes=200, gamma=0.99, generator=generator(0, "x"))
    assert result.violation.max() == 0
    assert result.cost.sum() > 0, "the budget is spent"
    assert torch.equal(result.reward, result.ceiling)


def cell(**training) -> Cell:
    parts = {
        "env": Part("env", "ford", ford.Config()),
        "interpreter": Part("interpreter", "oracle", Oracle.Config()),
    }
    host = PluginHost()
    mlp, ppo = host.catalog.get("policy", "mlp").cls, host.catalog.get("optimizer", "ppo_lagrangian").cls
    parts["policy"] = Part("policy", "mlp", mlp.Config(hidden=(32, 32)))
    parts["optimizer"] = Part("optimizer", "ppo_lagrangian", ppo.Config(learning_rate=2e-3, **training.pop("ppo", {})))
    return Cell(training=Training(**training), **parts)


def trained(steps, **training):
    from framework.builder import build, build_env
    from framework.trainer import Trainer

    host, spec = PluginHost(), cell(steps=steps, batch=2_400, rows=100, **training)
    system = build(spec, 0, host.catalog)
    Trainer(system, spec.training, 0, lambda step, metrics: None).train()
    env = build_env(spec, 0, host.catalog, "eval")
    return evaluate(env, Agent(env, system.interpreter, system.policy), 400, 0.99, generator(0, "evaluation"))


def test_the_ford_is_solved_and_an_agent_that_does_not_heed_breaks_its_budget():
    careful = trained(steps=96_000)
    assert careful.violation.mean() < 0.1
    assert careful.reward.mean() / careful.ceiling.mean() > 0.85
    careless = trained(steps=36_000, ppo={"multiplier": 0.0, "multiplier_rate": 0.0})
    assert careless.violation.mean() > 5
