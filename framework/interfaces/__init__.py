"""The four interfaces and the data that flows between them: all that a plugin author imports."""

from framework.interfaces.adam import adam_tensors, load_adam_tensors
from framework.interfaces.component import KINDS, Component, Kind, NoConfig
from framework.interfaces.distributions import Categorical, Distribution, Gaussian, kl
from framework.interfaces.env import ConstraintEnv, Split
from framework.interfaces.interpreter import ConstraintInterpreter, Lesson
from framework.interfaces.optimizer import SafeOptimizer
from framework.interfaces.playground import Board, Playground, Tile
from framework.interfaces.policy import PolicyNet, Values
from framework.interfaces.types import (
    ActionSpec,
    EnvSpec,
    Episodes,
    Explanation,
    Interpretation,
    InterpreterInput,
    Labels,
    Metrics,
    ObservationSpec,
    PolicyInput,
    Rollout,
    State,
    Timestep,
    Walks,
)

__all__ = [
    "KINDS",
    "ActionSpec",
    "Board",
    "Categorical",
    "Component",
    "ConstraintEnv",
    "ConstraintInterpreter",
    "Distribution",
    "EnvSpec",
    "Episodes",
    "Explanation",
    "Gaussian",
    "Interpretation",
    "InterpreterInput",
    "Kind",
    "Labels",
    "Lesson",
    "Metrics",
    "NoConfig",
    "ObservationSpec",
    "Playground",
    "PolicyInput",
    "PolicyNet",
    "Rollout",
    "SafeOptimizer",
    "Split",
    "State",
    "Tile",
    "Timestep",
    "Values",
    "Walks",
    "adam_tensors",
    "kl",
    "load_adam_tensors",
]
