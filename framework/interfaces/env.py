"""ConstraintEnv: N worlds stepped together, each with sentences that say what must not happen in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from framework.interfaces.component import Component, Kind
from framework.interfaces.types import EnvSpec, Labels, Timestep

if TYPE_CHECKING:
    from framework.interfaces.playground import Playground

Split = Literal["train", "eval"]


class ConstraintEnv(Component, ABC):
    """A world. Write ``spec``, ``sentences``, ``reset``, ``step``, ``labels`` and the two state methods.

    The loop it lives in (framework/rollout.py)::

        env = MyEnv(config, rows=64, split="train", seed=0)
        now = env.reset()
        while True:
            now = env.step(actions)          # a row that was done starts its next episode, whatever its action
            truth = env.labels()             # only for those who declared that they need it

    ``split`` chooses maps and sentences: "eval" must be disjoint from "train". Equal seed, equal worlds.
    """

    kind: ClassVar[Kind] = "env"
    kinds: ClassVar[tuple[str, ...]] = ("constraint",)
    """The kinds of constraint it has; Timestep.kind indexes this."""
    not_for_reading: ClassVar[frozenset[str]] = frozenset()
    """Settings that make no difference to stage 1 (the reward, say): runs that differ in them share an interpreter."""

    def __init__(self, config: Any, rows: int, split: Split, seed: int) -> None:
        self.config = config
        self.rows = rows
        self.split = split
        self.seed = seed

    @property
    @abstractmethod
    def spec(self) -> EnvSpec:
        """Shapes and sizes. Components are built from this."""

    @property
    @abstractmethod
    def sentences(self) -> tuple[str, ...]:
        """The sentence table of this split; Timestep.text holds ids into it."""

    @abstractmethod
    def reset(self) -> Timestep:
        """Start all rows afresh from the seed."""

    @abstractmethod
    def step(self, actions: Tensor) -> Timestep:
        """Move every row; see Timestep for what happens to rows that were done."""

    @abstractmethod
    def labels(self) -> Labels:
        """The truth about the present observation."""

    @abstractmethod
    def state_dict(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly from here, random state included."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Undo of ``state_dict``."""

    @classmethod
    def other_maps(cls, config: Any) -> Any:
        """Settings for other maps of the same sort. Fine-tuning plays there, so that an evaluation is on maps that the
        agent has never met. The default changes nothing: right for worlds that the seed draws."""
        return config

    def ceiling(self, gamma: float = 1.0) -> Tensor | None:
        """[N]: best return of each row's present episode with no violation, for one who knows the map; None if unknown.

        Reward k steps from the start counts gamma**k. Reports show every agent as a share of it.
        """
        return None

    def frame(self, row: int, mask: Tensor | None = None) -> NDArray[np.uint8] | None:
        """RGB picture ``[H, W, 3]`` of row ``row`` as it is now; None (the default) if it cannot be drawn.

        ``mask`` [*cells] is what somebody holds to be forbidden: mark the cells where it is above 0.5, and only those.
        All pictures of an env have one size. Sentence, budget and reward are not for you to draw: framework/show.py
        puts the same panel beneath the pictures of every env.
        """
        return None

    def action_names(self) -> tuple[str, ...]:
        """One word per discrete action, for people who play; ``()`` if there are none.

        ``up``, ``down``, ``left``, ``right`` and ``forward`` get the arrow keys.
        """
        return ()

    @classmethod
    def playground(
        cls, config: Any, sentences: Sequence[str], seed: int, layout: str | None, distances: Mapping[str, int]
    ) -> Playground | None:
        """One row in which these sentences hold, for ``python -m framework.play``; None (the default): not offered.

        ``layout`` is a map as ``Playground.layout`` writes it; ValueError says what is wrong with it. None: a map from
        the seed, on which there is a way that keeps these ``distances`` from those entities.
        """
        return None

    def close(self) -> None:
        """Let go of processes and windows, if any."""
