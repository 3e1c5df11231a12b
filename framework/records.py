"""What runs left in their folders, as flat records: one dict per evaluation, ready for pandas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framework.cell import RunSpec
from framework.errors import Problem, UserError
from framework.interfaces.component import KINDS
from framework.logger import read_metrics
from framework.stages import exam_folder, read_result, run_folder

TRAINING = "training"
"""The evaluation with the training reward."""


class Records(list[dict[str, Any]]):
    """A list of dicts, each with text and numbers only."""

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a column for each key."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas() needs pandas; install with: pip install pandas") from None
        return pandas.DataFrame(list(self))


def of_folder(runs: Path) -> Records:
    """All that is finished in a runs folder, whichever study asked for it."""
    if not (runs / "cells").is_dir():
        raise UserError(Problem("is no runs folder (there is no cells/ in it)", where=str(runs)))
    return Records(record for folder in sorted((runs / "cells").iterdir()) for record in of_run(folder))


def of_run(folder: Path) -> Iterator[dict[str, Any]]:
    """One record for the safety evaluation after training, and one for each further evaluation, under the names that
    the study gave them which made them first."""
    begun = _begun(folder)
    if begun is None:
        return
    for place in (folder, *sorted((folder / "evaluations").glob("*"))):
        if (result := read_result(place)) is not None:
            name = result.get("evaluation", {}).get("name", TRAINING)
            yield _record(begun, folder, place, result, name)


def of_item(item: RunSpec, runs: Path, label: str) -> Iterator[dict[str, Any]]:
    """The records of a study's run, under that study's names, and of its evaluations alone."""
    folder = run_folder(runs, item)
    begun = _begun(folder)
    if begun is None:
        return
    for name, place in ((TRAINING, folder), *((exam.name, exam_folder(runs, item, exam)) for exam in item.exams)):
        if (result := read_result(place)) is not None:
            yield _record(begun, folder, place, result, name) | {"system": label}


def _begun(folder: Path) -> dict[str, Any] | None:
    """What a run says of itself; None: there is none, or it is not begun."""
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        config, labels = run["config"], [str(label) for label in run["labels"]]
        parts = {kind: config[kind]["plugin"] for kind in KINDS} | {"steps": config["training"]["steps"]}
        made = {"system": labels[0] if labels else "", "seed": config["seed"], **parts, "run": run["id"]}
        return made | {"commit": run["provenance"]["commit"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record(
    begun: dict[str, Any], folder: Path, place: Path, result: dict[str, Any], evaluation: str
) -> dict[str, Any]:
    """``commit`` is that of the evaluation: it may have been made later, by other code than the training."""
    about = {name: value for name, value in begun.items() if name not in ("run", "commit")}
    made = {"run": begun["run"], "commit": result.get("commit", begun["commit"])}
    where = {"folder": str(folder), "episodes_file": str(place / "evaluation.safetensors")}
    return {**about, "evaluation": evaluation, **result["summary"], **made, **where}


def of_history(folder: Path) -> Records:
    """A run's learning curve: one record for each update."""
    if not (folder / "metrics.jsonl").is_file():
        raise UserError(Problem("is no run: it has no metrics.jsonl", where=str(folder)))
    return Records(read_metrics(folder))
