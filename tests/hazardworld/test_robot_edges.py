"""Where the plugin says that a zone begins on a lidar, it begins."""

from __future__ import annotations

import torch

from hazardworld.robot.things import HAZARDS, KINDS, LIDARS
from plugins.envs.hazardworld_robot import HazardWorldRobot, HazardWorldRobotConfig

ROUNDING = 1e-6


def test_lidar_edges_are_where_cells_begin():
    env = HazardWorldRobot(HazardWorldRobotConfig(constraint="relational", train_maps=50), 20, "train", 0)
    edges = torch.tensor(env.spec.lidar_edges)  # [E, distances]
    assert edges.shape == env.spec.cells
    stream, seen = torch.Generator().manual_seed(0), torch.zeros(env.spec.cells, dtype=torch.bool)
    start = 12 + 16 * LIDARS.index(KINDS[0])
    env.reset()
    for _ in range(300):
        now = env.step(torch.rand(20, 2, generator=stream) * 2 - torch.tensor([0.2, 1.0]))
        nearest = now.obs[:, start : start + 16 * len(KINDS)].view(20, len(KINDS), 16).amax(-1, keepdim=True)
        inside, sure = nearest > edges, (nearest - edges).abs() > ROUNDING
        moved = ~now.episode_start.view(-1, 1, 1)
        exact = torch.zeros_like(inside)  # contact with solid things depends on their shape; the rest is geometry
        exact[:, :, 1:] = True
        exact[:, HAZARDS, 0] = True
        assert torch.equal((now.touched.bool() & exact & sure & moved), (inside & exact & sure & moved))
        seen |= (inside & moved).any(0)
    assert seen[:, 1:].all() and seen[HAZARDS, 0], "every zone was entered"
