"""How far the load of a dump is: kept beside the server's import folder, so that an interrupted load can go on.

A group counts as loaded when a checkpoint of the server came after it; what is noted here survives a crash of either
side. Groups hold the same lines every time, so the first one that is not noted is made and loaded again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.virtuoso.bulk.load_token import new_token
from kgqa.virtuoso.freebase.dump.layout import LINES_PER_CHUNK
from kgqa.virtuoso.freebase.dump.reader import Place, identity
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.virtuoso.freebase.rules import freebase_rules
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.server import load_list_journal

NAME = "freebase-load"
GRAPH_IRI = "http://freebase.com"


@dataclass(frozen=True)
class LoadOptions:
    """What is loaded of a dump, and where to.

    Args:
        graph_iri: the graph.
        languages: tags of literals that are kept; ("all",) keeps every one.
        keep_noise: whether predicates of the noise rules are kept too.
        lines_per_chunk: lines of the dump that go into a chunk file; four are loaded at a time.
    """

    graph_iri: str = GRAPH_IRI
    languages: tuple[str, ...] = ("en",)
    keep_noise: bool = False
    lines_per_chunk: int = LINES_PER_CHUNK

    def cleaning(self) -> Cleaning:
        return Cleaning(self.languages, () if self.keep_noise else freebase_rules())


@dataclass
class FreebaseJournal:
    """The state of a load.

    `token` is what the database knows the load by. `groups_done` counts the groups that are loaded and on disk, `place` is where the next one can be read from, None
    when the dump is at its end. `tally` and `seconds`, by stage, are of the groups that are done.
    """

    dump: str
    identity: dict[str, Any]
    options: LoadOptions
    rules: str
    token: str = ""
    groups_done: int = 0
    place: Place | None = Place()
    tally: Tally = field(default_factory=Tally)
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def begin(cls, dump: Path, options: LoadOptions) -> FreebaseJournal:
        """The journal of a load that has not begun. Raises LoadError where the dump cannot be read."""
        return cls(str(dump.absolute()), identity(dump), options, options.cleaning().digest, new_token())

    @classmethod
    def read(cls, folder: ServerFolder) -> FreebaseJournal | None:
        """The journal of an interrupted load, None where there is none.

        Raises:
            LoadError: it is damaged.
        """
        path = folder.path / f"{NAME}.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            options = data["options"]
            return cls(
                **{
                    **data,
                    "options": LoadOptions(**{**options, "languages": tuple(options["languages"])}),
                    "place": Place(**data["place"]) if data["place"] else None,
                    "tally": Tally.from_json(data["tally"]),
                }
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadError(
                f"{path} is damaged ({error}). Load the dump anew with --restart; what is in the graph does no harm."
            ) from error

    def save(self, folder: ServerFolder) -> None:
        data = {**asdict(replace(self, tally=Tally())), "tally": self.tally.as_json()}
        folder.write_private(f"{NAME}.json", json.dumps(data, indent=1))

    def check(self, dump: Path, options: LoadOptions | None) -> None:
        """Hold what is to be resumed against what was begun.

        Args:
            options: what was asked for this time; None for the same as then.

        Raises:
            LoadError: another dump, other options, or other rules.
        """
        if identity(dump) != self.identity:
            raise LoadError(
                f"{dump} is not the dump whose load was interrupted ({self.dump}). Give that one, or load this one from "
                f"its beginning: --restart"
            )
        if options is not None and options != self.options:
            asked, begun = asdict(options), asdict(self.options)
            differing = ", ".join(name.replace("_", " ") for name in asked if asked[name] != begun[name])
            raise LoadError(
                f"The interrupted load was begun with other options: {differing}. Leave them out to go on as before, or "
                f"load from the beginning: --restart"
            )
        if self.options.cleaning().digest != self.rules:
            raise LoadError(
                "What counts as noise has changed since the interrupted load was begun, with another version of kgqa. "
                "Load from the beginning: --restart"
            )


def forget(folder: ServerFolder) -> None:
    """There is no load to go on with any more."""
    (folder.path / f"{NAME}.json").unlink(missing_ok=True)
    load_list_journal.forget_made(folder, NAME)
