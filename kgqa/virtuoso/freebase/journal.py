"""The journal used to resume the load of a dump: freebase-load.json in the server's folder.

A group is recorded as loaded only after a checkpoint of the server, so a recorded group survives a crash of kgqa or the
server. Groups have the same lines every time, so a resumed load can begin with the first group that is not recorded.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.virtuoso.bulk.journal import Journal
from kgqa.virtuoso.freebase.dump.layout import LINES_PER_CHUNK
from kgqa.virtuoso.freebase.dump.reader import START, DumpPosition, identity
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.virtuoso.freebase.rules import freebase_rules

NAME = "freebase-load"
GRAPH_IRI = "http://freebase.com"


@dataclass(frozen=True)
class LoadOptions:
    """Options of a load: which lines of the dump are loaded, and into which graph.

    Args:
        graph_iri: the graph to load into.
        languages: language tags of the literals to keep; ("all",) keeps every language.
        keep_noise: whether predicates of the noise rules are kept.
        lines_per_chunk: number of lines of the dump per chunk file; four chunk files are loaded at a time.
    """

    graph_iri: str = GRAPH_IRI
    languages: tuple[str, ...] = ("en",)
    keep_noise: bool = False
    lines_per_chunk: int = LINES_PER_CHUNK

    def cleaning(self) -> Cleaning:
        return Cleaning(self.languages, () if self.keep_noise else freebase_rules())


@dataclass
class FreebaseJournal(Journal):
    """The state of loading a dump.

    Attributes:
        dump: path of the dump.
        identity: length and hash of the dump.
        rules: digest of the noise rules and languages.
        groups_done: number of groups that are loaded and on disk.
        place: position in the dump where the next group begins; None at the end of the dump.
        tally: counts of the lines in the first `groups_done` groups.
        seconds: duration of each stage up to the last recorded group, in seconds.
    """

    dump: str
    identity: dict[str, Any]
    options: LoadOptions
    rules: str
    groups_done: int = 0
    place: DumpPosition | None = START
    tally: Tally = field(default_factory=Tally)
    seconds: dict[str, float] = field(default_factory=dict)

    def check(self, dump: Path, options: LoadOptions | None) -> None:
        """Check that a load can be resumed with this dump and these options.

        Args:
            dump: path of the dump, as given for the resumed load.
            options: options given for the resumed load; None for the options of the interrupted load.

        Raises:
            LoadError: the dump, the options or the noise rules differ from those of the interrupted load.
        """
        if identity(dump) != self.identity:
            raise LoadError(
                f"{dump} is not the dump of the interrupted load.",
                f"Give {self.dump} to resume, or discard the interrupted load: --restart",
            )
        if options is not None and options != self.options:
            given, recorded = asdict(options), asdict(self.options)
            differing = ", ".join(name.replace("_", " ") for name in given if given[name] != recorded[name])
            raise LoadError(
                f"The interrupted load was started with other options: {differing}.",
                "Omit these options to resume, or load from the beginning: --restart",
            )
        if self.options.cleaning().digest != self.rules:
            raise LoadError(
                "The noise rules of this version of kgqa differ from those of the interrupted load.",
                "Load from the beginning: --restart",
            )
