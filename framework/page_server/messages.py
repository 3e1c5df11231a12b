"""What the page may ask for, with the limits of each. What does not fit is answered with a sentence, not a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_SENTENCES, LONGEST_SENTENCE = 3, 300
MOST_WALKERS = 2
LARGEST_MAP = 700
"""Characters: 25 lines of 25, and some."""
MOST_STEPS = 20
LARGEST_SEED = 2**31 - 1

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Walker(Message):
    """Which agent, and who reads for it; None: the interpreter it was trained with."""

    agent: Name
    interpreter: Name | None = None


class Start(Message):
    """A session."""

    sentences: list[str] = Field(min_length=1, max_length=MOST_SENTENCES)
    walkers: list[Walker] = Field(min_length=1, max_length=MOST_WALKERS)
    seed: int = Field(ge=0, le=LARGEST_SEED)
    layout: str | None = Field(default=None, max_length=LARGEST_MAP)
    greedy: bool = False

    @field_validator("sentences")
    @classmethod
    def _plain(cls, sentences: list[str]) -> list[str]:
        """One line each, of characters that can be written down."""
        plain = [" ".join(sentence.split()) for sentence in sentences]
        for sentence in plain:
            if not sentence:
                raise ValueError("a sentence is empty")
            if len(sentence) > LONGEST_SENTENCE:
                raise ValueError(f"a sentence has {len(sentence)} characters; at most {LONGEST_SENTENCE} are read")
            if not sentence.isprintable():
                raise ValueError("a sentence has characters that cannot be shown")
        return plain


class Move(Message):
    """So many steps."""

    count: int = Field(default=1, ge=1, le=MOST_STEPS)


def in_words(errors: Sequence[Any]) -> str:
    """What pydantic found, for a person: the first of it."""
    if not errors:
        return "the request is not as it should be"
    error = errors[0]
    where = ".".join(str(part) for part in error.get("loc", ()) if part != "body")
    what = str(error.get("msg", "")).removeprefix("Value error, ")
    return what if error.get("type") == "value_error" or not where else f"{where}: {what[:1].lower()}{what[1:]}"
