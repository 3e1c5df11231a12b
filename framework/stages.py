"""The three stages of a run, as the paper has them: learn to read, learn to act, be evaluated."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from framework import checkpoint
from framework.agent import Agent
from framework.broken import most_broken
from framework.builder import System, build, build_env, build_interpreter
from framework.cell import Cell, ExamSpec, Part, RunSpec, class_of
from framework.errors import Problem, UserError
from framework.evaluator import Result, evaluate
from framework.hookspecs import RunInfo
from framework.interfaces import ConstraintEnv, ConstraintInterpreter
from framework.ledger import Reckoning
from framework.lock import held
from framework.logger import RunLog
from framework.plugin_manager import PluginHost
from framework.progress_types import Progress
from framework.provenance import provenance
from framework.reading import learn_to_read
from framework.resume import Resume, Saver, clear, has_save, stop_if_asked
from framework.schema import identity
from framework.scoring import score
from framework.seeding import derive, generator
from framework.trainer import Trainer
from framework.walks import walk

MEASURED = ("reward", "violation", "violation_rate", "length")
"""What the summary of any result holds, whichever version wrote it."""


def run_folder(runs: Path, run: RunSpec) -> Path:
    return runs / "cells" / run.id


def exam_folder(runs: Path, run: RunSpec, exam: ExamSpec) -> Path:
    return run_folder(runs, run) / "evaluations" / exam.key


def is_trained(folder: Path) -> bool:
    return read_result(folder) is not None


def read_result(folder: Path) -> dict[str, Any] | None:
    """result.json of a finished run; None if it is not there or lacks what every result has."""
    try:
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    summary = result.get("summary") if isinstance(result, dict) else None
    if not isinstance(summary, dict) or any(name not in summary for name in MEASURED):
        return None
    fine = all(value is None or isinstance(value, int | float) for value in summary.values())  # None was NaN
    return result if fine else None


def is_finished(runs: Path, run: RunSpec) -> bool:
    """Trained, and through every evaluation that is asked for."""
    return all(
        is_trained(folder) for folder in (run_folder(runs, run), *(exam_folder(runs, run, e) for e in run.exams))
    )


def is_begun(runs: Path, run: RunSpec, host: PluginHost) -> bool:
    """Not finished, but something of it is there to go on from: a save, a half-done stage 1, or all but evaluations."""
    folders = [run_folder(runs, run), *(exam_folder(runs, run, exam) for exam in run.exams)]
    unread = _unfinished(interpreter_file(runs, run, host)).is_file()
    saved = unread or any(is_trained(folder) or has_save(folder) for folder in folders)
    return saved and not is_finished(runs, run)


def interpreter_key(run: RunSpec, host: PluginHost) -> str:
    """Equal for all runs that can share one trained interpreter: same env, interpreter, stage-1 settings, seed."""
    cell = run.cell
    env = cast(type[ConstraintEnv], class_of(cell.env, host.catalog))
    interpreter = cast(type[ConstraintInterpreter], class_of(cell.interpreter, host.catalog))
    stage = identity(cell.training.interpreter)
    seed = reading_seed(run)
    parts = [
        _without(env.not_for_reading, cell.env.identity()),
        _without(interpreter.not_for_learning, cell.interpreter.identity()),
        stage,
        seed,
    ]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
    return f"{cell.interpreter.plugin}-s{seed}-{digest}"


def _without(names: frozenset[str], settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def reading_seed(run: RunSpec) -> int:
    """Stage 1 may have a seed of its own, so that all runs of a study share one interpreter."""
    own = run.cell.training.interpreter.seed
    return run.seed if own is None else own


def interpreter_file(runs: Path, run: RunSpec, host: PluginHost) -> Path:
    """Shared by all runs that read alike; a run's own if it learns to read while it acts."""
    if run.cell.training.interpreter.when == "together":
        return run_folder(runs, run) / "interpreter.safetensors"
    return runs / "interpreters" / f"{interpreter_key(run, host)}.safetensors"


def try_evaluations(run: RunSpec, runs: Path, host: PluginHost, exams: bool = True) -> None:
    """Build what is still to be evaluated in, and close it: nothing is trained that cannot be evaluated.

    ``exams``: the further evaluations too. Not for an interpreter that other runs share, which may have none."""
    todo = [("", run.cell.env)] if not is_trained(run_folder(runs, run)) else []
    further = [exam for exam in run.exams if exams and not is_trained(exam_folder(runs, run, exam))]
    todo += [(f"evaluations.{exam.name}", exam.env) for exam in further]
    tried = set[str]()
    for path, env in todo:
        if repr(env) in tried:
            continue
        tried.add(repr(env))
        try:
            build_env(dataclasses.replace(run.cell, env=env), run.seed, host.catalog, "eval").close()
        except UserError as error:
            raise UserError([dataclasses.replace(p, path=p.path or path) for p in error.problems]) from error


def _unfinished(interpreter: Path) -> Path:
    """Where a stage 1 that was stopped is kept."""
    return interpreter.with_suffix(".unfinished")


def learn_interpreter(
    run: RunSpec, runs: Path, host: PluginHost, progress: Progress | None = None, resume: Resume = "same"
) -> None:
    """Stage 1, once for all runs with the same key. Nothing to do for an interpreter without parameters."""
    file = interpreter_file(runs, run, host)
    if file.is_file() or run.cell.training.interpreter.when == "together":
        return
    with held(file.with_name(f".{file.name}.lock"), stop_if_asked):
        if not file.is_file():  # somebody else may have made it meanwhile
            if resume == "fresh":
                _unfinished(file).unlink(missing_ok=True)
            _learn_interpreter(run, file, host, progress)
            checkpoint.sweep(file.parent, f"{file.stem}.*")


def _learn_interpreter(run: RunSpec, file: Path, host: PluginHost, progress: Progress | None) -> None:
    seed = reading_seed(run)
    settings = run.cell.training.interpreter
    env = build_env(run.cell, seed, host.catalog, "train", settings.rows)
    try:
        interpreter = build_interpreter(run.cell, seed, host.catalog, env)
        if not interpreter.learns:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        walks, violations = walk(env, settings.steps, seed)
        metrics = learn_to_read(interpreter, env, walks, settings, seed, progress, _unfinished(file))
        meta = {"run": run.as_dict(), "learning": metrics, "walks": violations, "provenance": provenance()}
        checkpoint.save(file, interpreter.state_dict(), meta)
    finally:
        env.close()


def run_cell(
    run: RunSpec, runs: Path, host: PluginHost, progress: Progress | None = None, resume: Resume = "same"
) -> dict[str, Any]:
    """All stages of one run that are not done yet; returns and stores its result. Goes on where it was stopped."""
    folder = run_folder(runs, run)
    with held(folder / ".lock", stop_if_asked):
        return _run_cell(run, folder, runs, host, progress, resume)


def _run_cell(
    run: RunSpec, folder: Path, runs: Path, host: PluginHost, progress: Progress | None, resume: Resume
) -> dict[str, Any]:
    info = RunInfo(run.id, run.labels, folder, run.as_dict())
    if not is_trained(folder):
        record = {"id": run.id, "labels": run.labels, "config": run.as_dict(), "provenance": provenance()}
        checkpoint.write_json(folder / "run.json", record | _earlier(folder, resume))
        learn_interpreter(run, runs, host, progress, resume)
        course = Course(folder, run.id, resume)
        with logged(info, host, progress, course.step) as log:
            checkpoint.write_json(folder / "result.json", _train(run, runs, host, log, course))
        course.saver.clear()
    for exam in run.exams:
        there = exam_folder(runs, run, exam)
        if not is_trained(there):
            there.mkdir(parents=True, exist_ok=True)
            course = Course(there, f"{run.id}/{exam.key}", resume)
            with logged(dataclasses.replace(info, folder=there), host, _naming(exam, progress), course.step) as log:
                checkpoint.write_json(there / "result.json", _examine(run, exam, runs, host, log, course))
            course.saver.clear()
    (folder / "failure.json").unlink(missing_ok=True)
    for made in (folder, *(exam_folder(runs, run, exam) for exam in run.exams)):
        clear(made)  # also of a process that was killed after its result and before it had cleared up
        checkpoint.sweep(made)
    return read_result(folder) or {}


def _earlier(folder: Path, resume: Resume) -> dict[str, Any]:
    """Commits of other code that the training was begun with (``--resume anyway``)."""
    if resume == "fresh" or not has_save(folder):
        return {}
    try:
        before = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        commits = {*before.get("earlier_commits", ()), before["provenance"]["commit"]} - {provenance()["commit"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {"earlier_commits": sorted(map(str, commits))} if commits else {}


def _naming(exam: ExamSpec, progress: Progress | None) -> Progress | None:
    """Tells for which evaluation something is fine-tuned: a run may do so for several."""
    if progress is None:
        return None
    return lambda stage, step, numbers: progress(f"{stage}: {exam.name}", step, numbers)


class Course:
    """A training that may have been begun before."""

    def __init__(self, folder: Path, name: str, resume: Resume) -> None:
        self.saver = Saver(folder, name, resume)
        self._found = self.saver.find()

    @property
    def step(self) -> int:
        """Environment steps that are done already."""
        return self._found[1]["step"] if self._found else 0

    def finish(self, trainer: Trainer) -> None:
        if self._found:
            self._restore(trainer, *self._found)
            print(f"goes on from step {self.step:,}")
        trainer.train()
        if self.step < trainer.step and trainer.saver is not None:
            trainer.saver.save(*trainer.state())  # evaluation may take a while

    def _restore(self, trainer: Trainer, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        try:
            trainer.restore(tensors, counters)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            told = f"does not fit this run ({type(error).__name__}: {error}); --resume fresh starts over"
            raise UserError(Problem(told, where=str(self.saver.file))) from None


def _train(run: RunSpec, runs: Path, host: PluginHost, log: RunLog, course: Course) -> dict[str, Any]:
    """Stage 2, and stage 3 with the training reward."""
    folder, started = run_folder(runs, run), time.perf_counter()
    system = build(run.cell, run.seed, host.catalog)
    trained = interpreter_file(runs, run, host)
    together = run.cell.training.interpreter.when == "together" and system.interpreter.learns
    if not together:
        freeze(system.interpreter, trained)
    trainer = Trainer(system, run.cell.training, run.seed, lambda step, m: log.update("policy", step, m), together,
                      course.saver)  # fmt: skip
    course.finish(trainer)
    system.env.close()
    if together:
        checkpoint.save(trained, system.interpreter.state_dict(), {"run": run.as_dict()})
        freeze(system.interpreter, trained)
    checkpoint.save(folder / "policy.safetensors", system.policy.state_dict(), {"run": run.id})
    settings = run.cell.training.evaluation
    result, broken = _evaluate(run, run.cell, host, system, settings.episodes, settings.greedy)
    checkpoint.save(folder / "evaluation.safetensors", result.tensors(), {"run": run.id})
    summary = result.summary() | trainer.regret() | {"seconds": time.perf_counter() - started}
    log.evaluate("evaluation", summary)
    reading = _read(run, host, system)
    made = {"id": run.id, "seed": run.seed, "commit": provenance()["commit"]}
    return made | {"summary": summary, "reading": reading, "broken": broken}


def _examine(run: RunSpec, exam: ExamSpec, runs: Path, host: PluginHost, log: RunLog, course: Course) -> dict[str, Any]:
    """Stage 3 in another env: the trained policy, fine-tuned there if the evaluation says so, the same interpreter."""
    folder, there, started = run_folder(runs, run), exam_folder(runs, run, exam), time.perf_counter()
    cell = dataclasses.replace(run.cell, env=exam.env)
    seed = derive(run.seed, "finetune", exam.key)
    # Not on the maps that it is examined on; all weights are loaded, so the seed matters to the env alone.
    system = build(dataclasses.replace(cell, env=_other_maps(exam.env, host)), seed, host.catalog, "eval")
    freeze(system.interpreter, interpreter_file(runs, run, host))
    # Where nothing can learn (a random walk), the evaluation before left no policy of its own.
    tuned = folder / "evaluations" / exam.after if exam.after and system.optimizer.learns else folder
    weights, _ = checkpoint.load(tuned / "policy.safetensors")
    system.policy.load_state_dict(weights)
    regret = {}
    if exam.finetune and system.optimizer.learns:
        if exam.soften < 1:
            system.policy.soften(exam.soften)
        training = dataclasses.replace(cell.training, steps=exam.finetune)
        trainer = Trainer(system, training, seed, lambda step, m: log.update("finetune", step, m), saver=course.saver)
        course.finish(trainer)
        regret = trainer.regret()
        checkpoint.save(there / "policy.safetensors", system.policy.state_dict(), {"run": run.id})
    system.env.close()
    result, broken = _evaluate(run, cell, host, system, exam.episodes, exam.greedy)
    checkpoint.save(there / "evaluation.safetensors", result.tensors(), {"run": run.id})
    summary = result.summary() | regret | {"seconds": time.perf_counter() - started}
    log.evaluate(exam.name, summary)
    made = {"id": run.id, "seed": run.seed, "evaluation": exam.as_dict(), "commit": provenance()["commit"]}
    return made | {"summary": summary, "broken": broken}


def _other_maps(env: Part, host: PluginHost) -> Part:
    cls = cast(type[ConstraintEnv], class_of(env, host.catalog))
    return dataclasses.replace(env, config=cls.other_maps(env.config))


@contextlib.contextmanager
def logged(info: RunInfo, host: PluginHost, progress: Progress | None, until: int = 0) -> Iterator[RunLog]:
    """A log that is told how it ended."""
    log = RunLog(info, host, progress, until)
    try:
        yield log
    except BaseException as error:
        log.end(f"{type(error).__name__}: {error}")
        raise
    log.end(None)


def freeze(interpreter: ConstraintInterpreter, trained: Path) -> None:
    """Load what stage 1 learned, and let no gradient in."""
    if interpreter.learns:
        tensors, _ = checkpoint.load(trained)
        interpreter.load_state_dict(tensors)
    interpreter.requires_grad_(False)
    interpreter.eval()


def _read(run: RunSpec, host: PluginHost, system: System) -> dict[str, dict[str, float]]:
    """How well the interpreter reads sentences and sees maps that stage 1 did not show it, per kind of constraint."""
    env = build_env(run.cell, run.seed, host.catalog, "eval")
    scores = score(system.interpreter, env, run.cell.training.evaluation.reading_steps, run.seed)
    env.close()
    return scores


def _evaluate(
    run: RunSpec, cell: Cell, host: PluginHost, system: System, episodes: int, greedy: bool
) -> tuple[Result, list[dict[str, Any]]]:
    """Stage 3 on the eval split: other maps, other sentences, the same interpreter and policy. And what it broke."""
    training = cell.training
    env = build_env(cell, run.seed, host.catalog, "eval")
    agent = Agent(env, system.interpreter, system.policy, Reckoning.of(training))
    result = evaluate(env, agent, episodes, training.gamma, generator(run.seed, "evaluation"), greedy)
    env.close()
    return result, most_broken(result, env.sentences, system.interpreter)
