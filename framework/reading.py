"""Stage 1, second half: an interpreter learns M_C and h_C from walks, by gradient or in its own way.

Part of the *sentences* is held out: the loss on those tells when the interpreter stops learning to read and starts to
learn by heart. The best weights by that measure are kept. All is saved now and then, so a killed stage 1 goes on.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from framework import checkpoint
from framework.errors import Problem, UserError
from framework.interfaces import (
    ConstraintEnv,
    ConstraintInterpreter,
    InterpreterInput,
    Labels,
    Lesson,
    Metrics,
    Walks,
    adam_tensors,
    load_adam_tensors,
)
from framework.interfaces.types import map_tensors
from framework.progress_types import Progress
from framework.resume import Saver, Stopped, code, named, part
from framework.schema import InterpreterLearning
from framework.seeding import derive, generator, global_streams, set_global_streams

WINDOW = 100
"""Steps of history that an interpreter with memory is trained on at a time."""
VALIDATION_ROWS = 2_000
GLIMPSES, SPAN = 8, 100
"""Observations of each episode in a minibatch, and how far apart at most."""


def learn_to_read(
    interpreter: ConstraintInterpreter,
    env: ConstraintEnv,
    walks: Walks,
    settings: InterpreterLearning,
    seed: int,
    progress: Progress | None = None,
    unfinished: Path | None = None,
) -> Metrics:
    """Train in place; returns what to record. ``unfinished`` is where an interrupted stage 1 is kept."""
    lesson = Lesson(
        settings.iterations,
        settings.batch,
        settings.learning_rate,
        derive(seed, "lesson"),
        lambda step, metrics: progress("interpreter", step, metrics) if progress else None,
    )
    interpreter.train()
    metrics = interpreter.fit(walks, env.sentences, lesson)
    if metrics is None:
        metrics = _GradientLesson(interpreter, env, walks, settings, seed, unfinished).run(lesson)
    if any(bool(tensor.isnan().any()) for tensor in interpreter.state_dict().values()):
        raise UserError(f"interpreter '{interpreter.name}': what it learned in stage 1 has NaN in it; nothing is saved")
    interpreter.eval()
    return metrics


class _GradientLesson:
    """Adam on ``interpreter.loss``, with early stopping on held-out sentences."""

    def __init__(
        self,
        interpreter: ConstraintInterpreter,
        env: ConstraintEnv,
        walks: Walks,
        settings: InterpreterLearning,
        seed: int,
        unfinished: Path | None,
    ) -> None:
        self.interpreter, self.sentences, self.settings, self.unfinished = (
            interpreter,
            env.sentences,
            settings,
            unfinished,
        )
        self.stream = generator(seed, "minibatches")
        self.adam = torch.optim.Adam(interpreter.parameters(), lr=settings.learning_rate)
        held = _held_out(len(env.sentences), settings.validation, generator(seed, "validation"))
        self.recurrent = bool(interpreter.initial_state(1))
        self.batches = Batches(walks, held, self.recurrent)
        self.validation = None
        if self.batches.has_held_out:
            rows = VALIDATION_ROWS // (10 if self.recurrent else 1) * (WINDOW if self.recurrent else 1)
            self.validation = self.batches.draw(rows, generator(seed, "validation rows"), held_out=True)
        self.step, self.best_step, self.best_loss = 0, 0, float("inf")
        self.best = copy.deepcopy(interpreter.state_dict())

    def run(self, lesson: Lesson) -> Metrics:
        settings = self.settings
        self._resume()
        loss = torch.zeros(())
        while self.step < settings.iterations and not self._out_of_patience():
            loss = reading_loss(
                self.interpreter, self.sentences, self.batches.draw(settings.batch, self.stream, held_out=False)
            )
            self._require_finite(float(loss.detach()), "loss")
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
            self.step += 1
            if self.step % settings.check_every == 0 or self.step == settings.iterations:
                held = self._validate()
                lesson.report(self.step, {"loss": float(loss.detach()), "held_out_loss": held})
                self._save()
                if Saver.stop_asked and self.unfinished is not None:
                    raise Stopped
        self.interpreter.load_state_dict(self.best)
        if self.unfinished is not None:
            self.unfinished.unlink(missing_ok=True)
        return {
            "iterations": float(self.step),
            "best_iteration": float(self.best_step),
            "held_out_loss": self.best_loss,
        }

    def _out_of_patience(self) -> bool:
        """Only after a look at the held-out sentences: before the first, nothing is known."""
        waited = self.step - self.best_step >= self.settings.patience
        return waited and self.step > 0 and self.step % self.settings.check_every == 0

    def _require_finite(self, loss: float, what: str) -> None:
        """Before anything is saved or called the best."""
        if not math.isfinite(loss):
            where = f"in stage 1, after {self.step:,} iterations"
            hint = "nothing is saved. Try a smaller training.interpreter.learning_rate"
            raise UserError(f"interpreter '{self.interpreter.name}': its {what} is {loss:g} {where}; {hint}")

    @torch.no_grad()
    def _validate(self) -> float:
        if self.validation is None:  # too few sentences to hold any out
            self.best_step, self.best = self.step, copy.deepcopy(self.interpreter.state_dict())
            return float("nan")
        self.interpreter.eval()
        loss = float(reading_loss(self.interpreter, self.sentences, self.validation))
        self.interpreter.train()
        self._require_finite(loss, "loss on held-out sentences")
        if loss < self.best_loss:
            self.best_loss, self.best_step = loss, self.step
            self.best = copy.deepcopy(self.interpreter.state_dict())
        return loss

    def _save(self) -> None:
        if self.unfinished is None:
            return
        tensors = named("now", self.interpreter.state_dict()) | named("best", self.best)
        tensors |= named("random", global_streams())  # dropout draws from them
        tensors |= {"stream": self.stream.get_state()} | adam_tensors(self.adam)
        meta = {"step": self.step, "best_step": self.best_step, "best_loss": self.best_loss}
        checkpoint.save(self.unfinished, tensors, meta | code())

    def _resume(self) -> None:
        found = _find(self.unfinished) if self.unfinished is not None and self.unfinished.is_file() else None
        if found is None:
            return
        tensors, meta = found
        self.interpreter.load_state_dict(part("now", tensors))
        self.best = part("best", tensors)
        self.stream.set_state(tensors["stream"])
        set_global_streams(part("random", tensors))
        load_adam_tensors(self.adam, tensors)
        self.step, self.best_step, self.best_loss = meta["step"], meta["best_step"], meta["best_loss"]


def _find(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """An interrupted stage 1. None, and said in the log, if it is damaged or of other code: minutes are lost, not days,
    so it starts over without asking."""
    try:
        tensors, meta = checkpoint.load(file)
        other = [f"{key} {meta.get(key)!r}, now {value!r}" for key, value in code().items() if meta.get(key) != value]
        if other:
            raise UserError(Problem(f"was saved with {', '.join(other)}", where=str(file)))
    except UserError as error:
        print(f"not used, stage 1 starts over: {error}", file=sys.stderr)
        return None
    return tensors, meta


def reading_loss(interpreter: ConstraintInterpreter, sentences: Sequence[str], batch: Walks) -> Tensor:
    """The interpreter's loss; each sentence of the batch is read once."""
    used, where = torch.unique(batch.text, return_inverse=True)
    code = interpreter.encode([sentences[i] for i in used.tolist()])[where]
    labels = Labels(batch.mask.float().unsqueeze(2), batch.threshold.unsqueeze(2))
    return interpreter.loss(InterpreterInput(batch.obs, code, touched=batch.touched), labels, batch.episode_start)


class Batches:
    """Draws minibatches from walks: single steps, or windows that begin with an episode for those with memory."""

    def __init__(self, walks: Walks, held: Tensor, recurrent: bool) -> None:
        self.walks, self.recurrent = walks, recurrent
        usable = walks.episode_start.clone() if recurrent else torch.ones_like(walks.episode_start)
        if recurrent:
            self.window = min(WINDOW, len(walks.obs))
            self._remaining = _remaining(walks.episode_start)
        is_held = held[walks.text]
        self._train, self._held = (usable & ~is_held).nonzero(), (usable & is_held).nonzero()

    @property
    def has_held_out(self) -> bool:
        return len(self._held) > 0

    @property
    def has_any(self) -> bool:
        return len(self._train) > 0

    def draw(self, count: int, stream: torch.Generator, held_out: bool) -> Walks:
        places = self._held if held_out else self._train
        if not self.recurrent:
            t, r = self._glimpses(places, count, stream)
            return map_tensors(self.walks, lambda column: column[t, r].unsqueeze(0))
        windows = max(8, count // self.window)
        t, r = places[torch.randint(len(places), (windows,), generator=stream)].unbind(-1)
        # An episode shorter than the window is walked again: the next one may have a sentence of the other side.
        steps = t + torch.arange(self.window)[:, None] % self._remaining[t, r]  # [W, B]
        return map_tensors(self.walks, lambda column: column[steps, r])

    def _glimpses(self, places: Tensor, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
        """Single steps from anywhere, several of each episode: reading a sentence is dear, looking is cheap."""
        anchors = -(-count // GLIMPSES)
        t, r = places[torch.randint(len(places), (anchors,), generator=stream)].unbind(-1)
        later = torch.randint(SPAN, (GLIMPSES, anchors), generator=stream)
        near = (t + later).clamp(max=len(self.walks.text) - 1)
        near = torch.where(self.walks.text[near, r] == self.walks.text[t, r], near, t)  # the same sentence, or stay
        return near.flatten()[:count], r.repeat(GLIMPSES)[:count]


def _remaining(episode_start: Tensor) -> Tensor:
    """[T, R]: steps from here to the end of the episode, this one included."""
    remaining = torch.ones(episode_start.shape, dtype=torch.int64)
    for t in reversed(range(len(episode_start) - 1)):
        remaining[t] = torch.where(episode_start[t + 1], 1, remaining[t + 1] + 1)
    return remaining


def _held_out(sentences: int, share: float, stream: torch.Generator) -> Tensor:
    """[S] bool: which sentences only judge."""
    held = torch.zeros(sentences, dtype=torch.bool)
    held[torch.randperm(sentences, generator=stream)[: int(share * sentences)]] = True
    return held
