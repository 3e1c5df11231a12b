"""The catalog: (kind, name) -> plugin class, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from framework.errors import Problem, UserError, did_you_mean
from framework.interfaces.component import Component, Kind


@dataclass(frozen=True)
class Entry:
    """One plugin. ``cls`` is None when it cannot be imported here; ``unavailable`` then says why and what to type."""

    kind: Kind
    name: str
    origin: str
    cls: type[Component] | None
    unavailable: str = ""
    version: str = ""
    guessed: bool = False
    """It could not be imported, so its name was taken from its file: it may have any other."""

    @property
    def owner(self) -> str:
        return f"{self.kind} '{self.name}' ({self.origin})"


@dataclass
class Catalog:
    """All plugins that were found. Names are unique within a kind."""

    incomplete: bool = False
    """Some plugin could not be loaded, so a name that is not found may be one of its."""
    _entries: dict[tuple[Kind, str], Entry] = field(default_factory=dict)

    def add(self, entry: Entry) -> Problem | None:
        """Take the entry in; a second plugin of the same kind and name is a problem that names both origins."""
        known = self._entries.setdefault((entry.kind, entry.name), entry)
        if known is not entry:
            return Problem(
                f"two plugins are called '{entry.name}': {known.origin} and {entry.origin}; rename one of them",
                owner=f"{entry.kind} '{entry.name}'",
            )
        return None

    def names(self, kind: Kind) -> list[str]:
        return sorted(name for k, name in self._entries if k == kind)

    def find(self, kind: Kind, name: str) -> Entry | Problem:
        """The usable plugin of that name, or what is wrong: unknown, or unavailable (and what to install)."""
        entry = self._entries.get((kind, name))
        if entry is None:
            elsewhere = [k for k, n in self._entries if n == name]
            if elsewhere and self._entries[elsewhere[0], name].cls is None:  # not importable, so its kind is a guess
                return self.find(elsewhere[0], name)
            if elsewhere:
                return Problem(f"'{name}' is a plugin of kind {elsewhere[0]}, not {kind}")
            unread = [f"{e.origin}: {e.unavailable}" for e in self if e.guessed]
            hint = "; a plugin failed to load" if self.incomplete else did_you_mean(name, self.names(kind))
            if unread and not self.incomplete:
                hint = f"; it may be in what could not be imported: {'; '.join(unread)}"
            return Problem(f"no {kind} plugin is called '{name}'{hint}")
        if entry.cls is None or entry.unavailable:
            return Problem(f"{kind} '{name}' is not available: {entry.unavailable}", owner=entry.origin)
        return entry

    def get(self, kind: Kind, name: str) -> Entry:
        """Like ``find``, raising the problem."""
        found = self.find(kind, name)
        if isinstance(found, Problem):
            raise UserError(found)
        return found

    def __iter__(self) -> Iterator[Entry]:
        return iter(sorted(self._entries.values(), key=lambda e: (e.kind, e.name)))
