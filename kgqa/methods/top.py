"""Tournament on Path (Xiang & Wu 2026), the steps of section 4.2 with an offline chooser.

Path-only exploration, so the exported query is always exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.explore.beam import BeamSettings, explore, unnamed_hops
from kgqa.explore.masking import drop_mentions
from kgqa.graph.export import query_class, refuse_answers
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.evidence import gather_evidence
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Candidate, Named, Question
from kgqa.rank.chooser import Chooser, OfflineChooser
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournament import chunked
from kgqa.trace import Trace

METHOD = "top"


def answer(
    question: Question, *, resources: Resources, trace: Trace, topics: Sequence[Named], mentions: Sequence[str] = ()
) -> Answer:
    """Answer a question whose topics are known.

    Args:
        topics: the topic entities with their names.
        mentions: other texts in the question that stand for them, such as aliases.

    Raises:
        BudgetExhausted: the trace's budget is spent. StoreError: the graph failed.
    """
    settings = resources.settings
    graph = resources.graph.for_question(trace)
    chooser: Chooser = OfflineChooser(resources.encoder)
    asked = drop_mentions(question.text, [*mentions, *(topic.name for topic in topics)])
    trace.event("masked", question=asked)

    def cut(pool: Sequence[Candidate]) -> list[Candidate]:
        return prefilter(
            asked,
            pool,
            keep=settings["rank.prefilter"],
            encoder=resources.encoder,
            lexical_weight=settings["rank.lexical_weight"],
        )

    def compare(pool: Sequence[Candidate]) -> list[Candidate]:
        return chunked(
            asked,
            pool,
            chooser,
            k=settings["explore.beam"],
            chunk_size=settings["rank.chunk"],
            note=compared,
        )

    def compared(kind: str, **detail) -> None:
        trace.count("comparisons")
        trace.event(kind, **detail)

    beam = BeamSettings(
        settings["explore.depth"], settings["explore.beam"], settings["explore.mediator_hop"], settings["rank.wording"]
    )
    kept = explore(graph, [t.value for t in topics], beam, prefilter=cut, tournament=compare, trace=trace)
    ranked = _by_score_and_depth(asked, kept, chooser, graph, settings["rank.depth_penalty"], trace)
    notes = (f"Ranked by {chooser.name}: no language model configured.",)
    late: StoreError | None = None
    for candidate, score in ranked:
        try:
            found = _read_off(graph, question, candidate, score, topics, notes, trace)
        except (StoreTimeout, PartialResult) as error:
            late = error
            trace.event("gave_up", path=candidate.words, error=str(error))
            notes += (f"A better path was passed over ({candidate.words}), its answers could not be read: {error}",)
            continue
        if found is not None:
            return found
    if late:
        raise late
    reason = "no relation path leads on from the topic" if not kept else "no path that was kept has an end"
    return Answer(question, "no_answer", method=METHOD, reason=reason, notes=notes, topics=tuple(topics))


def _by_score_and_depth(
    asked: str, kept: Sequence[Candidate], chooser: Chooser, graph: KnowledgeGraph, penalty: float, trace: Trace
) -> list[tuple[Candidate, float]]:
    """Paths of all hops against each other: the similarity less a penalty for each further hop that the
    question does not name. Without a penalty the longest path would nearly always win: more words match more."""
    scores = chooser.score(asked, kept)
    ranked = [
        (candidate, float(score) - penalty * unnamed_hops(graph, candidate.path, asked))
        for candidate, score in zip(kept, scores)
    ]
    ranked.sort(key=lambda pair: -pair[1])
    trace.event("ranked", paths=[{"path": c.words, "score": round(s, 4)} for c, s in ranked])
    return ranked


def _read_off(
    graph: KnowledgeGraph,
    question: Question,
    candidate: Candidate,
    score: float,
    topics: Sequence[Named],
    notes: tuple[str, ...],
    trace: Trace,
) -> Answer | None:
    """The ends of a path as an answer, read from the exported query; None where the path has no ends."""
    sparql = graph.answer_query(candidate.path)
    values = tuple(dict.fromkeys(graph.run_exported(sparql)))
    trace.event("read", path=candidate.words, answers=len(values))
    if not values:
        return None
    refuse_answers(sparql, values, [topic.value for topic in topics])
    again = graph.run_exported(sparql)
    worth = query_class(values, again, restricted=False)
    defects = () if worth == "exact" else ("The exported query gave something else when it was run again.",)
    trace.event("checked", query_class=worth or "none")
    named = sorted(graph.named(values), key=lambda item: (item.name.casefold(), item.id))
    return Answer(
        question,
        "answered",
        answers=tuple(named),
        paths=(gather_evidence(graph, candidate, score, values, trace),),
        sparql=sparql,
        query_class=worth or "none",
        grounding="graph",
        method=METHOD,
        notes=notes,
        defects=defects,
        topics=tuple(topics),
        approximate=candidate.approximate,
    )
