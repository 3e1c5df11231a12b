"""A server for tests that kill whole studies: imports once, then forks a child for each command line it is sent.

What is killed is real, the command with its workers, in a process group of its own; only importing torch again and
again is saved. Reads a JSON list of words per line; answers with the child's process id, then with its exit status.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

from framework.run import main


def child(words: list[str]) -> int:
    os.setsid()
    with open("output.txt", "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    try:
        code = main(words)
    except BaseException:
        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


for line in sys.stdin:
    if (pid := os.fork()) == 0:
        child(json.loads(line))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
