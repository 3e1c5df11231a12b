"""Safety-Gymnasium's own navigation tasks under their own names, for a current Gymnasium.

    gymnasium.make("hazardworld.robot.tasks:SafetyPointGoal1-v0")

Five values from ``step``, the cost in ``info["cost"]``. They are Safety-Gymnasium's classes as they are, so as slow:
0.4 s for each reset. In a registry they go through the adapter:
``{plugin: gymnasium_adapter, id: SafetyPointGoal1-v0, module: hazardworld.robot.tasks}``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.loader import load
from hazardworld.robot.task import quiet

ROBOTS = ("Point",)  # the others do not load with a current MuJoCo: safety-gymnasium asks it for a joint by an array
TASKS = ("Goal0", "Goal1", "Goal2", "Button0", "Button1", "Button2", "Push0", "Push1", "Push2", "Circle0", "Circle1")
IDS = tuple(f"Safety{robot}{task}-v0" for robot in ROBOTS for task in TASKS)
STEPS = {"Circle": 500}
"""Steps of an episode where it is not 1,000."""


class SafetyTask(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One of Safety-Gymnasium's tasks."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "render_fps": 30}

    def __init__(self, task: str) -> None:
        robot = next(robot for robot in ROBOTS if task.startswith(f"Safety{robot}"))
        with quiet():
            self._task = load().Builder(task, config={"agent_name": robot})
        size = self._task.observation_space.shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, size, np.float32)
        space = self._task.action_space
        self.action_space = gymnasium.spaces.Box(
            space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        with quiet():
            obs, info = self._task.reset(seed=int(self.np_random.integers(2**31)))
        return obs.astype(np.float32), info

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        with quiet():
            obs, reward, cost, terminated, truncated, info = self._task.step(np.asarray(action, np.float64))
        return obs.astype(np.float32), float(reward), bool(terminated), bool(truncated), info | {"cost": float(cost)}


def register() -> None:
    for name in IDS:
        if name not in gymnasium.registry:
            steps = next((steps for task, steps in STEPS.items() if task in name), 1_000)
            gymnasium.register(
                name, entry_point="hazardworld.robot.tasks:SafetyTask", max_episode_steps=steps, kwargs={"task": name}
            )


register()
