"""Trust-region steps against independent solvers, over random problems; and what the usual mistakes would do."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
import torch

from plugins.optimizers._trust_region import Quadratic, conjugate_gradient, cpo_step, pcpo_step, pcpo_within, trpo_step


def problem(rng: np.random.Generator, size: int = 5) -> tuple[Quadratic, np.ndarray]:
    """A random problem with a well-conditioned H; c and delta such that all cases occur."""
    root = rng.normal(size=(size, size))
    h = root @ root.T / size + 0.3 * np.eye(size)
    g, b = rng.normal(size=size), rng.normal(size=size) * 10 ** rng.uniform(-1, 1)
    delta = 10 ** rng.uniform(-3, 0)
    reach = math.sqrt(2 * delta * b @ np.linalg.solve(h, b))  # most that b'x can be within the trust region
    c = reach * rng.uniform(-1.6, 1.6)
    return quadratic(h, g, b, c, delta), h


def quadratic(h, g, b, c, delta) -> Quadratic:
    inverse_g, inverse_b = np.linalg.solve(h, g), np.linalg.solve(h, b)
    tensors = (torch.tensor(v, dtype=torch.float64) for v in (g, b, inverse_g, inverse_b))
    return Quadratic(*tensors, q=g @ inverse_g, r=g @ inverse_b, s=b @ inverse_b, c=c, delta=delta)


def best_value(p: Quadratic) -> float | None:
    """Brute force: in the plane of H^-1 g and H^-1 b the trust region is a disc; the optimum is on its rim.

    Or where the rim meets the constraint's line. None when no step within the region meets the constraint.
    """
    e = p.r / math.sqrt(p.s)  # coordinates: first axis along b, second the rest of g
    f = math.sqrt(max(0.0, p.q - e * e))
    radius, limit = math.sqrt(2 * p.delta), -p.c / math.sqrt(p.s)
    if limit < -radius:
        return None
    angle = np.linspace(0, 2 * np.pi, 20_001)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    value = np.where(x <= limit + 1e-12, e * x + f * y, -np.inf).max()
    if abs(limit) <= radius:
        value = max(value, e * limit + f * math.sqrt(radius**2 - limit**2))
    return float(value)


def test_cpo_is_optimal_in_every_case():
    """3,000 random problems: within the trust region, within the constraint, and as good as brute force."""
    rng, cases = np.random.default_rng(0), {}
    for _ in range(3_000):
        p, h = problem(rng)
        step, case = cpo_step(p)
        x = step.numpy()
        cases[case] = cases.get(case, 0) + 1
        kl = x @ h @ x / 2
        assert kl <= p.delta * (1 + 1e-6)
        best = best_value(p)
        if case == "recovery":
            assert best is None
            lowest = -math.sqrt(2 * p.delta * p.s)
            assert float(p.b @ step) == pytest.approx(lowest), "straight down the cost"
        else:
            assert float(p.b @ step) + p.c <= 1e-6 * (1 + abs(p.c))
            assert float(p.g @ step) == pytest.approx(best, rel=1e-4, abs=1e-6 * math.sqrt(p.q * p.delta))
    assert min(cases.values()) > 200, cases


def test_cpo_against_a_convex_solver():
    rng = np.random.default_rng(1)
    for _ in range(60):
        p, h = problem(rng)
        step, case = cpo_step(p)
        x = cvxpy.Variable(len(p.g))
        region = cvxpy.quad_form(x, cvxpy.psd_wrap(h)) / 2 <= p.delta
        solved = cvxpy.Problem(cvxpy.Maximize(p.g.numpy() @ x), [region, p.b.numpy() @ x + p.c <= 0])
        value = solved.solve()
        if case == "recovery":
            assert solved.status.startswith("infeasible")
        else:
            assert float(p.g @ step) == pytest.approx(value, rel=1e-3, abs=1e-4 * math.sqrt(p.q * p.delta))


@pytest.mark.parametrize("projection", ["kl", "l2"])
def test_pcpo_is_the_nearest_point_that_meets_the_constraint(projection):
    """Against the projection as a convex problem of its own."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        p, h = problem(rng)
        reward_step = trpo_step(p).numpy()
        x = cvxpy.Variable(len(p.g))
        metric = h if projection == "kl" else np.eye(len(h))
        distance = cvxpy.quad_form(x - reward_step, cvxpy.psd_wrap(metric))
        cvxpy.Problem(cvxpy.Minimize(distance), [p.b.numpy() @ x + p.c <= 0]).solve()
        assert np.allclose(pcpo_step(p, projection).numpy(), x.value, atol=2e-3 * (1 + np.abs(x.value).max()))


def test_pcpo_within_is_the_nearest_point_that_meets_the_constraint_and_lies_in_the_region():
    """Against a convex solver; where there is no such point, the point of the region that costs least."""
    rng, cases = np.random.default_rng(12), {}
    for _ in range(80):
        p, h = problem(rng)
        step, case = pcpo_within(p)
        cases[case] = cases.get(case, 0) + 1
        x = cvxpy.Variable(len(p.g))
        metric = cvxpy.psd_wrap(h)
        region = cvxpy.quad_form(x, metric) <= 2 * p.delta
        if case == "recovery":
            cvxpy.Problem(cvxpy.Minimize(p.b.numpy() @ x), [region]).solve()
            assert float(p.b @ step) + p.c > 0
        else:
            distance = cvxpy.quad_form(x - trpo_step(p).numpy(), metric)
            cvxpy.Problem(cvxpy.Minimize(distance), [p.b.numpy() @ x + p.c <= 0, region]).solve()
        assert np.allclose(step.numpy(), x.value, atol=3e-3 * (1 + np.abs(x.value).max())), case
    assert all(cases[case] >= 8 for case in ("free", "projected", "recovery"))


def test_pcpo_within_keeps_region_and_constraint_and_is_the_projection_where_that_fits():
    rng, fits, shortened = np.random.default_rng(13), 0, 0
    for _ in range(3_000):
        p, h = problem(rng)
        step, case = pcpo_within(p)
        x, published = step.numpy(), pcpo_step(p).numpy()
        assert x @ h @ x / 2 <= p.delta * (1 + 1e-6)
        assert case == "recovery" or float(p.b @ step) + p.c <= 1e-6 * (1 + abs(p.c))
        if published @ h @ published / 2 <= p.delta:
            fits += 1
            assert np.allclose(x, published, rtol=1e-5, atol=1e-9)
        elif case == "projected":
            shortened += 1
            assert float(p.g @ step) <= float(p.g @ trpo_step(p)) * (1 + 1e-9)
    assert fits > 500 and shortened > 200


def test_pcpo_leaves_the_trust_region_often_enough_to_need_a_line_search():
    rng, left = np.random.default_rng(3), 0
    for _ in range(2_000):
        p, h = problem(rng)
        x = pcpo_step(p).numpy()
        left += x @ h @ x / 2 > p.delta * (1 + 1e-9)
    assert 0.1 < left / 2_000 < 0.6


def test_the_usual_sign_error_breaks_the_constraint():
    """nu = (lambda c - r) / s, the loss-form sign kept with g as ascent, misses the linearised cost."""
    rng, bound, broken = np.random.default_rng(4), 0, 0
    for _ in range(3_000):
        p, _ = problem(rng)
        _, case = cpo_step(p)
        if case != "bound":
            continue
        bound += 1
        wrong = Quadratic(p.g, p.b, p.inverse_g, p.inverse_b, p.q, -p.r, p.s, p.c, p.delta)
        step, _ = cpo_step(wrong)
        broken += float(p.b @ step) + p.c > 1e-6 * (1 + abs(p.c))
    assert broken / bound > 0.3


def test_flipping_the_sign_of_cost_and_limit_is_another_constraint_with_the_same_code():
    """-b'x - c <= 0 bounds the cost from below: the step then keeps it above."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        p, h = problem(rng)
        mirrored = quadratic(h, p.g.numpy(), -p.b.numpy(), -p.c, p.delta)
        step, case = cpo_step(mirrored)
        if case != "recovery":
            assert float(p.b @ step) + p.c >= -1e-6 * (1 + abs(p.c))


def test_the_step_does_not_depend_on_the_units_of_cost():
    """Cost per step or per episode: b and c scale together, and the step stays."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        p, h = problem(rng)
        scaled = quadratic(h, p.g.numpy(), 200 * p.b.numpy(), 200 * p.c, p.delta)
        assert torch.allclose(cpo_step(p)[0], cpo_step(scaled)[0], rtol=1e-5, atol=1e-7)
        assert torch.allclose(pcpo_step(p), pcpo_step(scaled), rtol=1e-5, atol=1e-7)
        assert torch.allclose(pcpo_within(p)[0], pcpo_within(scaled)[0], rtol=1e-5, atol=1e-7)


def test_no_cost_gradient_is_a_case_of_its_own():
    h = np.eye(3)
    free = quadratic(h, np.ones(3), np.zeros(3), -1.0, 0.1)
    assert torch.equal(cpo_step(free)[0], trpo_step(free))
    stuck = quadratic(h, np.ones(3), np.zeros(3), 1.0, 0.1)
    assert cpo_step(stuck)[1] == "recovery"
    assert torch.isfinite(pcpo_step(stuck)).all()
    assert torch.equal(pcpo_within(stuck)[0], trpo_step(stuck)), "no step changes the cost: learn the task"


def test_conjugate_gradient_solves_and_tells_its_residual():
    rng = np.random.default_rng(7)
    p, h = problem(rng, size=12)
    matrix = torch.tensor(h)
    x, residual = conjugate_gradient(lambda v: matrix @ v, p.g, iterations=50, tolerance=1e-20)
    assert torch.allclose(x, p.inverse_g, atol=1e-7)
    assert residual < 1e-8
    _, rough = conjugate_gradient(lambda v: matrix @ v, p.g, iterations=2)
    assert rough > residual
    zero, none = conjugate_gradient(lambda v: matrix @ v, torch.zeros(12, dtype=torch.float64), iterations=5)
    assert not zero.any()
    assert none == 0
