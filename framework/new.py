"""Begin a plugin: ``python -m framework.new interpreter my_reader``.

Writes three files that work as they are: the plugin, a registry that compares it with others, and a test that puts it
through the conformance kit. They are copies of framework/templates with the name put in.

Exit codes: 0 done, 2 the user's mistake, 130 stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import keyword
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from rich.console import Console

from framework.errors import Problem, UserError, complain, did_you_mean, stopped
from framework.interfaces.component import KINDS, Kind
from framework.plugin_manager import NAME, PluginHost

TEMPLATES = Path(__file__).resolve().parent / "templates"
BAD_SETTING: dict[Kind, str] = {
    "interpreter": "buckets=0",
    "policy": "width=0",
    "optimizer": "passes=0",
    "env": "steps=0",
}
"""A value that the template's Config refuses; the generated test shows that it does."""


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_args(argv)
    console = Console(highlight=False, soft_wrap=True)
    try:
        kind = _kind(options.kind)
        _check_name(options.name, kind, options.dir)
        plugin, registry, test = write(kind, options.name, options.dir)
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return stopped()
    for line in (
        f"{plugin}  the {kind}; it works as it is: change it into yours",
        f"{registry}  compares it with others",
        f"{test}  puts it through the conformance kit",
        "",
        "Try them:",
        f"  python -m framework.check {plugin}",
        f"  python -m framework.run {registry}",
        f"  python -m pytest {test}",
    ):
        console.print(line, markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m framework.new",
        description="Begin a plugin: three files that work as they are. Nothing is overwritten.",
    )
    parser.add_argument("kind", help="what it is: " + ", ".join(KINDS))
    parser.add_argument("name", help="its name in YAML and its file's: lower_case letters, digits and underscores")
    parser.add_argument("--dir", type=Path, default=Path(), metavar="FOLDER", help="where (default: here)")
    return parser


def write(kind: Kind, name: str, folder: Path) -> tuple[Path, Path, Path]:
    """The plugin, its registry and its test, as new files in ``folder``."""
    sources = TEMPLATES / f"{kind}.py", TEMPLATES / f"{kind}.yaml", TEMPLATES / "test_plugin.py"
    targets = folder / f"{name}.py", folder / f"{name}.yaml", folder / f"test_{name}.py"
    there = [Problem("is there already; nothing was written", where=str(file)) for file in targets if file.exists()]
    if there:
        raise UserError(there)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source, target in zip(sources, targets, strict=True):
            with open(target, "x", encoding="utf-8") as out:  # never over what somebody else made meanwhile
                out.write(_named(source.read_text(encoding="utf-8"), kind, name))
    except OSError as error:
        raise UserError(Problem(f"cannot be written: {error.strerror}", where=error.filename or str(folder))) from None
    return targets


def _named(text: str, kind: Kind, name: str) -> str:
    camel = "".join(part.capitalize() for part in name.split("_"))
    words = {"my_plugin": name, "MyPlugin": camel, "check_interpreter": f"check_{kind}", "buckets=0": BAD_SETTING[kind]}
    for word, new in words.items():
        text = text.replace(word, new)
    return text


def _kind(word: str) -> Kind:
    for kind in KINDS:
        if word == kind:
            return kind
    raise UserError(f"'{word}' is no kind of plugin{did_you_mean(word, KINDS)}")


def _check_name(name: str, kind: Kind, folder: Path) -> None:
    """A name that YAML, Python and the plugins that are there already all agree to."""
    if not NAME.fullmatch(name):
        raise UserError(f"'{name}' cannot name a plugin; use lower_case letters, digits and underscores")
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise UserError(f"'{name}' is a word of the Python language; choose another name")
    if name.startswith("test_"):
        raise UserError(f"'{name}': pytest would take {name}.py for a test; choose another name")
    catalog = PluginHost().catalog
    if name in catalog.names(kind):
        raise UserError(f"there is {catalog.get(kind, name).owner} already; choose another name")
    if _is_module(name, folder):
        raise UserError(f"'{name}' is a Python module, which {name}.py would hide; choose another name")


def _is_module(name: str, folder: Path) -> bool:
    """Something that is imported by this name, other than from here (that would be an older copy of the plugin)."""
    here = {Path.cwd().resolve(), folder.resolve()}
    elsewhere = [entry for entry in sys.path if Path(entry or os.curdir).resolve() not in here]
    home = str(Path(__file__).resolve().parent.parent)
    return name in sys.stdlib_module_names or PathFinder.find_spec(name, [home, *elsewhere]) is not None


if __name__ == "__main__":
    sys.exit(main())
