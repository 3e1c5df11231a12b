"""HazardWorld-robot's rules: what costs, when, and for whom; held against a plain loop over the engine's readings."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hazardworld
from hazardworld.constraint import KINDS, ROBOT, all_classes
from hazardworld.robot.worlds import CELLS, RobotWorlds
from hazardworld.sentences import SentenceTable


def worlds(kind: str, rows: int = 8, **settings: object) -> RobotWorlds:
    table = SentenceTable.load(kind, str(settings.get("split", "train")), domain=ROBOT)
    return RobotWorlds(kind, table, rows, maps=60, seed=3, **settings)  # type: ignore[arg-type]


def drive(world: RobotWorlds, steps: int, seed: int = 0):
    """Keeps each action for a while: who jitters gets nowhere and touches nothing."""
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-1, 1, (world.rows, 2))
    for t in range(steps):
        if t % 25 == 0:
            actions = rng.uniform(-1, 1, (world.rows, 2))
            actions[:, 0] = np.abs(actions[:, 0])
        yield world.step(actions)


@pytest.mark.parametrize("kind", KINDS)
def test_cost_is_what_the_constraint_says(kind):
    """Row by row and step by step, in plain Python."""
    world = worlds(kind, rows=12, max_steps=150, constraints=2)
    classes = all_classes(ROBOT)
    step = world.reset()
    memory: list[list[dict[str, bool]]] = [[{"met": False, "was": False} for _ in range(2)] for _ in range(12)]
    charged = 0
    mask = world.mask().copy()
    for step in drive(world, 400):
        readings = world.engine._step
        for n in range(world.rows):
            if step.episode_start[n]:
                memory[n] = [{"met": False, "was": False} for _ in range(2)]
                assert not step.cost[n].any() and not step.touched[n].any()
                continue
            for k, known in enumerate(memory[n]):
                rule = classes[world._now[n, k]]
                entity = ROBOT.entities.index(rule.entity)
                if rule.kind == "relational":
                    hit = readings.gap[n, entity] < np.float32(rule.distance) / np.float32(100)
                else:
                    hit = bool(readings.touching[n, entity])
                holds = {None: True, "after": known["met"], "before": not known["met"]}[rule.order]
                assert step.cost[n, k] == float(hit and holds)
                assert step.cost[n, k] == float((mask[n, k] & step.touched[n]).any()), "mask before, touch after"
                charged += int(step.cost[n, k])
                if rule.first is not None:
                    touches = bool(readings.touching[n, ROBOT.entities.index(rule.first)])
                    known["met"] |= known["was"] and not touches
                    known["was"] = touches
        mask = world.mask().copy()
    assert charged > 0


def test_a_goal_is_worth_four_however_it_is_paid():
    """Dense or not, what an episode sums up to is 4 for each goal that was reached."""
    sums = {}
    for dense in (True, False):
        world = worlds("budgetary", rows=4, dense=dense, max_steps=300, reward="transfer", split="eval")
        world.reset()
        total, goals = np.zeros(4), np.zeros(4)
        for _ in range(300):
            scene = [world.scene(n) for n in range(4)]
            towards = np.array([np.arctan2(*(s.goal - s.robot[:2])[::-1]) - s.robot[2] for s in scene])
            towards = (towards + np.pi) % (2 * np.pi) - np.pi
            step = world.step(np.stack([np.where(np.abs(towards) < 0.5, 1.0, 0.0), np.clip(3 * towards, -1, 1)], -1))
            total += step.reward
            goals += world.engine._step.goal_reached
            if step.terminated.any() or step.truncated.any():
                break
        sums[dense] = total
        assert goals.sum() > 0
        if dense:
            unpaid = total - 4 * goals  # the share of the way to the goal that was not reached
            assert (np.abs(unpaid) < 4.01).all()
        else:
            assert np.allclose(total, 4 * goals)


def test_a_held_action_is_the_same_as_repeating_it():
    """Reward and cost are those of the single steps added up; a row that is done waits for the others."""
    one, five = worlds("budgetary", rows=6, max_steps=42), worlds("budgetary", rows=6, max_steps=42, repeat=5)
    now = five.reset()
    assert np.array_equal(one.reset().obs, now.obs)
    rng = np.random.default_rng(3)
    ended = 0
    for _ in range(9):  # 42 steps are eight times five and two
        actions = rng.uniform((-0.5, -1), (1.5, 1), (6, 2))
        active = ~now.terminated & ~now.truncated
        now = five.step(actions)
        reward, cost, touched = np.zeros(6), np.zeros((6, 1)), np.zeros_like(now.touched)
        for _ in range(5):
            if not active.any():
                break
            step = one.step(actions)
            reward, cost = reward + step.reward * active, cost + step.cost * active[:, None]
            touched += step.touched * active[:, None, None]
            shown = np.where(active[:, None], step.obs, now.obs)
            active &= ~step.terminated & ~step.truncated
        np.testing.assert_allclose(now.reward, reward, atol=1e-5)
        np.testing.assert_array_equal(now.cost, cost)
        np.testing.assert_array_equal(now.touched, touched)
        if active.any():
            np.testing.assert_array_equal(now.obs[active], shown[active])
        ended += int(now.truncated.sum())
        if not active.all():
            break
    assert ended > 0
    assert five.step(np.zeros((6, 2))).episode_start[now.terminated | now.truncated].all()


def test_saved_worlds_go_on_the_same():
    one, other = (worlds("sequential", rows=6, max_steps=60) for _ in range(2))
    one.reset()
    for _ in drive(one, 90):
        pass
    saved = one.state()
    expected = [step for step in drive(one, 80, seed=1)]
    other.reset()
    other.restore(saved)
    for mine, theirs in zip(drive(other, 80, seed=1), expected, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_who_must_keep_away_can_start_and_arrive():
    world = worlds("relational", rows=20, split="eval")
    step = world.reset()
    assert not (world.mask()[:, 0] & world._cells(world.engine._step)).any()
    assert step.obs.shape == (20, 109)


def test_evaluation_gives_each_map_the_same_sentence_however_many_rows():
    few, many = worlds("budgetary", rows=2, split="eval", max_steps=3), worlds("budgetary", rows=6, split="eval")
    said = many.reset().text[:, 0]
    first = few.reset().text[:, 0].tolist()
    assert first == said[:2].tolist()
    for step in drive(few, 8):
        if step.episode_start.any():
            assert step.text[:, 0].tolist() == said[few.engine.map_index].tolist()


@pytest.mark.parametrize("name", [name for name in hazardworld.IDS if "Robot" in name])
def test_registered_worlds_pass_gymnasiums_own_check(name):
    env = gymnasium.make(name, maps=10, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=False)
    obs, info = env.reset(seed=4)
    assert info["mask"].shape == (1, *CELLS)
    assert obs["mission"]
    again, _ = env.reset(seed=4)
    assert np.array_equal(obs["sensors"], again["sensors"]) and obs["mission"] == again["mission"]
    assert env.render().shape == (256, 256, 3)
    env.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "fsat"}, "did you mean 'fast'"),
        ({"reward": "trian"}, "did you mean 'train'"),
        ({"constraints": 99}, "there are sentences for 25"),
    ],
)
def test_mistakes_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        worlds("budgetary", **settings)
