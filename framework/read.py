"""Try a trained interpreter on sentences: ``python -m framework.read "Never step on the grass"``.

    python -m framework.read "Stay two steps away from the lava"         one sentence (or several), on a sample view
    python -m framework.read "Wade twice" --plugin my_reader.py          with an interpreter of one's own
    python -m framework.read --texts FOLDER                              scores on sentences in the public file format

Exit codes: 0 done, 2 the user's mistake, 130 stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from framework.agent import checked, encoded
from framework.errors import Problem, UserError, complain, stopped
from framework.interfaces import ConstraintEnv, InterpreterInput
from framework.readers import USUAL_ENV, Reader, choose
from framework.report import READING
from framework.scoring import score
from framework.wording import counted

LONGEST = 2_000
"""Characters of a sentence that are read; nobody says more about one constraint."""
MAX_BYTES = 10_000_000
"""Of a file of sentences."""
UNSURE = 0.5


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    console = Console(highlight=False)
    try:
        if options.texts is None and not options.sentences:
            raise UserError("give a sentence in quotes, or --texts FOLDER")
        if options.steps < 1:
            raise UserError(f"--steps must be at least 1, not {options.steps}")
        reader = choose(options.interpreter, options.runs_dir, options.plugin, options.env)
        console.print(f"interpreter: {reader.title}", markup=False, soft_wrap=True)
        if options.texts is not None:
            _score_folder(reader, options.texts, options.split, options.steps, console)
        else:
            _read_sentences(reader, options.sentences, options.seed, console)
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return stopped()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m framework.read", description="Try a trained interpreter.")
    parser.add_argument("sentences", nargs="*", help="sentences to read, each in quotes")
    which = (
        "its file, or its name (the newest file of it, if it has to learn); default: the newest in RUNS/interpreters"
    )
    parser.add_argument("--interpreter", metavar="FILE_OR_NAME", help=which)
    parser.add_argument("--env", metavar="NAME", help=f"for one that has nothing to learn; default: {USUAL_ENV}")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="RUNS", help="default: runs/")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="score on <kind>-test.json of this folder")
    parser.add_argument("--split", choices=("train", "test"), default="test", help="which files of the folder")
    parser.add_argument("--steps", type=int, default=50_000, help="steps of random walk to score on")
    parser.add_argument("--seed", type=int, default=0, help="which sample view")
    files = "a plugin file; one with an interpreter: this one is meant"
    parser.add_argument("--plugin", type=Path, action="append", default=[], metavar="FILE", help=files)
    return parser


@torch.no_grad()
def _read_sentences(reader: Reader, sentences: Sequence[str], seed: int, console: Console) -> None:
    env = reader.env(rows=1, seed=seed)
    interpreter = reader.interpreter(env)
    if interpreter.needs_labels:
        raise UserError(f"interpreter '{interpreter.name}' is told the truth of a world; it reads no sentence")
    now = env.reset()
    for sentence in sentences:
        code, state = encoded(interpreter, [sentence[:LONGEST]]), interpreter.initial_state(1)
        seen, _ = checked(
            interpreter, interpreter.step(InterpreterInput(now.obs, code), state), state, 1, env.spec.cells
        )
        threshold = float(seen.threshold[0])
        line = f"at most {max(0, math.floor(threshold + 0.5))} times (h_C {threshold:.2f})"
        if seen.confidence is not None:
            sure = float(seen.confidence[0])
            line += f", {sure:.0%} sure" + (
                "" if sure >= UNSURE else "; this may be no constraint, or not one it knows"
            )
        console.print(sentence[:200], style="bold", markup=False)
        console.print(line, markup=False)
        console.print(draw(now.obs[0], seen.mask[0], env), markup=False)


def draw(obs: Tensor, mask: Tensor, env: ConstraintEnv) -> str:
    """The sample view as letters, forbidden cells in brackets: ``[W]`` is forbidden water, `` L `` permitted lava."""
    spec = env.spec
    if spec.observation.kind != "codes" or len(spec.cells) != 2:
        return "\n".join(f"cell {i}: {float(p):.0%} forbidden" for i, p in enumerate(mask.flatten()))
    letters = {code: name[0].upper() for name, code in zip(spec.entities, spec.entity_codes, strict=True)}
    rows = []
    for y in range(spec.cells[1]):
        row = ""
        for x in range(spec.cells[0]):
            letter = "@" if spec.agent_cell == (x, y) else letters.get(int(obs[x, y, 0]), ".")
            row += f"[{letter}]" if mask[x, y] > 0.5 else f" {letter} "
        rows.append(row)
    key = ", ".join(f"{letter} {name}" for name, letter in zip(spec.entities, letters.values(), strict=True))
    return "\n".join([*rows, f"{key}, @ agent; [ ] forbidden now"])


def _score_folder(reader: Reader, folder: Path, split: str, steps: int, console: Console) -> None:
    if not folder.is_dir():
        raise UserError(Problem("no such folder", where=str(folder)))
    env = reader.env(rows=100, seed=reader.run.seed, split=split, texts=str(folder.resolve()))
    found = score(reader.interpreter(env), env, steps, reader.run.seed)
    title = f"{reader.run.cell.interpreter.plugin} on {folder} ({split}, {counted(len(env.sentences), 'sentence')})"
    table = Table(title=title, title_justify="left")
    for head in ("kind", *(head for _, head, _ in READING)):
        table.add_column(head, justify="right")
    for kind, values in found.items():
        table.add_row(kind, *(text.format(values[name]) for name, _, text in READING))
    console.print(table)
    _flagged(reader, env, folder / f"invalid-{split}.json", console)


@torch.no_grad()
def _flagged(reader: Reader, env: ConstraintEnv, file: Path, console: Console) -> None:
    """If the folder has sentences that are no constraints: how many are noticed, and how many real ones doubted."""
    if not file.is_file():
        return
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        content = json.loads(file.read_text(encoding="utf-8"))
        invalid = [str(sentence) for sentences in content.values() for sentence in sentences]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise UserError(Problem(f"is not label -> list of sentences: {error}", where=str(file))) from None
    interpreter = reader.interpreter(env)
    obs = env.reset().obs[:1]

    def unsure(sentences: Sequence[str]) -> int:
        code = interpreter.encode([s[:LONGEST] for s in sentences])
        rows = len(sentences)
        seen, _ = interpreter.step(
            InterpreterInput(obs.expand(rows, *obs.shape[1:]), code), interpreter.initial_state(rows)
        )
        return 0 if seen.confidence is None else int((seen.confidence < UNSURE).sum())

    console.print(
        f"unsure (below {UNSURE:.0%}) about {unsure(invalid)} of {len(invalid)} sentences that are no constraints, "
        f"and about {unsure(env.sentences)} of {len(env.sentences)} that are"
    )


if __name__ == "__main__":
    sys.exit(main())
