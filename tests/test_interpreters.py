"""What interpreters are made of: meanings and masks, evidence, variations, scores."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from framework.interfaces import Lesson
from framework.plugin_manager import PluginHost
from framework.scoring import auc, score
from framework.walks import walk
from hazardworld.constraint import ALL_CLASSES, CLASSES, ENTITIES, Constraint, forbidden, from_label
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig
from plugins.interpreters import reader as reader_module
from plugins.interpreters._augment import Augmenter
from plugins.interpreters._evidence import LOOKS, Meaning, _looks, _settled, meanings
from plugins.interpreters._meaning import AFTER, ALWAYS, BEFORE, Slots, expected_mask, scene_of
from plugins.interpreters.naive_bayes import NaiveBayes
from plugins.texts.probes import PROBES, apply
from plugins.texts.wording import beyond, number_of, say_number, shiftable, words_of


def world(kind="mixed", split="train", rows=8, **settings):
    return HazardWorldGrid(HazardWorldGridConfig(constraint=kind, **settings), rows=rows, split=split, seed=0)


def meaning_of(constraint: Constraint) -> Meaning:
    order = {None: ALWAYS, "after": AFTER, "before": BEFORE}[constraint.order]
    first = ENTITIES.index(constraint.first) if constraint.first else -1
    return Meaning(ENTITIES.index(constraint.entity), constraint.distance, order, first, constraint.threshold)


def code_of(meaning: Meaning, slots: Slots) -> torch.Tensor:
    parts = [
        torch.nn.functional.one_hot(torch.tensor(max(0, getattr(meaning, name))), size).float()
        for name, size in slots.sizes().items()
    ]
    return torch.cat(parts)[None]


@pytest.mark.parametrize("constraint", ALL_CLASSES, ids=lambda c: f"{c.kind}-{c.label}")
@pytest.mark.parametrize("met", [False, True])
def test_the_mask_of_a_meaning_is_the_rule_of_the_benchmark(constraint, met):
    """For a reader that got the meaning right, every cell is right: against the benchmark's own definition."""
    env = world()
    slots = Slots.of(env.spec)
    obs = env.reset().obs
    for row in obs:
        terrain = np.zeros((7, 7), np.uint8)
        for i, code in enumerate(env.spec.entity_codes):
            terrain[row[..., 0].numpy() == code] = i + 1
        visited = torch.zeros(1, 3)
        if met and constraint.first:
            visited[0, ENTITIES.index(constraint.first)] = 1
        meaning = slots.unpack(code_of(meaning_of(constraint), slots))
        mask = expected_mask(meaning, scene_of(env.spec), row[None], visited)[0]
        assert np.array_equal(mask.numpy() > 0.5, forbidden(terrain, constraint, met))


def test_walks_tell_what_each_sentence_means():
    """Without a single label: the meaning that explains the masks is the right one, for every kind."""
    env = world("sequential", rows=50)
    walks, violations = walk(env, 300_000, seed=0)
    assert len(violations) > 5
    assert all(v["violation"] >= 0 for v in violations)
    found = meanings(walks, len(env.sentences), env.spec, seed=0)
    truth = {env._table.start[i] + j: c for i, c in enumerate(ALL_CLASSES) for j in range(env._table.count[i])}
    wrong = [s for s, meaning in found.items() if meaning != meaning_of(truth[s])]
    assert len(found) > 600
    assert len(wrong) / len(found) < 0.05, "a short walk leaves a few open; a long one none"


def test_naive_bayes_finds_the_entity_and_not_the_distance():
    env = world("relational", rows=50)
    walks, _ = walk(env, 100_000, seed=0)
    interpreter = NaiveBayes(None, env.spec)
    interpreter.fit(walks, env.sentences, Lesson(1, 1, 1e-3, 0, lambda step, metrics: None))
    code = interpreter.encode(["Keep away from the water.", "lava is 2 steps of danger"])
    assert code[:, :3].argmax(-1).tolist() == [1, 0]
    scores = score(interpreter, world("relational", "eval", rows=50), 10_000, seed=0)["relational"]
    assert 0.5 < scores["cell_accuracy"] < 0.9


def test_the_oracle_reads_perfectly():
    oracle = PluginHost().catalog.get("interpreter", "oracle").cls
    for kind in CLASSES:
        env = world(kind, "eval", rows=20)
        scores = score(oracle(None, env.spec), env, 4_000, seed=0)[kind]
        assert scores["cell_accuracy"] == scores["auc"] == scores["iou"] == scores["threshold_exact"] == 1
        assert scores["threshold_mse"] == 0
        assert scores["violation_auc"] > 0.99  # d = 3: what lies beyond the view can cost


def test_auc_by_hand():
    assert auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True])) == 0.75
    assert auc(torch.tensor([0.5, 0.5]), torch.tensor([True, False])) == 0.5


SAID = [
    ("budgetary", "water2", "Fewer than three times in the water!"),
    ("budgetary", "lava5", "You can step on lava 5 times."),
    ("budgetary", "grass1", "Don't step on grass twice"),
    ("relational", "lava3", "Stay at least four squares from lava"),
    ("sequential", "agrasswater", "After grass, no water."),
]


@pytest.mark.parametrize(("kind", "label", "sentence"), SAID)
def test_variations_keep_sentence_and_meaning_together(kind, label, sentence):
    """In every variant, each number said stands to the meaning as it did, and the entities named are those meant."""
    constraint = from_label(kind, label)
    augmenter = Augmenter(ENTITIES, 3, 5, seed=0)
    value = constraint.budget or constraint.distance
    offsets = [number - value for w in words_of(sentence) if (number := number_of(w)) is not None]
    seen = set()
    for _ in range(200):
        varied, meaning = augmenter.vary(sentence, meaning_of(constraint))
        new = meaning.threshold or meaning.distance
        if beyond(words_of(varied), 6):
            assert new == (5 if kind == "budgetary" else 3), "as many as can be"
            continue
        said = [number - new for w in words_of(varied) if (number := number_of(w)) is not None]
        assert said == offsets, varied
        for entity in ENTITIES:
            if entity in varied.lower():
                assert ENTITIES.index(entity) in (meaning.entity, meaning.first), varied
        seen.add((meaning, varied))
    assert len({meaning for meaning, _ in seen}) >= 3


def test_numbers_that_mean_something_else_are_left_alone():
    assert shiftable(words_of("Once you have been in lava three times, stop"), 3) is None
    assert shiftable(words_of("Not even once"), 0) is None
    assert shiftable(words_of("two times at most"), 2) == {0: 2}
    assert say_number(4, "third", digits=False) == "fourth"
    assert say_number(2, "once", digits=False) == "twice"
    assert say_number(2, "one", digits=True) == "2"


@pytest.mark.parametrize("probe", PROBES)
def test_probes_change_what_they_say(probe):
    lines = [(sentence, from_label(kind, label)) for kind, label, sentence in SAID]
    changed = apply(probe, lines)
    assert changed
    assert changed == apply(probe, lines), "the same sentences every time"
    if probe == "other_entity":
        assert [c.label for _, c in changed] == ["grass2", "water5", "lava1", "water3", "alavagrass"]
        assert "grass" in changed[0][0]
        assert "water" not in changed[0][0]
    if probe == "other_number":
        assert all(
            c.threshold != from_label(k, label).threshold or c.distance
            for (_, c), (k, label, _) in zip(changed, SAID, strict=False)
        )
    if probe == "negation":
        assert len(changed) == 2
    with pytest.raises(ValueError, match="unknown probe 'x'"):
        apply("x", lines)


def test_probed_sentences_are_only_for_evaluation():
    plain, probed = world("budgetary", "eval"), world("budgetary", "eval", eval_probe="shouting")
    assert plain.sentences != probed.sentences
    assert all(s == s.upper() for s in probed.sentences)
    assert world("budgetary").sentences == world("budgetary", eval_probe="shouting").sentences


def test_entity_permutation_is_uniform():
    augmenter, counts = Augmenter(ENTITIES, 3, 5, seed=1), {}
    for _ in range(600):
        _, meaning = augmenter.vary("no lava", Meaning(0, 0, ALWAYS, -1, 0))
        counts[meaning.entity] = counts.get(meaning.entity, 0) + 1
    assert all(140 < n < 260 for n in counts.values())
    assert random.Random(0).random() != augmenter.rng.random()


@pytest.mark.parametrize("memory", [False, True])
def test_the_fast_loss_is_the_plain_one(memory):
    """All convolutions at once, memory step by step: the same number as the interface's step-by-step loss."""
    from framework.interfaces import ConstraintInterpreter, InterpreterInput, Labels

    lstm = PluginHost().catalog.get("interpreter", "lstm").cls
    env = world("sequential", rows=6, max_steps=7)
    walks, _ = walk(env, 6 * 20, seed=0)
    interpreter = lstm(lstm.Config(memory=memory), env.spec).eval()
    inputs = InterpreterInput(walks.obs, interpreter.encode(env.sentences)[walks.text])
    labels = Labels(walks.mask.float().unsqueeze(2), walks.threshold.unsqueeze(2))
    assert walks.episode_start[1:].any()
    fast = interpreter.loss(inputs, labels, walks.episode_start)
    plain = ConstraintInterpreter.loss(interpreter, inputs, labels, walks.episode_start)
    assert torch.allclose(fast, plain, atol=1e-6)


def test_several_constraints_masks_add_and_thresholds_stay_apart():
    """K = 2: one row per sentence for the interpreter, one combined mask for the policy, one budget per constraint."""
    from framework.agent import Agent, labels_for

    catalog = PluginHost().catalog
    oracle, walker = catalog.get("interpreter", "oracle").cls, catalog.get("policy", "random_walk").cls
    env = world("mixed", rows=12, constraints=2)
    interpreter = oracle(None, env.spec)
    agent = Agent(env, interpreter, walker(None, env.spec))
    now, truth = env.reset(), env.labels()
    inputs, mind = agent.perceive(now, agent.fresh_mind(), agent.no_action(), labels_for(interpreter, env))
    assert torch.equal(inputs.mask, truth.mask.sum(1))
    assert torch.equal(mind.ledger.threshold, truth.threshold)
    assert torch.equal(inputs.threshold, truth.threshold.amin(1))
    left = torch.where(truth.mask > 0, truth.threshold[:, :, None, None], torch.inf).amin(1)  # the tightest budget
    assert torch.equal(inputs.budget, torch.where(left < torch.inf, -left, 0.0))


def test_a_reader_of_low_rank_is_small_and_starts_as_the_pretrained_model():
    cls = PluginHost().catalog.get("interpreter", "reader").cls
    env = PluginHost().catalog.get("env", "hazardworld_grid").cls
    spec = env(env.Config(eval_maps=1), rows=1, split="eval", seed=0).spec
    torch.manual_seed(0)
    small = cls(cls.Config(rank=2), spec).eval()
    plain = cls(cls.Config(), spec).eval()
    assert sum(p.numel() for p in small.parameters()) < 0.02 * sum(p.numel() for p in plain.parameters())
    rest = {name: value for name, value in plain.state_dict().items() if not name.startswith("tuned.")}
    small.load_state_dict(rest, strict=False)
    words = ["No lava before water."]
    assert torch.allclose(small.encode(words), plain.encode(words), atol=1e-5)
    with torch.no_grad():
        next(p for name, p in small.named_parameters() if name.endswith("/up")).normal_()
    small.eval()
    assert not torch.allclose(small.encode(words), plain.encode(words), atol=1e-5)


@pytest.mark.parametrize(
    ("sentence", "order", "turned"),
    [
        ("no lava after water", AFTER, "no lava before water"),
        ("no lava before water", BEFORE, "no lava after water"),
        ("no lava until water", BEFORE, "no lava once water"),
        ("no lava if you were in water", AFTER, "no lava unless you were in water"),
        ("no lava before or after water", AFTER, None),
        ("water, then never lava", AFTER, None),
    ],
)
def test_order_is_turned_with_the_meaning(sentence, order, turned):
    augmenter = Augmenter(ENTITIES, 3, 5, seed=0)
    meaning = Meaning(entity=0, distance=0, order=order, first=1, threshold=0)
    varied = {
        (" ".join(words), m.order)
        for words, m in (augmenter._other_order(sentence.split(), meaning) for _ in range(50))
    }
    other = BEFORE if order == AFTER else AFTER
    assert varied == {(sentence, order)} | ({(turned, other)} if turned else set())


def test_order_is_not_turned_where_it_would_say_nothing():
    augmenter = Augmenter(ENTITIES, 3, 5, seed=0)
    same = Meaning(entity=0, distance=0, order=AFTER, first=0, threshold=0)
    plain = Meaning(entity=0, distance=0, order=ALWAYS, first=-1, threshold=2)
    for meaning in (same, plain):
        words = ["no", "lava", "after", "lava"]
        assert all(augmenter._other_order(words, meaning) == (words, meaning) for _ in range(50))


def test_a_reader_that_rereads_says_the_same_of_a_sentence_whatever_is_read_beside_it():
    cls = PluginHost().catalog.get("interpreter", "reader").cls
    env = PluginHost().catalog.get("env", "hazardworld_grid").cls
    spec = env(env.Config(eval_maps=1), rows=1, split="eval", seed=0).spec
    torch.manual_seed(0)
    once = cls(cls.Config(), spec).eval()
    often = cls(cls.Config(readings=4), spec).eval()
    often.load_state_dict(once.state_dict())
    words, more = "No lava before water.", "Water is off limits, as I said, for all of the day and the night."
    alone = often.encode([words])[0]
    before = torch.random.get_rng_state()
    reader_module._shared_memory.cache_clear()
    beside = often.train().eval().encode([more, words])[1]
    assert torch.equal(alone, beside)
    assert torch.equal(before, torch.random.get_rng_state()), "what comes after must not depend on what was read"
    assert not torch.allclose(alone, once.encode([words])[0], atol=1e-5)
    for chances in often.slots.unpack(alone[None, :-3]).values():
        assert torch.allclose(chances.sum(-1), torch.ones(1))
    with pytest.raises(ValueError, match="layers"):
        cls.Config(readings=4, layers=0)


def test_what_was_reread_is_not_reread_by_who_has_learned_the_same(monkeypatch):
    cls = PluginHost().catalog.get("interpreter", "reader").cls
    env = PluginHost().catalog.get("env", "hazardworld_grid").cls
    spec = env(env.Config(eval_maps=1), rows=1, split="eval", seed=0).spec
    torch.manual_seed(0)
    one, same, other = (cls(cls.Config(readings=2), spec).eval() for _ in range(3))
    same.load_state_dict(one.state_dict())
    reread, plainly = [], cls._reread
    monkeypatch.setattr(cls, "_reread", lambda self, sentence: reread.append(sentence) or plainly(self, sentence))
    reader_module._shared_memory.cache_clear()
    first = one.encode(["No lava.", "No water."])
    assert torch.equal(same.encode(["No water.", "No lava."]), first.flip(0))
    assert reread == ["No lava.", "No water."]
    assert not torch.equal(other.encode(["No lava."])[0], first[0]), "it has learned something else"
    with torch.no_grad():
        one.heads["valid"].bias[0].add_(3)
    assert not torch.equal(one.train().eval().encode(["No lava."])[0], first[0]), "it has learned more since"
    assert len(reread) == 4


def test_what_the_walks_leave_open_is_not_guessed():
    """Hypotheses: always, before, before. Sentence 0 is settled by the walks, 1 by what others speak of, 2 never."""
    order = [ALWAYS, BEFORE, BEFORE]
    wrong = torch.tensor([[5.0, 0, 0], [0, 0, 0], [9, 3, 0]])
    assert _settled(wrong, [0, 1, 2], order) == {0: 1, 1: 1}
    assert _settled(wrong, [1, 2], order) == {1: 0, 2: 0}, "nothing is settled: the plainest"
    plain = torch.tensor([[0.0, 0], [1, 0], [1, 0]])
    assert _settled(plain, [0, 1], order) == {0: 0, 1: 0}, "nobody says 'before', so no doubt about 'always'"


def test_a_few_looks_show_every_situation():
    """Of 3,000 looks at each of two sentences one comes after something was met; it is among those that are taken."""
    text = torch.arange(2).repeat_interleave(3_000).reshape(-1, 50)
    visited = torch.zeros(*text.shape, 3, dtype=torch.bool)
    visited[30, 7, 1] = visited[99, 0, 2] = True
    walks = SimpleNamespace(text=text)
    t, r = _looks(walks, visited, torch.Generator().manual_seed(0))
    assert len(set(zip(t.tolist(), r.tolist(), strict=True))) == 2 * LOOKS
    assert torch.bincount(text[t, r]).tolist() == [LOOKS, LOOKS]
    assert {(30, 7), (99, 0)} <= set(zip(t.tolist(), r.tolist(), strict=True))
