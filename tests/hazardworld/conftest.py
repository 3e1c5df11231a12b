"""A small texts folder, so that these tests do not depend on the sentences that ship."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hazardworld.constraint import CLASSES


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for kind, classes in CLASSES.items():
        for split in ("train", "test"):
            sentences = {c.label: [f"{split} {kind} {c.label} {i}" for i in range(2)] for c in classes}
            (folder / f"{kind}-{split}.json").write_text(json.dumps(sentences))
    return folder
