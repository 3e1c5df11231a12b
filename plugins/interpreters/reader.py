"""The default interpreter: a pretrained transformer reads the sentence's meaning, the mask is looked up in the view.

Stage 1 in two steps. First, what did each training sentence mean? The meaning that explains every mask seen with it
(_evidence.py). Then a classifier of token vectors learns to tell that meaning from the words: the upper layers of the
pretrained model are tuned, one attention head per slot, on augmented sentences (_augment.py). A sentence is read once;
afterwards a step costs a few table look-ups (_meaning.py).

It says how sure it is: ``confidence`` is the probability that the sentence is a constraint at all, times that of its
likeliest meaning. A sentence that it takes for no constraint forbids nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import (
    ConstraintInterpreter,
    EnvSpec,
    Explanation,
    Interpretation,
    InterpreterInput,
    Lesson,
    State,
    Walks,
)
from plugins.interpreters._augment import Augmenter
from plugins.interpreters._evidence import Meaning, meanings
from plugins.interpreters._meaning import ALWAYS, Slots, expected_mask, in_words, scene_of, trespass
from plugins.interpreters._text_model import REQUIRES, TextModel
from plugins.texts.wording import beyond, words_of

TEXTS = Path(__file__).parent.parent / "texts"
REPORT_EVERY = 25
LONGEST = 2_000
BEYOND = 0.3
"""Trust in a sentence that names a number past all budgets ("a hundred times"): it is read as the largest budget."""
LENGTHS = 1_000
"""Numbers up to here may be lengths, where sentences speak of lengths."""
POOL = 8
"""Batches that are drawn at a time."""


@dataclass(frozen=True)
class Config:
    """Settings of the reader."""

    model: str = ""
    """Folder or name of a sentence-transformers model; empty: all-MiniLM-L6-v2 from the installed package."""
    layers: int = 3
    """How many of its upper layers are tuned; 0 leaves it as it is."""
    rank: int = field(default=0, metadata={"added_later": True})
    """Tune them by additions of this rank (LoRA), for a file of kilobytes, not megabytes; 0: tune them whole."""
    steps: int = 600
    """Gradient steps, at most ``training.interpreter.iterations``."""
    batch: int = 32
    """Sentences per gradient step."""
    learning_rate: float = 2e-4
    """Of the tuned layers; what is new learns five times as fast."""
    augment: bool = True
    """Vary entities, numbers and spelling."""
    readings: int = field(default=1, metadata={"added_later": True})
    """How often a sentence is read once training is over, each time with other neurons dropped (Monte Carlo dropout).
    The mean of many readings knows its doubts, where one is sure of what it gets wrong. 1: once, nothing dropped."""
    invalid: float = 0.06
    """Share of sentences that are no constraints, so that it learns to say so; 0: it takes every sentence for one."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "readings"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.layers < 0 or self.rank < 0 or self.learning_rate <= 0 or not 0 <= self.invalid < 1:
            raise ValueError(f"layers and rank must be >= 0, learning_rate > 0 and invalid in [0, 1): {self}")
        if self.readings > 1 and not self.layers:
            raise ValueError("readings above 1 need layers that were tuned with dropout: layers must be at least 1")


@functools.lru_cache(maxsize=4)
def _shared_memory(config: Config, spec: EnvSpec, learned: str) -> dict[str, Tensor]:
    """What has been read, for all readers of this process that have learned the same: a thousand sentences that are
    read sixteen times take more than a minute, and each of a run's evaluations has a reader of its own."""
    return {}


def _forget(reader: Reader, _: object) -> None:
    """What was read before other weights were loaded."""
    reader._memory = None


class Reader(ConstraintInterpreter):
    """Default: tuned MiniLM reads the meaning, the mask is looked up; says how sure it is."""

    name = "reader"
    requires = REQUIRES
    not_for_learning = frozenset({"readings"})
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self.slots, self.scene = Slots.of(spec), scene_of(spec)
        largest = max(8, spec.max_threshold + 1)
        self._model = TextModel(config.model, largest)  # no nn.Module: only what is tuned goes into checkpoints
        self.tuned = nn.ParameterDict(self._tunable() if config.layers else {})
        self.tuned.requires_grad_(True)
        self.numbers = nn.Embedding(self._model.number_codes, self._model.size)
        nn.init.zeros_(self.numbers.weight)
        sizes = self.slots.sizes() | {"valid": 2}
        self.attention = nn.Linear(self._model.size, len(sizes))
        self.heads = nn.ModuleDict({name: nn.Linear(2 * self._model.size, size) for name, size in sizes.items()})
        self._memory: dict[str, Tensor] | None = None
        self.register_load_state_dict_post_hook(_forget)

    def _tunable(self) -> dict[str, nn.Parameter]:
        if self.config.rank:
            return self._model.low_rank(self.config.layers, self.config.rank)
        return self._model.top_layers(self.config.layers)

    def logits(self, sentences: Sequence[str]) -> dict[str, Tensor]:
        """For each slot and for ``valid``: [S, size]."""
        ids, real, number = self._model.tokens(sentences)
        # Numbers are added under the tuned layers, which then see "fewer than" beside them; further down, every
        # gradient would have to pass through the frozen ones.
        states = self._model.states(ids, real, self.numbers(number), self.config.layers)
        weight = self.attention(states).masked_fill(~real.unsqueeze(-1), -1e9).softmax(1)
        mean = (states * real.unsqueeze(-1)).sum(1) / real.sum(1, keepdim=True)
        return {
            name: head(torch.cat([(weight[..., i : i + 1] * states).sum(1), mean], dim=-1))
            for i, (name, head) in enumerate(self.heads.items())
        }

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, slots + 3]: probabilities of each slot; how much of a constraint it is, its threshold, how sure that is.

        All that depends on the sentence alone, so that a step only looks. Remembered while frozen.
        """
        if self.training:
            return self._probabilities(sentences)
        if self._memory is None:
            # Shared only by those that reread: what a sentence is read beside makes no difference to them, not even in
            # the last digit, and a run that was killed must end as one that was not.
            rereads = self.config.readings > 1
            self._memory = _shared_memory(self.config, self.spec, self._digest()) if rereads else {}
        new = [s for s in dict.fromkeys(sentences) if s not in self._memory]
        for i in range(0, len(new), 64):
            part = sorted(new, key=len)[i : i + 64]
            self._memory.update(zip(part, self._probabilities(part).detach(), strict=True))
        return torch.stack([self._memory[s] for s in sentences]) if sentences else torch.zeros(0, self._width)

    def _digest(self) -> str:
        """Of all that was learned."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode() + tensor.contiguous().numpy(force=True).tobytes())
        return digest.hexdigest()

    @property
    def _width(self) -> int:
        return sum(self.slots.sizes().values()) + 3

    def _probabilities(self, sentences: Sequence[str]) -> Tensor:
        chances = self._chances(sentences)
        code = torch.cat([chances[name] for name in self.slots.sizes()], dim=-1)
        meaning, valid = self.slots.unpack(code), chances["valid"][:, 1]
        threshold = meaning["threshold"] @ torch.arange(self.slots.threshold, dtype=code.dtype)
        sure = torch.stack([p.amax(-1) for name, p in meaning.items() if name != "first"]).prod(0)
        largest = LENGTHS if self.scene.metric else max(self.slots.distance, self.slots.threshold)
        trust = [BEYOND if beyond(words_of(sentence[:LONGEST]), largest) else 1.0 for sentence in sentences]
        is_constraint = (2 * valid).clamp(max=1)  # what may be none counts less; what is surely none forbids nothing
        told = torch.stack([is_constraint, threshold, valid * sure * torch.tensor(trust)], dim=-1)
        return torch.cat([code, told], dim=-1)

    def _chances(self, sentences: Sequence[str]) -> dict[str, Tensor]:
        """Like ``logits``, as probabilities."""
        if self.training or self.config.readings == 1:
            return {name: logits.softmax(-1) for name, logits in self.logits(sentences).items()}
        means = [self._reread(sentence) for sentence in sentences]
        return {name: torch.stack([mean[name] for mean in means]) for name in means[0]}

    @torch.no_grad()
    def _reread(self, sentence: str) -> dict[str, Tensor]:
        """Mean of ``readings``. Each sentence by itself and from the same seed, so that what it is read beside makes no
        difference."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._model.transformer.train()
            try:
                readings = self.logits([sentence] * self.config.readings)
            finally:
                self._model.transformer.eval()
        return {name: logits.softmax(-1).mean(0) for name, logits in readings.items()}

    @torch.no_grad()
    def explain(self, sentence: str) -> Explanation:
        valid = float(self._chances([sentence])["valid"][0, 1])
        meaning = self.slots.unpack(self.encode([sentence])[:, :-3])
        best = {name: int(chance[0].argmax()) for name, chance in meaning.items()}
        kind, text = in_words(best, self.spec, self.scene.metric)
        far = {self.spec.entities[best["entity"]]: best["distance"]} if kind == "relational" and valid > 0.5 else {}
        return Explanation(kind, text, valid, far)

    def initial_state(self, rows: int) -> State:
        """Which entities were met in this episode."""
        return self.scene.nothing_met(rows)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        code, (is_constraint, threshold, confidence) = inputs.code[:, :-3], inputs.code[:, -3:].unbind(-1)
        state = self.scene.remember(state, inputs.obs, inputs.touched)
        meaning = self.slots.unpack(code)
        mask = expected_mask(meaning, self.scene, inputs.obs, state[0]) * is_constraint[:, None, None]
        late = trespass(meaning, self.scene, inputs.obs)
        return Interpretation(mask, threshold, confidence, None if late is None else late * is_constraint), state

    def train(self, mode: bool = True) -> Reader:
        self._memory = None
        self._model.transformer.train(mode and self.config.layers > 0)
        return super().train(mode)

    def fit(self, walks: Walks, sentences: Sequence[str], lesson: Lesson) -> dict[str, float]:
        found = meanings(walks, len(sentences), self.spec, lesson.seed)
        lines = [(sentences[s], meaning) for s, meaning in found.items()]
        steps = min(self.config.steps, lesson.iterations)
        old = [] if self.config.rank else list(self.tuned.parameters())  # low-rank additions start from nothing, too
        new = [p for name, p in self.named_parameters() if self.config.rank or not name.startswith("tuned")]
        groups = [{"params": old}, {"params": new, "lr": 5 * self.config.learning_rate}]
        adam = torch.optim.AdamW(groups, lr=self.config.learning_rate, weight_decay=0.01)
        warm = max(1, steps // 12)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            adam, lambda i: min((i + 1) / warm, (steps - i) / (steps - warm + 1))
        )
        batches = _Batches(lines, self.spec, self.slots, self.config, lesson.seed)
        for i in range(1, steps + 1):
            loss = batches.loss(self)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            adam.step()
            schedule.step()
            if i % REPORT_EVERY == 0 or i == steps:
                lesson.report(round(i * lesson.iterations / steps), {"loss": float(loss.detach())})
        return {"sentences": float(len(lines)), "loss": float(loss.detach())}


class _Batches:
    """Minibatches of varied sentences, and their loss."""

    def __init__(
        self, lines: list[tuple[str, Meaning]], spec: EnvSpec, slots: Slots, config: Config, seed: int
    ) -> None:
        self.lines, self.config = lines, config
        self.rng = random.Random(seed)
        scene = scene_of(spec)
        self.augmenter = Augmenter(spec.entities, 0 if scene.metric else slots.distance - 1, slots.threshold - 1, seed)
        self._pool: list[list[tuple[str, Meaning | None]]] = []
        file = TEXTS / scene.texts / "invalid-train.json"
        self.invalid = json.loads(file.read_text(encoding="utf-8"))["invalid"] if config.invalid else []

    def next(self) -> list[tuple[str, Meaning | None]]:
        """Sentences of about one length together: padding to the longest would double the work."""
        if not self._pool:
            share, size = self.config.invalid, self.config.batch
            lines = [self._valid() if self.rng.random() >= share else self._invalid() for _ in range(POOL * size)]
            lines.sort(key=lambda line: len(line[0]))
            self._pool = [lines[i : i + size] for i in range(0, len(lines), size)]
            self.rng.shuffle(self._pool)
        return self._pool.pop()

    def loss(self, reader: Reader) -> Tensor:
        batch = self.next()
        out = reader.logits([sentence for sentence, _ in batch])
        valid = torch.tensor([meaning is not None for _, meaning in batch])
        total = F.cross_entropy(out["valid"], valid.long()) if self.invalid else torch.zeros(())
        told = [meaning for _, meaning in batch if meaning is not None]
        if not told:
            return total
        for name in reader.slots.sizes():
            target = torch.tensor([getattr(meaning, name) for meaning in told])
            applies = target >= 0
            if name == "first":
                applies &= torch.tensor([meaning.order != ALWAYS for meaning in told])
            if bool(applies.any()):
                total = total + F.cross_entropy(out[name][valid][applies], target[applies])
        return total

    def _valid(self) -> tuple[str, Meaning | None]:
        sentence, meaning = self.rng.choice(self.lines)
        return self.augmenter.vary(sentence, meaning) if self.config.augment else (sentence, meaning)

    def _invalid(self) -> tuple[str, Meaning | None]:
        return self.augmenter.slip(self.rng.choice(self.invalid)), None


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [Reader]
