"""What interpreters say of sentences, for people. A mistake in that is told, and costs nobody a run."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from framework.interfaces import ConstraintInterpreter, Explanation


def explained(interpreter: ConstraintInterpreter, sentences: Sequence[str]) -> list[Explanation | None]:
    """Its words for each sentence; None where it has none, or where ``explain`` goes wrong, which is printed."""
    said: list[Explanation | None] = []
    faults: dict[str, None] = {}
    for sentence in sentences:
        try:
            told = interpreter.explain(sentence)
            fault = explanation_fault(told)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"explain raised {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        said.append(None if fault else told)
        if fault:
            faults[fault] = None
    for fault in faults:
        print(f"interpreter '{interpreter.name}': {fault}; its words are left out", file=sys.stderr)
    return said


def explanation_fault(told: object) -> str:
    """'' or what is wrong with something that ``explain`` returned."""
    if told is None:
        return ""
    if not isinstance(told, Explanation):
        return f"explain must return an Explanation or None, not {type(told).__name__}"
    types: dict[str, Any] = {"kind": str, "text": str, "constraint": (int, float), "distances": Mapping}
    wrong = [name for name, of in types.items() if not isinstance(getattr(told, name), of)]
    if wrong:
        return f"explain: {wrong[0]} of the Explanation must not be {type(getattr(told, wrong[0])).__name__}"
    whole = all(isinstance(steps, int) for steps in told.distances.values())
    return "" if whole else "explain: distances of the Explanation must be whole numbers"
