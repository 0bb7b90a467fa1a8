"""A knowledge graph beside a corpus: a question walks over both.

An entity of the text that means one of the knowledge graph (`LinkItem`) has its IRI, so that paths cross from one to
the other. The view `facts` consists of both graphs. If the corpus has a graph folder, the triples of the knowledge
graph are copied into it, as a named graph; on a server, the view names the knowledge graph's own graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.terms import iri_term
from kgqa.errors import CorpusError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.rdf.dump import dump_blocks
from kgqa.graph.store import is_address
from kgqa.schema import Schema, bundled_schema, parse_schema, schema_text
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.cache import Cache
from kgqa.storage.corpus_file import GRAPH_FOLDER, BesideGraph
from kgqa.text.hints import Option
from kgqa.text.words import clean

SCHEMA_FILE = "schema.toml"
"""The file in a corpus folder with the schema of both graphs."""


def beside_quads(beside: BesideGraph, *, base: str = v.KC) -> Iterator[bytes]:
    """Yield the triples of a graph folder as lines of N-Quads in the corpus's graph `beside`.

    Raises:
        StoreError: see `dump_blocks`.
    """
    end = f" {iri_term(v.beside_graph(base))} .\n".encode()
    for block in dump_blocks(Path(beside.location), beside.graphs):
        yield block.replace(b" .\n", end)


def set_beside(folder: CorpusFolder, graph: KnowledgeGraph) -> BesideGraph:
    """Put a knowledge graph beside a new corpus: corpus.json then has views of both, and the schema of both is written.

    The triples of a graph folder are copied when the Editor writes the graphs of the corpus for the first time. Nothing
    changes if the knowledge graph stands beside the corpus already.

    Args:
        folder: the corpus folder, with a corpus.json and without a graph folder.
        graph: the knowledge graph, in a graph folder, or on the server that holds the graphs of the corpus.

    Raises:
        CorpusError: the corpus has a graph folder already, or the knowledge graph is elsewhere.
    """
    file, base = folder.file, folder.base
    where = graph.store.location
    view = tuple(entity.iri for entity in graph.view)
    known = file.beside
    if file.url:
        if not is_address(where) or where.rstrip("/") != file.url.rstrip("/"):
            raise CorpusError(
                f"The corpus is on {clean(file.url)}, but {clean(where)} is not.",
                "Load the knowledge graph into the same server, or build the corpus in a folder.",
            )
        if not view:
            raise CorpusError(
                f"The knowledge graph on {clean(where)} has no name.", "Name its graph: ", Option("graph-iri", "IRI")
            )
        if clash := set(view) & set(folder.graphs.values()):
            raise CorpusError(f"<{min(clash)}> is a graph of the corpus itself.", "Name another graph.")
        beside, shown = BesideGraph(file.url, view), view
        if known == beside:
            return beside
    else:
        if graph.store.capabilities.remote or not (Path(where) / "graph.json").is_file():
            raise CorpusError(
                f"{clean(where)} is not a graph folder.",
                "Load the knowledge graph into a folder, or build the corpus on its server.",
            )
        beside, shown = BesideGraph(str(Path(where).resolve()), view), (v.beside_graph(base),)
        if known == beside:
            return beside
        if (folder.path / GRAPH_FOLDER).exists():
            raise CorpusError(
                f"{clean(str(folder.path))} has been built already.", "Build a new corpus beside this graph."
            )
    with_facts = {"facts": (folder.graphs["facts"], *shown), v.BESIDE: shown}
    both = merged_schema(graph.schema, bundled_schema("corpus"))
    replace_file(folder.path / SCHEMA_FILE, [both.source.encode()])
    folder.save(
        structs.replace(
            file,
            views={**file.views, **with_facts},
            schema=SCHEMA_FILE,
            beside=beside,
        )
    )
    return beside


def open_beside(
    folder: CorpusFolder, *, cache: Cache | None = None, endpoint: EndpointOptions | None = None
) -> KnowledgeGraph | None:
    """Open the knowledge graph beside a corpus, without the corpus: its copy, or, before there is one, the original.

    Raises:
        StoreError: see `open_graph`.
    """
    beside = folder.file.beside
    if beside is None:
        return None
    if folder.file.url or GraphFolder(folder.graph).exists():
        return open_graph(folder.path, view=[v.BESIDE], cache=cache, endpoint=endpoint)
    return open_graph(beside.location, view=beside.graphs, cache=cache)


def merged_schema(graph: Schema, corpus: Schema) -> Schema:
    """Return the schema of a knowledge graph and a corpus together.

    The knowledge graph's rules come first. Of the corpus's noise, only what its graphs `facts` and `hyper` contain is
    added, because the knowledge graph may use the same vocabularies for facts.
    """
    noise = tuple(iri for iri in (v.KC, v.LABEL, v.ALIAS, v.TYPE_OF, v.SUB_RELATION_OF) if not graph.is_noise(iri))
    labelled = graph.labelled
    if graph.wording != "label":
        labelled = _union(labelled, (corpus.prefixes["relation"], corpus.prefixes["role"], v.PARTY))
    merged = structs.replace(
        graph,
        name=f"{graph.name}-corpus",
        title=f"{graph.title} and text corpus",
        prefixes={**corpus.prefixes, **graph.prefixes},
        detect=_union(graph.detect, corpus.detect),
        fallback=False,
        id_base=graph.id_base or corpus.id_base,
        label=_union(graph.label, corpus.label),
        alias=_union(graph.alias, corpus.alias),
        languages=_union(graph.languages, corpus.languages),
        types=_union(graph.types, corpus.types),
        labelled=labelled,
        inverse=_union(graph.inverse, corpus.inverse),
        noise_prefixes=_union(graph.noise_prefixes, noise),
        noise_except=_union(graph.noise_except, corpus.noise_except),
        mediator_types=_union(graph.mediator_types, corpus.mediator_types),
        mediator_subject_of=_union(graph.mediator_subject_of, corpus.mediator_subject_of),
    )
    return parse_schema(schema_text(merged), where=SCHEMA_FILE)


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
