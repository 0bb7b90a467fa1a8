"""Graph loads in the test process instead of a worker process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from kgqa import errors
from kgqa.graph.embedded import loading
from kgqa.graph.embedded.worker import error_payload


class InProcessWorker:
    """A stand-in for the worker of a load, without a memory limit."""

    def __init__(self, path: Path | None, **_: object) -> None:
        assert path is None, "for loads only"

    def call(self, request: dict, *, progress: Callable[[dict], None] | None = None) -> bytes:
        assert request["op"] == "load"
        try:
            return loading.run_load(Path(request["folder"]), progress or (lambda fields: None))
        except Exception as error:
            report = json.loads(error_payload(error))
            raise getattr(errors, report["kind"])(report["message"], report["hint"]) from error

    def kill(self) -> None:
        pass


@contextmanager
def in_process_loads() -> Iterator[None]:
    with mock.patch.object(loading, "Worker", InProcessWorker):
        yield
