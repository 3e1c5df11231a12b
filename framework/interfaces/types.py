"""The data that flows between plugins. Every type is frozen; every tensor field states its shape.

Shape law: a step is ``[N, ...]``, a rollout is ``[T, N, ...]``. N environments run side by side and there is no
unbatched path. K is the number of constraints that hold at once. It is an *axis*, not a list: with K fixed by the
environment everything stays one tensor, and the usual case is simply K = 1. Only the environment and the ledger
(framework/ledger.py) ever see that axis. Interpreters read one sentence per row (the framework folds K into the
batch) and policies get masks that are already combined, so a policy trained with one constraint works with three.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

State = tuple[Tensor, ...]
"""Recurrent state: tensors ``[N, ...]``. ``()`` means memoryless, so recurrence is never an ``if``.
At the start of an episode the framework puts the rows of ``initial_state`` back; plugins never reset anything."""

Metrics = dict[str, float]
"""Numbers to log."""

T = TypeVar("T")


@dataclass(frozen=True)
class ObservationSpec:
    """What one observation looks like.

    ``codes``   a grid of small integers, ``[*shape]`` uint8; each channel c (last axis) takes values below
                ``levels[c]``, so that a network can one-hot or embed it without guessing;
    ``vector``  real numbers, ``[*shape]`` float32;
    ``image``   RGB bytes ``[H, W, 3]`` uint8.
    """

    kind: Literal["codes", "vector", "image"]
    shape: tuple[int, ...]
    levels: tuple[int, ...] = ()
    objects: tuple[int, ...] = ()
    """``codes``: those values of channel 0 that do occur, so that no weights are spent on others; empty: any below
    ``levels[0]`` may."""
    parts: tuple[tuple[str, int], ...] = ()
    """``vector``: what its numbers are, as (name, how many) from the first to the last; empty: not told."""


@dataclass(frozen=True)
class ActionSpec:
    """``discrete``: ``size`` choices, actions are int64 ``[N]``. ``continuous``: float32 ``[N, size]`` in [-1, 1]."""

    kind: Literal["discrete", "continuous"]
    size: int


@dataclass(frozen=True)
class EnvSpec:
    """All that interpreters and policies may know of an environment when they are built.

    Components are built from this, never from the environment itself, so what is not here cannot leak.
    """

    observation: ObservationSpec
    action: ActionSpec
    cells: tuple[int, ...]
    """Shape of the mask M_C: ``(7, 7)`` for a grid view, ``(5,)`` for entity slots, ``(B,)`` for boxes on an image."""
    constraints: int
    """K, how many sentences hold at once."""
    max_threshold: int
    """Largest budget h_C that this environment's sentences state."""
    max_steps: int
    """An episode is truncated after this many steps."""
    entities: tuple[str, ...] = ()
    """What a sentence can speak of."""
    entity_codes: tuple[int, ...] = ()
    """For ``codes`` observations: the code of each entity in channel 0, in the order of ``entities``."""
    agent_cell: tuple[int, ...] | None = None
    """Where in the view the agent itself is, so that what it stands on can be read off; None if that has no meaning."""
    lidar_edges: tuple[tuple[float, ...], ...] = ()
    """For robots whose cells are (entity, distance): what the entity's lidar reads where that cell begins."""

    def code_of(self, entity: str) -> int:
        """The code of an entity in channel 0 of a ``codes`` observation: ``obs[..., 0] == spec.code_of("water")``."""
        codes = dict(zip(self.entities, self.entity_codes, strict=False))
        if not codes:
            raise ValueError("no entity has a code here: the observation is no grid of codes with named entities")
        if entity not in codes:
            raise ValueError(f"no entity is called '{entity}' here; known: {', '.join(sorted(codes))}")
        return codes[entity]


def map_tensors(item: T, change: Callable[[Tensor], Tensor]) -> T:
    """A dataclass of tensors with each tensor changed; fields marked ``shared`` stay as they are."""
    changes = {
        field.name: change(getattr(item, field.name))
        for field in dataclasses.fields(item)  # type: ignore[arg-type]
        if not field.metadata.get("shared") and isinstance(getattr(item, field.name), Tensor)
    }
    return dataclasses.replace(item, **changes)  # type: ignore[type-var]


def take(item: T, index: Any) -> T:
    """Index every tensor along its leading axis."""
    return map_tensors(item, lambda tensor: tensor[index])


def flatten(item: T) -> T:
    """``[T, N, ...]`` -> ``[T * N, ...]``."""
    return map_tensors(item, lambda tensor: tensor.flatten(0, 1))


def stack(items: Sequence[T]) -> T:
    """T steps ``[N, ...]`` become one rollout ``[T, N, ...]``."""
    first = items[0]
    changes = {
        field.name: torch.stack([getattr(item, field.name) for item in items])
        for field in dataclasses.fields(first)  # type: ignore[arg-type]
        if not field.metadata.get("shared") and isinstance(getattr(first, field.name), Tensor)
    }
    return dataclasses.replace(first, **changes)  # type: ignore[type-var]


@dataclass(frozen=True)
class Timestep:
    """What an environment shows after ``reset`` or ``step``.

    An episode's last observation is a step like any other: the policy sees it and values it. The *next* call to
    ``step`` starts a new episode for that row whatever the action (Gymnasium's ``NEXT_STEP`` autoreset), and comes
    back with ``episode_start`` set and reward and cost zero. So truncation can be bootstrapped from the very
    observation at which it happened, with the interpreter's and the policy's true recurrent state.
    """

    obs: Tensor  # [N, *observation.shape]
    text: Tensor  # [N, K] int64: ids into ConstraintEnv.sentences
    reward: Tensor  # [N] float32
    cost: (
        Tensor  # [N, K] float32: the true cost. This and the next two are for evaluation and logs: no plugin sees them
    )
    threshold: Tensor  # [N, K] float32: the true budget h_C of the present episode
    kind: Tensor  # [N, K] int64: which kind of constraint, an index into ConstraintEnv.kinds
    touched: Tensor
    """[N, *cells] bool: cells of the previous view that this move entered (the agent's own odometry). Or float32, at
    least 0: how much each of them weighs, where the cost of a move is not just 0 or 1; the ledger then books that."""
    terminated: Tensor  # [N] bool
    truncated: Tensor  # [N] bool
    episode_start: Tensor  # [N] bool: obs is the first of an episode
    final_obs: Tensor | None = None
    """[N, *observation.shape], in every step of an environment that resets within the step (Gymnasium's ``SAME_STEP``),
    None from all others. Then ``obs``, ``text``, ``threshold`` and ``kind`` of a finished row are already the next
    episode's, ``episode_start`` is set in the same Timestep, and this holds the last observation of the old episode
    (rows that did not finish: equal to ``obs``). Reward, cost, ``touched`` and the two endings are the old episode's.
    ``labels()`` then speaks of the new episode, so the true mask must not depend on where the row is."""

    @property
    def done(self) -> Tensor:
        """[N] bool: the episode ended here, either way."""
        return self.terminated | self.truncated


@dataclass(frozen=True)
class Labels:
    """The truth about the constraint. Reaches only interpreters that declare ``needs_labels``, and stage 1."""

    mask: Tensor  # [N, K, *cells] float32: 1 where entering would cost now (M_C)
    threshold: Tensor  # [N, K] float32: h_C
    trespass: Tensor | None = None
    """[N, K] float32: above 0 where the last move cost something. None: the mask before it always tells."""


@dataclass(frozen=True)
class InterpreterInput:
    """One row per (environment, constraint): the framework folds ``[N, K]`` into M rows."""

    obs: Tensor  # [M, *observation.shape]
    code: Tensor  # [M, ...]: this row's sentence, as your own ``encode`` returned it
    labels: Labels | None = None
    """None unless the class declares ``needs_labels``; then K = 1: mask [M, 1, *cells], threshold [M, 1]."""
    touched: Tensor | None = None
    """[M, *cells]: what the last move touched (``Timestep.touched``), nothing at the start of an episode. None in calls
    that are about a sentence alone."""


@dataclass(frozen=True)
class Walks:
    """Stage 1's lesson: T steps of R = N * K rows of random walk, with the truth about each."""

    obs: Tensor  # [T, R, *observation.shape]
    text: Tensor  # [T, R] int64: sentence ids
    mask: Tensor  # [T, R, *cells] bool: true M_C
    threshold: Tensor  # [T, R] float32: true h_C
    episode_start: Tensor  # [T, R] bool
    touched: Tensor  # [T, R, *cells] bool: what the move before touched


@dataclass(frozen=True)
class Interpretation:
    """What an interpreter understood."""

    mask: Tensor  # [M, *cells] float32: probability that entering the cell would cost now (M_C)
    threshold: Tensor  # [M] float32: predicted h_C
    confidence: Tensor | None = None  # [M] float32 in [0, 1]: how sure it is that it read a constraint at all
    trespass: Tensor | None = None
    """[M] float32: probability that it was forbidden to enter the cell where the agent is, by what is in view now. What
    forbids a cell may come into view only as one enters it: stay three steps from lava, and there it is, three steps
    ahead, where the view ended before. None: the mask before the move says all that is known."""


@dataclass(frozen=True)
class Explanation:
    """What an interpreter makes of a sentence, in words, for people."""

    kind: str
    """Which kind of constraint it takes it for."""
    text: str
    """What it forbids."""
    constraint: float
    """Probability that it is a constraint at all."""
    distances: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How far it says to keep from which entities; a playground makes a map on which there is a way."""


@dataclass(frozen=True)
class PolicyInput:
    """What a policy may use. Masks of several constraints are already combined (framework/ledger.py)."""

    obs: Tensor  # [N, *observation.shape]
    mask: Tensor  # [N, *cells] float32: M_C, summed over constraints
    budget: Tensor  # [N, *cells] float32: M_B, what is spent past (+) or left within (-) the tightest budget, per cell
    threshold: Tensor  # [N] float32: h_C, the smallest of the constraints'
    touched: Tensor  # [N, *cells] bool or float32: cells of the previous view that the last move entered; see Timestep
    last_action: Tensor  # [N] or [N, A]: zero at the start of an episode
    memory: Tensor  # [N, ...]: what PolicyNet.remember returned for this step; [N, 0] before it ran
    text: Tensor  # [N, K] int64: sentence ids, rows of ``tokens``
    tokens: Tensor = dataclasses.field(metadata={"shared": True})
    """[S, ...]: PolicyNet.encode of all S sentences; one table shared by the batch, never indexed with it."""

    @classmethod
    def blank(cls, spec: EnvSpec, rows: int) -> PolicyInput:
        """Rows of zeros, for a policy that measures how many features it has."""
        cells, nothing = torch.zeros(rows, *spec.cells), torch.zeros(rows, 0)
        kind = {"codes": torch.uint8, "image": torch.uint8, "vector": torch.float32}[spec.observation.kind]
        action = (rows,) if spec.action.kind == "discrete" else (rows, spec.action.size)
        return cls(
            obs=torch.zeros(rows, *spec.observation.shape, dtype=kind),
            mask=cells,
            budget=cells,
            threshold=torch.zeros(rows),
            touched=cells.bool(),
            last_action=torch.zeros(action, dtype=torch.int64 if spec.action.kind == "discrete" else torch.float32),
            memory=nothing,
            text=torch.zeros(rows, spec.constraints, dtype=torch.int64),
            tokens=nothing,
        )


@dataclass(frozen=True)
class Episodes:
    """The episodes that finished within a rollout, E of them (possibly 0). For logs: no plugin gets the true cost."""

    reward: Tensor  # [E] sum of rewards
    cost: Tensor  # [E, K] true cost
    predicted_cost: Tensor  # [E, K] cost by the interpreter
    threshold: Tensor  # [E, K] true h_C
    predicted_threshold: Tensor  # [E, K]
    length: Tensor  # [E] steps

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def violation(self) -> Tensor:
        """[E]: Delta_C, the true cost past the true budget, summed over constraints."""
        return (self.cost - self.threshold).clamp(min=0).sum(-1)


@dataclass(frozen=True)
class Rollout:
    """T steps of N environments with their advantages: all that an optimizer learns from.

    Policies are functions of one step's stored input (memory included), so an optimizer may flatten and shuffle.

    Row (t, n) is the transition that leaves ``inputs[t, n]``. ``valid`` is False where that transition was no
    decision of the agent's (the step that starts the next episode); such rows must not weigh in any loss.
    """

    inputs: PolicyInput  # [T, N, ...]
    action: Tensor  # [T, N] or [T, N, A]
    log_prob: Tensor  # [T, N] under the policy that acted
    reward: Tensor  # [T, N]
    cost: Tensor  # [T, N] the constrained cost, as the interpreter predicted it
    valid: Tensor  # [T, N] bool
    advantage: Tensor  # [T, N] of reward, raw
    cost_advantage: Tensor  # [T, N] of cost, raw
    value_target: Tensor  # [T, N]
    cost_value_target: Tensor  # [T, N]
    violation: float
    """c = J_C - d per episode, from this batch's finished episodes; > 0 means that the constraint is broken."""
    episode_length: float
    """Mean length of this batch's finished episodes: turns per-episode units into per-step ones."""
    violation_error: float = field(default=0.0, kw_only=True)
    """Standard error of ``violation``: a batch may hold only a few episodes."""
