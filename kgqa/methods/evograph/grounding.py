"""Grounds the answers of a session: in hyperedges, in words of the corpus, or in neither.

Answers that are participants of cited hyperedges get the path to them. Answers that stand in cited segments get the
query for these words of the chunks. Answers that rest on pages of the web, or on edits that the corpus does not
contain, come from the model, and notes name the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.inspection.evidence import facts_in_text
from kgqa.corpus.rdf.vocabulary import TEXT
from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render
from kgqa.llm.replies.cited_answers import CitedAnswer
from kgqa.methods.evograph.citing import CitedPlaces, cited_places
from kgqa.methods.evograph.results import Result, ShownResults
from kgqa.methods.text.grounding import with_path_query
from kgqa.methods.text.pieces import COMPUTED, INFERRED, UNQUOTED, with_quote_query
from kgqa.model import Answer, Entity, Grounding, Literal, Named, QuoteEvidence
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

HOPS = 6
"""Most steps of a path: two for each hyperedge."""
LOOKED_UP = "The answer cites no result; it was looked up in what the session has shown."
ON_WEB = "The answer rests on the web, which is not checked: {}"
ON_EDIT = "The answer rests on an edit that is not part of the corpus, made from: {}"
MISSING = "The query of the answer is missing: {}"
MAX_SOURCES = 5


def grounded_answer(
    empty: Answer,
    cited: Sequence[CitedAnswer],
    shown: ShownResults,
    response: str,
    overlay: Overlay,
    graph: KnowledgeGraph,
    trace: Trace,
) -> Answer:
    """Build the answer of a session from the short answers of the language model.

    Args:
        empty: An answer without results.
        cited: The short answers, at least one.
        shown: What the session has shown.
        response: What the model said about the answer.
        overlay: The edits of the question.
        graph: The graph of the corpus, charged to the question.
        trace: The trace of the question.

    Raises:
        AnswerInQuery: A query contains an answer, which is a bug in kgqa.
    """
    corpus = overlay.corpus
    live = [result.iri for result in shown if result.piece is not None and _is_live(result, overlay)]
    found = [cited_places(each, shown, live, corpus, empty.question.text) for each in cited]
    named = {each.name: each for each in found}
    answers = tuple(Named(Literal(name), "", name) for name in dict.fromkeys(map(_name, named.values())))
    grounding, notes = _grounding(found)
    quotes = dict.fromkeys(QuoteEvidence(q.span, q.words, True) for each in found for q in each.quotes)
    answer = replace(
        empty,
        status="answered",
        answers=answers,
        response=response,
        citations=tuple(dict.fromkeys(citation for each in found for citation in each.citations)),
        evidence=tuple(quotes),
        grounding=grounding,
        notes=(*empty.notes, *notes, *_sources(found, live, overlay)),
    )
    try:
        return _with_queries(answer, found, live, overlay, graph, trace)
    except (StoreError, BudgetExhausted) as error:
        trace.record(GaveUp(error=str(error)))
        return replace(answer, notes=(*answer.notes, MISSING.format(error)))


def _is_live(result: Result, overlay: Overlay) -> bool:
    """Return whether the corpus contains a piece, and the question did not remove it."""
    reader = overlay.corpus.reader
    if result.kind == "chunk":
        return reader.chunk(result.iri) is not None
    return result.iri not in overlay.removed and reader.hyperedge(result.iri) is not None


def _name(each: CitedPlaces) -> str:
    return each.stated.text if each.stated else each.name


def _grounding(found: Sequence[CitedPlaces]) -> tuple[Grounding, tuple[str, ...]]:
    notes = (LOOKED_UP,) if any(each.looked_up and each.stated for each in found) else ()
    left = [each for each in found if each.stated is None]
    if not left:
        return "text", notes
    if all(COMPUTED.fullmatch(each.name) and each.verified for each in left):
        return "text", (*notes, INFERRED)
    return "model", (*notes, UNQUOTED)


def _sources(found: Sequence[CitedPlaces], live: Sequence[str], overlay: Overlay) -> Iterable[str]:
    """Yield notes about the sources of answers that are not in the corpus."""
    results = dict.fromkeys(result for each in found if not each.stated for result in each.results)
    pages = dict.fromkeys(result.iri for result in results if result.kind == "web")
    if pages:
        yield ON_WEB.format(", ".join(list(pages)[:MAX_SOURCES]))
    edited = {result.iri for result in results if result.kind == "hyperedge" and result.iri not in live}
    made = [each for each in overlay.edits if each.added is not None and each.added.iri in edited]
    sources = dict.fromkeys(source.iri for each in made for source in each.sources)
    if made:
        yield ON_EDIT.format(", ".join(list(sources)[:MAX_SOURCES]) or "no source")


def _with_queries(
    answer: Answer,
    found: Sequence[CitedPlaces],
    live: Sequence[str],
    overlay: Overlay,
    graph: KnowledgeGraph,
    trace: Trace,
) -> Answer:
    corpus = overlay.corpus
    pieces = {r.iri: r.piece for each in found for r in each.results if r.piece and r.iri in live}
    triples = [triple for piece in pieces.values() if piece.kind == "hyperedge" for triple in piece.triples]
    if triples and (hyper := corpus.views.get("hyper")):
        answer = with_path_query(answer, triples, graph.view_of(*hyper), trace, hops=HOPS)
        answer = replace(answer, evidence=(*answer.evidence, *facts_in_text(corpus, graph, triples)))
    if answer.grounding == "text" and not answer.sparql:
        answer = _with_words_query(answer, found, graph, corpus.views.get("text", ()))
    return with_quote_query(answer, graph, corpus)


def _with_words_query(
    answer: Answer, found: Sequence[CitedPlaces], graph: KnowledgeGraph, view: Sequence[str]
) -> Answer:
    """Add the query that returns the answers as words of their chunks, and classify it by its result."""
    stated = [each.stated for each in found if each.stated is not None and each.stated.name is not None]
    if not view or len(stated) < len(found):
        return answer  # an answer that was inferred stands nowhere
    places = [
        (Entity(each.span.chunk), each.name[0] + 1, each.name[1] - each.name[0])  # SPARQL counts from 1
        for each in stated
        if each.name is not None
    ]
    text = render("quoted_answers", view=tuple(map(Entity, view)), places=places, text_relation=Entity(TEXT))
    sparql = "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
    returned = graph.run_exported(sparql)
    same = {*returned} == {each.value for each in answer.answers}
    return replace(
        answer,
        sparql=sparql,
        query_class="exact" if same else "none",
        defects=answer.defects
        if same
        else (*answer.defects, "The exported query returned other texts than the answers."),
    )
