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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.storage.untrusted_json import check_keys, is_text, list_of, load_json
from kgqa.text.words import clean

FILE_NAME = "corpus.json"
FORMAT = 1
MAX_BYTES = 1 << 20
GRAPH_FOLDER = "graph"
"""The name of the graph folder within a corpus folder."""
DEFAULT_VIEW = "facts"
"""The view that questions use if none is chosen, and the corpus names no other."""
DEFAULT_KEY = "default"
"""The key of corpus.json that lists the names of other default views."""
_VIEW_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_GRAPH_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+")
_SCHEMA = re.compile(r"[a-z]{1,40}|[A-Za-z0-9_-]{1,80}\.toml")
_URL = re.compile(r"https?://\S+", re.IGNORECASE)


@dataclass(frozen=True)
class CorpusFile:
    """The content of corpus.json.

    Attributes:
        folder: The corpus folder.
        graph: `graph`, the name of the graph folder in it, or the URL of a SPARQL endpoint.
        views: The IRIs of the named graphs of each view.
        schema: The name of a bundled schema, or of a TOML file in the corpus folder.
        others: All other keys. Their values are not checked.
    """

    folder: Path
    graph: str = GRAPH_FOLDER
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema: str = "corpus"
    others: Mapping[str, Any] = field(default_factory=dict)

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
        named = self.others.get(DEFAULT_KEY)
        known = named if isinstance(named, list) else []
        return tuple(name for name in known if isinstance(name, str) and name in self.views) or (DEFAULT_VIEW,)

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
        """Return the text of corpus.json."""
        views = {name: list(graphs) for name, graphs in self.views.items()}
        data = {"format": FORMAT, "graph": self.graph, "views": views, "schema": self.schema, **self.others}
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def read_corpus_file(location: str | Path | None) -> CorpusFile | None:
    """Read the corpus.json of a folder; None if the location is no corpus folder, such as a graph folder or a URL.

    Raises:
        StoreUnavailable: the file cannot be read, or has a wrong value.
    """
    if location is None or _URL.match(str(location).strip()):
        return None
    folder = Path(location)
    file = folder / FILE_NAME
    try:
        if not file.is_file():
            return None
        if file.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
        return corpus_file_of(folder, load_json(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise StoreUnavailable(
            f"{clean(str(file))} cannot be read: {clean(str(error))}", "Build the corpus again: kgqa corpus build"
        ) from error


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
            f"Change these: kgqa corpus add {folder} FILES",
            python="Change these: kgqa.corpus.building.build.build_corpus",
        )


def corpus_file_of(folder: Path, data: Any) -> CorpusFile:
    """Check the content of a corpus.json.

    Raises:
        ValueError: a value is missing or wrong.
    """
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    if data.get("format") != FORMAT:
        raise ValueError(f"its format is {data.get('format')!r:.40}, not {FORMAT}")
    check_keys(
        data,
        {
            "graph": lambda value: is_text(value) and (value == GRAPH_FOLDER or _URL.fullmatch(value) is not None),
            "schema": lambda value: is_text(value) and _SCHEMA.fullmatch(value) is not None,
            "views": _are_views,
        },
    )
    others = {key: value for key, value in data.items() if key not in ("format", "graph", "views", "schema")}
    views = {name: tuple(graphs) for name, graphs in data.get("views", {}).items()}
    return CorpusFile(folder, data.get("graph", GRAPH_FOLDER), views, data.get("schema", "corpus"), others)


def _are_views(value: Any) -> bool:
    are_iris = list_of(lambda item: is_text(item) and len(item) < 2000 and _GRAPH_IRI.fullmatch(item) is not None)
    return isinstance(value, dict) and all(
        _VIEW_NAME.fullmatch(name) and graphs and len(graphs) <= 100 and are_iris(graphs)
        for name, graphs in value.items()
    )
