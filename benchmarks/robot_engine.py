"""How much faster the batched robot engines are than Safety-Gymnasium's way of running many worlds.

All play the same maps with the same kind of actions, resets included, in one run and on one thread. The yardstick is
Safety-Gymnasium's own classes, environments stepped one after the other in one process, as its vectorised
environments do (those do not import on Python 3.11). Compilation is not counted. Yardstick and engines take turns, and
the median of the rounds counts: one round of the yardstick alone varies by a fifth.

    python -m benchmarks robot_engine
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.exact import ExactEngine
from hazardworld.robot.fast import FastEngine
from hazardworld.robot.layout import Layouts, Recipe
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.task import classes
from hazardworld.robot.things import BINS, KINDS

STEPS = 1000  # of an episode, as in Safety-Gymnasium
ROUNDS = 3
EXACT, FAST, DRIVEN = "exact, random actions", "fast, random actions", "fast, driving at things"
AGAINST = ", against Safety-Gymnasium"
AIM = {EXACT + AGAINST: 6, FAST + AGAINST: 30, DRIVEN + AGAINST: 30}

Policy = Callable[[int, NDArray[np.floating]], NDArray[np.float64]]


def run() -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    maps = Recipe().generate(range(500))
    contestants: tuple[tuple[str, RobotEngine, Policy], ...] = (
        (EXACT, ExactEngine(maps, 8, goals=5, max_steps=STEPS), _random),
        (FAST, FastEngine(maps, 64, goals=5, max_steps=STEPS), _random),
        (DRIVEN, FastEngine(maps, 64, goals=5, max_steps=STEPS), _drive),
    )
    reference: list[float] = []
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in contestants}
    for _ in range(ROUNDS):
        reference.append(_safety_gymnasium(maps))
        for name, engine, policy in contestants:
            measured[name].append(_engine(engine, policy))
    rows = [("Safety-Gymnasium, random actions", float(np.median(reference)), "steps/s")]
    for name, engine, _ in contestants:
        speed, touching = np.array(measured[name]).T
        rows.append((f"{name}, N={engine.rows}", float(np.median(speed)), "steps/s"))
        rows.append((name + AGAINST, float(np.median(speed / np.array(reference))), "times"))
        rows.append((f"{name}: of its steps in contact", 100 * float(touching.mean()), "%"))
    return rows


def _safety_gymnasium(maps: Layouts, count: int = 2) -> float:
    """One episode of each environment, its reset included."""
    envs = [classes().Env(maps, 5, STEPS) for _ in range(count)]
    envs[0].reset_map(0)  # imports and first compilation
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, count, 2))
    start, steps = time.perf_counter(), 0
    for n, env in enumerate(envs):
        env.reset_map(n)
    for action in actions:
        for n, env in enumerate(envs):
            if env.done:
                env.reset_map(count + n)
            else:
                env.step(action[n])
            steps += 1
    return steps / (time.perf_counter() - start)


def _engine(engine: RobotEngine, policy: Policy) -> tuple[float, float]:
    """Steps per second, the policy's own time left out; and the share of steps in which something solid is touched."""
    for t in range(200):  # whatever is compiled or built on first use
        engine.step(policy(t, engine.step(np.zeros((engine.rows, 2))).obs))
    spent, touching = 0.0, 0
    start = time.perf_counter()
    step = engine.reset()
    spent += time.perf_counter() - start
    for t in range(STEPS + 1):  # up to the reset after the last step
        actions = policy(t, step.obs)
        start = time.perf_counter()
        step = engine.step(actions)
        spent += time.perf_counter() - start
        touching += int(step.touching[:, 1:].any(1).sum())
    return engine.rows * STEPS / spent, touching / (engine.rows * STEPS)


def _random(t: int, obs: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.random.default_rng(t).uniform(-1, 1, (len(obs), 2))


def _drive(t: int, obs: NDArray[np.floating]) -> NDArray[np.float64]:
    """Towards the nearest thing of one kind or the goal, every 100 steps another, as the lidar shows it."""
    rows = np.arange(len(obs))
    lidars = obs[:, 12:-1].reshape(len(obs), 1 + len(KINDS), BINS)
    brightest = lidars[rows, (rows + t // 100) % (1 + len(KINDS))].argmax(1)
    angle = ((brightest + 0.5) / BINS * 2 * np.pi + np.pi) % (2 * np.pi) - np.pi
    return np.stack([np.abs(angle) < 0.7, np.clip(2 * angle, -1, 1)], 1).astype(np.float64)
