"""Files that are whole or absent: written aside, synced, renamed. Safetensors and JSON, never pickle."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from framework.errors import Problem, UserError

MAX_HEADER = 10_000_000
"""Bytes; ours have some kilobytes."""


def write_bytes(file: Path, data: bytes) -> None:
    """Replace ``file`` in one step: a reader, or a power cut, sees the old content or the new."""
    aside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with open(aside, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        error.filename = str(file)  # the system tells it only when a file cannot be opened
        raise


def sweep(folder: Path, pattern: str = "*", seconds: float = 0.0) -> None:
    """Remove what kills have left half-written in ``folder``, if it is so old. Not while others write there."""
    for part in folder.glob(f".{pattern}.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime >= seconds:
                part.unlink()


def write_json(file: Path, value: Any) -> None:
    """Plain JSON: NaN and infinity, which JSON does not have, become null."""
    write_bytes(file, (json.dumps(_plain(value), indent=2, sort_keys=True, default=str) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def save(file: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Tensors and a JSON document in one safetensors file, so that the two can never disagree."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    # One entry only: safetensors writes several in random order, and the same content should be the same file.
    header = json.dumps({**meta, "sha256": _digest(plain)}, sort_keys=True)
    write_bytes(file, to_bytes(plain, metadata={"heed": header}))


def load(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Undo of ``save``; a damaged file is named, never half-read."""
    try:
        _check_header(file)
        with safe_open(file, framework="pt") as content:
            meta = json.loads((content.metadata() or {}).get("heed", "{}"))
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 - not a dict
        if not isinstance(meta, dict):
            raise ValueError("its header is not a mapping")
        if meta.pop("sha256", None) not in (None, _digest(tensors)):
            raise ValueError("its checksum does not fit its content")
        return tensors, meta
    except FileNotFoundError:
        raise UserError(Problem("no such file", where=str(file))) from None
    except RecursionError:
        raise UserError(
            Problem("is damaged and cannot be read: its header is nested too deep", where=str(file))
        ) from None
    except (SafetensorError, json.JSONDecodeError, OSError, ValueError, RuntimeError, TypeError) as error:
        raise UserError(Problem(f"is damaged and cannot be read: {error}", where=str(file))) from None


def _check_header(file: Path) -> None:
    """The first eight bytes say how long the header is; safetensors would believe up to 100 MB."""
    with open(file, "rb") as content:
        length = int.from_bytes(content.read(8), "little")
    if length > MAX_HEADER:
        raise ValueError(f"its header would be {length:,} bytes, and {MAX_HEADER:,} is the most")


def _digest(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def parameters_finite(module: torch.nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in module.parameters())
