"""Is the parity test any good? One rule at a time is broken in a copy of the package, and it must notice each.

``constraint.forbidden`` is used by the reference only (the engine has its own), so breaking it counts as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
KERNELS, REFERENCE, VIEW, CONSTRAINT = (f"{name}.py" for name in ("kernels", "reference", "view", "constraint"))
MUTATIONS = {
    "engine: left turns right": (KERNELS, "direction = (direction + 3) & 3", "direction = (direction + 1) & 3"),
    "engine: before works like after": (
        KERNELS,
        "if when == ALWAYS or (when == AFTER) == condition[n, k]:",
        "if when == ALWAYS or condition[n, k]:",
    ),
    "engine: distance is a square": (KERNELS, "        reach = distance - abs(dx)\n", "        reach = distance\n"),
    "engine: mask distance is a square": (KERNELS, "reach = distance - abs(i - vx)", "reach = distance"),
    "engine: an object can be entered": (
        KERNELS,
        "(compass or (action == 2 and item < 0))",
        "(compass or action == 2)",
    ),
    "engine: pick up as one walks": (KERNELS, "if item >= 0 and (compass or action == 3):", "if item >= 0:"),
    "engine: a collected object stays in view": (
        KERNELS,
        "                cells[ahead + c] = encoding[0, c]",
        "                cells[ahead + c] = cells[ahead + c]",
    ),
    "engine: the key is needed in transfer": (KERNELS, "if world.worth[item] > 0:", "if world.worth[item] != 0:"),
    "engine: one step too many": (KERNELS, "clock[n, 0] >= max_steps", "clock[n, 0] > max_steps"),
    "engine: a solved last step is truncated too": (
        KERNELS,
        "        elif clock[n, 0] >= max_steps:",
        "        if clock[n, 0] >= max_steps:",
    ),
    "engine: conditions outlive the episode": (KERNELS, "        state.condition[n, k] = False\n", ""),
    "engine: the visit that fulfils a condition is judged after it": (
        KERNELS,
        "                when = rules[rule, 3]\n",
        "                when = rules[rule, 3]\n                condition[n, k] |= cells[ahead] == rules[rule, 2]\n",
    ),
    "engine: touched is off by one in the front view": (KERNELS, "touched[n, 3, 5] = True", "touched[n, 3, 6] = True"),
    "engine: the view is mirrored": (
        KERNELS,
        "return cell + 6 * east - 3 * south, south, -east",
        "return cell + 6 * east + 3 * south, -south, -east",
    ),
    "reference: a bump is charged": (
        REFERENCE,
        "costs = self._enter(entered) if entered else [0.0] * len(self.constraints)",
        "costs = self._enter(tuple(self.agent_pos))",
    ),
    "reference: the episode goes on for the key": (
        REFERENCE,
        "all(self.worths[item] <= 0 for item in self.objects.values())",
        "not self.objects",
    ),
    "reference: the mask forgets the condition": (
        REFERENCE,
        "        pairs = zip(self.constraints, self.condition_met, strict=True)\n",
        "        pairs = zip(self.constraints, [False] * len(self.constraints), strict=True)\n",
    ),
    "reference: a collected object stays": (REFERENCE, "            self.grid.set(*target, None)\n", ""),
    "view: not centred": (VIEW, "left, top = self.agent_pos[0] - size // 2,", "left, top = self.agent_pos[0] - 2,"),
    "view: own cell hidden": (VIEW, "        grid.set(size // 2, size - 1, self.grid.get(*self.agent_pos))\n", ""),
    "constraint: before is never lifted": (
        CONSTRAINT,
        'return condition_met if constraint.order == "after" else not condition_met',
        'return condition_met if constraint.order == "after" else True',
    ),
    "constraint: distance is not checked": (CONSTRAINT, "for _ in range(constraint.distance):", "for _ in range(0):"),
    "constraint: distance grows to one side only": (CONSTRAINT, "        cells[:-1] |= inner[1:]\n", ""),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, its sentences and the parity test, in a folder of their own."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("hazardworld", "plugins/texts"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "plugins" / "__init__.py").touch()
    for name in ("conftest.py", "test_grid_parity.py"):
        shutil.copy(ROOT / "tests" / "hazardworld" / name, folder)
    return folder


def run_parity(folder: Path) -> subprocess.CompletedProcess[str]:
    fast = "same_rules and not for_long"
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", fast, "."]
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_an_unbroken_copy_passes(copy: Path) -> None:
    done = run_parity(copy)
    assert done.returncode == 0 and "40 passed" in done.stdout, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_parity_notices(name: str, copy: Path) -> None:
    file, right, wrong = MUTATIONS[name]
    path = copy / "hazardworld" / file
    source = path.read_text()
    assert source.count(right) == 1, f"{file} has changed: update this mutation"
    path.write_text(source.replace(right, wrong))
    try:
        done = run_parity(copy)
    finally:
        path.write_text(source)
    # A mistake of ours (a name, a compiler error) would fail too: only a comparison that fails counts.
    assert done.returncode == 1 and "AssertionError" in done.stdout, done.stdout
