"""References in a registry, ``${training.steps}``: which are allowed, and what they may add up to.

omegaconf would also call resolvers (``${oc.env:HOME}`` reads the environment), and a resolver's name may itself be a
reference. So the plain form is the only one: what does not look like it is refused before omegaconf sees it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ONLY_REFERENCES = "only references like ${training.steps} are allowed"
_REFERENCE = re.compile(r"\$\{(?P<up>\.*)(?P<path>[\w-]+(?:\.[\w-]+|\[[\w-]+\])*)\}")
_NODE = 20
"""Weight of a value beside a character of text: what it costs to make."""


def allowed(text: str) -> bool:
    """No reference, or plain ones only."""
    return "${" not in _REFERENCE.sub("", text)


def weight(tree: Mapping[str, Any]) -> int:
    """Size of ``tree`` with all references followed, without following them: three lines can say a billion laughs."""
    return _Scale(tree).weigh(tree, ())


class _Scale:
    """Weighs each place once, however often it is referred to."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self._tree = tree
        self._known: dict[tuple[str, ...], int] = {}

    def weigh(self, node: Any, path: tuple[str, ...]) -> int:
        if path not in self._known:
            self._known[path] = 0  # a circle weighs nothing here; omegaconf refuses it
            self._known[path] = _NODE + self._content(node, path)
        return self._known[path]

    def _content(self, node: Any, path: tuple[str, ...]) -> int:
        if isinstance(node, Mapping):
            return sum(self.weigh(value, (*path, str(key))) for key, value in node.items())
        if isinstance(node, list):
            return sum(self.weigh(value, (*path, str(i))) for i, value in enumerate(node))
        if not isinstance(node, str):
            return 0
        return len(node) + sum(self._target(match, path) for match in _REFERENCE.finditer(node))

    def _target(self, reference: re.Match[str], path: tuple[str, ...]) -> int:
        """Of what is referred to; if the way there leads through another reference, of all that one stands for."""
        up = len(reference["up"])
        start = path[: max(0, len(path) - up)] if up else ()
        way = (*start, *re.findall(r"[\w-]+", reference["path"]))
        node: Any = self._tree
        for i, key in enumerate(way):
            if isinstance(node, Mapping):
                node = node.get(key, node.get(int(key)) if key.isdecimal() else None)
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                return self.weigh(node, way[:i])
        return self.weigh(node, way)
