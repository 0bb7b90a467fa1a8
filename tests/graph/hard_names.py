"""Names that are hard to find, as graphs in both kinds of store."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render_term
from kgqa.model import Literal
from kgqa.schema import Schema, bundled_schema
from kgqa.storage.cache import Cache
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.server import Server

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
SCHEMA = bundled_schema("rdfs")
NAMES = {
    "alien": ["Alien (film)", "ALIEN", "Alien"],
    "stockholm": ["Stockholm, Sweden", "Stockholm"],
    "bible": ["The Bible", "Holy Scripture", "the Bible"],
    "bowl": ["Super Bowl"],
    "uk": ["United Kingdom", "UK", "U.K."],
    "usa": ["United States of America", "United States", "USA"],
    "letters": ["U S L M N", "A B C"],
    "hinton": ["S. E. Hinton", "S.E. Hinton"],
    "hitler": ["Adolf Hitler", "Hitler, Adolf", "hitler hitler"],
    "youth": ["Hitler Youth"],
    "malmo": ["Malmö", unicodedata.normalize("NFD", "Malmö"), "Malmo"],
    "oneill": ["O'Neill", "O\u2019Neill", "Oneill"],
    "quotes": ['"Weird" (al) AND "b*"', 'NEAR("x", "y")', "' OR 1=1 --", "\\backslash\\"],
    "and": ["AND", "OR", "NOT", "NEAR", "and or not"],
    "moscow": ["Москва", "Московский Кремль", "достопримечательность"],
    "tokyo": ["東京都", "東京", "國家科學與技術委員會南部科學園區管理局"],
    "delhi": ["दिल्ली", "नई दिल्ली"],
    "long": ["a" * 300, "a" * 300 + "b", " ".join(f"word{n}" for n in range(60))],
    "nothing": ["Nothing", "!!!", "\u200b", "🙂"],
    "numbers": ["3.5", "3 5", "1984", "2001: A Space Odyssey", "½"],
    "under": ["snake_case_name", "x-ray", "AT&T", "at t"],
    "q": ["Qatar", "q", "qq", "Iraq"],
    "eszett": ["Straße", "strasse", "İstanbul", "ligature ﬁ"],
    "article": ["A Hat", "An Apple", "The The"],
    "paris": ["Paris"],
    "texas": ["Paris", "Paris, Texas"],
}  # fmt: skip
LANGUAGES = {"paris": ["en", "fr", "de"], "malmo": ["sv", "en"]}


@dataclass(frozen=True)
class GraphPair:
    """A graph in the embedded store and the same graph on a server."""

    local: KnowledgeGraph
    remote: KnowledgeGraph

    def close(self) -> None:
        self.local.close()
        self.remote.close()


def lines() -> list[str]:
    """Return the table as N-Triples with 1,500 random names, enough for wildcards and ties."""
    found = table_lines()
    rng = random.Random(7)
    syllables = ["an", "be", "hi", "lo", "ma", "ni", "or", "sta", "tu", "é", "qu"]
    for number in range(1500):
        words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 5))]
        found.append(f'<http://e/m{number}> <{rng.choice([LABEL, ALIAS])}> "{" ".join(words).title()}" .')
    return found


def table_lines() -> list[str]:
    """Return the table as N-Triples; the first name of an entity is its label, the others are aliases."""
    return [
        f"<http://e/{short}> <{ALIAS if index else LABEL}> {render_term(Literal(name, language=language))} ."
        for short, names in NAMES.items()
        for index, name in enumerate(names)
        for language in LANGUAGES.get(short, [""])
    ]


def load_into_both_stores(server: Server, files: Sequence[Path], schema: Schema, iri: str, folder: Path) -> GraphPair:
    """Load files into both stores and build the name graph on the server."""
    load_graph(folder / "graph", list(files))
    local = KnowledgeGraph(EmbeddedStore(folder / "graph", workers=2), schema, cache=Cache(folder / "cache"))
    remote = load_onto_server(server, files, schema, iri)
    assert index_graph(server, remote.store, schema, iri) > 0
    return GraphPair(local, remote)


def load_onto_server(server: Server, files: Sequence[Path], schema: Schema, iri: str) -> KnowledgeGraph:
    """Load files into a graph of a server."""
    copies = [server.import_folder / f"{folder_name(iri)}-{file.name}" for file in files]
    for file, copy in zip(files, copies, strict=True):
        copy.write_bytes(file.read_bytes())
    server.load(copies, iri)
    return KnowledgeGraph(EndpointStore(server.url), schema, view=[iri])


def folder_name(iri: str) -> str:
    return iri.rpartition("/")[2]
