"""Safety-Gymnasium's own tasks, through Gymnasium and through the framework's adapter."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from hazardworld.robot import tasks
from plugins.envs.gymnasium_adapter import Config, GymnasiumAdapter


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyPointButton1-v0"])
def test_a_task_runs_and_reports_its_cost(name):
    env = gymnasium.make(f"hazardworld.robot.tasks:{name}")
    obs, _ = env.reset(seed=0)
    again, _ = env.reset(seed=0)
    assert np.array_equal(obs, again)
    rng, costs = np.random.default_rng(0), []
    for _ in range(60):
        obs, *_, info = env.step(rng.uniform(-1, 1, 2).astype(np.float32))
        costs.append(info["cost"])
    assert obs.shape == env.observation_space.shape
    assert set(costs) <= {0.0, 1.0, 2.0}
    env.close()


def test_gymnasium_finds_nothing_wrong_with_it():
    check_env(gymnasium.make("SafetyPointGoal1-v0").unwrapped, skip_render_check=True)


def test_all_of_them_are_registered():
    assert set(tasks.IDS) <= set(gymnasium.registry)
    assert len(tasks.IDS) == 11


def test_the_adapter_takes_it_with_a_plain_limit():
    config = Config(id="SafetyPointGoal1-v0", module="hazardworld.robot.tasks", limit=25)
    env = GymnasiumAdapter(config, rows=2, split="train", seed=0)
    now = env.reset()
    assert env.spec.action.kind == "continuous"
    assert env.spec.max_steps == 1000
    for _ in range(3):
        now = env.step(torch.zeros(2, 2))
    assert now.obs.shape == (2, 60)
    assert float(env.labels().threshold[0, 0]) == 25
    env.close()
