"""Makes the small agents that come with Heed: `polco` of studies/systems.yaml, seed 0, one for each kind of sentence.

    python scripts/make_agent.py                   train them (5 M steps each: an hour on two cores), then pack
    python scripts/make_agent.py --runs-dir RUNS   the same, in another runs folder; what is finished is not repeated
    python scripts/make_agent.py relational        only that one; the others stay as they are

Packing makes kilobytes of megabytes. Of the policy, the actor is kept, in half precision. Of the reader's tuned
matrices, what was learned (the difference from the pretrained ones) is kept as a product of two narrow ones, the best
of that rank (truncated singular values); the reader's setting `rank` says so in run.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from framework import checkpoint
from framework.builder import build_env, build_interpreter
from framework.cell import RunSpec
from framework.config import Study, load
from framework.run import main as run
from framework.stages import interpreter_file, run_folder

HOME = Path(__file__).resolve().parent.parent
STUDY = HOME / "studies" / "systems.yaml"
AGENTS = HOME / "plugins" / "agents"
RANKS = {"budgetary": 8, "relational": 8, "sequential": 10}
"""Of the reader for each kind of sentence; the sequential one has all layers tuned, and needs more."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"default: {' '.join(RANKS)}")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="RUNS")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(RANKS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(RANKS)}")
    study = load(STUDY, ["seeds=[0]"])
    for kind in options.kinds or RANKS:
        system = f"polco on {kind}"
        (spec,) = (spec for spec in study.runs if system in spec.labels)
        if not (run_folder(options.runs_dir, spec) / "result.json").is_file():
            code = run([str(STUDY), "seeds=[0]", "--only", system, "--runs-dir", str(options.runs_dir)])
            if code:
                return code
        remove(system)
        pack(spec, study, options.runs_dir, RANKS[kind])
    for file in sorted(AGENTS.rglob("*.safetensors")):
        print(f"{file.relative_to(HOME)}: {file.stat().st_size / 1000:.0f} kB")
    return 0


def remove(system: str) -> None:
    """The agent of that name, with its reader."""
    for place in AGENTS.glob("cells/*/run.json"):
        record = json.loads(place.read_text(encoding="utf-8"))
        if system in record["labels"]:
            for reader in AGENTS.glob("interpreters/*.safetensors"):
                if checkpoint.load(reader)[1]["packed_from"] == record["packed_from"]:
                    reader.unlink()
            shutil.rmtree(place.parent)


def pack(spec: RunSpec, study: Study, runs: Path, rank: int) -> None:
    """One run, as the run that it would be with a reader of that rank."""
    reader = dataclasses.replace(spec.cell.interpreter.config, rank=rank)
    part = dataclasses.replace(spec.cell.interpreter, config=reader)
    small = dataclasses.replace(spec, cell=dataclasses.replace(spec.cell, interpreter=part))
    source, target = run_folder(runs, spec), run_folder(AGENTS, small)
    target.mkdir(parents=True)
    packed = {"id": small.id, "packed_from": spec.id}
    record = json.loads((source / "run.json").read_text(encoding="utf-8"))
    checkpoint.write_json(target / "run.json", without_place(record) | packed | {"config": small.as_dict()})
    checkpoint.write_json(target / "result.json", json.loads((source / "result.json").read_text()) | packed)

    policy, meta = checkpoint.load(source / "policy.safetensors")
    actor = {name: value.half() for name, value in policy.items() if not name.startswith("critic")}
    checkpoint.save(target / "policy.safetensors", actor, meta | packed)

    file = interpreter_file(AGENTS, small, study.host)
    file.parent.mkdir(exist_ok=True)
    learned, meta = checkpoint.load(interpreter_file(runs, spec, study.host))
    meta = without_place(meta) | {"run": small.as_dict(), "packed_from": spec.id}
    checkpoint.save(file, narrowed(learned, pretrained(spec, study), rank), meta)


def pretrained(spec: RunSpec, study: Study) -> dict[str, Tensor]:
    """The reader before it learned: a fresh one has the pretrained weights."""
    env = build_env(spec.cell, spec.seed, study.host.catalog, "eval", rows=1)
    return build_interpreter(spec.cell, spec.seed, study.host.catalog, env).state_dict()


def narrowed(learned: dict[str, Tensor], before: dict[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Tuned matrices as ``up @ down``, all in half precision."""
    small = {}
    for name, value in learned.items():
        if name.startswith("tuned.") and value.dim() == 2:
            u, s, v = torch.linalg.svd(value - before[name], full_matrices=False)
            root = s[:rank].sqrt()
            small[f"{name}/up"], small[f"{name}/down"] = u[:, :rank] * root, root[:, None] * v[:rank]
        else:
            small[name] = value
    return {name: value.half() for name, value in small.items()}


def without_place(record: dict[str, Any]) -> dict[str, Any]:
    """Which machine it was made on is of no use elsewhere."""
    return record | {"provenance": {k: v for k, v in record.get("provenance", {}).items() if k != "platform"}}


if __name__ == "__main__":
    sys.exit(main())
