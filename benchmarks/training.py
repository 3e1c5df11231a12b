"""End-to-end PCPO training on HazardWorld-grid, beside the same work done the naive way; and time to a good agent.

Ours: batch of 10,000 steps, the default interpreter in the loop, both critics, conjugate gradient for both right-hand
sides; one thread per process, and as a study runs it: two processes on two cores. Naive: the same network, batch,
interpreter and critic epochs, but MiniGrid under SyncVectorEnv, and the Fisher product on all samples; one process with
both cores. What ours leaves out is stated: its Fisher product is estimated on a tenth of the samples.

    python -m benchmarks training
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

AIM = 20
PAPER = {
    "policy": {"network": "paper", "memory": "none", "budget": "paper"},
    "optimizer": {"critic_epochs": 10, "critic_minibatch": 1000},
}


def run() -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    rows: list[tuple[str, float, str]] = []
    for name, settings in (("default network", {}), ("the paper's network and critic work", PAPER)):
        one = _run(settings)
        two = sum(result["steps_per_second"] for result in _run_two(settings))
        slow = settings | {"optimizer": settings.get("optimizer", {}) | {"fisher_share": 1.0}}
        naive = _run(slow | {"engine": "minigrid", "threads": 2, "updates": 1, "warm_up": 1})
        rows += [
            (f"{name}: one process, one thread", one["steps_per_second"], "steps/s"),
            (f"{name}: two processes on two cores", two, "steps/s"),
            (f"{name}: naive, two threads", naive["steps_per_second"], "steps/s"),
            (f"{name}: two cores against naive", two / naive["steps_per_second"], "times"),
            (f"{name}: peak memory of a process", one["memory"], "GiB"),
        ]
        rows += [(f"{name}: {k.removeprefix('phase ')}", 100 * v, "%") for k, v in one.items() if k.startswith("phase")]
    for batch, envs in ((5_000, 50), (10_000, 100), (20_000, 200), (40_000, 400), (10_000, 50), (10_000, 400)):
        speed = _run({"batch": batch, "rows": envs, "updates": 40_000 // batch})["steps_per_second"]
        rows.append((f"batch {batch:,}, {envs} environments", 1e6 / speed, "us / step"))
    good = _run({"good": True, "interpreter": "oracle", "threads": 2})
    rows.append(("from a cold start to reward >= 5.8 and Delta_C <= 0.1, two threads", good["seconds"], "s"))
    rows.append(("  environment steps until then", good["steps"], "steps"))
    return rows


def _start(settings: dict[str, Any]) -> subprocess.Popen[str]:
    threads = str(settings.get("threads", 1))
    words = [sys.executable, "-m", "benchmarks._training_job", json.dumps(settings)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": threads})


def _finish(job: subprocess.Popen[str]) -> dict[str, float]:
    out, _ = job.communicate()
    if job.returncode:
        raise RuntimeError(f"a training job failed with exit code {job.returncode}")
    result: dict[str, float] = json.loads(out.splitlines()[-1])
    return result


def _run(settings: dict[str, Any]) -> dict[str, float]:
    return _finish(_start(settings))


def _run_two(settings: dict[str, Any]) -> list[dict[str, float]]:
    """Both at the same time; long enough that starting up hardly matters."""
    jobs = [_start(settings | {"updates": 12}) for _ in range(2)]
    return [_finish(job) for job in jobs]
