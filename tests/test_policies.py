"""Policies of the grid worlds: what they see, what they remember, what the switches switch off."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from framework.agent import Agent, labels_for
from framework.interfaces import PolicyInput
from framework.plugin_manager import PluginHost
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig
from plugins.policies import _ego_map, fusion_grid
from plugins.policies._ego_map import EgoMap
from plugins.policies._nets import Twin, dense
from plugins.policies._sentence import BUCKETS
from plugins.policies._sight import Sight
from plugins.policies._uses import Uses
from plugins.texts.words import hash_words_twice, split_words

CATALOG = PluginHost().catalog
WALL, BALL = 2, 6


def world(rows=6, **settings):
    return HazardWorldGrid(HazardWorldGridConfig(**settings), rows=rows, split="train", seed=0)


def policy(name, spec, **settings):
    cls = CATALOG.get("policy", name).cls
    torch.manual_seed(0)
    return cls(cls.Config(**settings), spec)


def walk(env, net, steps, seed=0):
    """Inputs of each step of a random walk, with the oracle's masks."""
    oracle = CATALOG.get("interpreter", "oracle").cls(None, env.spec)
    agent = Agent(env, oracle, net)
    stream = torch.Generator().manual_seed(seed)
    now, mind, action = env.reset(), agent.fresh_mind(), agent.no_action()
    for _ in range(steps):
        inputs, mind = agent.perceive(now, mind, action, labels_for(oracle, env))
        yield inputs, mind, now
        action = torch.randint(4, (env.rows,), generator=stream)
        now = env.step(action)


def test_the_map_holds_all_that_was_seen_where_it_was():
    """Against a map drawn cell by cell from the same walk, in plain Python."""
    env = world(rows=3, max_steps=40)
    net = policy("polco_grid", env.spec)
    codes, places = [{} for _ in range(3)], [np.zeros(2, int) for _ in range(3)]
    for inputs, mind, now in walk(env, net, 90):
        for row in range(3):
            if now.episode_start[row]:
                codes[row], places[row] = {}, np.zeros(2, int)
            elif now.touched[row].any():
                places[row] = places[row] + np.argwhere(now.touched[row].numpy())[0] - 3
            for i, j in np.ndindex(7, 7):
                codes[row][tuple(places[row] + (i - 3, j - 3))] = int(inputs.obs[row, i, j, 0])
        blocks = 5 * 5
        overview = net.sight._map.overview(mind.policy).view(3, -1, 5, 5)
        landmarks = net.sight._map.landmarks
        assert overview.shape[1] * blocks == (1 + len(landmarks)) * blocks
        for row in range(3):
            expected = np.zeros((1 + len(landmarks), 5, 5))
            for (x, y), code in codes[row].items():
                dx, dy = np.array((x, y)) - places[row] + _ego_map.REACH
                if 0 <= dx < 25 and 0 <= dy < 25:
                    expected[0, dx // 5, dy // 5] += 1 / 25
                    if code in landmarks:
                        expected[1 + landmarks.index(code), dx // 5, dy // 5] = 1
            assert np.allclose(overview[row].numpy(), expected, atol=1e-6)


def test_the_track_fades_and_moves_with_the_agent():
    drawer = EgoMap((7, 7), (WALL, BALL), ())
    state = drawer.blank(1)
    view = torch.ones(1, 7, 7, dtype=torch.uint8)
    still, right = torch.zeros(1, 7, 7, dtype=torch.bool), torch.zeros(1, 7, 7, dtype=torch.bool)
    right[0, 4, 3] = True
    for move in (still, right, right):
        state = drawer.walk(state, view, still, move)
    track = drawer.track(state)[0]
    assert track[3, 3] == 1
    assert track[2, 3] == pytest.approx(_ego_map.FADE)
    assert track[1, 3] == pytest.approx(_ego_map.FADE**2)
    assert (track > 0.01).sum() == 3


@pytest.mark.parametrize("kind", ["budgetary", "relational", "sequential"])
def test_what_was_forbidden_by_distance_is_remembered_and_nothing_else(kind):
    """Against books kept by hand: the policy's M_C is the mask, and in relational worlds all that ever was in it."""
    env = world(rows=20, constraint=kind)
    net = policy("polco_grid", env.spec)
    books, places, recalled = [set() for _ in range(20)], np.zeros((20, 2), int), 0
    for inputs, mind, now in walk(env, net, 150):
        shown = torch.maximum(inputs.mask, net.sight._map.recall(mind.policy)) > 0
        for row in range(20):
            if now.episode_start[row]:
                books[row], places[row] = set(), 0
            elif now.touched[row].any():
                places[row] += np.argwhere(now.touched[row].numpy())[0] - 3
            view = {(i, j): tuple(places[row] + (i - 3, j - 3)) for i, j in np.ndindex(7, 7)}
            books[row] |= {place for cell, place in view.items() if inputs.mask[row][cell]}
            for cell, place in view.items():
                forbidden = bool(inputs.mask[row][cell])
                recalled += place in books[row] and not forbidden
                assert bool(shown[row][cell]) == (place in books[row] if kind == "relational" else forbidden)
    assert recalled if kind == "relational" else True


def test_a_new_episode_starts_with_an_empty_map():
    env = world(rows=4, max_steps=10)
    net = policy("polco_grid", env.spec)
    for _, mind, now in walk(env, net, 40):
        for row in now.episode_start.nonzero().flatten().tolist():
            assert int((mind.policy[0][row] > 0).sum()) == 49, "only what is in view"


def test_memory_needs_the_agent_in_the_middle():
    with pytest.raises(ValueError, match="memory: none"):
        policy("polco_grid", world(actions="turn").spec)
    policy("polco_grid", world(actions="turn").spec, memory="none")
    with pytest.raises(ValueError, match="visited or none"):
        policy("polco_grid", world().spec, network="paper")


@pytest.mark.parametrize("network", [{}, {"network": "paper", "memory": "none", "budget": "paper"}])
@pytest.mark.parametrize("switch", ["mask", "budget", "threshold"])
def test_what_is_switched_off_does_not_reach_the_policy(network, switch):
    env = world()
    uses = Uses(**{switch: False, **({"budget": False} if switch == "mask" else {})})
    seen = {}
    for on in (True, False):
        net = policy("polco_grid", env.spec, uses=Uses() if on else uses, **network)
        *_, (inputs, mind, _) = walk(env, net, 30)
        change = {switch: getattr(inputs, switch) + 1}
        if switch == "mask":
            change["budget"] = inputs.budget - 2
        other = dataclasses.replace(inputs, **change)
        memory, _ = net.remember(other, mind.policy)
        before, _ = net.remember(inputs, mind.policy)
        logits = [
            net.distribution(dataclasses.replace(i, memory=m)).entropy() for i, m in ((inputs, before), (other, memory))
        ]
        seen[on] = torch.equal(*logits)
    assert seen == {True: False, False: True}


def test_the_split_budget_shows_the_last_free_entry_where_the_papers_hides_it():
    env = world()
    blank = PolicyInput.blank(env.spec, 2)
    mask = torch.zeros(2, 7, 7)
    mask[0, 3, 4] = 1  # row 0: forbidden and spent == h_C; row 1: not forbidden
    inputs = dataclasses.replace(blank, mask=mask, budget=0 * mask)
    uses = Uses(mask=False)
    paper, split, shifted = (
        Sight(env.spec, uses, "none", form, hazards=False, image=False).look(inputs, ())[0]
        for form in ("paper", "split", "shifted")
    )
    assert torch.equal(paper[0], paper[1])
    assert not torch.equal(split[0], split[1])
    assert not torch.equal(shifted[0], shifted[1])


def two_constraints(env):
    """One row: cell 0 is forbidden twice (one entry left under the tighter budget), cell 1 once (none left)."""
    blank = PolicyInput.blank(env.spec, 1)
    mask, budget = torch.zeros(2, *env.spec.cells).flatten(1)
    mask[:2] = torch.tensor([2.0, 1.0])
    budget[:2] = torch.tensor([-1.0, 0.0])
    return dataclasses.replace(blank, mask=mask.view_as(blank.mask), budget=budget.view_as(blank.mask))


def test_the_shifted_budget_is_shifted_by_one_however_many_sentences_forbid_a_cell():
    env = world(constraints=2)
    sight = Sight(env.spec, Uses(mask=False, threshold=False), "none", "shifted", hazards=False, image=False)
    seen, _ = sight.look(two_constraints(env), ())
    plane = seen[0, -49:]
    assert plane.tolist() == [0.0, 1.0, *[0.0] * 47]


def test_the_budget_of_mlp_is_shifted_by_one_however_many_sentences_forbid_a_cell():
    cls = CATALOG.get("env", "ford").cls
    env = cls(cls.Config(), rows=1, split="train", seed=0)
    net = policy("mlp", env.spec, uses=Uses(mask=False, threshold=False))
    cells = env.spec.cells[0] * env.spec.cells[1]
    column = net._features(two_constraints(env))[0, -cells:]
    assert column.tolist() == pytest.approx([0.0, np.tanh(1.0), *[0.0] * (cells - 2)])


def test_without_hazards_the_policy_is_the_same_for_lava_and_water():
    env = world()
    lava, water, _ = env.spec.entity_codes
    obs = torch.ones(2, 7, 7, 3, dtype=torch.uint8)
    obs[0, 2, 2, 0], obs[1, 2, 2, 0] = lava, water
    inputs = dataclasses.replace(PolicyInput.blank(env.spec, 2), obs=obs)
    for hazards, same in ((False, True), (True, False)):
        seen, _ = Sight(env.spec, Uses(), "none", "split", hazards, image=False).look(inputs, ())
        assert torch.equal(seen[0], seen[1]) is same


def test_fusion_reads_the_sentence_and_nothing_else_of_the_constraint():
    env = world()
    net = policy("fusion_grid", env.spec)
    *_, (inputs, mind, _) = walk(env, net, 5)
    inputs = dataclasses.replace(inputs, text=torch.zeros_like(inputs.text))
    other = dataclasses.replace(inputs, text=inputs.text + 1)
    assert not torch.equal(net.distribution(inputs).entropy(), net.distribution(other).entropy())
    told = dataclasses.replace(inputs, mask=inputs.mask + 1, budget=inputs.budget + 1, threshold=inputs.threshold + 1)
    told = dataclasses.replace(told, memory=net.remember(told, mind.policy)[0])
    again = dataclasses.replace(inputs, memory=net.remember(inputs, mind.policy)[0])
    assert torch.equal(net.distribution(told).entropy(), net.distribution(again).entropy())


def test_fusion_learns_its_text_end_to_end():
    """The LSTM is part of theta: a trust-region step moves it, and the Fisher product reaches it."""
    env = world()
    net = policy("fusion_grid", env.spec)
    *_, (inputs, _, _) = walk(env, net, 5)
    names = [name for name, _ in net.named_parameters() if name.startswith("actor.sentence.lstm")]
    assert names
    inside = {id(p) for p in net.actor_parameters()}
    assert all(id(p) in inside for name, p in net.named_parameters() if name in names)
    entropy = net.distribution(inputs).entropy().sum()
    weights = [p for n, p in net.named_parameters() if n in names]
    grads = torch.autograd.grad(entropy, weights, create_graph=True)
    twice = torch.autograd.grad(sum(g.square().sum() for g in grads), weights, allow_unused=True)
    assert any(g is not None and bool(g.abs().sum() > 0) for g in twice)


@pytest.mark.parametrize("name", ["polco_grid", "fusion_grid"])
def test_several_constraints_at_once(name):
    env = world(constraints=3)
    net = policy(name, env.spec)
    *_, (inputs, _, _) = walk(env, net, 10)
    assert torch.isfinite(net.values(inputs).cost).all()


def test_fusion_is_about_as_large_as_polco():
    spec = world().spec
    sizes = [sum(p.numel() for p in policy(name, spec).actor_parameters()) for name in ("polco_grid", "fusion_grid")]
    assert 0.5 < sizes[0] / sizes[1] < 2
    assert all(f"{size:,}" in (fusion_grid.__doc__ or "") for size in sizes), "the file says how many parameters"
    paper = dict(network="paper", memory="none")
    small = sum(p.numel() for p in policy("polco_grid", spec, budget="paper", **paper).actor_parameters())
    assert small < 3_000


@pytest.mark.parametrize("hidden", [(8, 8), ()])
def test_networks_take_their_input_whole_or_in_parts(hidden):
    view, text = torch.randn(5, 7), torch.randn(5, 3, requires_grad=True)
    for net in (dense(10, hidden, 4, last_gain=0.01), Twin(10, hidden)):
        whole, parts = net(torch.cat([view, text], -1)), net(view, text)
        for one, other in zip(whole, parts, strict=True):
            torch.testing.assert_close(one, other)
        (by_whole,), (by_parts,) = (
            torch.autograd.grad(sum(part.sum() for part in out), text) for out in (whole, parts)
        )
        torch.testing.assert_close(by_whole, by_parts)


def test_twin_is_two_separate_networks():
    torch.manual_seed(0)
    twin = Twin(5, (4, 3))
    x = torch.randn(7, 5)
    for which in (0, 1):
        plain = dense(5, (4, 3), 1, 1.0)
        layers = [layer for layer in plain if isinstance(layer, torch.nn.Linear)]
        with torch.no_grad():
            layers[0].weight.copy_(twin.first.view(2, 4, 5)[which])
            for layer, weight in zip(layers[1:], twin.rest, strict=True):
                layer.weight.copy_(weight[which].T)
        assert torch.allclose(plain(x).squeeze(-1), twin(x)[which], atol=1e-6)
    grad = torch.autograd.grad(twin(x)[0].sum(), twin.first)[0].view(2, 4, 5)
    assert bool((grad[0] != 0).any())
    assert not bool((grad[1] != 0).any())


@pytest.mark.parametrize("name", ["polco_grid", "fusion_grid", "mlp"])
def test_softened_it_prefers_the_same_and_is_less_sure(name):
    env = world()
    net = policy(name, env.spec)
    with torch.no_grad():  # a policy that has learned something
        for parameter in net.actor_parameters():
            parameter.mul_(3)
    *_, (inputs, _, _) = walk(env, net, 5)
    with torch.no_grad():
        before = net.distribution(inputs)
        net.soften(0.2)
        after = net.distribution(inputs)
    assert torch.equal(before.mode(), after.mode())
    assert bool((after.entropy() >= before.entropy() - 1e-6).all())
    assert float(after.entropy().mean()) > float(before.entropy().mean())


def test_words_that_share_one_row_of_constraint_fusions_embedding_seldom_share_the_other():
    sentences = {
        s for constraint in ("budgetary", "relational", "sequential") for s in world(constraint=constraint).sentences
    }
    words = sorted({word for sentence in sentences for word in split_words(sentence)})
    rows = hash_words_twice(words, length=1, buckets=BUCKETS)[:, 0]
    assert len(words) > 1_000
    assert int(rows[:, 0].max()) <= BUCKETS < int(rows[:, 1].min()), "rows of their own"
    pairs = len(words) * (len(words) - 1) / 2
    both = len(words) - len({tuple(row) for row in rows.tolist()})
    assert both <= 5 * (1 + pairs / BUCKETS**2), "about as many as chance would have"
