"""What runs left in their folders, as flat records: one dict per evaluation, ready for pandas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framework.errors import Problem, UserError
from framework.interfaces.component import KINDS
from framework.logger import read_metrics
from framework.stages import read_result


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
    """One record for the safety evaluation after training, and one for each further evaluation of the registry."""
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        config = run["config"]
        parts = {kind: config[kind]["plugin"] for kind in KINDS} | {"steps": config["training"]["steps"]}
        labels = [str(label) for label in run["labels"]]
    except (OSError, ValueError, KeyError, TypeError):
        return  # not a run, or not begun
    about = {"system": labels[0] if labels else "", "seed": config["seed"], **parts}
    for place in (folder, *sorted((folder / "evaluations").glob("*"))):
        result = read_result(place)
        if result is not None:
            name = result.get("evaluation", {}).get("name", "training")
            yield {**about, "evaluation": name, **result["summary"], "run": run["id"], "folder": str(folder)}


def of_history(folder: Path) -> Records:
    """A run's learning curve: one record for each update."""
    if not (folder / "metrics.jsonl").is_file():
        raise UserError(Problem("is no run: it has no metrics.jsonl", where=str(folder)))
    return Records(read_metrics(folder))
