"""What an agent books is what the benchmark charges, also for what comes into view only as it is entered."""

from __future__ import annotations

import pytest
import torch
from test_interpreters import code_of, meaning_of, world

from framework.agent import Agent, labels_for
from framework.interfaces import ConstraintInterpreter, Interpretation, InterpreterInput, Labels
from framework.plugin_manager import PluginHost
from hazardworld.constraint import ALL_CLASSES
from plugins.interpreters._meaning import Slots, expected_mask, scene_of, trespass


class Sure(ConstraintInterpreter):
    """Knows what each sentence means, and looks for itself."""

    name = "sure"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.slots, self.scene = Slots.of(spec), scene_of(spec)
        self.code = torch.zeros(0)

    def encode(self, sentences):
        return self.code

    def initial_state(self, rows):
        return self.scene.nothing_met(rows)

    def step(self, inputs, state):
        state = self.scene.remember(state, inputs.obs, inputs.touched)
        meaning = self.slots.unpack(inputs.code)
        mask = expected_mask(meaning, self.scene, inputs.obs, state[0])
        late = trespass(meaning, self.scene, inputs.obs)
        return Interpretation(mask, inputs.code[:, -self.slots.threshold :].argmax(-1).float(), trespass=late), state


class Forgetful(Sure):
    """The same, but never looks back."""

    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask, seen.threshold), state


def books(env, interpreter, steps=400):
    """Predicted and true cost of each move of a random walk."""
    policy = PluginHost().catalog.get("policy", "random_walk").cls(None, env.spec)
    agent, draw = Agent(env, interpreter, policy), torch.Generator().manual_seed(0)
    now, mind, action = env.reset(), agent.fresh_mind(), agent.no_action()
    predicted, true = [], []
    for _ in range(steps):
        _, mind = agent.perceive(now, mind, action, labels_for(interpreter, env))
        predicted.append(mind.ledger.cost)
        true.append(now.cost)
        action = torch.randint(4, (env.rows,), generator=draw)
        now = env.step(action)
    return torch.stack(predicted), torch.stack(true)


def sure(env, cls=Sure):
    interpreter, table = cls(None, env.spec), env._table
    codes = {
        table.start[i] + j: code_of(meaning_of(c), interpreter.slots)
        for i, c in enumerate(ALL_CLASSES)
        for j in range(table.count[i])
    }
    blank = torch.zeros(1, sum(interpreter.slots.sizes().values()))
    interpreter.code = torch.cat([codes.get(s, blank) for s in range(len(env.sentences))])
    return interpreter


@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("kind", ["budgetary", "relational", "sequential", "mixed"])
def test_who_reads_rightly_books_what_is_charged(kind, constraints):
    env = world(kind, rows=50, constraints=constraints)
    predicted, true = books(env, sure(env))
    assert true.sum() > 50
    assert torch.equal(predicted, true)


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("kind", ["budgetary", "relational", "sequential"])
def test_the_oracle_books_what_is_charged(kind, actions):
    env = world(kind, rows=50, actions=actions)
    predicted, true = books(env, PluginHost().catalog.get("interpreter", "oracle").cls(None, env.spec))
    assert true.sum() > 10
    assert torch.equal(predicted, true)


def test_without_looking_back_lava_past_the_rim_is_free():
    env = world("relational", rows=50)
    predicted, true = books(env, sure(env, Forgetful))
    assert predicted.sum() < true.sum()
    assert (predicted <= true).all()


def test_to_the_oracle_any_cost_is_a_trespass():
    env = world("relational")
    oracle = PluginHost().catalog.get("interpreter", "oracle").cls(None, env.spec)
    labels = Labels(torch.zeros(2, 1, *env.spec.cells), torch.zeros(2, 1), torch.tensor([[0.3], [0.0]]))
    seen, _ = oracle.step(InterpreterInput(torch.zeros(2, 1), torch.zeros(2, 0), labels, torch.zeros(2)), ())
    assert seen.trespass.tolist() == [1, 0]
