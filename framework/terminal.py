"""A person plays, in the terminal: half-block characters for pixels, so no display is needed."""

from __future__ import annotations

import os
import select
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import numpy as np
import torch
from PIL import Image

from framework.errors import Problem, UserError
from framework.panel import Picture
from framework.player import Player

ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}
LETTERS = {"w": "up", "s": "down", "d": "right", "a": "left"}
MEANING = {"forward": "up", "pick up": "down"}
"""Which arrow stands for an action that is no direction."""
QUIT = ("q", "\x03", "\x04")
CLEAR = "\x1b[H\x1b[2J"


def play(player: Player, keys: TextIO, out: TextIO) -> None:
    """Until ``q`` or the end of the input. With a terminal a key acts at once, else each line is a list of keys."""
    moves = key_map(player)
    live = keys.isatty() and out.isatty()
    help_text = f"{', '.join(_names(player, moves))}; q quits"
    with _reader(keys, live) as read:
        while True:
            _draw(player, out, live, help_text)
            action = _next_action(read, moves, player.done, out)
            if action is None:
                return
            player.act(torch.full((player.env.rows,), action))


def key_map(player: Player) -> dict[str, int]:
    """Key -> action: digits always; arrows and WASD for actions that are called after directions."""
    spec, name = player.env.spec.action, player.env.name
    if spec.kind != "discrete":
        raise UserError(Problem(f"env '{name}' has {spec.kind} actions; --play needs some to choose from"))
    keys = {str(number): number for number in range(min(10, spec.size))}
    directions = {MEANING.get(word, word): number for number, word in enumerate(player.env.action_names())}
    for key, direction in (ARROWS | LETTERS).items():
        if direction in directions:
            keys[key] = directions[direction]
    return keys


def half_blocks(picture: Picture, columns: int, rows: int) -> str:
    """The picture as text of at most that size: each character is two pixels, one above the other."""
    height, width = picture.shape[:2]
    least = max(1, -(-width // columns), -(-height // (2 * rows)))
    even = (n for n in range(least, 2 * least + 1) if width % n == 0 and height % (2 * n) == 0)
    small = np.asarray(Image.fromarray(picture).reduce(next(even, least)))
    if len(small) % 2:
        small = np.concatenate([small, np.zeros_like(small[:1])])
    lines = []
    for above, below in zip(small[::2].tolist(), small[1::2].tolist(), strict=True):
        cells = (
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀" for a, b in zip(above, below, strict=True)
        )
        lines.append("".join(cells) + "\x1b[0m")
    return "\n".join(lines)


def _draw(player: Player, out: TextIO, live: bool, help_text: str) -> None:
    caption = player.caption()
    room = shutil.get_terminal_size()
    used = 3 + 2 * len(caption.clauses)
    frame = player.frame()
    parts = [] if os.environ.get("NO_COLOR") else [half_blocks(frame, room.columns, max(8, room.lines - used - 1))]
    parts += [caption.text(), "episode over; any action starts the next" if player.done else help_text]
    out.write((CLEAR if live else "") + "\n".join(parts) + "\n")
    out.flush()


def _names(player: Player, moves: dict[str, int]) -> Iterator[str]:
    words = player.env.action_names()
    for number in range(min(10, player.env.spec.action.size)):
        letters = [key for key, action in moves.items() if action == number and key in LETTERS]
        yield f"{' or '.join([*letters, str(number)])}: {words[number] if words else f'action {number}'}"


def _next_action(read: Callable[[], str], moves: dict[str, int], done: bool, out: TextIO) -> int | None:
    """The next key that is an action; None to quit. Any key goes on after the end of an episode."""
    while True:
        key = read()
        if key == "" or key in QUIT:
            return None
        key = key if key in moves else key.lower()
        if key in moves or done:
            return moves.get(key, 0)
        out.write(f"{key!r} is no action\n")
        out.flush()


@contextmanager
def _reader(keys: TextIO, live: bool) -> Iterator[Callable[[], str]]:
    """A function that gives the next key, '' at the end of the input."""
    if not live:
        pressed = (key for line in keys for key in _split(line.strip()))
        yield lambda: next(pressed, "")
        return
    import termios
    import tty

    descriptor = keys.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield lambda: _key_press(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _key_press(descriptor: int) -> str:
    """One key; an arrow comes as three bytes at once. Cursor mode may send ESC O where others send ESC [."""
    key = os.read(descriptor, 1).decode(errors="replace")
    while key.startswith("\x1b") and len(key) < 3 and select.select([descriptor], [], [], 0.05)[0]:
        key += os.read(descriptor, 1).decode(errors="replace")
    return key.replace("\x1bO", "\x1b[")


def _split(line: str) -> Iterator[str]:
    """The keys of a line: arrows as their three bytes, all else one character each."""
    while line:
        size = 3 if line[:3] in ARROWS else 1
        if not line[0].isspace():
            yield line[:size]
        line = line[size:]
