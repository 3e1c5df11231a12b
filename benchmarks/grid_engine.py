"""How much faster the batched grid engine is than MiniGrid's way of running many worlds.

Both play the same world with the same kind of random actions, resets included, in one run on this machine; the
reference is this repository's own MiniGrid environment under Gymnasium's SyncVectorEnv. Compilation is not counted.

    python -m benchmarks grid_engine
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import numba
import numpy as np

from hazardworld.ceiling import best_rewards
from hazardworld.constraint import CLASSES
from hazardworld.engine import Engine
from hazardworld.maps import Recipe
from hazardworld.reference import HazardWorldEnv
from hazardworld.rewards import REWARDS
from hazardworld.sentences import SentenceTable

ROWS = 1024
AIM = 1000


def run() -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    with tempfile.TemporaryDirectory() as name:
        texts = Path(name)
        for split in ("train", "test"):
            sentences = {c.label: [f"{split} {c.label} {i}" for i in range(10)] for c in CLASSES["budgetary"]}
            (texts / f"budgetary-{split}.json").write_text(json.dumps(sentences))
        reference = {labels: _sync_vector_env(texts, labels) for labels in (False, True)}
        table = SentenceTable.load("budgetary", "train", texts)

    rows: list[tuple[str, float, str]] = []
    for labels in (False, True):
        told = "labels on" if labels else "labels off"
        rows.append((f"MiniGrid SyncVectorEnv, {told}", reference[labels], "steps/s"))
        for threads in (1, 2):
            if threads > numba.config.NUMBA_NUM_THREADS:  # type: ignore[attr-defined]
                continue
            speed = _engine(table, threads, labels)
            name = f"engine, {threads} thread{'s' if threads > 1 else ''}, N={ROWS}, {told}"
            rows.append((name, speed, "steps/s"))
            rows.append((f"{name}, against SyncVectorEnv", speed / reference[labels], "times"))
    return rows + _maps()


def _sync_vector_env(texts: Path, labels: bool, count: int = 16) -> float:
    envs = gymnasium.vector.SyncVectorEnv([lambda: HazardWorldEnv(texts=texts, labels=labels)] * count)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (220, count))  # past the first truncation: resets count

    def play() -> None:
        for action in actions:
            envs.step(action)

    speed = len(actions) * count / _best(play, times=2)
    envs.close()
    return speed


def _engine(table: SentenceTable, threads: int, labels: bool) -> float:
    engine = Engine(Recipe("budgetary").generate(), table, ROWS, threads=threads)
    engine.reset()
    engine.mask()
    actions = np.random.default_rng(0).integers(0, 4, (1000, ROWS))

    def play() -> None:
        for action in actions:
            engine.step(action)
            if labels:
                engine.mask()

    return len(actions) * ROWS / _best(play, times=5)


def _maps() -> list[tuple[str, float, str]]:
    """How fast budgetary maps are made, and scored by the best return that they allow."""
    rows = [("map generation", 2000 / _best(lambda: Recipe("budgetary").generate(range(2000)), times=3), "maps/s")]
    maps = Recipe("budgetary").generate(range(500))
    for gamma in (1.0, 0.99):
        for actions in ("compass", "turn"):
            score = partial(best_rewards, maps, range(500), REWARDS["train"], actions, 200, gamma)
            best_rewards(maps, [0], REWARDS["train"], actions, 200, gamma)  # compiles
            rows.append((f"ceiling, gamma {gamma}, {actions}", 500 / _best(score, times=2), "maps/s"))
    return rows


def _best(play: Callable[[], object], times: int) -> float:
    """Seconds of the fastest try: noise of a shared machine only ever slows down."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        play()
        spent.append(time.perf_counter() - start)
    return min(spent)
