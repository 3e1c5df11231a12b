"""Make .venv whole: create it, or repair a broken or half-made one, and install the tested set of packages.

    python scripts/setup_venv.py [peers] [integrations] [ray]

peers: other people's implementations; integrations: pandas, W&B, ONNX; ray: the cluster executor. What was added once
stays.

Runs with any Python 3.11+ and the standard library alone. Starts at once when there is nothing to do: the stamp in
.venv holds a fingerprint of what was asked for, and the interpreter in it is tried before it is trusted.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "heed-installed"
PYTHON = VENV / "bin" / "python"
SAFETY_GYMNASIUM = "safety-gymnasium==1.0.0"  # its own pins cannot be met on Python 3.11, hence --no-deps
GROUPS = {
    "peers": ("sb3_contrib", "stable_baselines3"),
    "integrations": ("wandb", "onnxruntime", "onnxscript"),
    "ray": ("ray",),
}
"""Optional groups of pyproject.toml, and the modules that they bring."""
PROBE = "import torch, gymnasium, omegaconf, pluggy, safetensors, pytest, framework"


def main(groups: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before anything is checked
        print(f"Heed needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})", file=sys.stderr)
        return 2
    if STAMP.is_file() and STAMP.read_text() == stamp() and works(has(groups)):
        return 0
    if VENV.exists() and not works("import pip"):
        print(f"{VENV.name} is broken; making it anew")
        shutil.rmtree(VENV)
    if not VENV.exists():
        print(f"making {VENV.name} with Python {sys.version.split()[0]}")
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    STAMP.unlink(missing_ok=True)
    print("installing packages (a few minutes the first time)")
    kept = [group for group in GROUPS if group in groups or works(has([group]))]
    pip("install", "--editable", f".[{','.join(['dev', *kept])}]", "--constraint", "constraints.txt")
    pip("install", "--no-deps", SAFETY_GYMNASIUM)
    if not works(PROBE):
        print(f"packages do not import after the install; remove {VENV} and try again", file=sys.stderr)
        return 1
    STAMP.write_text(stamp())
    return 0


def has(groups: list[str]) -> str:
    """Python that fails where one of the groups is absent."""
    modules = [module for group in groups for module in GROUPS[group]]
    return f"import importlib.util as u; assert all(map(u.find_spec, {modules}))"


def stamp() -> str:
    """What was asked for, and what is there: a package that was removed by hand is noticed."""
    found = sorted(p.name for p in VENV.glob("lib/python3*/site-packages/*") if p.name != "__pycache__")
    return "\n".join([fingerprint(), *found])


def fingerprint() -> str:
    """Of all that decides what is installed."""
    parts = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    parts += [SAFETY_GYMNASIUM.encode(), sys.version.encode(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def works(code: str) -> bool:
    if not PYTHON.exists():
        return False
    try:
        return subprocess.run([str(PYTHON), "-c", code], capture_output=True, cwd=ROOT, timeout=300).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def pip(*words: str) -> None:
    subprocess.run([str(PYTHON), "-m", "pip", "--disable-pip-version-check", "-q", *words], check=True, cwd=ROOT)


if __name__ == "__main__":
    try:
        sys.exit(main([word for word in sys.argv[1:] if word in GROUPS]))
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(map(str, error.cmd))}; run the same make command again to go on", file=sys.stderr)
        sys.exit(1)
