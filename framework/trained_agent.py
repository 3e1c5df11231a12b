"""The agent of a finished run, to act with from Python. See docs/python.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.errors import UserError
from framework.interfaces import ConstraintEnv, InterpreterInput, Split
from framework.player import Player
from framework.seeding import generator
from framework.trained import Trained, load_trained, plugin_host


def load_agent(run_folder: str | PathLike[str], plugins: Sequence[str | PathLike[str]] = ()) -> TrainedAgent:
    """The agent of a finished run (``runs/cells/<id>``); ``plugins``: files of plugins that it needs."""
    return TrainedAgent(load_trained(Path(run_folder), plugin_host(plugins)))


@dataclass(frozen=True)
class Reading:
    """What the interpreter made of a sentence, in the present view."""

    sentence: str
    threshold: float
    """h_C: how often it is allowed."""
    mask: NDArray[np.float32]
    """[*cells]: probability that entering the cell would cost now (M_C)."""
    confidence: float | None
    """How sure it is that this is a constraint that it knows; None if it does not say."""


class TrainedAgent:
    """Acts in a world of its own::

    agent.reset(seed=1)
    while not agent.done:
        agent.step(agent.act())
    print(agent.sentence, agent.reward, agent.cost, agent.budget)
    """

    def __init__(self, trained: Trained) -> None:
        self.trained = trained
        self.env: ConstraintEnv | None = None
        self.reset()

    def reset(self, seed: int = 0, split: Split = "eval") -> str:
        """A new world; returns what holds in it. Equal seeds, equal worlds and choices."""
        self.close()
        self.env = self.trained.world(seed, split)
        self._player = Player(self.env, self.trained.agent(self.env))
        self._generator = generator(seed, "show")
        self._cost = 0.0
        return self.sentence

    def act(self, greedy: bool = False) -> Any:
        """What the policy chooses here: a number, or an array where actions are continuous."""
        action = self._player.choose(self._generator, greedy)[0]
        return action.numpy() if action.dim() else int(action)

    def step(self, action: Any) -> tuple[float, float]:
        """Do it; returns reward and true cost. After the end of an episode the next step starts another."""
        if self.done:
            self._cost = 0.0
        self._player.act(torch.as_tensor(np.asarray(action)).unsqueeze(0))
        now = self._player.now
        cost = float(now.cost.sum())
        self._cost += cost
        return float(now.reward[0]), cost

    @torch.no_grad()
    def understand(self, sentence: str) -> Reading:
        """Read any sentence, against the view that the agent has now."""
        interpreter, now = self.trained.interpreter, self._player.now
        if interpreter.needs_labels:
            raise UserError(f"interpreter '{interpreter.name}' is told the truth; it reads no sentences")
        code = interpreter.encode([sentence])
        seen, _ = interpreter.step(InterpreterInput(now.obs, code), interpreter.initial_state(1))
        sure = None if seen.confidence is None else float(seen.confidence[0])
        return Reading(sentence, float(seen.threshold[0]), seen.mask[0].numpy(), sure)

    @property
    def done(self) -> bool:
        return self._player.done

    @property
    def sentence(self) -> str:
        """What holds in this episode; several sentences are joined."""
        assert self.env is not None
        return " ".join(self.env.sentences[int(i)] for i in self._player.now.text[0])

    @property
    def reward(self) -> float:
        """Of this episode so far."""
        return self._player.reward

    @property
    def cost(self) -> float:
        """True cost of this episode so far."""
        return self._cost

    @property
    def budget(self) -> float:
        """True budget of this episode (of all its sentences together)."""
        return float(self._player.now.threshold.sum())

    @property
    def observation(self) -> Tensor:
        return self._player.now.obs[0]

    def picture(self) -> NDArray[np.uint8]:
        """RGB [H, W, 3], with what the interpreter holds to be forbidden."""
        return self._player.frame()

    def close(self) -> None:
        """Let go of the world's processes, if it has any."""
        if self.env is not None:
            self.env.close()
