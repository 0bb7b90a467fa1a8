"""What runs in the workers of a Ray cluster, and workers that keep what they open and work on several items at a time.

Only `kgqa.cluster` uses this module.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kgqa.errors import ClusterError
from kgqa.version import __version__

RETRIES = 5
"""How often an item is worked on again whose worker has died."""
POLL_SECONDS = 0.2
START_SECONDS = 180.0
"""How long to wait for the first worker."""
_END: Any = object()

_functions: deque[tuple[str, Callable[[Any], Any]]] = deque(maxlen=4)
"""The functions that this worker has been sent lately, by the names of the calls of `map`."""


def _run(name: str, version: str, shared: list[Any], items: list[Any]) -> list[tuple[bool, Any]]:
    """Apply the function of a call of `map` to some items; stop at an exception. Runs in a worker."""
    _check_version(version)
    function = next((each for known, each in _functions if known == name), None)
    if function is None:
        function = _received(shared)
        _functions.append((name, function))
    found: list[tuple[bool, Any]] = []
    for item in items:
        found.append(_outcome(function, item))
        if not found[-1][0]:
            break
    return found


class _Worker:
    """A process of a `WorkerPool`; its methods run in several threads."""

    _function: Callable[[Any], Any]

    def start(self, version: str, shared: list[Any]) -> None:
        _check_version(version)
        self._function = _received(shared)

    def run(self, item: Any) -> tuple[bool, Any]:
        return _outcome(self._function, item)


def _check_version(version: str) -> None:
    if version != __version__:
        raise RuntimeError(f"the worker has kgqa {__version__}, but {version} is needed")


def _received(shared: list[Any]) -> Callable[[Any], Any]:
    import ray

    function: Callable[[Any], Any] = ray.cloudpickle.loads(ray.get(shared[0]))
    return function


def _outcome(function: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
    try:
        return True, function(item)
    except Exception as error:  # noqa: BLE001  raised again in the process that called `map` or `stream`
        return False, _portable(error)


def _portable(error: Exception) -> Exception:
    """Return an exception that the other process can read: the same one if that is possible."""
    import ray

    try:
        copy = ray.cloudpickle.loads(ray.cloudpickle.dumps(error))
        if type(copy) is type(error):
            return error
    except Exception:  # noqa: BLE001  of classes that need other arguments, or with values that are not portable
        pass
    return ClusterError(f"{type(error).__name__}: {error}")


# --- in the process that opens the cluster


def cannot_run(address: str, error: Exception) -> ClusterError:
    """Return the error for workers that cannot run the function at all: a module is missing, for example."""
    reason = str(error).strip().splitlines()[-1]
    return ClusterError(
        f"The workers of the Ray cluster at {address} cannot run kgqa: {reason}",
        f"Install kgqa {__version__}, with the same extras, on each node.",
    )


def lost(address: str, error: Exception) -> ClusterError:
    """Return the error for an item whose worker died every time."""
    reason = str(error).strip().splitlines()[0]
    return ClusterError(
        f"The Ray cluster at {address} lost a task {RETRIES + 1} times: {reason}",
        "Check the memory of its nodes and run the command again.",
    )


@dataclass
class _Task:
    item: Any
    worker: int = 0
    losses: int = 0


@dataclass
class WorkerPool:
    """Workers of a cluster, each of which works on several items at a time. A worker that dies is replaced.

    Args:
        ray: The module.
        address: The address of the cluster, for messages.
        function: The pickled function.
        workers: How many workers there are if the cluster has the processors.
        threads: How many items a worker works on at a time.
        gpus: How many GPUs each worker gets.
        say: Called with a message for people when a worker is lost.
    """

    ray: Any
    address: str
    function: bytes
    workers: int
    threads: int
    gpus: float
    say: Callable[[str], None]
    _actors: dict[int, Any] = field(default_factory=dict)
    _starting: dict[Any, int] = field(default_factory=dict)
    _load: dict[int, int] = field(default_factory=dict)
    _running: dict[Any, _Task] = field(default_factory=dict)
    _again: deque[_Task] = field(default_factory=deque)
    _numbers: Iterator[int] = field(default_factory=count)
    _failed_starts: int = 0
    _started: int = 0

    def results(self, items: Iterator[Any]) -> Generator[list[Any], None, None]:
        """Yield lists of results, and an empty list if there are none for `POLL_SECONDS`.

        An item is taken only when a worker is free for it.

        Raises:
            ClusterError: The cluster cannot run the function, or an item lost its worker too often.
        """
        more = True
        shared = [self.ray.put(self.function)]  # in a list, so that a worker fetches it and not its node
        began = time.monotonic()
        try:
            while more or self._running or self._again:
                if more or self._again:
                    self._keep_up(shared)
                while (worker := self._free_worker()) is not None:
                    task = self._again.popleft() if self._again else _Task(next(items, _END))
                    if task.item is _END:
                        more = False
                        break
                    self._send(task, worker)
                found, error = self._collect()
                yield found
                if error is not None:
                    raise error
                if not self._started and time.monotonic() - began > START_SECONDS:
                    raise ClusterError(
                        f"No worker of the Ray cluster at {self.address} has started in {START_SECONDS:.0f} s.",
                        "See whether other programs use all of its processors: ray status",
                    )
        finally:
            for actor in self._actors.values():
                self._kill(actor)

    def _keep_up(self, shared: list[Any]) -> None:
        """Start workers until there are as many as wanted."""
        kind = self.ray.remote(_Worker).options(
            num_cpus=1, num_gpus=self.gpus, max_concurrency=self.threads, scheduling_strategy="SPREAD"
        )
        while len(self._actors) < self.workers:
            number = next(self._numbers)
            self._actors[number] = actor = kind.remote()
            self._starting[actor.start.remote(__version__, shared)] = number

    def _free_worker(self) -> int | None:
        worker = min(self._load, key=self._load.__getitem__, default=None)
        return None if worker is None or self._load[worker] >= self.threads else worker

    def _send(self, task: _Task, worker: int) -> None:
        task.worker = worker
        self._load[worker] += 1
        self._running[self._actors[worker].run.remote(task.item)] = task

    def _collect(self) -> tuple[list[Any], Exception | None]:
        """Wait for workers; return the results, and the exception that ends the work, if there is one."""
        references = [*self._starting, *self._running]
        if not references:
            return [], None
        ready = self.ray.wait(references, num_returns=1, timeout=POLL_SECONDS)[0]
        ready = ready and self.ray.wait(references, num_returns=len(references), timeout=0)[0]
        found: list[Any] = []
        error: Exception | None = None
        for reference in ready:
            if reference in self._starting:
                error = self._note_start(reference) or error
            elif reference in self._running:  # else its worker is lost, which another reference has told already
                is_result, value = self._fetch(reference)
                if is_result:
                    found.append(value)
                elif value is not None:
                    error = value
        return found, error

    def _note_start(self, reference: Any) -> Exception | None:
        worker = self._starting.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            return cannot_run(self.address, error)
        except self.ray.exceptions.RayError as error:
            self._kill(self._actors.pop(worker))
            self._failed_starts += 1
            if "creation task" in str(error):  # the module of the class is missing there
                return cannot_run(self.address, error)
            return lost(self.address, error) if self._failed_starts > RETRIES + self._started else None
        self._started += 1
        self._load[worker] = 0
        return None

    def _fetch(self, reference: Any) -> tuple[bool, Any]:
        """Return True and a result, or False and the exception that ends the work; None if the worker is lost."""
        try:
            found: tuple[bool, Any] = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            return False, cannot_run(self.address, error)
        except self.ray.exceptions.RayError as error:
            worker = self._running[reference].worker
            tasks = {each: task for each, task in self._running.items() if task.worker == worker}
            for each, task in tasks.items():
                del self._running[each]
                task.losses += 1
                self._again.append(task)
            self.say("A worker of the Ray cluster was lost; its work is given to another one.")
            del self._load[worker]
            self._kill(self._actors.pop(worker))
            worst = max(task.losses for task in tasks.values())
            return False, lost(self.address, error) if worst > RETRIES else None
        self._load[self._running.pop(reference).worker] -= 1
        return found

    def _kill(self, actor: Any) -> None:
        with suppress(Exception):
            self.ray.kill(actor)
