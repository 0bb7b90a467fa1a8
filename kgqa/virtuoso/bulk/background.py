"""Loading files into a server while something else is done, such as making the next ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kgqa.virtuoso.server.load_list import FileResult, LoadProgress
from kgqa.virtuoso.server.server import Server


class BackgroundLoad:
    """A load that runs in a thread of its own.

    Attributes:
        files_done: how many files the server is through with. seconds: how long it took, once it has ended.
    """

    def __init__(self, server: Server, files: Sequence[Path], graph_iri: str, *, loaders: int) -> None:
        self.files_done = 0
        self.seconds = 0.0
        self._results: list[FileResult] = []
        self._error: BaseException | None = None
        # an event, because `join` that is interrupted by Ctrl-C takes a running thread for one that has ended
        self._ended = threading.Event()
        arguments = (server, list(files), graph_iri, loaders)
        # a daemon: whoever does not want to wait is not kept
        threading.Thread(target=self._load, args=arguments, daemon=True).start()

    def _load(self, server: Server, files: list[Path], graph_iri: str, loaders: int) -> None:
        def note(progress: LoadProgress) -> None:
            self.files_done = progress.files_done

        begun = time.monotonic()
        try:
            self._results = server.load(files, graph_iri, loaders=loaders, progress=note)
        except BaseException as error:
            self._error = error
        finally:
            self.seconds = time.monotonic() - begun
            self._ended.set()

    def ended(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        return self._ended.wait(seconds)

    def results(self) -> list[FileResult]:
        """What the server said of each file, once it has ended; raises what ended it."""
        if self._error:
            raise self._error
        return self._results
