"""ToG-3 over a text corpus: from the rounds of a question to its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import Tog3Settings
from kgqa.methods.text.grounding import grounded
from kgqa.methods.text.pieces import quoted_answer
from kgqa.methods.text.searching import within_budget
from kgqa.methods.tog3.outcome import INTERRUPTED, Outcome
from kgqa.methods.tog3.published import PublishedRounds
from kgqa.methods.tog3.rounds import Rounds
from kgqa.model import Answer, Named, Question, Value
from kgqa.trace import LocalFact
from kgqa.trace.trace import BudgetExhausted, Trace

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
    reading = PublishedRounds if resources.settings.of(Tog3Settings).reading == "published" else Rounds
    rounds = reading(question.text, resources, trace)
    try:
        with within_budget(trace):
            outcome = rounds.run()
        return _grounded(empty, outcome, resources, trace)
    except BudgetExhausted as error:
        found = empty
        if rounds.supported is not None:
            with trace.grace():
                outcome = Outcome(rounds.supported, notes=(INTERRUPTED,), accepted=False)
                found = _grounded(empty, outcome, resources, trace)
        return replace(found, status="budget_exhausted", reason=error.reason)


def _grounded(empty: Answer, outcome: Outcome, resources: Resources, trace: Trace) -> Answer:
    """Build the answer of the rounds, with its evidence and queries."""
    reply, corpus = outcome.reply, resources.corpus
    assert isinstance(corpus, Corpus)
    if reply is None:
        return replace(empty, reason=outcome.reason)
    found = quoted_answer(empty, reply.read, reply.quotes)
    found = replace(found, notes=(*found.notes, *outcome.notes), accepted=outcome.accepted)
    graph = resources.graph.for_question(trace)
    facts = [fact for fact in reply.shown.facts if not isinstance(fact, LocalFact)]
    cited = {each.piece for each in reply.quotes.citations if each.verified}
    quoted = {each.span.chunk for each in reply.quotes.evidence}
    others = [fact for fact in facts if fact.spans and {span.chunk for span in fact.spans} <= quoted]
    used = [fact for fact in facts if fact.iri in cited]
    return grounded(found, used, graph, corpus, trace, others=others)
