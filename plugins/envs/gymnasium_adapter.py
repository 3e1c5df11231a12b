"""Any Gymnasium environment that reports a cost, with a plain limit on it said as a sentence.

Nothing is known of what causes the cost, so there is one cell, and it *is* the cost: ``touched[n, 0]`` is the amount
that the step was charged, the true mask is 1, and the true threshold is the limit. With the oracle the ledger then adds
up the true cost; this is ordinary safe RL with a scalar limit. An interpreter that reads only has the number to find.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintEnv, EnvSpec, Labels, Split, Timestep
from plugins.envs._gymnasium_cartpole import ID
from plugins.envs._gymnasium_make import Maker, find
from plugins.envs._gymnasium_reader import Reader, Step
from plugins.envs._gymnasium_rows import Rows
from plugins.envs._gymnasium_spaces import ActionCodec, ObservationCodec, action_codec, observation_codec
from plugins.envs._gymnasium_vector import Vector, autoreset_of


@dataclass(frozen=True)
class Config:
    """Settings of the adapter."""

    id: str = ID
    """Gymnasium id. The default is CartPole with a cost of 1 for every step away from the middle of the track."""
    module: str | None = None
    """Imported first, so that it can register ids of its own."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment."""
    eval_kwargs: dict[str, Any] = field(default_factory=dict)
    """What differs in evaluation."""
    limit: float = 25.0
    """h_C: the total cost that an episode may have. A whole number, as all budgets are."""
    sentence: str | None = None
    """The constraint as text; null: made from the limit."""
    vectorization: Literal["sync", "async", "vector_entry_point"] = "sync"
    """sync: one after the other, state can be saved exactly; async: a process for each row; vector_entry_point:
    the environment's own vector form. After a stop the last two cut running episodes off and start over."""
    autoreset: str | None = None
    """When a finished row starts over: next_step or same_step; null: the vector form's own way, otherwise next_step."""
    max_steps: int | None = None
    """Length at which episodes are cut off; null: as registered with the id."""
    cost_key: str | None = "cost"
    """Where info has the cost of a step; null: there is no cost."""
    cost_scale: float = 1.0
    """Costs are multiplied by this, so that a limit of 0.5 can be said as 5 (cost_scale: 10)."""
    observation_key: str | None = None
    """Which part of a Dict observation to use; null: all parts, as one vector of numbers."""
    levels: tuple[int, ...] = ()
    """For grids of codes (MiniGrid's image): how many values each channel has."""

    def __post_init__(self) -> None:
        if self.limit < 0 or self.limit != int(self.limit):
            raise ValueError(f"limit must be a whole number, at least 0, not {self.limit:g}; see cost_scale")
        if self.cost_scale <= 0:
            raise ValueError(f"cost_scale must be greater than 0, not {self.cost_scale:g}")
        if self.autoreset not in (None, "next_step", "same_step"):
            raise ValueError(
                f"autoreset must be next_step, same_step or null, not '{self.autoreset}'"
                + ("; rows that do not start over are not supported" if self.autoreset == "disabled" else "")
            )
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, not {self.max_steps}")
        if any(not 1 <= count <= 256 for count in self.levels):
            raise ValueError(f"levels must be between 1 and 256, not {list(self.levels)}")
        if self.sentence is not None and not self.sentence.strip():
            raise ValueError("sentence is empty; null makes one from the limit")
        if self.max_steps is None and find(self.id, self.module).max_episode_steps is None:
            raise ValueError(f"max_steps must be set: '{self.id}' is registered without a limit of its own")
        find(self.id, self.module)


class GymnasiumAdapter(ConstraintEnv):
    """Any Gymnasium environment that reports info["cost"], with a limit on the total cost."""

    name = "gymnasium_adapter"
    kinds: ClassVar[tuple[str, ...]] = ("limit",)
    Config = Config
    config: Config

    def __init__(self, config: Config, rows: int, split: Split, seed: int) -> None:
        super().__init__(config, rows, split, seed)
        max_steps = config.max_steps or find(config.id, config.module).max_episode_steps
        assert max_steps is not None, "the config has seen to it"
        kwargs = config.kwargs | (config.eval_kwargs if split == "eval" else {})
        maker = Maker(config.id, config.module, kwargs, config.max_steps)
        self._worlds, codec, actions = self._build(maker, max_steps)
        self._sentence = config.sentence or f"Keep the total cost at or below {config.limit:g}."
        self._spec = EnvSpec(
            observation=codec.spec,
            action=actions.spec,
            cells=(1,),
            constraints=1,
            max_threshold=int(config.limit),
            max_steps=max_steps,
            entities=("cost",),
        )

    def _build(self, maker: Maker, max_steps: int) -> tuple[Rows | Vector, ObservationCodec, ActionCodec]:
        config, same_step = self.config, self.config.autoreset == "same_step"
        if config.vectorization == "vector_entry_point":
            vector = maker.vector(self.rows)
            try:
                same_step = autoreset_of(vector, config.autoreset, config.id)
                codec = observation_codec(vector.single_observation_space, config.observation_key, config.levels)
                actions = action_codec(vector.single_action_space)
            except ValueError:
                vector.close()
                raise
            return Vector(vector, self._reader(codec), actions, same_step, self.seed, max_steps), codec, actions
        first = maker.one()
        try:
            codec = observation_codec(first.observation_space, config.observation_key, config.levels)
            actions = action_codec(first.action_space)
            self._try(first, self._reader(codec))
        except BaseException:
            first.close()
            raise
        if config.vectorization == "sync":
            envs = [first, *(maker.one() for _ in range(self.rows - 1))]
            return Rows(envs, self._reader(codec), actions, same_step, self.seed), codec, actions
        first.close()
        mode = AutoresetMode.SAME_STEP if same_step else AutoresetMode.NEXT_STEP
        processes = maker.processes(self.rows, codec, mode)
        plain = self._reader(observation_codec(codec.encoded_space, None, config.levels))
        return Vector(processes, plain, actions, same_step, self.seed, max_steps), codec, actions

    def _reader(self, codec: ObservationCodec) -> Reader:
        return Reader(codec, self.config.id, self.config.cost_key, self.config.cost_scale)

    def _try(self, env: gymnasium.Env[Any, Any], reader: Reader) -> None:
        """One step, so that what is missing is told before a run starts; ``reset`` forgets it."""
        raw, _ = env.reset(seed=0)
        reader.obs(raw, 0)
        env.action_space.seed(0)
        *_, info = env.step(env.action_space.sample())
        reader.cost(info, 0)

    @property
    def spec(self) -> EnvSpec:
        return self._spec

    @property
    def sentences(self) -> tuple[str, ...]:
        return (self._sentence,)

    def reset(self) -> Timestep:
        return self._show(self._worlds.reset())

    def step(self, actions: Tensor) -> Timestep:
        return self._show(self._worlds.step(actions.numpy(force=True)))

    def labels(self) -> Labels:
        return Labels(torch.ones(self.rows, 1, 1), torch.full((self.rows, 1), float(self.config.limit)))

    def state_dict(self) -> dict[str, Tensor]:
        return self._worlds.state()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """With ``sync``, episodes are replayed from their seed and actions, and go on exactly if the environment is
        deterministic. Otherwise they are cut off (truncated) where they were and the rows start over."""
        self._worlds.restore(state)

    def close(self) -> None:
        self._worlds.close()

    def _show(self, step: Step) -> Timestep:
        """Copies, because rollouts keep every step."""
        arrays = {name: value.copy() for name, value in vars(step).items() if value is not None}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return Timestep(
            obs=tensors["obs"],
            text=torch.zeros(self.rows, 1, dtype=torch.int64),
            reward=tensors["reward"],
            cost=tensors["cost"][:, None],
            threshold=torch.full((self.rows, 1), float(self.config.limit)),
            kind=torch.zeros(self.rows, 1, dtype=torch.int64),
            touched=tensors["cost"][:, None].clone(),
            terminated=tensors["terminated"],
            truncated=tensors["truncated"],
            episode_start=tensors["start"],
            final_obs=tensors.get("final_obs"),
        )


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [GymnasiumAdapter]
