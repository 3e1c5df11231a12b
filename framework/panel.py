"""The panel beneath a picture: the sentences, what is left of their budgets, reward and step. The same for every env.

Budgets are told three ways, by text, by the shape of the pips and by colour, and the colours are of the Okabe-Ito
palette, which colour-blind people can tell apart.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Picture = NDArray[np.uint8]  # [H, W, 3]

WIDTH = 312
"""Smallest width of a picture with its panel: narrower ones are enlarged."""
TEXT_SIZE = 15
GROUND, TEXT, FAINT = (22, 24, 30), (240, 240, 240), (165, 170, 180)
LEFT, OVER = (86, 180, 233), (255, 120, 70)  # sky blue; vermillion, a little lighter to be read on dark ground
MOST_PIPS = 8
MARGIN, GAP = 10, 6


@dataclass(frozen=True)
class Account:
    """A budget and what was spent of it."""

    budget: float
    spent: float

    @property
    def over(self) -> float:
        return max(0.0, self.spent - self.budget)

    def __str__(self) -> str:
        if self.over:
            return f"{_number(self.over)} over the budget of {_number(self.budget)}"
        return f"budget {_number(self.budget - self.spent)} of {_number(self.budget)} left"


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


@dataclass(frozen=True)
class Clause:
    """One constraint: how it was said, what the interpreter made of it, and the truth."""

    sentence: str
    understood: Account
    truth: Account

    @property
    def remark(self) -> str:
        """What to add where interpreter and truth disagree."""
        return (
            ""
            if self.understood == self.truth
            else f"truth: {str(self.truth).removeprefix('budget ').removesuffix(' left')}"
        )


@dataclass(frozen=True)
class Caption:
    """What the panel says."""

    clauses: tuple[Clause, ...]
    reward: float
    step: int
    episode: int
    interpreter: str

    @property
    def status(self) -> str:
        return f"step {self.step}   reward {_number(self.reward)}"

    def text(self) -> str:
        """The panel in words, for a terminal."""
        lines = []
        for clause in self.clauses:
            remark = f" ({clause.remark})" if clause.remark else ""
            lines.append(f"{clause.sentence}\n  {clause.understood}{remark}")
        return "\n".join([*lines, f"{self.status}   episode {self.episode}"])


def compose(frame: Picture, caption: Caption, lines: int = 0, text_size: int = TEXT_SIZE) -> Picture:
    """The frame with its panel. ``lines``: room for each sentence, at least; a film keeps to one height that way."""
    frame = enlarge(frame)
    width, step = frame.shape[1], text_size + 5
    wrapped = [wrap(clause.sentence, width - 2 * MARGIN, text_size) for clause in caption.clauses]
    rooms = [max(lines, len(words)) for words in wrapped]
    height = 2 * MARGIN + sum((room + 1) * step + GAP for room in rooms) + GAP + step
    panel = Image.new("RGB", (width, height), GROUND)
    pen, y = ImageDraw.Draw(panel), MARGIN
    for clause, words, room in zip(caption.clauses, wrapped, rooms, strict=True):
        for line, text in enumerate(words):
            pen.text((MARGIN, y + line * step), text, TEXT, _font(text_size))
        y += room * step + 2
        _draw_account(pen, clause, y, width, text_size)
        y += step + GAP - 2
    pen.line((MARGIN, y + 1, width - MARGIN, y + 1), (70, 74, 84))
    y += GAP
    small = _font(text_size - 2)
    pen.text((MARGIN, y), caption.status, TEXT, small)
    side = text_size - 3
    room = width - 2 * MARGIN - pen.textlength(caption.status, small) - side - 14
    for legend in (f"forbidden, says {caption.interpreter}", f"says {caption.interpreter}", "forbidden"):
        if (length := int(pen.textlength(legend, small))) <= room:
            pen.text((width - MARGIN, y), legend, FAINT, small, anchor="ra")
            panel.paste(_swatch(side), (width - MARGIN - length - side - 5, y + 3))
            break
    return np.concatenate([frame, np.asarray(panel)])


def lines_needed(caption: Caption, width: int, text_size: int = TEXT_SIZE) -> int:
    """Lines of the longest sentence."""
    return max(len(wrap(clause.sentence, width - 2 * MARGIN, text_size)) for clause in caption.clauses)


def enlarge(frame: Picture) -> Picture:
    """Each pixel a square, so that the width is at least WIDTH."""
    times = -(-WIDTH // frame.shape[1])
    return frame if times <= 1 else frame.repeat(times, 0).repeat(times, 1)


def wrap(text: str, width: int, text_size: int = TEXT_SIZE) -> list[str]:
    """Lines no wider than ``width`` pixels, broken between words (and within a word that is wider by itself)."""
    font, lines = _font(text_size), [""]
    for word in text.split():
        while font.getlength(f"{lines[-1]} {word}".strip()) > width:
            if lines[-1]:
                lines.append("")
                continue
            fits = next((n for n in range(len(word) - 1, 1, -1) if font.getlength(word[:n]) <= width), 1)
            if fits >= len(word):
                break
            lines[-1:] = [word[:fits], ""]
            word = word[fits:]
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _draw_account(pen: ImageDraw.ImageDraw, clause: Clause, y: int, width: int, text_size: int) -> None:
    """Pips, then the words, and at the right what the truth is where it differs; where room is scarce, no pips."""
    account, font, small = clause.understood, _font(text_size), _font(text_size - 2)
    colour, side = OVER if account.over else LEFT, text_size - 4
    brief = clause.remark.partition(" the ")[0]
    taken = int(pen.textlength(str(account), font) + pen.textlength(brief, small)) + 2 * MARGIN + 10
    pips = _pips(account)
    x = MARGIN
    if pips and taken + pips * (side + 5) + 4 <= width:
        _draw_pips(pen, account, x, y + 4, side, colour)
        x += pips * (side + 5) + 4
    pen.text((x, y), str(account), colour, font)
    pen.text((width - MARGIN, y), brief, FAINT, small, anchor="ra")


def _pips(account: Account) -> int:
    """How many to draw: none for parts, and none for more than one can count."""
    pips = max(account.budget, account.spent)
    return int(pips) if pips == int(pips) and pips <= MOST_PIPS else 0


def _draw_pips(
    pen: ImageDraw.ImageDraw, account: Account, x: int, y: int, side: int, colour: tuple[int, int, int]
) -> None:
    """Full: left; ring: spent; cross: past the budget."""
    for pip in range(_pips(account)):
        box = (x, y, x + side, y + side)
        if pip >= account.budget:
            pen.line((box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1), colour, 3)
            pen.line((box[0] + 1, box[3] - 1, box[2] - 1, box[1] + 1), colour, 3)
        else:
            pen.ellipse(box, colour if pip < account.budget - account.spent else None, colour, 2)
        x += side + 5


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


def _swatch(side: int) -> Image.Image:
    """A sample of the stripes that mean 'forbidden'."""
    y, x = np.indices((side, side))
    dark = ((x + y) % 6 < 3)[..., None]
    return Image.fromarray(np.where(dark, (170, 0, 60), (255, 235, 240)).astype(np.uint8))
