"""What robots' policies make of sensors, lidars and constraints."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from framework.interfaces import ActionSpec, EnvSpec, ObservationSpec, PolicyInput
from hazardworld.robot.sensing import _light
from plugins.policies._robot_senses import RobotSenses, bearing
from plugins.policies._senses import LIDAR_SCALE, ZOOM_SCALE, ZOOMS, Senses, zoomed
from plugins.policies._uses import Uses
from plugins.policies.mlp import MLP
from plugins.policies.mlp import Config as MLPConfig

BINS = 4
ENTITIES = ("vases", "pillars", "buttons")
PARTS = (("accelerometer", 3), ("goal_lidar", BINS), *((f"{name}_lidar", BINS) for name in ENTITIES), ("age", 1))
SIZE = sum(size for _, size in PARTS)
SPEC = EnvSpec(
    observation=ObservationSpec("vector", (SIZE,), parts=PARTS),
    action=ActionSpec("continuous", 2),
    cells=(3, 2),
    constraints=1,
    max_threshold=5,
    max_steps=10,
    entities=ENTITIES,
    lidar_edges=((0.9, 0.7), (0.9, 0.7), (0.9, 0.7)),
)
FAR = {"mask": False, "budget": False, "threshold": False}


def seen(lidars, forbidden=None, budget=-3.0, distance=0):
    """One row's inputs: a lidar for each entity, and one forbidden entity at one distance."""
    blank = PolicyInput.blank(SPEC, 1)
    obs = torch.cat([torch.zeros(1, 3 + BINS), torch.tensor(lidars).reshape(1, -1), torch.zeros(1, 1)], dim=1)
    mask = torch.zeros(1, 3, 2)
    if forbidden is not None:
        mask[0, forbidden, distance] = 1
    return dataclasses.replace(blank, obs=obs, mask=mask, budget=torch.full_like(mask, budget))


def test_each_part_is_scaled_and_lidars_are_enlarged():
    obs = torch.zeros(1, SIZE)
    obs[0, :3] = 10.0
    obs[0, 3:7] = torch.tensor([1.0, 0.95, 0.5, 0.0])
    obs[0, -1] = 7.0
    out = Senses(SPEC.observation)(obs)[0]
    assert out[:3].tolist() == pytest.approx([1, 1, 1])
    assert out[3:7].tolist() == pytest.approx([LIDAR_SCALE * x for x in (1, 0.95, 0.5, 0)])
    assert float(out[SIZE - 1]) == 7, "what has no scale is left as it is"
    enlarged = out[SIZE : SIZE + BINS * len(ZOOMS)].reshape(len(ZOOMS), BINS) / ZOOM_SCALE
    assert enlarged[:, 0].tolist() == [1, 1, 1]
    assert enlarged[:, 1].tolist() == pytest.approx([0.85, 0.7, 0.4]), "0.15 m off: plainer with each zoom"
    assert enlarged[:, 2:].eq(0).all()
    assert len(out) == SIZE + 4 * BINS * len(ZOOMS)


def test_it_feels_in_which_circle_it_is_and_whether_that_is_forbidden():
    plain = RobotSenses(SPEC, Uses(**FAR))
    full = RobotSenses(SPEC, Uses(mask=True, budget=False, threshold=False))
    inputs = seen([[0.0] * BINS] * 3, forbidden=1, distance=0)
    touched = torch.zeros(1, 3, 2, dtype=torch.bool)

    def felt(entity, distance):
        where = touched.clone()
        where[0, entity, distance] = True
        return full.look(dataclasses.replace(inputs, touched=where))[0, -3:].tolist()  # two circles, and the rule

    assert full.look(inputs)[0, -3:].tolist() == [0, 0, 0]
    assert felt(1, 0) == [1, 0, 1]
    assert felt(1, 1) == [0, 1, 0], "near what is forbidden to touch: not forbidden itself"
    assert felt(2, 0) == [0, 0, 0], "another entity"
    touching = plain.look(dataclasses.replace(inputs, touched=~touched)) - plain.look(inputs)
    assert float(touching.sum()) == 6, "without a mask it feels all the same, and has to learn what it means"


def test_observations_without_named_parts_are_left_alone():
    obs = torch.randn(2, 5)
    assert torch.equal(Senses(ObservationSpec("vector", (5,)))(obs), obs)


def test_zooming_keeps_what_is_in_front():
    assert zoomed(torch.rand(7, 3, BINS)).shape == (7, 3, BINS * len(ZOOMS))


def test_the_zone_lidar_shows_where_it_is_forbidden_whatever_the_entity_and_the_distance():
    senses = RobotSenses(SPEC, Uses(mask=True, budget=False, threshold=False))
    plain = RobotSenses(SPEC, Uses(**FAR)).size()

    def zone(entity, distance, lidar):
        lidars = [[0.0] * BINS] * 3
        lidars[entity] = lidar
        out = senses.look(seen(lidars, entity, distance=distance))[0, plain + 6 :]
        return out[: BINS * len(ZOOMS)].reshape(len(ZOOMS), BINS) / ZOOM_SCALE

    contact = zone(0, 0, [0.9, 0.8, 0.0, 1.0])
    assert contact[:, 0].tolist() == pytest.approx([1, 1, 1]), "at the edge"
    assert contact[:, 1].tolist() == pytest.approx([0.7, 0.4, 0]), "a tenth of the range outside"
    assert contact[:, 2].tolist() == [0, 0, 0]
    assert contact[:, 3].tolist() == pytest.approx([1.3, 1.6, 2]), "inside, and no more than 2"
    assert torch.allclose(contact, zone(2, 0, [0.9, 0.8, 0.0, 1.0]))
    assert torch.allclose(contact[:, :2], zone(1, 1, [0.7, 0.6, 0.0, 0.0])[:, :2], atol=1e-5)
    assert senses.look(seen([[1.0] * BINS] * 3))[0, plain + 6 :].eq(0).all(), "nothing is forbidden"


@pytest.mark.parametrize("degrees", [0, 10, 45, 100, 190, 350])
def test_bearing_is_where_the_goal_is(degrees):
    lidar = np.zeros(16)
    radians = math.radians(degrees)
    _light(np.array([0.0, 0.0, 1.0, 0.0]), math.cos(radians), math.sin(radians), lidar)
    x, y = bearing(torch.from_numpy(lidar).float().unsqueeze(0))[0].tolist()
    assert abs((math.degrees(math.atan2(y, x)) - degrees + 180) % 360 - 180) < 4
    assert math.hypot(x, y) == pytest.approx(1)
    assert bearing(torch.zeros(1, 16)).tolist() == [[0, 0]], "out of range: nowhere"


def test_what_has_budget_left_is_not_among_the_spent():
    senses = RobotSenses(SPEC, Uses(mask=False, budget=True, threshold=False))
    plain = RobotSenses(SPEC, Uses(**FAR)).size()
    lidars = [[0.99] * BINS] * 3
    left, spent = (senses.look(seen(lidars, 1, budget))[0, plain:] for budget in (-3.0, 0.0))
    assert left[:2].tolist() == [0, 0] and spent[:2].tolist() == [1, 0]
    assert left[4:].eq(0).all() and spent[4:].any()
    assert float(left[2]) == pytest.approx(3 / 5) and float(spent[2]) == 0


def test_other_worlds_are_refused():
    with pytest.raises(ValueError, match="needs a robot's world"):
        RobotSenses(dataclasses.replace(SPEC, entities=("lava", "water", "grass")), Uses())
    with pytest.raises(ValueError, match="where each cell begins"):
        RobotSenses(dataclasses.replace(SPEC, lidar_edges=()), Uses())


def test_mlp_hears_lidars_enlarged_too():
    net = MLP(MLPConfig(uses=Uses(**FAR)), SPEC)
    assert net.actor[0].in_features == SIZE + 4 * BINS * len(ZOOMS)
