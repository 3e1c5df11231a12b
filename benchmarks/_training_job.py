"""One training run in a process of its own, for the benchmark: ``python -m benchmarks._training_job '{...}'``.

Prints one line of JSON: steps per second, seconds by phase, peak memory; or the time until the agent is good.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import defaultdict
from typing import Any

STARTED = time.perf_counter()  # before torch is imported: a cold start is counted from here

import torch  # noqa: E402

from benchmarks._minigrid_rows import MiniGridRows  # noqa: E402
from framework.agent import Agent  # noqa: E402
from framework.plugin_manager import PluginHost  # noqa: E402
from framework.rollout import Collector  # noqa: E402
from framework.schema import Training  # noqa: E402
from framework.seeding import generator, seed_everything  # noqa: E402
from framework.trainer import describe  # noqa: E402


class Job:
    """What to run; every setting can come from the command line."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.engine = said.get("engine", "ours")
        self.threads = said.get("threads", 1)
        self.rows, self.batch = said.get("rows", 200), said.get("batch", 10_000)
        self.updates, self.warm_up = said.get("updates", 5), said.get("warm_up", 2)
        self.interpreter = said.get("interpreter", "reader")
        self.policy, self.optimizer = said.get("policy", {}), said.get("optimizer", {})
        self.good = said.get("good", False)

    def build(self) -> tuple[Collector, Any]:
        torch.set_num_threads(self.threads)
        seed_everything(0)
        catalog = PluginHost().catalog

        def make(kind: str, name: str, first: object, settings: dict[str, Any]) -> Any:
            cls: Any = catalog.get(kind, name).cls  # type: ignore[arg-type]
            return cls(cls.Config(**settings) if getattr(cls, "Config", None) else None, first)

        if self.engine == "ours":
            world: Any = catalog.get("env", "hazardworld_grid").cls
            env: Any = world(world.Config(), rows=self.rows, split="train", seed=0)
        else:
            env = MiniGridRows(self.rows, seed=0)
        interpreter = make("interpreter", self.interpreter, env.spec, {}).requires_grad_(False).eval()
        policy = make("policy", "polco_grid", env.spec, self.policy)
        training = Training(steps=self.batch, batch=self.batch, rows=self.rows)
        return Collector(env, Agent(env, interpreter, policy), training, generator(0, "actions")), make(
            "optimizer", "pcpo", policy, self.optimizer
        )


def throughput(job: Job) -> dict[str, float]:
    """Steps per second after a warm-up, and where the time goes."""
    collector, optimizer = job.build()
    for _ in range(job.warm_up):
        optimizer.update(collector.collect())
    watch = Stopwatch()
    watch.put_on(collector.env, "step", "environment")
    watch.put_on(collector.agent.interpreter, "step", "interpreter")
    watch.put_on(collector.agent.policy, "remember", "policy's view and memory")
    watch.put_on(collector, "collect", "collecting, in all")
    watch.put_on(optimizer, "_problem", "gradients and both CG solves")
    watch.put_on(optimizer, "_search", "line search")
    watch.put_on(optimizer._critics, "fit", "both critics")
    started = time.perf_counter()
    for _ in range(job.updates):
        optimizer.update(collector.collect())
    spent = time.perf_counter() - started
    phases = {f"phase {name}": seconds / spent for name, seconds in watch.seconds.items()}
    return {"steps_per_second": job.updates * job.batch / spent, "memory": peak_memory()} | phases


def until_good(job: Job, limit: int = 300) -> dict[str, float]:
    """Seconds from the start of the process until reward >= 5.8 and Delta_C <= 0.1, as means of three batches."""
    collector, optimizer = job.build()
    past: list[dict[str, float]] = []
    while len(past) < limit:
        optimizer.update(collector.collect())
        past.append(describe(collector.tally.episodes()))
        reward, violation = (sum(p[key] for p in past[-3:]) / len(past[-3:]) for key in ("reward", "violation"))
        if reward >= 5.8 and violation <= 0.1:
            break
    seconds = time.perf_counter() - STARTED
    return {"seconds": seconds, "steps": len(past) * job.batch, "reward": reward, "violation": violation}


class Stopwatch:
    """Adds up the seconds spent in methods."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def put_on(self, item: Any, method: str, name: str) -> None:
        plain = getattr(item, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            out = plain(*args, **kwargs)
            self.seconds[name] += time.perf_counter() - started
            return out

        setattr(item, method, timed)


def peak_memory() -> float:
    """GiB, of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    job = Job(json.loads(sys.argv[1]))
    print(json.dumps(until_good(job) if job.good else throughput(job)))
