"""The first layer of a network whose input is mostly zeros: the same numbers as a dense one, at a fifth of the time.

What a policy sees of a grid is one-hot cells and planes: of 523 numbers 70 are not zero. A dense layer multiplies them
all, and that is most of an update. Here a matrix X [B, F] is kept by rows and by columns, only what is not
zero of it; both products that learning needs, X W and X'D, are then sums of weighted rows, for which torch has a fast
kernel (``embedding_bag``). Each is the other's derivative, so gradients of gradients (_fisher.py) work as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from torch import Tensor

Bags = tuple[Tensor, Tensor, Tensor]
"""For each bag some rows of a table and their weights: rows [nnz], weights [nnz], where each bag begins [bags]."""


class Sparse:
    """X [B, F] by rows and, when it is first asked for, by columns."""

    def __init__(self, x: Tensor) -> None:
        self.rows, self.columns = x.shape
        room = x.numel()  # memory that is not written to costs nothing
        place, value = np.empty(room, np.int32), np.empty(room, np.float32)
        start = np.empty(self.rows, np.int32)
        count = _by_row(x.detach().numpy(), place, value, start)
        self._by_row = _bags(place[:count].copy(), value[:count].copy(), start)
        self._by_column: Bags | None = None

    def times(self, w: Tensor) -> Tensor:
        """X W: [F, O] -> [B, O]."""
        return _sums(self._by_row, w)

    def transposed_times(self, d: Tensor) -> Tensor:
        """X'D: [B, O] -> [F, O]."""
        if self._by_column is None:
            place, value, start = (part.numpy() for part in self._by_row)
            columns = np.empty_like(place), np.empty_like(value), np.empty(self.columns, np.int32)
            _by_column(place, value, start, *columns)
            self._by_column = _bags(*columns)
        return _sums(self._by_column, d)


def sparse_linear(x: Tensor, weight: Tensor) -> Tensor:
    """``F.linear(x, weight)`` for x [B, F] that is mostly zeros and that nobody wants a gradient of.

    Other x are multiplied as they are, and so are all where no weights learn: acting has few rows, which are not worth
    sorting, and what is exported must be plain torch.
    """
    learning = torch.is_grad_enabled() and weight.requires_grad
    if not learning or x.requires_grad or x.dtype != torch.float32 or x.dim() != 2 or not len(x):
        return F.linear(x, weight)
    product: Tensor = _Times.apply(Sparse(x), weight.t())
    return product


class _Times(torch.autograd.Function):
    """X W, of which the derivative by W is X'D."""

    @staticmethod
    def forward(ctx: Any, x: Sparse, w: Tensor) -> Tensor:
        ctx.x = x
        return x.times(w)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, _TransposedTimes.apply(ctx.x, d)


class _TransposedTimes(torch.autograd.Function):
    """X'D, of which the derivative by D is X W."""

    @staticmethod
    def forward(ctx: Any, x: Sparse, d: Tensor) -> Tensor:
        ctx.x = x
        return x.transposed_times(d)

    @staticmethod
    def backward(ctx: Any, w: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, _Times.apply(ctx.x, w)


def _bags(*parts: Any) -> Bags:
    place, value, start = (torch.from_numpy(part) for part in parts)
    return place, value, start


def _sums(bags: Bags, table: Tensor) -> Tensor:
    place, value, start = bags
    return F.embedding_bag(place, table.contiguous(), start, mode="sum", per_sample_weights=value)


@njit(cache=True)
def _by_row(x, place, value, start):  # type: ignore[no-untyped-def]
    count = 0
    for n in range(x.shape[0]):
        start[n] = count
        for f in range(x.shape[1]):
            place[count] = f  # written whatever it is, and kept if it is not zero: no branch to guess wrong
            value[count] = x[n, f]
            count += x[n, f] != 0
    return count


@njit(cache=True)
def _by_column(place, value, start, to_place, to_value, to_start):  # type: ignore[no-untyped-def]
    following = np.zeros(len(to_start) + 1, np.int64)
    for f in place:
        following[f + 1] += 1
    for f in range(len(to_start)):
        following[f + 1] += following[f]
        to_start[f] = following[f]
    for n in range(len(start)):
        end = start[n + 1] if n + 1 < len(start) else len(place)
        for k in range(start[n], end):
            at = following[place[k]]
            to_place[at], to_value[at] = n, value[k]
            following[place[k]] += 1
