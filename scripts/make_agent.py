"""Makes the small agent that comes with Heed: runs studies/pretrained.yaml, then packs what came out into plugins/agents.

    python scripts/make_agent.py                   train (5 M steps: a quarter of an hour and more), then pack
    python scripts/make_agent.py --runs-dir RUNS   the same, in a runs folder of your own; finished runs are not repeated

Packing keeps run.json, result.json, the policy and the interpreter, with weights in half precision.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from framework import checkpoint
from framework.config import load
from framework.run import main as run
from framework.stages import interpreter_file, run_folder

HOME = Path(__file__).resolve().parent.parent
STUDY = HOME / "studies" / "pretrained.yaml"
AGENTS = HOME / "plugins" / "agents"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="RUNS")
    runs = parser.parse_args().runs_dir
    code = run([str(STUDY), "--runs-dir", str(runs)])
    if code == 0:
        pack(runs)
    return code


def pack(runs: Path) -> None:
    """Every run of the study, into an emptied plugins/agents."""
    shutil.rmtree(AGENTS, ignore_errors=True)
    study = load(STUDY)
    for spec in study.runs:
        folder, target = run_folder(runs, spec), run_folder(AGENTS, spec)
        target.mkdir(parents=True)
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        checkpoint.write_json(target / "run.json", without_place(record))
        shutil.copy(folder / "result.json", target)
        halve(folder / "policy.safetensors", target / "policy.safetensors")
        halve(interpreter_file(runs, spec, study.host), interpreter_file(AGENTS, spec, study.host))
    for file in sorted(AGENTS.rglob("*.safetensors")):
        print(f"{file.relative_to(HOME)}: {file.stat().st_size / 1000:.0f} kB")


def without_place(record: dict[str, Any]) -> dict[str, Any]:
    """Which machine it was made on is of no use elsewhere."""
    return record | {"provenance": {k: v for k, v in record.get("provenance", {}).items() if k != "platform"}}


def halve(source: Path, target: Path) -> None:
    tensors, meta = checkpoint.load(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.save(
        target, {n: t.half() if t.dtype == torch.float32 else t for n, t in tensors.items()}, without_place(meta)
    )


if __name__ == "__main__":
    sys.exit(main())
