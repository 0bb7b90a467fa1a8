"""Loads files into a server in a background thread, while the main thread writes the next files."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kgqa.virtuoso.server.load_list import FileResult, LoadProgress
from kgqa.virtuoso.server.server import Server


class BackgroundLoad:
    """A load of files that runs in its own thread.

    Attributes:
        files_done: number of files that the server has finished.
        seconds: duration of the load; 0 while the load runs.
    """

    def __init__(self, server: Server, files: Sequence[Path], graph_iri: str, *, loaders: int) -> None:
        self.files_done = 0
        self.seconds = 0.0
        self._results: list[FileResult] = []
        self._error: BaseException | None = None
        # an event, because `Thread.join` treats a running thread as ended after Ctrl-C has interrupted the call
        self._ended = threading.Event()
        arguments = (server, list(files), graph_iri, loaders)
        # a daemon thread, so that it does not keep the process running
        threading.Thread(target=self._load, args=arguments, daemon=True).start()

    def _load(self, server: Server, files: list[Path], graph_iri: str, loaders: int) -> None:
        def note(progress: LoadProgress) -> None:
            self.files_done = progress.files_done

        started = time.monotonic()
        try:
            self._results = server.load(files, graph_iri, loaders=loaders, progress=note)
        except BaseException as error:  # noqa: BLE001  (raised again by `results`)
            self._error = error
        finally:
            self.seconds = time.monotonic() - started
            self._ended.set()

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the load, and return whether the load has ended."""
        return self._ended.wait(seconds)

    def results(self) -> list[FileResult]:
        """Return the result of each file once the load has ended; if the load failed, raise its exception."""
        if self._error:
            raise self._error
        return self._results
