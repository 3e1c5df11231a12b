"""The cluster executor: every task is a Ray task with one CPU, on this machine or on many.

Ray places tasks and notices when a process or a machine dies; all else is as with local processes. What a task has to
say goes to a post office (an actor beside the command), newest first heard, and comes back with the word to stop. A
task that died is put back by the launcher; it goes on from its checkpoint, which is why the runs folder must be shared.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from framework.checkpoint import write_bytes
from framework.errors import Problem, UserError
from framework.executor import TIME_TO_SAVE, Event, Executor, Setting, for_workers
from framework.plan import Task
from framework.plugin_manager import PluginHost
from framework.resume import Saver, code

LISTEN = 0.5
"""Seconds between two rounds of the command."""
TELL = 2.0
"""Seconds between two words of a task: a thousand tasks are 500 a second, which one post office bears."""
STORE = 100 * 2**20
"""Bytes of Ray's object store on this machine. Results are files; only news goes through Ray."""
ABSENT = "--executor ray needs the package 'ray'; type: make setup-ray (or: pip install 'heed[ray]')"


class OnRay(Executor):
    """A Ray cluster: the one at ``address``, or one of our own on this machine, for as long as the study lasts."""

    def __init__(self, setting: Setting, workers: int, limit: int | None = None, address: str | None = None) -> None:
        """``workers``: CPUs of a cluster of our own; ``limit``: most tasks at a time on another's."""
        try:
            import ray
        except ImportError:
            raise UserError(ABSENT) from None
        self._ray, self._limit = ray, limit
        self._running: dict[Any, Task] = {}
        self._connect(address, workers)
        runs_dir = setting.runs_dir.resolve()
        self._mark = runs_dir / f".shared-{uuid.uuid4().hex}"
        write_bytes(self._mark, b"")
        here = {"setting": Setting(runs_dir, setting.plugins, setting.resume), "mark": self._mark, "code": code()}
        self._here = ray.put(here | {"cwd": os.getcwd(), "path": list(sys.path)})
        self._post = ray.remote(num_cpus=0)(_Post).options(scheduling_strategy=self._this_node()).remote()
        self._perform = ray.remote(num_cpus=1, max_retries=0)(_perform)

    def _connect(self, address: str | None, workers: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a study tells nobody that it runs
        _knock(address)
        own: dict[str, Any] = {} if address else {"num_cpus": workers, "object_store_memory": STORE}
        own |= {} if address else {"include_dashboard": False}
        try:
            self._ray.init(
                address=address or "local", logging_level="ERROR", log_to_driver=False, configure_logging=True,
                runtime_env={"env_vars": for_workers()}, **own,
            )  # fmt: skip
        except Exception as error:  # Ray raises ConnectionError, ValueError, RuntimeError, ...
            self._ray.shutdown()
            said = (str(error).splitlines() or [type(error).__name__])[0]
            where = f"no Ray cluster answers at '{address}'" if address else "Ray does not start here"
            raise UserError(f"{where}: {said}") from None

    def _this_node(self) -> Any:
        """The post office must live as long as the command, so not on a machine that may go."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)

    def room(self) -> int:
        """Machines come and go. With none there, one task waits for the first."""
        cpus = max(1, int(self._ray.cluster_resources().get("CPU", 0)))
        return (cpus if self._limit is None else min(cpus, self._limit)) - len(self._running)

    def start(self, task: Task) -> None:
        self._running[self._perform.remote(task.job(), task.key, self._here, self._post)] = task

    def listen(self) -> Sequence[Event]:
        ended, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=LISTEN)
        tasks = {task.key: task for task in self._running.values()}
        news = self._ray.get(self._post.collect.remote())
        events = [Event(tasks[key], "progress", details) for key, details in news.items() if key in tasks]
        return events + [self._end(reference) for reference in ended]

    def _end(self, reference: Any) -> Event:
        task, errors = self._running.pop(reference), self._ray.exceptions
        try:
            what, details = self._ray.get(reference)
            return Event(task, what, details)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            return Event(task, "failed", {"error": f"Ray: {str(error).splitlines()[-1]}", "traceback": str(error)})
        except errors.OutOfMemoryError:
            return Event(task, "died", {"error": "its machine ran out of memory, and Ray ended the process"})
        except errors.RayError as error:
            how = "its machine is gone" if isinstance(error, errors.NodeDiedError) else "or its machine did"
            return Event(task, "died", {"error": f"the process died ({how}); out of memory, perhaps"})

    def close(self) -> None:
        try:
            if self._running:
                self._ray.get(self._post.stop.remote())
                left = list(self._running)
                _, left = self._ray.wait(left, num_returns=len(left), timeout=TIME_TO_SAVE)
                for reference in left:
                    self._ray.cancel(reference, force=True)
        finally:
            self._mark.unlink(missing_ok=True)
            self._ray.shutdown()


class _Post:
    """Where tasks leave the newest word of how far they are, and hear whether to stop."""

    def __init__(self) -> None:
        self._news: dict[str, Mapping[str, Any]] = {}
        self._stopping = False

    def tell(self, key: str, details: Mapping[str, Any] | None) -> bool:
        if details is not None:
            self._news[key] = details
        return self._stopping

    def collect(self) -> dict[str, Mapping[str, Any]]:
        news, self._news = self._news, {}
        return news

    def stop(self) -> None:
        self._stopping = True


class _Courier(threading.Thread):
    """Carries a task's news to the post office, beside the work."""

    def __init__(self, key: str, post: Any) -> None:
        super().__init__(daemon=True)
        self._key, self._post = key, post
        self._newest: Mapping[str, Any] | None = None
        self._done = threading.Event()

    def progress(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        self._newest = {"stage": stage, "step": step, "metrics": dict(metrics)}

    def run(self) -> None:
        import ray

        while not self._done.wait(TELL):
            newest, self._newest = self._newest, None
            try:
                stop = ray.get(self._post.tell.remote(self._key, newest))
            except Exception:  # no post office: the command is gone, and nobody waits for more than a save
                stop = True
            if stop:
                Saver.stop_asked = True

    def __enter__(self) -> _Courier:
        Saver.stop_asked = False
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()


def _knock(address: str | None) -> None:
    """Is anybody there? Ray itself goes on asking for minutes. (Not for ``auto`` and ``ray://``, which it resolves.)"""
    host, _, port = (address or "").rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"no Ray cluster answers at '{address}': {error}") from None


_hosts: dict[str, PluginHost] = {}
"""Of this worker process: plugins are loaded once."""


def _perform(job: Mapping[str, Any], key: str, here: Mapping[str, Any], post: Any) -> tuple[str, dict[str, Any]]:
    """A task, on a worker."""
    import torch

    from framework.worker import perform

    torch.set_num_threads(1)
    setting: Setting = here["setting"]
    try:
        _settle(here)
        asked = repr(setting.plugins)  # an observer's settings cannot be hashed
        host = _hosts.get(asked) or _hosts.setdefault(asked, PluginHost(setting.plugins))
    except UserError as error:
        return "failed", {"error": str(error), "traceback": ""}
    with _Courier(key, post) as courier:
        return perform(job, setting, host, courier.progress)


def _settle(here: Mapping[str, Any]) -> None:
    """Make this worker like a local one: same folder, same import path, same code, same runs folder."""
    if os.path.isdir(here["cwd"]):
        os.chdir(here["cwd"])
    sys.path += [entry for entry in here["path"] if entry not in sys.path]
    node = platform.node()
    if code() != here["code"]:
        raise UserError(f"machine {node} has other code: {code()}, the command has {here['code']}")
    for _ in range(20):  # a network file system may need a moment
        if here["mark"].is_file():
            return
        time.sleep(0.5)
    told = f"machine {node} does not share this runs folder; name one that all machines see (--runs-dir)"
    raise UserError(Problem(told, where=str(here["setting"].runs_dir)))
