"""What a step of each interpreter costs beside a step of the policy, once its sentences are read.

50 rows of HazardWorld-grid, one thread, mixed kinds of constraint. The ratio is policy time over interpreter time: 1 or
more means that reading costs no more than acting. Also how long reading all held-out sentences takes, once.

    python -m benchmarks reading
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from framework.agent import Agent, labels_for
from framework.interfaces import InterpreterInput
from framework.plugin_manager import PluginHost

ROWS = 50
AIM = 1
NAMES = ("reader", "sentence_embedding", "lstm", "naive_bayes")


@torch.no_grad()
def run() -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    catalog = PluginHost().catalog
    make = {kind: catalog.get(kind, name).cls for kind, name in (("env", "hazardworld_grid"), ("policy", "mlp"))}
    env = make["env"](make["env"].Config(constraint="mixed"), rows=ROWS, split="eval", seed=0)
    policy = make["policy"](make["policy"].Config(hidden=(128, 64)), env.spec)
    oracle = catalog.get("interpreter", "oracle").cls(None, env.spec)
    agent = Agent(env, oracle, policy)
    now = env.reset()
    inputs, _ = agent.perceive(now, agent.fresh_mind(), agent.no_action(), labels_for(oracle, env))
    acting = _seconds(lambda: policy.distribution(inputs).sample())
    rows = [("policy mlp 128-64, distribution and sample", 1e6 * acting, "us / 50 rows")]
    for name in NAMES:
        cls = catalog.get("interpreter", name).cls
        interpreter = cls(cls.Config(), env.spec).eval()
        started = time.perf_counter()
        code = interpreter.encode(env.sentences)
        rows.append((f"{name}: read {len(env.sentences)} sentences, once", time.perf_counter() - started, "s"))
        seen, state = InterpreterInput(now.obs, code[now.text[:, 0]]), interpreter.initial_state(ROWS)
        looking = _seconds(lambda i=interpreter, s=seen, h=state: i.step(s, h))
        rows.append((f"{name}: step", 1e6 * looking, "us / 50 rows"))
        rows.append((f"policy / {name}", acting / looking, "times"))
    torch.set_num_threads(threads)
    return rows


def _seconds(call: Callable[[], object], least: float = 0.3) -> float:
    """Per call, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < least / 5:
            call()
            count += 1
        best = min(best, (time.perf_counter() - started) / count)
    return best
