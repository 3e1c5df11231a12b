"""Whether this machine can draw with OpenGL, for tests that need it."""

from __future__ import annotations

import functools
import subprocess
import sys


@functools.cache
def cannot_draw() -> str:
    """Empty, or why not; asked in a process of its own, since a broken driver may end it."""
    code = "from hazardworld.robot.camera import Camera; Camera(8)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no OpenGL"])[-1]
