"""Steps of trust-region methods for constrained problems, as pure functions. Derivations: docs/optimizers.md.

All of them solve, exactly or in part, the problem in the step x

    maximise  g'x    subject to    b'x + c <= 0    and    x'Hx / 2 <= delta

g: gradient of reward (ascent). b: gradient of cost. c = J_C - d *in the units of b*. H: Fisher matrix plus damping.
q = g'H^-1 g, r = g'H^-1 b, s = b'H^-1 b. References: TRPO, Schulman et al. (2015); CPO, Achiam et al. (2017); PCPO,
Yang et al. (2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

TINY = 1e-12


@dataclass(frozen=True)
class Quadratic:
    """One update's problem: vectors [P], and the three numbers that decide everything."""

    g: Tensor
    b: Tensor
    inverse_g: Tensor  # H^-1 g
    inverse_b: Tensor  # H^-1 b
    q: float
    r: float
    s: float
    c: float
    delta: float
    fair_s: float | None = None
    """s from two halves of the rows, b1'H^-1 b2: what noise promises itself is not in it. None: not looked at."""

    @property
    def reach(self) -> float:
        """How far along H^-1 g the trust region goes: sqrt(2 delta / q)."""
        return math.sqrt(2 * self.delta / max(self.q, TINY))


def trpo_step(problem: Quadratic) -> Tensor:
    """The best step that ignores the constraint: sqrt(2 delta / q) H^-1 g."""
    return problem.reach * problem.inverse_g


def pcpo_step(problem: Quadratic, projection: str = "kl") -> Tensor:
    """The TRPO step, projected onto the constraint in the metric H (``kl``) or in plain distance (``l2``).

    kl:  x = a H^-1 g - max(0, (a r + c) / s) H^-1 b,    a = sqrt(2 delta / q)
    l2:  the same with b for H^-1 b, and b'b for s, in the second term.

    The projection can leave the trust region: ``pcpo_within``.
    """
    a = problem.reach
    excess = max(0.0, a * problem.r + problem.c)
    if projection == "kl":
        return a * problem.inverse_g - excess / max(problem.s, TINY) * problem.inverse_b
    if projection == "l2":
        return a * problem.inverse_g - excess / max(float(problem.b @ problem.b), TINY) * problem.b
    raise ValueError(f"projection must be kl or l2, not {projection!r}")


def pcpo_within(problem: Quadratic) -> tuple[Tensor, str]:
    """PCPO's step within the trust region, and which case it was: ``free``, ``projected`` or ``recovery``.

    The point nearest to the TRPO step, in the metric H, that meets the constraint and lies in the region. Where the
    projection is too long, the part of it that meets the constraint, -(c / s) H^-1 b, is kept, and the rest, which
    changes reward and not cost, is shortened. Where the region has no room for the first part, go straight down the
    cost: recovery. (To shorten the whole step instead is to give up the constraint for reward.)
    """
    a, q, r, s, c = problem.reach, problem.q, problem.r, problem.s, problem.c
    if a * r + c <= 0 or s < TINY:
        return trpo_step(problem), "free"
    room = 2 * problem.delta - c * c / s  # for the rest, squared
    if room <= 0:
        return -math.sqrt(2 * problem.delta / s) * problem.inverse_b, "recovery"
    size = a * a * max(0.0, q - r * r / s)  # of the rest, squared
    rest = a * (problem.inverse_g - r / s * problem.inverse_b)
    return min(1.0, math.sqrt(room / max(size, TINY))) * rest - c / s * problem.inverse_b, "projected"


def cpo_step(problem: Quadratic) -> tuple[Tensor, str]:
    """The exact solution, and which case it was: ``free``, ``bound`` or ``recovery``.

    free: the constraint cannot matter within the trust region. recovery: it cannot be met there; go straight down the
    cost. bound: x = (H^-1 g - nu H^-1 b) / lambda, with lambda from the dual.
    """
    q, r, s, c, delta = problem.q, problem.r, problem.s, problem.c, problem.delta
    if s < TINY:
        return (trpo_step(problem), "free") if c <= 0 else (torch.zeros_like(problem.g), "recovery")
    room = 2 * delta - c * c / s  # B: < 0 when the plane b'x + c = 0 does not cut the trust region
    if room <= 0:
        if c < 0:
            return trpo_step(problem), "free"
        return -math.sqrt(2 * delta / s) * problem.inverse_b, "recovery"
    multiplier, price = _dual(q, r, s, c, delta, room)
    return (problem.inverse_g - price * problem.inverse_b) / max(multiplier, TINY), "bound" if price > 0 else "free"


def _dual(q: float, r: float, s: float, c: float, delta: float, room: float) -> tuple[float, float]:
    """lambda and nu that minimise the dual.

    With nu = max(0, (lambda c + r) / s) it has two branches, split at lambda = -r / c:
        nu > 0:  A / (2 lambda) + lambda B / 2 - r c / s,  A = q - r^2 / s,  best at sqrt(A / B)
        nu = 0:  q / (2 lambda) + lambda delta,                              best at sqrt(q / (2 delta))
    Each branch's lambda is projected onto its own interval; the lower value wins.
    """
    shear = max(0.0, q - r * r / s)
    split = -r / c if abs(c) > TINY else None
    if split is None:
        priced, unpriced = ((0.0, math.inf), None) if r > 0 else (None, (0.0, math.inf))
    elif c > 0:
        priced, unpriced = (max(0.0, split), math.inf), ((0.0, split) if split > 0 else None)
    else:
        priced, unpriced = ((0.0, split) if split > 0 else None), (max(0.0, split), math.inf)
    choices = []
    if priced is not None:
        at = max(priced[0], min(priced[1], math.sqrt(shear / room)), TINY)
        choices.append((shear / (2 * at) + at * room / 2 - r * c / s, at))
    if unpriced is not None:
        at = max(unpriced[0], min(unpriced[1], math.sqrt(q / (2 * delta))), TINY)
        choices.append((q / (2 * at) + at * delta, at))
    _, best = min(choices)
    return best, max(0.0, (best * c + r) / s)


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], target: Tensor, iterations: int, tolerance: float = 1e-10
) -> tuple[Tensor, float]:
    """x with Hx = target, by at most ``iterations`` products with H; and the relative residual that is left."""
    x = torch.zeros_like(target)
    residual, direction = target.clone(), target.clone()
    size = start = float(residual @ residual)
    if start == 0.0:
        return x, 0.0
    for _ in range(iterations):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0 or not math.isfinite(curvature):
            break
        step = size / curvature
        x = x + step * direction
        residual = residual - step * image
        new = float(residual @ residual)
        if new < tolerance * start:
            size = new
            break
        direction = residual + new / size * direction
        size = new
    return x, math.sqrt(size / start)
