"""Where the facts of a walk stand in the documents of a corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.items import HYPEREDGE
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.snapshot import statement_iri
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render
from kgqa.model import (
    Entity,
    HyperedgeEvidence,
    Literal,
    Named,
    Participant,
    Span,
    StatementEvidence,
    Triple,
    Value,
)
from kgqa.text.words import short_words

MAX_FACTS = 50
"""Most facts that are looked up; servers are slow with long lists."""
MAX_PLACES = 5
"""Most places of one fact."""
SECONDS = 5.0

FactEvidence = StatementEvidence | HyperedgeEvidence


def facts_in_text(corpus: Corpus, graph: KnowledgeGraph, triples: Sequence[Triple]) -> tuple[FactEvidence, ...]:
    """Return the facts among triples that were read from documents, with the places and the words there.

    Facts of a knowledge graph beside the corpus are left out.

    Args:
        corpus: The corpus.
        graph: Its graph; of any view.
        triples: Triples of the graph; those of a hyperedge are one fact.

    Raises:
        StoreError: The graph failed.
    """
    facts = _facts(triples)
    if not facts:
        return ()
    places = _places(corpus, graph, list(facts))
    found = (_evidence(corpus, graph, iri, group, places[iri]) for iri, group in facts.items() if places[iri])
    return tuple(found)


def facts_in_spans(corpus: Corpus, graph: KnowledgeGraph, spans: Iterable[Span]) -> tuple[Triple, ...]:
    """Return the facts that were taken from words which overlap with parts of chunks, in a fixed order.

    Args:
        corpus: The corpus.
        graph: Its graph; of any view.
        spans: Parts of chunks, at most `MAX_FACTS` of them.

    Raises:
        StoreError: The graph failed.
    """
    wanted: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in list(dict.fromkeys(spans))[:MAX_FACTS]:
        record = corpus.chunk(span.chunk)
        if record is not None:
            wanted[span.chunk].append((record.begin + span.begin, record.begin + span.end))
    if not wanted:
        return ()
    query = render(
        "facts_in_chunks",
        view=(Entity(corpus.folder.graphs["statements"]),),
        chunks=[Entity(iri) for iri in wanted],
        in_chunk=Entity(v.IN_CHUNK),
        vocabulary=v.STATEMENT_VOCABULARY,
    )
    found: dict[Triple, None] = {}
    for row in sorted(graph.store.select(query, timeout=SECONDS), key=repr):
        match row:
            case (
                Entity() as chunk,
                Entity() as subject,
                Entity() as relation,
                value,
                Literal() as begin,
                Literal() as end,
            ):
                places = wanted[chunk.iri]
                if value and any(int(begin.value) < stop and start < int(end.value) for start, stop in places):
                    found[Triple(subject, relation.iri, value)] = None
    return tuple(found)


def _facts(triples: Iterable[Triple]) -> dict[str, list[Triple]]:
    """Group triples by the statement or hyperedge that they belong to."""
    found: dict[str, list[Triple]] = {}
    for triple in triples:
        if triple.subject.iri.startswith(HYPEREDGE):
            iri = triple.subject.iri
        else:
            iri = statement_iri(triple.subject.iri, triple.relation, triple.object)
        if iri in found or len(found) < MAX_FACTS:
            found.setdefault(iri, []).append(triple)
    return found


_Row = tuple[Value | None, ...]


def _places(corpus: Corpus, graph: KnowledgeGraph, facts: Sequence[str]) -> dict[str, list[_Row]]:
    graphs = corpus.folder.graphs
    query = render(
        "places",
        view=(Entity(graphs["statements"]), Entity(graphs["hyper"])),
        pieces=[Entity(iri) for iri in facts],
        vocabulary=v.STATEMENT_VOCABULARY,
        confidence=Entity(v.CONFIDENCE),
        model=Entity(v.MODEL),
        segment=Entity(v.SEGMENT),
    )
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in sorted(graph.store.select(query, timeout=SECONDS), key=repr):
        if isinstance(row[0], Entity):
            found[row[0].iri].append(row[1:])
    return found


def _evidence(
    corpus: Corpus, graph: KnowledgeGraph, iri: str, triples: Sequence[Triple], rows: Sequence[_Row]
) -> FactEvidence:
    places = list(dict(_spans(corpus, rows)).items())[:MAX_PLACES]
    spans, quotes = tuple(span for span, _ in places), tuple(quote for _, quote in places)
    if iri.startswith(HYPEREDGE):
        segment = next((row[5].value for row in rows if isinstance(row[5], Literal)), "")
        nodes = graph.named(triple.object for triple in triples)
        return HyperedgeEvidence(iri, segment, tuple(map(_participant, [graph] * len(triples), triples, nodes)), spans)
    (triple,) = triples[:1]
    subject, object_ = graph.named((triple.subject, triple.object))
    words = f"{subject.name} {short_words(triple.relation, graph.schema, graph.tables.relation_labels)} {object_.name}"
    confidence = [float(row[3].value) for row in rows if isinstance(row[3], Literal)]
    models = sorted({row[4].value for row in rows if isinstance(row[4], Literal)})
    return StatementEvidence(iri, triple, words, spans, max(confidence, default=None), ", ".join(models), quotes)


def _participant(graph: KnowledgeGraph, triple: Triple, node: Named) -> Participant:
    return Participant(short_words(triple.relation, graph.schema, graph.tables.relation_labels), node)


def _spans(corpus: Corpus, rows: Sequence[_Row]) -> Iterator[tuple[Span, str]]:
    """Yield the places of rows, with the words there."""
    for document, begin, end, *_ in rows:
        if isinstance(document, Entity) and isinstance(begin, Literal) and isinstance(end, Literal):
            record, text = corpus.reader.document(document.iri), corpus.reader.text(document.iri)
            if record is None or text is None:
                continue
            first, last = int(begin.value), int(end.value)
            yield Span(document.iri, "", first, last, record.source), text[first:last]
