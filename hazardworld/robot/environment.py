"""HazardWorld-robot as a single Gymnasium environment: what other people's code can use as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hazardworld.constraint import ROBOT
from hazardworld.robot.picture import draw
from hazardworld.robot.things import OBSERVATION
from hazardworld.robot.worlds import RobotWorlds, WorldStep
from hazardworld.sentences import SentenceTable


class HazardWorldRobotEnv(gymnasium.Env[dict[str, Any], NDArray[np.float32]]):
    """Drive to the goal without doing what the mission forbids.

    Observation: ``sensors`` (109 numbers: see docs/hazardworld.md) and ``mission``. Action: drive and turn, in [-1, 1].
    The true budget, cost and mask are in ``info`` only: nothing in the observation tells them.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        kind: str = "budgetary",
        split: str = "train",
        engine: str = "exact",
        reward: str = "train",
        dense: bool = True,
        constraints: int = 1,
        max_steps: int = 400,
        map_seed: int = 0,
        maps: int | None = None,
        texts: Path | str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self._table = SentenceTable.load(kind, split, texts, domain=ROBOT)
        settings = {"split": split, "engine": engine, "reward": reward, "dense": dense, "constraints": constraints}
        self._make: Any = lambda seed: RobotWorlds(
            kind, self._table, 1, maps=maps, map_seed=map_seed, max_steps=max_steps, seed=seed, **settings
        )
        longest = max(map(len, self._table.sentences))
        self.observation_space = spaces.Dict(
            {
                "sensors": spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32),
                "mission": spaces.Text(
                    max_length=(longest + 1) * constraints, charset=frozenset("\n").union(*self._table.sentences)
                ),
            }
        )
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._worlds: RobotWorlds | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        if self._worlds is None or seed is not None:
            self._worlds = self._make(int(self.np_random.integers(2**62)))
            step = self._worlds.reset()
        else:
            step = self._worlds.begin_again()
        return self._obs(step), self._info(step)

    def step(self, action: NDArray[np.float32]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self._worlds is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        step = self._worlds.step(np.asarray(action, np.float64)[None])
        done = bool(step.terminated[0]), bool(step.truncated[0])
        return self._obs(step), float(step.reward[0]), *done, self._info(step)

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        if self.render_mode is None or self._worlds is None:
            return None
        return draw(self._worlds.scene(0), forbidden=self._worlds.forbidden(0))

    def _obs(self, step: WorldStep) -> dict[str, Any]:
        return {"sensors": step.obs[0], "mission": "\n".join(self._table.sentences[i] for i in step.text[0])}

    def _info(self, step: WorldStep) -> dict[str, Any]:
        assert self._worlds is not None
        return {
            "cost": float(step.cost[0].sum()),
            "costs": step.cost[0],
            "budget": self._worlds.threshold()[0],
            "mask": self._worlds.mask()[0],
            "touched": step.touched[0],
            "map": int(self._worlds.engine.map_index[0]),
        }
