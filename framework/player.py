"""One agent in one world, for people to watch: what it does, what its interpreter understood, and the truth."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from framework.agent import Agent, labels_for
from framework.errors import Problem, UserError
from framework.interfaces import (
    Categorical,
    ConstraintEnv,
    Distribution,
    EnvSpec,
    Gaussian,
    InterpreterInput,
    PolicyInput,
    PolicyNet,
)
from framework.interfaces.policy import Values
from framework.panel import Account, Caption, Clause, Picture


class RandomPolicy(PolicyNet):
    """Anything, equally likely; stands in where there is no trained agent."""

    name = "random"
    action_kinds = frozenset({"discrete", "continuous"})

    def __init__(self, config: Any, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self._discrete = spec.action.kind == "discrete"

    def distribution(self, inputs: PolicyInput) -> Distribution:
        level = torch.zeros(len(inputs.obs), self.spec.action.size)
        return Categorical.from_logits(level) if self._discrete else Gaussian(level, level)

    def values(self, inputs: PolicyInput) -> Values:
        return Values(torch.zeros(len(inputs.obs)), torch.zeros(len(inputs.obs)))


class Player:
    """Row 0 of ``env``. The loop is the evaluator's (framework/evaluator.py), opened up."""

    def __init__(self, env: ConstraintEnv, agent: Agent) -> None:
        self.env, self.agent = env, agent
        self.now = env.reset()
        self.inputs, self._mind = agent.perceive(self.now, agent.fresh_mind(), agent.no_action(), self._labels())
        self.episode, self.step, self.reward = 1, 0, 0.0
        self._cost = torch.zeros(env.spec.constraints)  # [K] true
        self._rule, self._books = self.now, self._mind.ledger  # what the caption tells of

    @property
    def done(self) -> bool:
        """The episode ended here; the next ``act`` starts another, whatever its action."""
        return bool(self.now.done[0])

    def act(self, action: Tensor) -> None:
        """One step of all rows; ``action`` [N]."""
        moves = not self.done or self.now.final_obs is not None
        if self.done:
            self.episode, self.step, self.reward, self._cost = self.episode + 1, 0, 0.0, torch.zeros_like(self._cost)
        before, self.now = self.now, self.env.step(action)
        if moves:
            self.step += 1
            self.reward += float(self.now.reward[0])
            self._cost = self._cost + self.now.cost[0]
        books = self._mind.ledger
        self.inputs, self._mind = self.agent.perceive(self.now, self._mind, action, self._labels())
        self._rule, self._books = self.now, self._mind.ledger
        if self.done and self.now.final_obs is not None:  # sentence and books are the next episode's already
            last = self._mind.ledger.cost
            self._rule, self._books = before, dataclasses.replace(books, spent=books.spent + last)

    @torch.no_grad()
    def choose(self, generator: torch.Generator, greedy: bool = False) -> Tensor:
        """The policy's action [N]."""
        distribution = self.agent.policy.distribution(self.inputs)
        return distribution.mode() if greedy else distribution.sample(generator)

    @property
    def forbidden(self) -> Tensor:
        """[*cells] bool: what the interpreter holds to be forbidden in the present view, by any of the sentences."""
        return self.inputs.mask[0] > 0

    @torch.no_grad()
    def imagine(self, obs: Tensor) -> Tensor | None:
        """[P, *cells] bool: what it would hold to be forbidden if it saw these instead, [P, *shape], here and now.

        None for an interpreter that is told the truth: nobody knows that of other places.
        """
        interpreter = self.agent.interpreter
        if interpreter.needs_labels:
            return None
        places, forbidden = len(obs), torch.zeros(len(obs), *self.env.spec.cells, dtype=torch.bool)
        for k in range(self.env.spec.constraints):
            code = self.agent.code[self.now.text[0, k]].expand(places, *self.agent.code.shape[1:])
            state = tuple(part[k].expand(places, *part.shape[1:]) for part in self._mind.interpreter)
            seen, _ = interpreter.step(InterpreterInput(obs, code), state)
            forbidden |= self.agent.reckoning.forbidden(seen.mask)
        return forbidden

    def frame(self) -> Picture:
        """The env's picture, with what the interpreter holds to be forbidden."""
        drawn = self.env.frame(0, self.inputs.mask[0])
        if drawn is None:
            raise UserError(Problem(f"env '{self.env.name}' cannot be drawn: it has no frame() of its own"))
        return drawn

    def caption(self) -> Caption:
        rule, books = self._rule, self._books
        clauses = tuple(
            Clause(
                self.env.sentences[int(rule.text[0, k])],
                Account(float(books.threshold[0, k]), float(books.spent[0, k])),
                Account(float(rule.threshold[0, k]), float(self._cost[k])),
            )
            for k in range(self.env.spec.constraints)
        )
        return Caption(clauses, self.reward, self.step, self.episode, self.agent.interpreter.name)

    def _labels(self) -> Any:
        return labels_for(self.agent.interpreter, self.env)
