"""An LSTM's last state, differentiated by hand, for optimizers that need its derivative in a hundred directions.

    a_t = W x_t + U h_{t-1} + b        i, f, o = sigmoid(a_t), g = tanh(a_t), each its quarter
    c_t = f c_{t-1} + i g              h_t = o tanh(c_t)

Trust-region methods multiply vectors with the Fisher matrix J'WJ dozens of times at the same weights (_fisher.py).
torch differentiates its LSTM step by step each time: for short sentences that is half of an update of Constraint
Fusion, and mostly overhead. But at fixed weights a change of a_t moves c_t and h_t by factors that can be kept:

    dc_t = f dc_{t-1} + di g + i dg + df c_{t-1}        dh_t = do tanh(c_t) + o (1 - tanh(c_t)^2) dc_t

so that both products, J'u and J v, are one pass over the words. Their derivatives are each other, as is all that
J'WJ needs; the second derivatives of the LSTM itself are left out. (In the Hessian of a KL divergence at old = new
their part is zero.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn


@dataclass(frozen=True)
class Queue:
    """The words of some sentences in the order in which they are read: all first words, all second words, ...

    The longest sentence stands first, so those that are not over yet are always the first few: M words in all, and
    word t of the sentence in place p is word start[t] + p.
    """

    sentence: Tensor  # [M]: which sentence a word is of
    word: Tensor  # [M]: which of its words
    place: Tensor  # [S]: where a sentence stands
    length: Tensor  # [S]: of the sentence in each place
    start: Tensor  # [T + 1]

    @classmethod
    def of(cls, length: Tensor) -> Queue:
        """``length`` [S]: words of each sentence, at least 1."""
        order = torch.argsort(length, descending=True, stable=True)
        steps = torch.arange(int(length.max()))
        going = (length > steps[:, None]).sum(1)
        start = torch.cat([torch.zeros(1, dtype=torch.int64), going.cumsum(0)])
        word = steps.repeat_interleave(going)
        sentence = order[torch.arange(len(word)) - start[word]]
        return cls(sentence, word, torch.argsort(order), length[order], start)


def last_states(lstm: nn.LSTM, x: Tensor, queue: Queue) -> Tensor:
    """[S, H]: the state after the last word of each sentence, of which the words are x [M, E]."""
    last: Tensor = _Read.apply(queue, x, lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0)
    return last[queue.place]


@dataclass(frozen=True)
class _Tape:
    """What the two products need of a reading."""

    queue: Queue
    seen: Tensor  # [M, E + H]: x_t and h_{t-1}
    factor: Tensor  # [M, 4 H]: of a change of a_t, on the way into c_t (i, f, g) and h_t (o)
    keep: Tensor  # [M, H]: f
    show: Tensor  # [M, H]: o (1 - tanh(c_t)^2)
    w: Tensor  # [4 H, E]
    u: Tensor  # [4 H, H]

    def pull(self, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """J'u: of u [S, H], the gradients by x, W, U and b."""
        change = torch.empty_like(self.factor)  # of a_t
        _pull(*self._arrays(self.u, last, change))
        by_w, by_u = (change.T @ self.seen).split([self.w.shape[1], self.u.shape[1]], dim=1)
        return change @ self.w, by_w, by_u, change.sum(0)

    def push(self, x: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
        """J v: of changes of x, W, U and b, the change of the last states [S, H]."""
        change = torch.addmm(b, self.seen, torch.cat([w, u], dim=1).T).addmm_(x, self.w.T)
        last = torch.empty(len(self.queue.length), self.u.shape[1])
        _push(*self._arrays(self.u.T, change, last))
        return last

    def _arrays(self, *others: Tensor) -> tuple[Any, ...]:
        mine = (self.queue.length, self.queue.start, self.factor, self.keep, self.show)
        return tuple(np.ascontiguousarray(part.detach().numpy()) for part in (*mine, *others))


class _Read(torch.autograd.Function):
    """Last states, place by place; their derivative is ``_Pull``."""

    @staticmethod
    def forward(ctx: Any, queue: Queue, x: Tensor, w: Tensor, u: Tensor, b1: Tensor, b2: Tensor) -> Tensor:
        last, ctx.tape = _read(queue, x, w, u, b1 + b2)
        ctx.save_for_backward(w, u)
        return last

    @staticmethod
    def backward(ctx: Any, last: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        ctx.saved_tensors  # noqa: B018  (the tape has them; this raises if they were changed in place since)
        x, w, u, b = _Pull.apply(ctx.tape, last)
        return None, x, w, u, b, b


class _Pull(torch.autograd.Function):
    """J'u, which is linear in u: its derivative by u is J v."""

    @staticmethod
    def forward(ctx: Any, tape: _Tape, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        ctx.tape = tape
        return tape.pull(last)

    @staticmethod
    def backward(ctx: Any, x: Tensor, w: Tensor, u: Tensor, b: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, ctx.tape.push(x, w, u, b)


def _read(queue: Queue, x: Tensor, w: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, _Tape]:
    """Word by word, all sentences at once."""
    size = u.shape[1]
    # tanh(a) = 2 sigmoid(2 a) - 1, so that one call does all four gates; and sigmoid is the faster of the two.
    double = torch.ones(4 * size)
    double[2 * size : 3 * size] = 2
    gates = torch.addmm(b, x, w.T).mul_(double)  # [M, 4 H]: first a_t, then i, f, g, o
    doubled_u = u.T * double
    before, shown, state = (torch.empty(len(x), size) for _ in range(3))  # c_{t-1}, tanh(c_t), h_{t-1}
    last, cell = torch.zeros(len(queue.length), size), torch.zeros(len(queue.length), size)
    starts = queue.start.tolist()
    for begin, end in pairwise(starts):
        now, going = slice(begin, end), end - begin
        h, c, was = last[:going], cell[:going], before[now]
        state[now] = h
        was.copy_(c)
        i, f, g, o = gates[now].addmm_(h, doubled_u).sigmoid_().split(size, dim=1)
        g.mul_(2).sub_(1)
        torch.addcmul(i * g, f, was, out=c)
        torch.mul(o, torch.sigmoid(2 * c, out=shown[now]).mul_(2).sub_(1), out=h)
    i, f, g, o = gates.split(size, dim=1)
    factor = torch.empty_like(gates)
    for place, (value, slope) in enumerate([(g, i - i * i), (before, f - f * f), (i, 1 - g * g), (shown, o - o * o)]):
        torch.mul(value, slope, out=factor[:, place * size : (place + 1) * size])
    return last, _Tape(queue, torch.cat([x, state], dim=1), factor, f.contiguous(), o - o * shown * shown, w, u)


@njit(cache=True, fastmath=True)
def _push(length, start, factor, keep, show, u, change, last):  # type: ignore[no-untyped-def]
    size = keep.shape[1]
    a, h, c = np.empty(4 * size, np.float32), np.empty(size, np.float32), np.empty(size, np.float32)
    for p in range(len(length)):
        h[:], c[:] = 0, 0
        for t in range(length[p]):
            m = start[t] + p
            a[:] = change[m]
            for k in range(size):
                for j in range(4 * size):
                    a[j] += h[k] * u[k, j]
            for j in range(size):
                i, f, g = j, size + j, 2 * size + j
                c[j] = keep[m, j] * c[j] + factor[m, i] * a[i] + factor[m, f] * a[f] + factor[m, g] * a[g]
                h[j] = factor[m, 3 * size + j] * a[3 * size + j] + show[m, j] * c[j]
        last[p] = h


@njit(cache=True, fastmath=True)
def _pull(length, start, factor, keep, show, u, last, change):  # type: ignore[no-untyped-def]
    size = keep.shape[1]
    h, c = np.empty(size, np.float32), np.empty(size, np.float32)
    for p in range(len(length)):
        h[:], c[:] = last[p], 0
        for t in range(length[p] - 1, -1, -1):
            m = start[t] + p
            for j in range(size):
                c[j] += show[m, j] * h[j]
                for gate in range(3):
                    change[m, gate * size + j] = factor[m, gate * size + j] * c[j]
                change[m, 3 * size + j] = factor[m, 3 * size + j] * h[j]
                c[j] *= keep[m, j]
            h[:] = 0
            for k in range(size):  # the four gates at once: h is loaded and stored a fourth as often
                i, f, g, o = change[m, k], change[m, size + k], change[m, 2 * size + k], change[m, 3 * size + k]
                for j in range(size):
                    h[j] += i * u[k, j] + f * u[size + k, j] + g * u[2 * size + k, j] + o * u[3 * size + k, j]
