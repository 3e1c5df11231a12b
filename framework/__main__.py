"""``python -m framework``: what commands there are."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from framework.errors import did_you_mean


def commands() -> dict[str, str]:
    """Module -> first line of its docstring, for every module that can be run."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("[!_]*.py")):
        text = file.read_text(encoding="utf-8")
        if '\nif __name__ == "__main__":' in text:
            found[file.stem] = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0].replace("``", "")
    return found


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] not in ("-h", "--help"):
        known = list(commands())
        hint = f": type python -m framework.{words[0]}" if words[0] in known else did_you_mean(words[0], known)
        print(f"'{words[0]}': commands are modules, python -m framework.<name>{hint}", file=sys.stderr)
        return 2
    print("Heed: safe reinforcement learning with constraints said in plain language.\n")
    for line in commands().values():
        what, _, command = line.partition(": ")
        print(f"  {command.split('. ')[0].rstrip('.'):<52}  {what}")
    print("\nEach takes --help. A study is described by a YAML file: README.md, docs/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
