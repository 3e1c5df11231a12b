"""PolicyNet: what the agent sees and what the interpreter understood become a distribution over actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from framework.interfaces.component import Component, Kind
from framework.interfaces.distributions import Distribution
from framework.interfaces.types import EnvSpec, PolicyInput, State


@dataclass(frozen=True)
class Values:
    """What the two critics expect from here to the end of the episode."""

    reward: Tensor  # [B]
    cost: Tensor  # [B]


class PolicyNet(nn.Module, Component, ABC):
    """Acts. Write ``distribution`` and ``values``; both are functions of one step's input, batched ``[B, ...]``.

    The loop it lives in (framework/rollout.py)::

        tokens = policy.encode(env.sentences)
        while acting:                                            # without gradient
            memory, state = policy.remember(inputs, state)       # inputs.memory = memory
            action = policy.distribution(inputs).sample()
            value = policy.values(inputs)

    and in the optimizer, on the stored inputs of a rollout, flattened and shuffled::

        new = policy.distribution(inputs)                        # with gradient, many times
        loss = f(new.log_prob(action), old.log_prob, advantage)

    Memory of the past is computed once, while acting, and stored with the step. That keeps every update a plain batch.
    A policy that learns from history returns the last few steps from ``remember`` and runs its recurrence over them.
    """

    kind: ClassVar[Kind] = "policy"
    provides: ClassVar[frozenset[str]] = frozenset({"value", "cost_value"})
    """What ``values`` can be trusted for; optimizers state what they need (checked before step 0)."""
    action_kinds: ClassVar[frozenset[str]] = frozenset({"discrete"})
    """Which action spaces it can act in."""

    def __init__(self, config: Any, spec: EnvSpec) -> None:
        super().__init__()
        self.config = config
        self.spec = spec

    @abstractmethod
    def distribution(self, inputs: PolicyInput) -> Distribution:
        """Over actions, for B rows."""

    @abstractmethod
    def values(self, inputs: PolicyInput) -> Values:
        """Expected return of reward and of cost, for B rows."""

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """``[S, ...]``: the sentences as fixed numbers, for a policy that reads text by itself (Constraint Fusion).

        They come back as ``inputs.tokens``; what is *learned* about them belongs in ``distribution``.
        """
        return torch.zeros(len(sentences), 0)

    def initial_state(self, rows: int) -> State:
        """State of ``remember`` at the start of an episode, each tensor ``[rows, ...]``."""
        return ()

    def remember(self, inputs: PolicyInput, state: State) -> tuple[Tensor, State]:
        """What to keep of the past: features ``[N, ...]`` for this step, and the next state. Runs without gradient."""
        return inputs.memory, state

    def soften(self, factor: float) -> None:
        """Be less sure: multiply what decides between actions by ``factor`` (below 1), keeping which one is preferred.

        Called before fine-tuning on another reward. A policy that is sure of what used to pay hardly ever tries
        anything else, so it unlearns slowly, far slower than a new one learns. The default changes nothing.
        """

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters of the critics: those whose name has a part that starts with ``critic``."""
        return (p for name, p in self.named_parameters() if _of_critic(name))

    def actor_parameters(self) -> Iterator[nn.Parameter]:
        """All other parameters. They are the theta of a trust-region step."""
        return (p for name, p in self.named_parameters() if not _of_critic(name))


def _of_critic(name: str) -> bool:
    return any(part.startswith("critic") for part in name.split("."))
