"""Runs a function over many items, in this process or on a cluster of machines (Ray).

This module, `kgqa.cluster_node` and `kgqa.cluster_workers` are the only ones that know Ray. Ray pickles functions,
items and results between its own nodes and offers no other way; nothing else in kgqa is pickled, and no pickle is ever
read from a file. Whoever may connect to a cluster can run any program on it: use only a cluster of your own.

Workers get no environment variables from this process, so no API keys and no passwords. A cluster that is started here
has those in `kgqa.cluster_node.PASSED_ON` and those that the caller names; to other clusters nothing is sent, and
their workers read keys from their own environment. A function is refused if it contains the value of a variable that
looks like a secret.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, Protocol, TypeVar

from kgqa.cluster_node import LOCAL_SETTINGS, SETTINGS, local_node
from kgqa.cluster_workers import RETRIES, WorkerPool, _run, cannot_run, lost
from kgqa.errors import ClusterError
from kgqa.text.installation import install_command
from kgqa.version import __version__

T = TypeVar("T")
R = TypeVar("R")
LOCAL = "local"
"""The address that stands for a cluster that is started on this machine."""
CONNECT_SECONDS = 10.0
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_MIN_SECRET = 8
_COUNT_SECONDS = 10.0


class Cluster(Protocol):
    """Runs a function over items. `workers`: how many items are worked on at a time; `gpus`: how many GPUs it has."""

    @property
    def workers(self) -> int: ...

    @property
    def gpus(self) -> int: ...

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, ordered: bool = True, batch: int = 1
    ) -> Iterator[R]:
        """Yield the result for each item, while others are being worked on.

        Items are taken from the iterator as results are taken from `map`, so neither has to fit into memory. An
        exception of the function is raised here, after the results before it. To end early, close the generator.

        Args:
            function: What to do with an item. It may be called again for an item if a worker dies, so it should change
                nothing. A cluster sends it to each worker once: what it opens when it is first called serves for all
                later items.
            items: The items.
            ordered: Whether results come in the order of the items, or as they are ready.
            batch: How many items are sent together; more than one if an item takes less than some milliseconds.

        Raises:
            ClusterError: The cluster cannot run the function.
        """
        ...

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
        """Yield lists of results in any order, and an empty list if there are none for a moment.

        Unlike with `map`, a worker keeps the function until the end and works on several items at a time. An item is
        taken only when a worker is free for it. If a worker dies, its items are worked on again by another one.

        Args:
            function: What to do with an item, as for `map`; it is called in several threads.
            items: The items.
            workers: The most workers to use; each occupies a processor until the generator ends or is closed.
            threads: How many items a worker works on at a time.
            gpus: How many GPUs each worker needs.
            say: Called with a message for people when a worker is lost.

        Raises:
            ClusterError: The cluster cannot run the function.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Cluster: ...

    def __exit__(self, *_: object) -> None: ...


def open_cluster(address: str | None = None, variables: Mapping[str, str] | None = None) -> Cluster:
    """Open a cluster.

    Args:
        address: None for this process alone; `local` for a cluster of the processors of this machine, started for the
            time being; HOST:PORT, or `auto`, for a running Ray cluster that this machine is a node of;
            ray://HOST:PORT for one that it is not a node of.
        variables: Environment variables for the workers of a cluster that is started here, beside those in
            `kgqa.cluster_node.PASSED_ON`. They reach the workers as those of any child process do, and no other
            cluster gets them.

    Raises:
        ClusterError: Ray is not installed, is in use in this process already, or there is no such cluster.
    """
    return PlainLoop() if address is None else _RayCluster(address, variables or {})


class PlainLoop:
    """A cluster of this process alone: a loop."""

    workers = 1
    gpus = 0

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, ordered: bool = True, batch: int = 1
    ) -> Iterator[R]:
        yield from map(function, items)

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
        for item in items:
            yield [function(item)]

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> PlainLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _RayCluster:
    """A Ray cluster. Only one can be open in a process."""

    def __init__(self, address: str, variables: Mapping[str, str]) -> None:
        self._resources = ExitStack()
        self._address = address
        self._counted = 0.0
        self._count = 1
        try:
            self._connect(address, variables)
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str, variables: Mapping[str, str]) -> None:
        is_local = address == LOCAL
        if not is_local and "://" not in address and address != "auto":
            _check_reachable(address)
        self._resources.enter_context(_variables({**SETTINGS, **(LOCAL_SETTINGS if is_local else {})}))
        ray = _import_ray()
        if ray.is_initialized():
            raise ClusterError("This process uses a Ray cluster already.", python="Close it first: ray.shutdown().")
        found = self._resources.enter_context(local_node(variables)) if is_local else address
        try:
            # nothing of the environment is sent, whatever the hook of an installation says
            ray.init(found, log_to_driver=False, logging_level="error", _skip_env_hook=True)
        except Exception as error:
            raise _connect_error(address, error) from error
        self._resources.callback(ray.shutdown)
        self._ray = ray

    @property
    def workers(self) -> int:
        """The processors of the cluster; nodes may join and leave."""
        if not self._counted or time.monotonic() - self._counted > _COUNT_SECONDS:
            self._count = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            self._counted = time.monotonic()
        return self._count

    @property
    def gpus(self) -> int:
        """The GPUs of the cluster. A cluster of this machine leaves them to this process."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, ordered: bool = True, batch: int = 1
    ) -> Iterator[R]:
        with closing(self._outcomes(function, items, ordered, batch)) as outcomes:
            for is_result, value in outcomes:
                if not is_result:
                    raise value
                yield value

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
        data = _pickled(self._ray, function)
        return WorkerPool(self._ray, self._address, data, workers, threads, gpus, say).results(iter(items))

    def _outcomes(
        self, function: Callable[[T], R], items: Iterable[T], ordered: bool, batch: int
    ) -> Generator[tuple[bool, Any], None, None]:
        """Yield pairs: True and a result, or False and an exception, after which the others do not matter."""
        ray = self._ray
        shared = [ray.put(_pickled(ray, function))]  # in a list, so that only workers that lack it fetch it
        name = secrets.token_hex(8)
        task = ray.remote(_run).options(max_retries=RETRIES, num_cpus=1, scheduling_strategy="SPREAD")
        parts = _parts(items, batch)
        running: dict[Any, int] = {}
        done: dict[int, Sequence[tuple[bool, Any]]] = {}
        sent = given = 0
        more = True
        try:
            while more or running or done:
                # a slow task must not let the results behind it pile up
                while more and len(running) < 2 * self.workers and sent - given < 4 * self.workers:
                    part = next(parts, None)
                    if part is None:
                        more = False
                    elif isinstance(part, Exception):
                        done[sent], sent = [(False, part)], sent + 1
                    else:
                        running[task.remote(name, __version__, shared, part)] = sent
                        sent += 1
                ready = ray.wait(list(running), num_returns=1)[0] if running else []
                for reference in ready:
                    done[running.pop(reference)] = self._fetched(reference)
                while done and (not ordered or given in done):
                    yield from done.pop(given if ordered else min(done))
                    given += 1
        finally:
            for reference in running:
                with suppress(Exception):
                    ray.cancel(reference)

    def _fetched(self, reference: Any) -> Sequence[tuple[bool, Any]]:
        ray = self._ray
        try:
            found: Sequence[tuple[bool, Any]] = ray.get(reference)
        except ray.exceptions.RayTaskError as error:  # outside of the function
            raise cannot_run(self._address, error) from error
        except ray.exceptions.RayError as error:
            raise lost(self._address, error) from error
        return found

    def close(self) -> None:
        """Disconnect; end a cluster that was started here."""
        self._resources.close()

    def __enter__(self) -> _RayCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def node_name() -> str:
    """Return the name and the address of the machine on which a worker runs; call this function in the worker."""
    import ray

    return f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"


def _import_ray() -> Any:
    """Import Ray, and let it read the environment variables again, which it does at its first import only."""
    try:
        import ray
    except ImportError as error:
        raise ClusterError("Ray is not installed.", f"Install it: {install_command('ray')}") from error
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


def _parts(items: Iterable[T], size: int) -> Iterator[list[T] | Exception]:
    """Yield items in lists, and the exception that ends them, if there is one."""
    part: list[T] = []
    try:
        for item in items:
            part.append(item)
            if len(part) == size:
                yield part
                part = []
    except Exception as error:  # noqa: BLE001  raised after the results for the items before it
        yield from [part] if part else []
        yield error
        return
    yield from [part] if part else []


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables until the context ends."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _check_reachable(address: str) -> None:
    """Raise ClusterError unless something listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(
            f"{address} is not the address of a Ray cluster.", "Give HOST:PORT, local, or ray://HOST:PORT"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClusterError(
            f"There is no Ray cluster at {address} ({reason}).",
            start := f"Start it there: RAY_USAGE_STATS_ENABLED=0 ray start --head --port {port}",
            python=start,
        ) from error


def _connect_error(address: str, error: Exception) -> ClusterError:
    chain, text = error, str(error)
    while chain.__cause__ or chain.__context__:
        chain = chain.__cause__ or chain.__context__  # type: ignore[assignment]
        text += f"\n{chain}"
    if "ersion mismatch" in text:
        versions = " ".join(re.findall(r"(?:Ray|Python): [\d.]+\w*", text)[:4])
        return ClusterError(
            f"The Ray cluster at {address} and this process have different versions: {versions}.",
            "Install the same versions of Ray and Python on all machines.",
        )
    if "grpc" in text.lower() and address.startswith("ray://"):
        return ClusterError(
            "Addresses that begin with ray:// need Ray's client.", "Install it: pip install 'ray[client]'"
        )
    if "token" in text.lower():
        return ClusterError(
            f"The Ray cluster at {address} does not accept this process: a token is missing or wrong.",
            "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH to the file with the cluster's token.",
        )
    reason = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return ClusterError(
        f"The Ray cluster at {address} cannot be used: {reason}",
        join := f"This machine must be a node of it: ray start --address {address}. Otherwise use ray://HOST:10001",
        python=join,
    )
