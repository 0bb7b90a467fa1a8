"""ToG-3 over a text corpus: from the rounds of a question to its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.events import LocalFact
from kgqa.methods.resources import Resources
from kgqa.methods.text.grounding import grounded
from kgqa.methods.text.pieces import quoted_answer
from kgqa.methods.text.searching import within_budget
from kgqa.methods.tog3.outcome import INTERRUPTED, Outcome, Reply
from kgqa.methods.tog3.published import PublishedRounds
from kgqa.methods.tog3.rounds import Rounds
from kgqa.methods.tog3.subgraph import Subgraph
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import BudgetExhausted, Trace

METHOD = "tog3"


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by ToG-3; arguments and errors as in `top.answer`.

    Topics are ignored. If the budget is spent, the last answer with a verified quote is returned.
    """
    corpus = resources.corpus
    assert isinstance(corpus, Corpus)
    empty = Answer(question, "no_answer", method=METHOD, notes=corpus.index.notes)
    reading = PublishedRounds if resources.settings["tog3.reading"] == "published" else Rounds
    rounds = reading(question.text, resources, trace)
    try:
        with within_budget(trace):
            outcome = rounds.run()
        return _grounded(empty, outcome, rounds.subgraph, resources, trace)
    except BudgetExhausted as error:
        found = empty
        if rounds.supported is not None:
            with trace.grace():
                outcome = Outcome(rounds.supported, notes=(INTERRUPTED,), accepted=False)
                found = _grounded(empty, outcome, rounds.subgraph, resources, trace)
        return replace(found, status="budget_exhausted", reason=error.reason)


def _grounded(empty: Answer, outcome: Outcome, subgraph: Subgraph, resources: Resources, trace: Trace) -> Answer:
    """Build the answer of the rounds, with its evidence and queries."""
    reply, corpus = outcome.reply, resources.corpus
    assert isinstance(corpus, Corpus)
    if reply is None:
        return replace(empty, reason=outcome.reason)
    found = quoted_answer(empty, reply.read, reply.quotes)
    found = replace(found, notes=(*found.notes, *outcome.notes), accepted=outcome.accepted)
    graph = resources.graph.for_question(trace)
    return grounded(found, list(_used(reply, subgraph)), graph, corpus, trace)


def _used(reply: Reply, subgraph: Subgraph) -> Iterator[Piece]:
    """Yield the stored facts that the answer cites, and those all of whose chunks it quotes."""
    quoted = {each.span.chunk for each in reply.quotes.evidence}
    cited = {each.piece for each in reply.quotes.citations if each.verified}
    facts = [*(fact for fact in reply.shown.facts if not isinstance(fact, LocalFact)), *subgraph.facts.values()]
    for fact in {each.iri: each for each in facts}.values():
        chunks = {span.chunk for span in fact.spans}
        if fact.iri in cited or (chunks and chunks <= quoted):
            yield fact
