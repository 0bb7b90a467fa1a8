"""Opens the Freebase slice with 1.32 M triples, and selects topics and random relation paths."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf

import pyoxigraph as ox
from common import data_file

from kgqa.errors import StoreTimeout
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.storage.cache import Cache

ORDINARY = range(15, 61)
HUB_DEGREE = 2000
MAX_HOPS = 3

Kind = OneOf["ordinary", "hub"]


@dataclass(frozen=True, slots=True)
class Topic:
    entity: Entity
    degree: int
    kind: Kind


def ready_graph(place: Path, *, timeout: float) -> KnowledgeGraph:
    """Open the slice in `place`/graph, with its cache in `place`/cache; load the slice if the folder does not exist."""
    manifest = data_file("freebase", "MANIFEST.json")
    files = [data_file("freebase", name) for name in json.loads(manifest.read_text())["triples"]]
    folder = GraphFolder(place / "graph")
    if not folder.exists():
        print(f"Loading {len(files)} files into {folder.path} (once) ...", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        load_graph(folder.path, files, restart=True, schema="freebase")
    if {Path(file.path).name for file in folder.meta().files} != {file.name for file in files}:
        sys.exit(f"{folder.path} contains another graph. Remove it, or give another folder: --graph FOLDER")
    return open_graph(folder.path, cache=Cache(place / "cache"), timeout=timeout)


def bare_store(graph: KnowledgeGraph) -> ox.Store:
    """Open the graph's files with the engine in this process."""
    store = graph.store
    return ox.Store.read_only(str(store.folder.store_dir(store.meta.generation)))  # type: ignore[attr-defined]


def topics(bare: ox.Store, place: Path, fingerprint: str, ordinary: int, hubs: int, seed: int) -> list[Topic]:
    """Return random ordinary topics, and the topics with the highest degrees as hubs."""
    file = place / f"degrees-{fingerprint}.json"
    if not file.is_file():
        print("Counting degrees (once) ...", file=sys.stderr)
        file.write_text(json.dumps(_degrees(bare)))
    degrees: dict[str, int] = json.loads(file.read_text())
    usual = sorted(iri for iri, degree in degrees.items() if degree in ORDINARY)
    chosen = random.Random(seed).sample(usual, min(ordinary, len(usual)))
    top = sorted((iri for iri, degree in degrees.items() if degree >= HUB_DEGREE), key=lambda i: (-degrees[i], i))
    return [Topic(Entity(iri), degrees[iri], "ordinary") for iri in chosen] + [
        Topic(Entity(iri), degrees[iri], "hub") for iri in top[:hubs]
    ]


def _degrees(bare: ox.Store) -> dict[str, int]:
    """Return the degree, in both directions together, of each Freebase topic (`m.` id) that is ordinary or a hub."""
    degrees: Counter[str] = Counter()
    for pattern in ("?node ?relation ?other", "?other ?relation ?node"):
        query = f"SELECT ?node (COUNT(*) AS ?edges) WHERE {{ {pattern} . FILTER(isIRI(?node)) }} GROUP BY ?node"
        for row in bare.query(query):  # type: ignore[union-attr]
            if "/ns/m." in row[0].value:
                degrees[row[0].value] += int(row[1].value)
    return {iri: degree for iri, degree in degrees.items() if degree in ORDINARY or degree >= HUB_DEGREE}


def random_paths(graph: KnowledgeGraph, topic: Entity, walks: int, generator: random.Random) -> Iterator[RelationPath]:
    """Return distinct random paths of 0 to MAX_HOPS steps from a topic.

    A path is not extended further if it has no next step or if the query for its next steps times out.
    """
    seen: set[RelationPath] = set()
    for _ in range(walks):
        path = RelationPath(topic)
        for hop in range(MAX_HOPS + 1):
            if path not in seen:
                seen.add(path)
                yield path
            if hop == MAX_HOPS:
                break
            try:
                steps = graph.paths.steps([Candidate(path)])[0].steps
            except StoreTimeout:
                break
            if not steps:
                break
            path = path.then(generator.choice(steps))
