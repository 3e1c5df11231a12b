"""What the usual mistakes in trust-region safe RL do to random problems: share of problems that come out wrong.

Each row takes the exact formula, puts one mistake in, and counts on the same 20,000 random problems. No training here.

    python -m benchmarks pitfalls
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from plugins.optimizers._trust_region import Quadratic, cpo_step, pcpo_step, trpo_step

PROBLEMS = 20_000
EPISODE = 100
"""Mean episode length in the units row."""


def run() -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    rng = np.random.default_rng(0)
    problems = [_problem(rng) for _ in range(PROBLEMS)]
    bound = [(p, h) for p, h in problems if cpo_step(p)[1] == "bound"]
    recovering = [p for p, _ in problems if cpo_step(p)[1] == "recovery"]
    feasible = [(p, h) for p, h in problems if cpo_step(p)[1] != "recovery"]
    rows = [
        (
            "CPO as it should be: breaks the linearised constraint",
            _share(_broken(p, cpo_step(p)[0]) for p, _ in feasible),
        ),
        ("CPO, sign of r kept from the loss form: breaks it", _share(_broken(p, _wrong_sign(p)) for p, _ in bound)),
        ("CPO, c per episode with b per step: switches to recovery", _share(_switches(p) for p, _ in feasible)),
        ("PCPO, full step: leaves the trust region", _share(_leaves(pcpo_step(p), h, p) for p, h in problems)),
        (
            "PCPO with g for H^-1 g: leaves the trust region",
            _share(_leaves(_plain_gradient(p), h, p) for p, h in problems),
        ),
        ("TRPO: breaks the linearised constraint", _share(_broken(p, trpo_step(p)) for p, _ in feasible)),
    ]
    counts = [("problems with the constraint in play", 100 * len(bound) / PROBLEMS, "%")]
    counts.append(("problems where it is out of reach", 100 * len(recovering) / PROBLEMS, "%"))
    return counts + [(what, 100 * share, "%") for what, share in rows]


def _problem(rng: np.random.Generator, size: int = 5) -> tuple[Quadratic, np.ndarray]:
    root = rng.normal(size=(size, size))
    h = root @ root.T / size + 0.3 * np.eye(size)
    g, b, delta = rng.normal(size=size), rng.normal(size=size), 10 ** rng.uniform(-3, 0)
    inverse_g, inverse_b = np.linalg.solve(h, g), np.linalg.solve(h, b)
    c = math.sqrt(2 * delta * b @ inverse_b) * rng.uniform(-1.6, 1.6)
    vectors = (torch.tensor(v) for v in (g, b, inverse_g, inverse_b))
    return Quadratic(*vectors, q=g @ inverse_g, r=g @ inverse_b, s=b @ inverse_b, c=c, delta=delta), h


def _share(flags: object) -> float:
    return float(np.mean(list(flags)))  # type: ignore[call-overload]


def _broken(p: Quadratic, step: torch.Tensor) -> bool:
    return float(p.b @ step) + p.c > 1e-6 * (1 + abs(p.c))


def _leaves(step: torch.Tensor, h: np.ndarray, p: Quadratic) -> bool:
    x = step.numpy()
    return bool(x @ h @ x / 2 > p.delta * (1 + 1e-9))


def _wrong_sign(p: Quadratic) -> torch.Tensor:
    return cpo_step(dataclasses.replace(p, r=-p.r))[0]


def _switches(p: Quadratic) -> bool:
    return cpo_step(dataclasses.replace(p, c=p.c * EPISODE))[1] == "recovery"


def _plain_gradient(p: Quadratic) -> torch.Tensor:
    return pcpo_step(dataclasses.replace(p, inverse_g=p.g))
