"""Reads corpus.json, the file by which a corpus folder names its graph, its views and its schema.

    mycorpus/
      corpus.json  {"format": 1, "graph": "graph", "schema": "corpus", "views": {"facts": ["urn:kgqa:corpus:facts"]}}
      graph/       the graph folder, unless `graph` is the URL of a SPARQL endpoint

Everything that takes a graph folder takes a corpus folder too. kgqa does not trust such folders: they may come from
other people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.storage.loading import convert, load
from kgqa.text.hints import Command, Hint
from kgqa.text.words import clean

FILE_NAME = "corpus.json"
MAX_BYTES = 1 << 20
GRAPH_FOLDER = "graph"
"""The name of the graph folder within a corpus folder."""
DEFAULT_VIEW = "facts"
"""The view that questions use if none is chosen, and the corpus names no other."""
_URL = re.compile(r"https?://\S+", re.IGNORECASE)

_GraphPlace = Annotated[str, Meta(pattern=rf"\A(?:{GRAPH_FOLDER}|(?i:https?)://\S+)\Z")]
_SchemaName = Annotated[str, Meta(pattern=r"\A(?:[a-z]{1,40}|[A-Za-z0-9_-]{1,80}\.toml)\Z")]
_ViewName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_-]{0,40}\Z")]
_GraphIri = Annotated[str, Meta(max_length=2000, pattern=r"\A[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+\Z")]


class BesideGraph(msgspec.Struct, frozen=True):
    """The knowledge graph beside a corpus.

    Attributes:
        location: its graph folder, or the URL of the server that also holds the corpus.
        graphs: the IRIs of its named graphs; empty for the default graph of a folder.
    """

    location: str
    graphs: tuple[str, ...] = ()


class VectorDatabase(msgspec.Struct, frozen=True):
    """The database that holds the vectors of a corpus. `prefix`: how the names of its tables begin."""

    uri: str
    prefix: str


class CorpusFile(msgspec.Struct, frozen=True):
    """The content of corpus.json.

    Attributes:
        folder: the corpus folder; not in the file.
        graph: `graph`, the name of the graph folder in it, or the URL of a SPARQL endpoint.
        views: the IRIs of the named graphs of each view.
        schema: the name of a bundled schema, or of a TOML file in the corpus folder.
        default: the views that questions use if none is chosen.
        base: the prefix of the IRIs of the graphs; "" for the usual one.
        beside: the knowledge graph beside the corpus.
        vectors: the database of the vectors; None if they are in the folder.
        chunks: how documents are divided. tokens: the tokenizer that measures the chunks.
        extract: how facts are extracted. extractor: the extractor's name and key; empty before the first build.
    """

    folder: Path = Path()
    format: Literal[1] = 1
    graph: _GraphPlace = GRAPH_FOLDER
    views: dict[_ViewName, Annotated[tuple[_GraphIri, ...], Meta(min_length=1, max_length=100)]] = {}
    schema: _SchemaName = "corpus"
    default: tuple[str, ...] = ()
    base: str = ""
    beside: BesideGraph | None = None
    vectors: VectorDatabase | None = None
    chunks: str = ""
    tokens: str = ""
    extract: str = ""
    extractor: tuple[str, str] | None = None

    @property
    def url(self) -> str:
        """The URL of the graph; "" if the graph is a folder."""
        return "" if self.graph == GRAPH_FOLDER else self.graph

    @property
    def location(self) -> str | Path:
        """The graph folder, or the URL of the graph."""
        return self.url or self.folder / GRAPH_FOLDER

    @property
    def schema_source(self) -> str | Path:
        """The name of a bundled schema, or the path of the schema file."""
        return self.folder / self.schema if self.schema.endswith(".toml") else self.schema

    @property
    def default_views(self) -> tuple[str, ...]:
        """The views that questions use if none is chosen: those that the corpus names, or `facts`."""
        return tuple(name for name in self.default if name in self.views) or (DEFAULT_VIEW,)

    def graphs_of(self, names: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the IRIs of the named graphs of some views, or of the default views.

        Raises:
            SettingsError: the corpus has no such view.
        """
        found: dict[str, None] = {}
        for name in tuple(names) or self.default_views:
            if name not in self.views:
                known = ", ".join(sorted(self.views)) or "none"
                raise SettingsError(
                    f"{clean(str(self.folder))} has no view {clean(name)[:60]!r}.", f"Choose among its views: {known}"
                )
            found |= dict.fromkeys(self.views[name])
        return tuple(found)

    def text(self) -> str:
        """Return the text of corpus.json. Raises ValueError if a value is wrong."""
        data: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        given = {name: value for name, value in data.items() if name != "folder" and value not in ("", None, ())}
        convert(given, CorpusFile)
        return json.dumps(given, ensure_ascii=False, indent=2) + "\n"


def read_corpus_file(location: str | Path | None) -> CorpusFile | None:
    """Read the corpus.json of a folder; None if the location is no corpus folder, such as a graph folder or a URL.

    Raises:
        StoreUnavailable: the file cannot be read, or has a wrong value.
    """
    if location is None or _URL.match(str(location).strip()):
        return None
    file = Path(location) / FILE_NAME
    if not file.exists():
        return None
    found = load(
        file,
        CorpusFile,
        error=StoreUnavailable,
        hint=Hint("Build the corpus again: ", Command("corpus build")),
        limit=MAX_BYTES,
    )
    return msgspec.structs.replace(found, folder=Path(location))


def check_no_corpus(location: str | Path) -> None:
    """Check that a location that somebody wants to write to is no corpus folder.

    Raises:
        SettingsError: it is one.
        StoreUnavailable: see `read_corpus_file`.
    """
    if read_corpus_file(location):
        folder = clean(str(location))
        raise SettingsError(
            f"The graph of the corpus {folder} is made from documents.",
            Hint(
                f"Change these: kgqa corpus add {folder} FILES",
                python="Change these: kgqa.corpus.building.build.build_corpus",
            ),
        )
