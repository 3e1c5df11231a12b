"""Names from a registry that become names of files or are printed: what they may be made of."""

from __future__ import annotations

import re

LONGEST = 200
"""Characters; file systems take 255 bytes."""
_NOT_IN_PATHS = set('/\\:*?"<>|')


def name_fault(name: str) -> str:
    """Why this cannot name a system, a grid or an evaluation; '' if it can. Terminals obey control characters."""
    if not name.strip():
        return "a name must not be empty"
    if len(name) > LONGEST:
        return f"a name has at most {LONGEST} characters, this one has {len(name)}"
    if not name.isprintable():
        return f"{name!a} has characters that cannot be printed"
    return ""


def folder_fault(name: str) -> str:
    """Why this cannot name a folder; '' if it can. Whatever it is, it stays within its parent."""
    unfit = set(name) & _NOT_IN_PATHS or name.startswith(".") or name.endswith((".", " "))
    if fault := name_fault(name):
        return fault
    return f"'{name}' cannot name a folder; use letters, digits, - and _" if unfit else ""


def file_part(name: str) -> str:
    """A name as part of a file's: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "evaluation"
