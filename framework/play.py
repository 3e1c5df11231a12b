"""The page to play with: ``python -m framework.play``.

Serves it on this machine and prints its address. Exit codes: 0 stopped, 2 the user's mistake.
"""

from __future__ import annotations

import argparse
import errno
import ipaddress
import logging
import os
import socket
import sys
from pathlib import Path

import uvicorn
from rich.console import Console

from framework.errors import Problem, UserError, complain
from framework.page_server.app import make_app
from framework.page_server.shelf import Shelf
from framework.plugin_manager import PluginHost, PluginRef
from framework.wording import counted

HOST, PORT = "127.0.0.1", 8642


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_args(argv)
    console = Console(highlight=False, soft_wrap=True)
    try:
        _serve(options, console)
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m framework.play", description="A page on which to type sentences and watch trained agents."
    )
    add = parser.add_argument
    add("--runs-dir", type=Path, default=Path("runs"), metavar="RUNS", help="where to look for trained agents")
    add("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; 0: any that is free")
    add("--host", default=HOST, metavar="ADDRESS", help=f"default: {HOST}, this machine alone")
    add("--plugin", type=Path, action="append", default=[], metavar="FILE", help="a plugin file that a run needs")
    return parser


def _serve(options: argparse.Namespace, console: Console) -> None:
    with _listen(options.host, options.port) as listener:  # first: agents take seconds to load, a busy port is told now
        console.print("looking for agents ...", markup=False)
        refs = [PluginRef(path=str(file.resolve()), where=str(file)) for file in options.plugin]
        shelf = Shelf(PluginHost(refs), options.runs_dir)
        shelf.warm_up()
        for problem in shelf.problems:
            console.print(f"not offered: {problem}", markup=False)
        public = not _is_loopback(options.host)
        names = {options.host.lower()} | ({socket.gethostname().lower()} if public else set())
        app = make_app(shelf, frozenset(names), public)
        host, port = listener.getsockname()[:2]
        console.print(
            f"{counted(len(shelf.agents), 'agent')}; open http://{_in_url(host)}:{port}/   (Ctrl-C stops)", markup=False
        )
        if public:
            console.print(f"anyone who can reach {host} can use this page: it has no password", markup=False)
        server = uvicorn.Server(uvicorn.Config(app, log_level=logging.ERROR, access_log=False, server_header=False))
        server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket, or a message that says what to type instead."""
    if not 0 <= port <= 65535:
        raise UserError(Problem(f"{port} is no port: 0 to 65535", where="--port"))
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UserError(Problem(f"'{host}' is no address of this machine", where="--host")) from None
    if os.name == "posix":  # a port whose last user has just gone may be taken at once; elsewhere this means sharing
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            hint = f"python -m framework.play --port {port % 65535 + 1}, or --port 0 for any that is free"
            raise UserError(Problem(f"port {port} is in use; try {hint}", where="--port")) from None
        raise UserError(Problem(f"cannot listen at {host}:{port}: {error.strerror}", where="--host")) from None
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    sys.exit(main())
