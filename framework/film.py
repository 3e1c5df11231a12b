"""Records episodes and writes them: a GIF that loops, a folder of PNG files, or an MP4."""

from __future__ import annotations

import importlib.util
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from framework import checkpoint
from framework.errors import Problem, UserError
from framework.panel import Caption, Picture, compose, enlarge, lines_needed
from framework.player import Player

UNCHANGED = 255
"""Number of the colour that means 'as before'."""
SPARSEST = 10
"""A GIF that is too large is thinned to every tenth step at most."""
HOLD = 1.5
"""Seconds that the end of an episode stays."""


class Film:
    """Frames with their captions. Kept compressed: drawn worlds shrink twentyfold, and episodes can be long."""

    def __init__(self) -> None:
        self._frames: list[tuple[bytes, tuple[int, ...], Caption, bool]] = []
        self._lines = 0

    def add(self, frame: Picture, caption: Caption, last: bool) -> None:
        """``last``: the episode ends with this frame."""
        self._lines = max(self._lines, lines_needed(caption, enlarge(frame[:1]).shape[1]))
        self._frames.append((zlib.compress(frame.tobytes(), 1), frame.shape, caption, last))

    def __len__(self) -> int:
        return len(self._frames)

    def pictures(self) -> Iterator[Picture]:
        """Frames with panels, all of one size."""
        for packed, shape, caption, _ in self._frames:
            frame = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(shape)
            yield compose(frame, caption, self._lines)

    def thinned(self, every: int) -> Film:
        """Every ``every``-th step of each episode, and how it ended."""
        film = Film()
        film._lines = self._lines
        film._frames = [frame for frame in self._frames if frame[3] or frame[2].step % every == 0]
        return film

    def durations(self, fps: float) -> list[int]:
        """Milliseconds per frame."""
        return [round(1000 * (max(HOLD, 1 / fps) if last else 1 / fps)) for *_, last in self._frames]


def check_target(out: Path) -> None:
    """Refuse before the recording what could not be written after it."""
    if out.suffix not in (".gif", ".mp4", ""):
        raise UserError(
            Problem(f"'{out.suffix}' files cannot be written; use .gif, .mp4, or a folder for PNG files", "--out")
        )
    if out.suffix == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise UserError(
            Problem("writing .mp4 needs imageio-ffmpeg; install with: pip install imageio-ffmpeg", where="--out")
        )
    if out.suffix and out.is_dir():
        raise UserError(Problem(f"{out} is a folder", where="--out"))
    if not out.suffix and out.is_dir() and any(out.iterdir()):
        raise UserError(Problem(f"the folder {out} is not empty", where="--out"))


def record(
    player: Player,
    episodes: int,
    generator: torch.Generator,
    greedy: bool = False,
    watch: Callable[[int, int], None] = lambda episodes, frames: None,
) -> Film:
    """Whole episodes, from the first; ``watch(finished episodes, frames)`` hears of every frame."""
    film, finished = Film(), 0
    while True:
        film.add(player.frame(), player.caption(), player.done)
        finished += player.done
        watch(finished, len(film))
        if finished == episodes:
            return film
        player.act(player.choose(generator, greedy))


def write(film: Film, out: Path, fps: float, most: int | None = None) -> int:
    """The suffix of ``out`` says what: .gif, .mp4, or none for a folder of PNG files.

    A GIF of more than ``most`` bytes is thinned; returns n where only every n-th step is in the file.
    """
    every = 1
    try:
        (out.parent if out.suffix else out).mkdir(parents=True, exist_ok=True)
        if out.suffix == ".gif":
            data = gif(film, fps)
            while most is not None and len(data) > most and every < SPARSEST:
                every += 1
                data = gif(film.thinned(every), fps)
            checkpoint.write_bytes(out, data)
        elif out.suffix == ".mp4":
            _write_mp4(film, out, fps)
        else:
            for number, picture in enumerate(film.pictures()):
                Image.fromarray(picture).save(out / f"{number:05d}.png", optimize=True)
    except OSError as error:
        raise UserError(Problem(f"cannot write {out}: {error.strerror or error}", where="--out")) from None
    return every


def gif(film: Film, fps: float) -> bytes:
    """One palette for all frames, so that each needs to hold only the pixels that changed."""
    palette, number = _palette(film)
    frames = (Image.fromarray(number[_packed(picture)]) for picture in film.pictures())
    data = io.BytesIO()
    next(frames).save(
        data,
        "GIF",
        save_all=True,
        append_images=frames,
        duration=film.durations(fps),
        loop=0,
        palette=palette,  # given here, it is stored once and not with every frame
        transparency=UNCHANGED,
        optimize=True,
        disposal=1,
    )
    return data.getvalue()


def _packed(picture: Picture) -> NDArray[np.uint32]:
    """[H, W]: a colour as one number of 24 bits."""
    return picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)


def _palette(film: Film) -> tuple[bytes, NDArray[np.uint8]]:
    """255 colours, and for every colour that occurs the number of the nearest of them.

    Of colours that are hardly different only the commonest is kept, so that a small yellow box is not lost to the many
    shades of smoothed edges.
    """
    counts: Counter[int] = Counter()
    for picture in film.pictures():
        colours, times = np.unique(_packed(picture), return_counts=True)
        counts.update(dict(zip(colours.tolist(), times.tolist(), strict=True)))
    every = np.array([colour for colour, _ in counts.most_common()], np.uint32)
    rgb = np.stack([every >> 16, every >> 8 & 255, every & 255], -1).astype(np.int64)
    _, first = np.unique(rgb // 32, axis=0, return_index=True)  # the commonest of each group of like ones
    rest = np.setdiff1d(np.arange(len(rgb)), first)
    kept = rgb[np.concatenate([np.sort(first), rest])][:UNCHANGED]
    number = np.zeros(1 << 24, np.uint8)
    number[every] = [int(((kept - colour) ** 2).sum(-1).argmin()) for colour in rgb]
    return kept.astype(np.uint8).tobytes().ljust(768, b"\0"), number


def _write_mp4(film: Film, out: Path, fps: float) -> None:
    import imageio.v2 as imageio

    writer: Any
    with imageio.get_writer(out, fps=fps, macro_block_size=2) as writer:
        for picture, milliseconds in zip(film.pictures(), film.durations(fps), strict=True):
            for _ in range(max(1, round(milliseconds * fps / 1000))):
                writer.append_data(picture)
