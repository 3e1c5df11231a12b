"""Chromium for the browser tests: Debian's, installed where that can be done without asking (root, apt-get).

Elsewhere it says what to type; the browser tests are skipped then, and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    if any(map(shutil.which, NAMES)):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print("no Chromium here: browser tests will be skipped (on Debian: apt-get install chromium)")
        return
    print("installing Chromium for the browser tests")
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
    }
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        if subprocess.run(["apt-get", *words], check=False, **quiet).returncode:
            print(f"apt-get {words[0]} failed: browser tests will be skipped")
            return


if __name__ == "__main__":
    main()
