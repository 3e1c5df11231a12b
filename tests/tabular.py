"""A small random CMDP as a ConstraintEnv, and its optimum under both forms of the constraint, computed exactly.

Five places, three actions, episodes of ten steps. Entering the last place costs 1 and tends to pay; the first action
never leads there, so a budget can be kept for certain. The observation is place and time, both one-hot.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linprog

from framework.interfaces import ActionSpec, ConstraintEnv, EnvSpec, Labels, ObservationSpec, Timestep

PLACES, ACTIONS, STEPS, LIMIT = 5, 3, 10, 2
COSTLY = PLACES - 1


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Chances of the next place [S, A, S], and reward for entering a place [S]."""
    rng = np.random.default_rng(0)
    chance = rng.dirichlet(np.ones(PLACES) * 0.5, size=(PLACES, ACTIONS))
    chance[:, 0, COSTLY] = 0.0
    chance[:, 2, COSTLY] += 1.0
    reward = np.array([0.0, 0.2, 0.1, 0.3, 1.0])
    return chance / chance.sum(-1, keepdims=True), reward


class Tabular(ConstraintEnv):
    """All rows start at place 0; an episode ends after STEPS steps."""

    name = "tabular"

    def __init__(self, rows: int, seed: int = 0) -> None:
        super().__init__(None, rows, "train", seed)
        chance, reward = tables()
        self._chance, self._reward = torch.tensor(chance, dtype=torch.float32), torch.tensor(reward).float()
        self._generator = torch.Generator()

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(
            observation=ObservationSpec("vector", (PLACES + STEPS + 1,)),
            action=ActionSpec("discrete", ACTIONS),
            cells=(PLACES,),
            constraints=1,
            max_threshold=LIMIT,
            max_steps=STEPS,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        return (f"Do not enter the last place more than {LIMIT} times.",)

    def reset(self) -> Timestep:
        self._generator.manual_seed(self.seed)
        self._place, self._time = torch.zeros(2, self.rows, dtype=torch.int64)
        return self._show(torch.zeros(self.rows, dtype=torch.bool), torch.ones(self.rows, dtype=torch.bool))

    def step(self, actions: torch.Tensor) -> Timestep:
        fresh = self._time >= STEPS
        draw = torch.rand(self.rows, 1, generator=self._generator)
        next_place = (self._chance[self._place, actions].cumsum(-1) < draw).sum(-1).clamp(max=COSTLY)
        self._place, self._time = next_place * ~fresh, (self._time + 1) * ~fresh
        return self._show(~fresh, fresh)

    def _show(self, entered: torch.Tensor, start: torch.Tensor) -> Timestep:
        here = F.one_hot(self._place, PLACES)
        touched = here.bool() & entered[:, None]
        nothing = torch.zeros(self.rows, 1, dtype=torch.int64)
        return Timestep(
            obs=torch.cat([here, F.one_hot(self._time, STEPS + 1)], -1).float(),
            text=nothing,
            reward=self._reward[self._place] * entered,
            cost=touched[:, COSTLY:].float(),
            threshold=torch.full((self.rows, 1), float(LIMIT)),
            kind=nothing,
            touched=touched,
            terminated=self._time >= STEPS,  # an end that can be seen coming is a true one: nothing to bootstrap
            truncated=torch.zeros(self.rows, dtype=torch.bool),
            episode_start=start,
        )

    def labels(self) -> Labels:
        mask = F.one_hot(torch.tensor(COSTLY), PLACES).float().expand(self.rows, 1, PLACES)
        return Labels(mask, torch.full((self.rows, 1), float(LIMIT)))

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"place": self._place, "time": self._time, "generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self._place, self._time = state["place"].clone(), state["time"].clone()
        self._generator.set_state(state["generator"])


def best_on_average(limit: float) -> tuple[float, float]:
    """Largest expected reward with expected cost at most ``limit``, and that cost: a linear program.

    Variables are the visits y[t, s, a]; what flows into (t + 1, s) is what flows out of it.
    """
    chance, reward = tables()
    size = STEPS * PLACES * ACTIONS
    flow = np.zeros((STEPS, PLACES, STEPS, PLACES, ACTIONS))
    for t in range(STEPS):
        for s in range(PLACES):
            flow[t, s, t, s, :] = 1.0
            if t > 0:
                flow[t, s, t - 1] -= chance[:, :, s]
    start = np.zeros((STEPS, PLACES))
    start[0, 0] = 1.0
    gain = np.tile((chance @ reward).ravel(), STEPS)
    cost = np.tile(chance[:, :, COSTLY].ravel(), STEPS)
    solved = linprog(-gain, A_ub=cost[None], b_ub=[limit], A_eq=flow.reshape(-1, size), b_eq=start.ravel())
    assert solved.success, solved.message
    return float(-solved.fun), float(cost @ solved.x)


def best_for_certain(limit: int) -> float:
    """Largest expected reward with cost at most ``limit`` in every single episode: dynamic programming.

    The state is place and what is left of the budget; with nothing left, actions that may cost are out.
    """
    chance, reward = tables()
    value = np.zeros((PLACES, limit + 1))
    for _ in range(STEPS):
        after = reward[:, None] + value  # [next place, budget before the move]
        after[COSTLY, 1:] = reward[COSTLY] + value[COSTLY, :-1]
        after[COSTLY, 0] = -np.inf
        with np.errstate(invalid="ignore"):
            # 0 * -inf must count as 0: an action that cannot cost is allowed
            terms = np.where(chance[..., None] > 0, chance[..., None] * after, 0.0)
        value = terms.sum(2).max(1)
    return float(value[0, limit])
