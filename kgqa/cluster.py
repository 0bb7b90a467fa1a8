"""Runs a function over many items, in this process or on a cluster of machines (Ray).

This module is the only one that knows Ray. Ray pickles functions, items and results between its own nodes and offers no
other way; nothing else in kgqa is pickled, and no pickle is ever read from a file. Whoever may connect to a cluster can
run any program on it: use only a cluster of your own.

A cluster that is started here gets the environment variables in `PASSED_ON` and those that the caller names. To other
clusters nothing is sent, so no API keys and no passwords; their workers read keys from their own environment. A
function is refused if it contains the value of a variable that looks like a secret.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from kgqa.errors import ClusterError
from kgqa.text.hints import Hint, Install
from kgqa.version import __version__

T = TypeVar("T")
R = TypeVar("R")
LOCAL = "local"
"""The address that stands for a cluster that is started on this machine."""
RETRIES = 5
"""How often an item is worked on again whose worker has died, and how often a worker is started again."""
POLL_SECONDS = 0.2
START_SECONDS = 60.0
"""After this time without a worker, `stream` says what it is waiting for."""
PASSED_ON = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"),
    *("VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM"),
    *("CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KGQA_CACHE_FOLDER"),
)
"""The environment variables of this process that the workers of a cluster started here get."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # would upload the working folder
    "RAY_enable_metrics_collection": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about GPUs
}
_LOCAL_SETTINGS = {
    # without it, Ray replaces 127.0.0.1 by the address of the machine and listens on all interfaces
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_MIN_SECRET = 8
_START: Any = object()


class PlainLoop:
    """A cluster of this process alone: a loop."""

    workers = 1

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, as `RayCluster.map` does; one item at a time."""
        yield from map(function, items)


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster. `ray`: the module. `address`: as given to `open_cluster`."""

    ray: Any
    address: str

    @property
    def workers(self) -> int:
        """The processors of the cluster; nodes may join and leave."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def gpus(self) -> int:
        """The GPUs of the cluster. A cluster of this machine leaves them to this process."""
        return int(self.ray.cluster_resources().get("GPU", 0))

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, in the order of the items, while others are being worked on.

        Items are taken from the iterator as results are taken from `map`, so neither has to fit into memory. An
        exception of the function is raised here, after the results before it; workers finish the items that they have.

        Args:
            function: What to do with an item. It may be called again for an item if a worker dies, so it should change
                nothing. It is sent to each worker once: what it opens when it is first called serves for all later
                items.
            items: The items.

        Raises:
            ClusterError: The cluster cannot run the function.
        """
        shared = self.ray.put(_pickled(self.ray, function))
        task = self.ray.remote(_run).options(max_retries=RETRIES, num_cpus=1, scheduling_strategy="SPREAD")
        most = 2 * self.workers
        running: deque[Any] = deque()
        for item in items:
            running.append(task.remote(__version__, shared, item))
            if len(running) >= most:
                yield self.result(running.popleft())
        while running:
            yield self.result(running.popleft())

    def stream(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        workers: int = 1,
        threads: int = 1,
        gpus: float = 0.0,
        say: Callable[[str], None] = lambda text: None,
    ) -> Generator[list[R], None, None]:
        """Yield lists of results in any order; an empty list at least every `POLL_SECONDS`, for the caller to go on.

        Unlike with `map`, a worker keeps the function until the end and works on several items at a time. An item is
        taken only when a worker is free for it. If a worker dies, its items are worked on again, by any worker.

        Args:
            function: What to do with an item, as for `map`; it is called in several threads.
            items: The items.
            workers: The most workers to use; each occupies a processor until the generator ends or is closed.
            threads: How many items a worker works on at a time.
            gpus: How many GPUs each worker needs.
            say: Called with a message for people when a worker is lost, or when none has started for a long time.

        Raises:
            ClusterError: The cluster cannot run the function, or loses one worker after another.
        """
        data = _pickled(self.ray, function)
        worker = self.ray.remote(_Worker).options(
            num_cpus=1, num_gpus=gpus, max_concurrency=threads, max_restarts=RETRIES, scheduling_strategy="SPREAD"
        )
        actors = [worker.remote(__version__, data) for _ in range(workers)]
        calls = {_start(actor): (actor, _START) for actor in actors for _ in range(threads)}
        free: deque[Any] = deque()  # each worker as often as it can take an item
        left, losses, late = iter(items), 0, time.monotonic() + START_SECONDS
        try:
            while True:
                while free and (item := next(left, _START)) is not _START:
                    actor = free.popleft()
                    calls[actor.run.remote(item)] = actor, item
                if free and all(item is _START for _, item in calls.values()):
                    return
                for reference in self.ray.wait(list(calls), timeout=POLL_SECONDS)[0]:
                    actor, item = calls.pop(reference)
                    try:
                        result = self.result(reference)
                    except WorkerLost:
                        is_news = (actor, _START) not in calls.values()
                        losses += is_news
                        if item is _START or losses > RETRIES:
                            raise
                        if is_news:
                            say("A worker of the Ray cluster was lost; its work is given to another one.")
                        # Ray starts the worker again, but would keep its items until there is a place for it
                        left = chain([item], left)
                        free = deque(each for each in free if each is not actor)
                        calls[_start(actor)] = actor, _START
                    else:
                        free.append(actor)
                        late = float("inf")
                        if item is not _START:
                            losses = 0
                            yield [result]
                if time.monotonic() > late:
                    say("No worker has started yet. See what uses the processors of the cluster: ray status")
                    late = float("inf")
                yield []
        finally:
            for actor in actors:
                self.ray.kill(actor)

    def result(self, reference: Any) -> Any:
        """Wait for the result of a call; raise what its function raised, or `WorkerLost`."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            cause: Exception = getattr(error, "cause", error)
            raise (_cannot_run(self.address, cause) if isinstance(cause, ImportError) else cause) from error
        except self.ray.exceptions.RayError as error:
            if "creation task" in str(error):  # the class of the worker cannot be made there
                raise _cannot_run(self.address, error) from error
            raise WorkerLost(
                f"The Ray cluster at {self.address} lost a task {RETRIES + 1} times: {_line(error, 0)}",
                "Check the memory of its nodes and run the command again.",
            ) from error


Cluster = PlainLoop | RayCluster


class WorkerLost(ClusterError):
    """A worker of a cluster died."""


@contextmanager
def open_cluster(address: str, variables: Mapping[str, str] | None = None) -> Iterator[RayCluster]:
    """Open a cluster until the context ends. Only one can be open in a process.

    Args:
        address: `local` for a cluster of the processors of this machine, started for the time being; HOST:PORT, or
            `auto`, for a running Ray cluster that this machine is a node of; ray://HOST:PORT for one that it is not a
            node of.
        variables: Environment variables for the workers of a cluster that is started here, beside those in
            `PASSED_ON`; they reach the workers as those of any child process do.

    Raises:
        ClusterError: Ray is not installed, is in use in this process already, or there is no such cluster.
    """
    with ExitStack() as opened:
        options: dict[str, Any] = {"address": address}
        environment = {**os.environ, **_SETTINGS}
        if address == LOCAL:
            passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            environment = {**passed, **(variables or {}), **_SETTINGS, **_LOCAL_SETTINGS}
            options = {
                "num_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": 200 << 20,
                "_node_ip_address": "127.0.0.1",
                # short, because the paths of sockets may have 107 bytes
                "_temp_dir": opened.enter_context(tempfile.TemporaryDirectory("", "kgqa-", ignore_cleanup_errors=True)),
            }
        elif "://" not in address and address != "auto":
            _check_reachable(address)
        with _environment(environment):  # processes that are started here inherit it
            ray = _import_ray()
            if ray.is_initialized():
                shutdown = Hint(python="Close it first: ray.shutdown().")
                raise ClusterError("This process uses a Ray cluster already.", shutdown)
            opened.callback(ray.shutdown)
            try:
                # nothing of the environment is sent, whatever the hook of an installation says
                ray.init(**options, log_to_driver=False, logging_level="error", _skip_env_hook=True)
            except Exception as error:
                raise ClusterError(
                    f"The Ray cluster at {address} cannot be used: {_line(error, 0)}",
                    "It needs the same Ray and Python, its token (RAY_AUTH_TOKEN_PATH), and this machine as a node: "
                    f"ray start --address {address}. Otherwise use ray://HOST:10001",
                ) from error
        yield RayCluster(ray, address)


def _check_reachable(address: str) -> None:
    """Raise ClusterError unless something listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "give HOST:PORT, local or ray://HOST:PORT"
        raise ClusterError(
            f"There is no Ray cluster at {address} ({reason}).",
            "Start it there: RAY_USAGE_STATS_ENABLED=0 ray start --head --port PORT",
        ) from error


def _import_ray() -> Any:
    """Import Ray with the current environment variables; Ray itself reads them only when it is first imported."""
    try:
        import ray
    except ImportError as error:
        raise ClusterError("Ray is not installed.", f"Install it: {Install('ray')}") from error
    with suppress(ImportError):  # Ray would print the logs of lost nodes to standard output, which is for results
        private: Any = importlib.import_module("ray._private.worker")
        private.print_to_stdstream = lambda *_, **__: None
    with suppress(ImportError, AttributeError):
        raylet: Any = importlib.import_module("ray._raylet")
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()
    return ray


def _pickled(ray: Any, function: Callable[..., Any]) -> bytes:
    """Return a function as bytes for the workers; refuse one with a secret of this process in it."""
    data: bytes = ray.cloudpickle.dumps(function)
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= _MIN_SECRET and value.encode("utf-8", "surrogateescape") in data:
            raise ClusterError(
                f"The value of the environment variable {name} would be sent to the workers of the cluster.",
                "Let the function read the variable on the worker, or make such calls in this process.",
            )
    return data


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have these environment variables and no others until the context ends."""
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def node_name() -> str:
    """Return the name and the address of the machine on which a worker runs; call this function in the worker."""
    import ray

    return f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"


def _run(version: str, data: bytes, item: Any) -> Any:
    return _unpickled(version, data)(item)


class _Worker:
    """A process of `RayCluster.stream`, which works on several items in threads."""

    def __init__(self, version: str, data: bytes) -> None:
        self._function = _unpickled(version, data)

    def ready(self) -> None:
        """Return when the worker runs."""

    def run(self, item: Any) -> Any:
        return self._function(item)


def _start(actor: Any) -> Any:
    """Return a reference that is ready when a worker runs, or runs again."""
    return actor.ready.options(max_task_retries=-1).remote()


@lru_cache(maxsize=4)
def _unpickled(version: str, data: bytes) -> Any:
    """Return the function that kgqa of this version sent; what it opened for earlier items stays open."""
    if version != __version__:
        raise ImportError(f"the worker has kgqa {__version__}, but {version} is needed")
    import ray

    return ray.cloudpickle.loads(data)


def _cannot_run(address: str, error: Exception) -> ClusterError:
    return ClusterError(
        f"The workers of the Ray cluster at {address} cannot run kgqa: {_line(error, -1)}",
        f"Install kgqa {__version__}, with the same extras, on each node.",
    )


def _line(error: Exception, number: int) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[number]
