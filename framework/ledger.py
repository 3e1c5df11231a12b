"""The ledger: adds up predicted cost against predicted budgets, and forms the masks that a policy sees.

It belongs to the framework, so that every interpreter and every policy gets the same bookkeeping. It never sees the
true cost. Several constraints are several columns (axis K); a policy sees one combined mask:

    M_C = sum_k mask_k                       cells that some sentence forbids
    M_B = max_k (spent_k - h_k) over the k that forbid the cell, else 0: how far past (+) or within (-) its budget
    h_C = min_k h_k                          the tightest budget

The predicted cost of a move is 1 when a cell that it touched was forbidden in the mask *before* the move, or when the
interpreter sees now that it was (``Interpretation.trespass``); where touches have a weight (``Timestep.touched`` is
float32), it is that of the heaviest forbidden one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from framework.interfaces.interpreter import reset_rows
from framework.interfaces.types import Interpretation
from framework.schema import Training


@dataclass(frozen=True)
class Reckoning:
    """How an interpreter's probabilities and estimates become entries in the books."""

    rounding: Literal["nearest", "floor"] = "nearest"
    forbid_from: float = 0.5

    @classmethod
    def of(cls, training: Training) -> Reckoning:
        return cls(training.rounding, training.forbid_from)

    def whole(self, threshold: Tensor) -> Tensor:
        return (torch.floor(threshold) if self.rounding == "floor" else torch.floor(threshold + 0.5)).clamp(min=0)

    def forbidden(self, probability: Tensor) -> Tensor:
        """bool"""
        return probability > self.forbid_from


PLAIN = Reckoning()


@dataclass(frozen=True)
class Ledger:
    """The books of N rows with K constraints each."""

    mask: Tensor  # [N, K, *cells] 0 or 1: what was forbidden at the last observation
    threshold: Tensor  # [N, K] whole numbers, at least 0
    spent: Tensor  # [N, K] predicted cost of the present episode so far
    cost: Tensor  # [N, K] predicted cost of the last move, even if it ended an episode
    excess: Tensor  # [N, K] the part of it that was past the budget

    @classmethod
    def empty(cls, rows: int, constraints: int, cells: tuple[int, ...]) -> Ledger:
        books = torch.zeros(rows, constraints)
        return cls(torch.zeros(rows, constraints, *cells), books, books, books, books)

    def charge(self, touched: Tensor, trespass: Tensor | None = None) -> Ledger:
        """Book a move that touched cells [N, *cells], bool or float32; ``trespass`` [N, K] bool: as is seen now."""
        hit = (self.mask * touched.unsqueeze(1)).flatten(2)
        cost = hit.amax(-1) if hit.shape[-1] else torch.zeros_like(self.spent)
        if trespass is not None:
            cost = torch.maximum(cost, trespass.float())
        spent = self.spent + cost
        excess = (spent - self.threshold).clamp(min=0) - (self.spent - self.threshold).clamp(min=0)
        return Ledger(self.mask, self.threshold, spent, cost, excess)

    def observe(self, seen: Interpretation, start: Tensor, reckoning: Reckoning) -> Ledger:
        """Take in what the interpreter sees now ([N * K] rows); books of rows that start an episode are empty."""
        threshold = reckoning.whole(seen.threshold).view_as(self.threshold)
        (spent,) = reset_rows((self.spent,), (torch.zeros_like(self.spent),), start)
        mask = reckoning.forbidden(seen.mask).float().view_as(self.mask)
        return Ledger(mask, threshold, spent, self.cost, self.excess)

    def combined(self) -> tuple[Tensor, Tensor, Tensor]:
        """M_C [N, *cells], M_B [N, *cells] and h_C [N]."""
        balance = (self.spent - self.threshold).view(*self.spent.shape, *[1] * (self.mask.dim() - 2))
        # The paper adds budgets too. Where two sentences forbid one cell, the slack of one must not hide that the other
        # has none left: the tighter one counts. With one constraint the two are the same.
        tightest = torch.where(self.mask > 0, balance, -torch.inf).amax(1)
        forbidden = self.mask.sum(1)
        return forbidden, torch.where(forbidden > 0, tightest, 0.0), self.threshold.amin(1)
