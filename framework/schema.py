"""Dataclasses of registry.yaml: each field is a key, its docstring below is the key's manual."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from framework.errors import did_you_mean

MAX_CELLS = 2_000
"""Grids larger than this ask first (or need --yes)."""
MOST_RUNS = 200_000
"""Cells times seeds that are taken at all."""
MOST_ROWS = 100_000
MOST_STEPS_PER_UPDATE = 100_000_000
"""More of either fits into no memory; such a number is a slip."""

SCORES = ("cell_accuracy", "auc", "iou", "threshold_mse", "threshold_exact", "violation_auc", "confidence")
"""How well an interpreter reads (framework/scoring.py)."""


def added_later(default: Any) -> Any:
    """A setting that came after runs had been made without it. With its default it is not part of what names a run,
    so those runs are still found; the default must do what was done before there was a choice."""
    return field(default=default, metadata={"added_later": True})


def identity(settings: Any, paths: bool = True) -> Any:
    """Settings as plain data that name a run: all of them, but those added later only where they are in use, and not
    ``paths`` where the files themselves do it: a run has the same name on every machine."""
    if is_dataclass(settings):
        kept = [
            f
            for f in fields(settings)
            if not (f.metadata.get("added_later") and getattr(settings, f.name) == f.default)
            and (paths or not f.metadata.get("path") or getattr(settings, f.name) is None)
        ]
        return {f.name: identity(getattr(settings, f.name), paths) for f in kept}
    if isinstance(settings, tuple | list):
        return type(settings)(identity(item, paths) for item in settings)
    return {key: identity(item, paths) for key, item in settings.items()} if isinstance(settings, dict) else settings


@dataclass(frozen=True)
class InterpreterLearning:
    """Stage 1: an interpreter that has parameters learns from random walks. Those without skip it."""

    steps: int = 1_000_000
    """Environment steps of random walk. Each episode has one sentence, so fewer steps show fewer sentences."""
    rows: int = 50
    """Environments that walk side by side. Apart from ``training.rows``, so that studies can share an interpreter."""
    iterations: int = 2_000
    """Gradient steps (the paper: 10,000)."""
    batch: int = 256
    """Observations per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    validation: float = 0.1
    """Share of the training sentences that are held out to judge when to stop."""
    check_every: int = 100
    """Gradient steps between two looks at the held-out sentences (and two saves)."""
    patience: int = 2_000
    """Stop when that many gradient steps brought nothing on the held-out sentences."""
    when: Literal["before", "together"] = added_later("before")
    """before: stage 1 first, then the policy with the interpreter frozen (the paper). together: no stage 1; the
    ``iterations`` are spread over the updates of the policy, on what the policy meets. An ablation."""
    seed: int | None = None
    """Seed of stage 1; null: the run's own. With a number all seeds of a study share one interpreter, as in the
    paper: learned once, and what varies is the policy."""

    def __post_init__(self) -> None:
        _at_least(1, steps=self.steps, rows=self.rows, iterations=self.iterations, batch=self.batch)
        _at_most(MOST_ROWS, rows=self.rows)
        _at_most(MOST_STEPS_PER_UPDATE, batch=self.batch)
        _at_least(1, check_every=self.check_every, patience=self.patience)
        _positive(learning_rate=self.learning_rate)
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must be at least 0 and below 1, not {self.validation}")


@dataclass(frozen=True)
class Evaluation:
    """Safety evaluation after training, on the env's own eval split: unseen maps, unseen sentences."""

    episodes: int = 1_000
    """Episodes to play; each of the parallel rows plays an equal share to its end."""
    greedy: bool = False
    """Take the most likely action instead of a sampled one. A policy without memory loops when greedy."""
    reading_steps: int = 20_000
    """Steps of random walk on which the interpreter's reading is scored."""

    def __post_init__(self) -> None:
        _at_least(1, episodes=self.episodes, reading_steps=self.reading_steps)


@dataclass(frozen=True)
class Exam:
    """One more safety evaluation of every trained system, on unseen maps with unseen sentences."""

    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the env that differ from training: {reward: transfer}, {constraints: 3}, {density: 0.75}."""
    finetune: int = 0
    """Environment steps of policy learning there first. The interpreter stays frozen, and the cost is the
    interpreter's own: the environment tells none (only the ``oracle``, which is an instrument, asks it)."""
    soften: float | None = None
    """Before fine-tuning, what decides between actions is multiplied by this (default: 0.2): a policy that is sure of
    what used to pay unlearns it very slowly. 1: go on as it is."""
    after: str | None = None
    """An evaluation with fine-tuning that stands before this one: go on with the policy that it made, in its env. So
    what was fine-tuned once is seen again with ``greedy: true``, or with ``env: {constraints: 3}``."""
    systems: tuple[str, ...] = ()
    """Only these systems, by name or pattern ("polco*", "inputs/*"); default: all (with ``after``: all of that one)."""
    episodes: int | None = None
    """Instead of ``training.evaluation.episodes``."""
    greedy: bool | None = None
    """Instead of ``training.evaluation.greedy``."""

    def __post_init__(self) -> None:
        _at_least(0, finetune=self.finetune)
        if self.soften is not None and not 0 <= self.soften <= 1:
            raise ValueError(f"soften must be between 0 and 1, not {self.soften:g}")
        if self.episodes is not None:
            _at_least(1, episodes=self.episodes)


@dataclass(frozen=True)
class Training:
    """How a cell learns."""

    steps: int = 100_000
    """Environment steps of policy learning, over all rows: a multiple of ``batch``."""
    batch: int = 10_000
    """Environment steps per policy update, over all rows."""
    rows: int = 50
    """Environments that run side by side (N)."""
    gamma: float = 0.99
    """Discount of reward."""
    cost_gamma: float = 1.0
    """Discount of cost."""
    gae_lambda: float = 0.95
    """GAE's lambda for reward."""
    cost_gae_lambda: float = 0.9
    """GAE's lambda for cost."""
    constraint: Literal["excess", "mean"] = "excess"
    """What must stay below zero. ``excess``: cost past each episode's own budget, so that slack in one episode cannot
    pay for another. ``mean``: the average of cost minus budget (the paper's)."""
    tolerance: float = added_later(0.0)
    """What of the above may be left, in cost per episode. Where some violations cannot be foreseen (what lies past the
    rim of a view), an optimizer that is held to none at all gives up reward for ever."""
    rounding: Literal["nearest", "floor"] = "nearest"
    """How the predicted threshold becomes a whole number (the paper rounds down)."""
    forbid_from: float = added_later(0.5)
    """A cell counts as forbidden if the interpreter gives that a probability above this. Lower: where a sentence may
    mean two things, keep to both. Of use beside an interpreter that knows its doubts (``reader`` with ``readings``)."""
    interpreter: InterpreterLearning = field(default_factory=InterpreterLearning)
    """Stage 1."""
    evaluation: Evaluation = field(default_factory=Evaluation)
    """Stage 3."""

    def __post_init__(self) -> None:
        _at_least(1, steps=self.steps, batch=self.batch, rows=self.rows)
        _at_most(MOST_ROWS, rows=self.rows)
        _at_most(MOST_STEPS_PER_UPDATE, batch=self.batch)
        for name in ("gamma", "cost_gamma", "gae_lambda", "cost_gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        if self.tolerance < 0:
            raise ValueError(f"tolerance must be at least 0, not {self.tolerance:g}")
        if not 0 <= self.forbid_from < 1:
            raise ValueError(f"forbid_from must be at least 0 and below 1, not {self.forbid_from:g}")
        if self.batch % self.rows:
            raise ValueError(f"batch ({self.batch}) must be a multiple of rows ({self.rows})")
        if self.steps < self.batch:
            raise ValueError(f"steps ({self.steps}) is less than one batch ({self.batch})")
        if self.steps % self.batch:  # updates are made of whole batches: more would be done than was asked for
            raise ValueError(f"steps ({self.steps}) must be a multiple of batch ({self.batch})")


@dataclass(frozen=True)
class PluginEntry:
    """A plugin outside the project: one of the two keys."""

    path: str | None = None
    """A Python file, relative to the registry."""
    module: str | None = None
    """An importable module."""

    def __post_init__(self) -> None:
        if (self.path is None) == (self.module is None):
            raise ValueError("give one of 'path' and 'module'")


@dataclass(frozen=True)
class Components:
    """Components by name: a plugin with settings. An experiment may also name a plugin directly."""

    interpreters: dict[str, Any] = field(default_factory=dict)
    """name -> {plugin: ..., settings}; ``plugin`` may be left out when the name is the plugin's."""
    policies: dict[str, Any] = field(default_factory=dict)
    """Likewise."""
    optimizers: dict[str, Any] = field(default_factory=dict)
    """Likewise."""
    envs: dict[str, Any] = field(default_factory=dict)
    """Likewise."""


@dataclass(frozen=True)
class Experiment:
    """One system: four components, and how it is trained."""

    env: Any = None
    """A component or plugin by name, or {plugin: name, settings}."""
    interpreter: Any = None
    """Likewise."""
    policy: Any = None
    """Likewise."""
    optimizer: Any = None
    """Likewise."""
    training: dict[str, Any] = field(default_factory=dict)
    """What differs from the registry's ``training``."""
    seeds: tuple[int, ...] | None = None
    """Instead of the registry's ``seeds``."""


@dataclass(frozen=True)
class Ablation:
    """A grid around one experiment."""

    base: str = ""
    """The experiment it starts from."""
    axes: dict[str, Any] = field(default_factory=dict)
    """dotted path -> list of values; the grid is their product."""
    variants: dict[str, Any] = field(default_factory=dict)
    """name -> {dotted path: value}; one cell each, next to the base itself."""
    exclude: tuple[dict[str, Any], ...] = ()
    """Cells of the product to leave out: {dotted path: value, ...} that must all match."""
    baseline: Any = None
    """The cell that others are compared with: {dotted path: value} for axes, the name of a variant, or that of the
    base. Default: the first cell of axes, the base of variants; with both, it must be named."""
    seeds: tuple[int, ...] | None = None
    """Instead of the base's seeds."""


@dataclass(frozen=True)
class Reference:
    """A row of somebody else's, to print above our own."""

    name: str = ""
    """Whose."""
    kind: str = ""
    """Kind of constraint."""
    scores: dict[str, float] = field(default_factory=dict)
    """Those that are known of cell_accuracy, auc, iou, threshold_mse, threshold_exact, violation_auc, confidence."""

    def __post_init__(self) -> None:
        for name in self.scores:
            if name not in SCORES:
                raise ValueError(f"scores has an unknown name '{name}'{did_you_mean(name, SCORES)}")


@dataclass(frozen=True)
class Report:
    """What the study is about, for the report."""

    title: str = ""
    """Heading; the study's name if empty."""
    question: str = ""
    """The question that the study answers, in a sentence."""
    tables: tuple[Literal["acting", "reading"], ...] = ("acting",)
    """What to print: how agents act (reward, violations), how interpreters read (mask, threshold)."""
    reference: tuple[Reference, ...] = ()
    """Known results, for the reading table."""
    gallery: int = 1
    """Episodes to show of each experiment's agent, as a film on the page; 0: no films."""

    def __post_init__(self) -> None:
        if not 0 <= self.gallery <= 10:
            raise ValueError(f"gallery must be 0 to 10 episodes, not {self.gallery}")


@dataclass(frozen=True)
class Registry:
    """The whole of registry.yaml."""

    study: str = "study"
    """Name of the study; its report goes to <runs>/<study>/."""
    plugins: tuple[PluginEntry, ...] = ()
    """Plugins outside the project, as {path: file.py} or {module: name}. They run as code."""
    observers: tuple[Any, ...] = ("tensorboard",)
    """Who watches the runs: names (``[tensorboard, csv]``) or {plugin: name, settings}; ``[]``: nobody. They change no
    result, and are not part of what names a run."""
    reuse: tuple[str, ...] = ()
    """Other runs folders, relative to this file. A run or an interpreter that is finished there is taken from there.
    (Studies in the same runs folder share theirs anyway.)"""
    components: Components = field(default_factory=Components)
    """Named components."""
    training: dict[str, Any] = field(default_factory=dict)
    """Defaults for every experiment; see Training."""
    seeds: tuple[int, ...] = (0,)
    """Every cell runs once with each."""
    experiments: dict[str, Experiment] = field(default_factory=dict)
    """name -> experiment."""
    ablations: dict[str, Ablation] = field(default_factory=dict)
    """name -> ablation grid."""
    evaluations: dict[str, Exam] = field(default_factory=dict)
    """name -> a further safety evaluation, beside the one with the training reward. Adding one later does not train
    anything anew."""
    report: Report = field(default_factory=Report)
    """Title and question."""


def _at_least(low: int, **values: int) -> None:
    for name, value in values.items():
        if value < low:
            raise ValueError(f"{name} must be at least {low}, not {value}")


def _at_most(high: int, **values: int) -> None:
    for name, value in values.items():
        if value > high:
            raise ValueError(f"{name} must be at most {high:,}, not {value:,}")


def _positive(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{name} must be greater than 0, not {value}")
