"""Load the simulation half of safety-gymnasium 1.0.0.

Its top package imports neither under Gymnasium 1.x nor under Python 3.11, because of vector environments and
registration code that the simulation does not need. So an empty module takes the top package's place and only what the
world is made of is imported. The second obstacle: its dataclasses have arrays as defaults, which Python 3.11 refuses
unless they have a hash.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import warnings
from importlib import metadata
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

NAME = "safety_gymnasium"
VERSION = "1.0.0"
HOW = f"type `make setup`, or `pip install --no-deps safety-gymnasium=={VERSION}`"


class Simulation(NamedTuple):
    """The classes of Safety-Gymnasium that make up our world."""

    Builder: Any
    BaseTask: Any
    RandomGenerator: Any
    World: Any
    Goal: Any
    Hazards: Any
    Vases: Any
    Pillars: Any
    Buttons: Any
    Gremlins: Any


class HashableArray(np.ndarray):
    """An array that may be the default of a dataclass field."""

    __hash__ = object.__hash__  # type: ignore[assignment]


@functools.cache
def load() -> Simulation:
    """The classes; an ImportError says what to type when they are absent."""
    _stand_in()
    try:
        colors = importlib.import_module(f"{NAME}.assets.color").COLOR
        colors.update({name: np.asarray(color).view(HashableArray) for name, color in colors.items()})
        parts = {
            "builder": ("Builder",),
            "bases.base_task": ("BaseTask",),
            "utils.random_generator": ("RandomGenerator",),
            "world": ("World",),
            "assets.geoms": ("Goal", "Hazards", "Pillars", "Buttons"),
            "assets.free_geoms": ("Vases",),
            "assets.mocaps": ("Gremlins",),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its imports warn about a missing display
            modules = {part: importlib.import_module(f"{NAME}.{part}") for part in parts}
    except ImportError as error:
        for name in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
            del sys.modules[name]
        raise ImportError(
            f"safety-gymnasium {VERSION} is here, but something it needs is not: {error}; `make setup` installs it"
        ) from error
    return Simulation(**{name: getattr(modules[part], name) for part, names in parts.items() for name in names})


def _stand_in() -> None:
    """Put an empty module where the top package would be."""
    if NAME in sys.modules:
        return
    found = importlib.util.find_spec(NAME)
    if found is None or found.submodule_search_locations is None:
        raise ImportError(f"the robot world needs safety-gymnasium {VERSION}, which is not installed: {HOW}")
    version = metadata.version("safety-gymnasium")
    if version != VERSION:
        raise ImportError(f"the robot world needs safety-gymnasium {VERSION}, but {version} is installed: {HOW}")
    module = ModuleType(NAME)
    module.__path__ = list(found.submodule_search_locations)
    module.__file__ = found.origin
    module.__spec__ = found
    sys.modules[NAME] = module
