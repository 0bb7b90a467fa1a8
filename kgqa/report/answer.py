"""Formats one answer as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import get_args

from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import (
    WEAK,
    Answer,
    Entity,
    Evidence,
    GraphId,
    HyperedgeEvidence,
    Named,
    PathEvidence,
    QueryClass,
    QuoteEvidence,
    Span,
    StatementEvidence,
)
from kgqa.report.path_text import UNICODE, Signs, path_lines
from kgqa.text.hints import Option
from kgqa.text.words import clean, counted, display_name, safe_text
from kgqa.trace import Finished, step_lines

MAX_SHOWN = 30
MAX_SPANS = 3
MAX_FACTS = 6
MAX_QUOTE_CHARS = 200
MAX_NAME_CHARS = 300
_MARGIN = 9
"""Columns before the text of a field."""
STATUS_WORDS = {
    "no_answer": "No answer",
    "budget_exhausted": "Stopped",
    "unsupported": "Not supported",
    "failed": "Failed",
}


def answer_text(
    answer: Answer,
    *,
    iris: bool = False,
    notes: bool = True,
    graph: bool = False,
    short: bool = False,
    width: int = 120,
    signs: Signs = UNICODE,
) -> str:
    """Format an answer as text: the names and ids of the answers, then path, query, cost and notes.

    Args:
        iris: show full IRIs instead of ids.
        short: leave out the steps, the queries and the cost.
        graph: show the graph's location and fingerprint too.
        width: columns that a drawing of a path may take.
        signs: what drawings are made of.
    """
    lines: list[str] = []
    if answer.weak:
        lines.append(weak_text(answer))
    if answer.answers:
        lines += [_shown(item, iris) for item in answer.answers[:MAX_SHOWN]]
        if len(answer.answers) > MAX_SHOWN:
            lines.append(f"... and {len(answer.answers) - MAX_SHOWN:,} more (use --json to see all)")
    if not answer.answers or answer.status != "answered":
        lines.append(f"{STATUS_WORDS.get(answer.status, answer.status)}: {clean(answer.reason)}")
    fields: list[tuple[str, str]] = []
    if answer.response:
        lines += ["", *safe_text(answer.response).split("\n")]
    if answer.confidence is not None and answer.answers:
        fields.append(("score", f"{answer.confidence:.0%}" + ("" if short else f": {SCORE}")))
    near = [clean(each.words) + ("" if each.score is None else f" ({each.score:.3g})") for each in answer.nearest]
    fields += [*_labelled("near", near), *_labelled("try", [clean(hint) for hint in answer.hints])]
    for cited in answer.citations:
        place = f" [{_place(cited.span)}]" if cited.span else ""
        quote = f" “{clean(cited.quote)}”{place}" if cited.quote else f" {clean(cited.piece)}"
        mark = " ✓" if cited.verified else _unverified(cited.verified)
        fields.append(("cites", f"{clean(cited.claim)}:{quote}{mark}"))
    cited_quotes = {(cited.quote, cited.span) for cited in answer.citations}
    facts = [each for each in answer.evidence if isinstance(each, StatementEvidence | HyperedgeEvidence)]
    for evidence in answer.evidence:
        shown = isinstance(evidence, QuoteEvidence) and (evidence.words, evidence.span) in cited_quotes
        if evidence not in facts[MAX_FACTS:] and not shown:
            fields += _evidence_fields(evidence, width - _MARGIN, signs, len(answer.answers))
    if len(facts) > MAX_FACTS:
        fields.append(("", f"... and {counted(len(facts) - MAX_FACTS, 'more fact')} from the text (--json shows all)"))
    fields += _labelled("steps", [] if short else list(map(clean, step_lines(answer.trace))))
    if source := source_text(answer):
        fields.append(("source", source))
    if answer.sparql and not short:
        fields.append(("query", QUERY_CLASSES[answer.query_class]))
        fields += [("", line) for line in _query_lines(answer.sparql, answer, iris)]
    if answer.evidence_sparql and not short:
        fields.append(("query", EVIDENCE_CLASSES[answer.evidence_class]))
        fields += [("", line) for line in _query_lines(answer.evidence_sparql, answer, iris)]
    if answer.status not in ("failed", "unsupported") and not short:
        fields.append(("cost", cost_line(answer)))
    if graph and answer.graph:
        fields.append(("graph", graph_line(answer.graph)))
    if answer.approximate:
        fields.append(("note", "Approximate: the neighbours of a hub were capped, or a query of the search failed."))
    if notes:
        fields += [("note", clean(note)) for note in answer.notes]
    fields += [("DEFECT", clean(defect)) for defect in answer.defects]
    if fields:
        lines.append("")
    lines += [f"  {label:<6} {text}".rstrip() for label, text in fields]
    return "\n".join(lines)


SCORE = (
    "the share of right answers among answers with such a score (measured on kgqa's own test questions on other graphs)"
)
"""A description of a confidence for people."""
UNQUOTED = "the language model; no verified quote contains the answer"
"""Where an answer over text is from if its grounding is `model`."""
UNPROVEN = "the language model; what it found in the graph does not prove the answer"
"""Where an answer of a method that acts in turns is from if its grounding is `model`."""
QUERY_CLASSES = {
    "exact": "returns exactly these answers; this does not show that they answer the question",
    "restricted": "returns exactly these answers, by way of entities that a model chose; this does not show that "
    "they answer the question",
    "superset": "returns these answers and others; a model chose among them",
    "none": "does not return these answers",
}
"""A description of each query class for people."""


def source_text(answer: Answer) -> str:
    """Say where an answer is from, if it is not from the graph."""
    if answer.grounding == "text":
        return "every answer stands in a verified quote"
    if answer.grounding != "model":
        return ""
    if any(isinstance(event, Finished) for event in answer.trace):
        return UNPROVEN
    return UNQUOTED if answer.response else "the language model's own knowledge; the graph has no evidence for this"


def weak_text(answer: Answer) -> str:
    """Say why an answer is a weak match."""
    if answer.response and not answer.paths:
        return "Weak match: the answer was not accepted. The best one found:"
    if answer.confidence is not None and answer.confidence < WEAK:
        return f"Weak match (score {answer.confidence:.0%}): the graph may not contain the answer. The best path found:"
    what = "was accepted as an answer" if answer.confidence is None else f"scores above {Option('accept')}"
    return f"Weak match: no path {what}. The best path found:"


EVIDENCE_CLASSES = dict.fromkeys(get_args(QueryClass), "does not return the evidence") | {
    "exact": "checked: returns the statements and texts that the answer rests on"
}
"""A description of each class of an evidence query for people."""


def _labelled(label: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(chain([label], repeat("")), lines)


def _evidence_fields(evidence: Evidence, width: int, signs: Signs, answers: int) -> list[tuple[str, str]]:
    if isinstance(evidence, PathEvidence):
        drawn = path_lines(evidence, width=width, signs=signs, answers=answers) or [clean(evidence.words)]
        fields = [*_labelled("path", drawn), *_labelled("where", list(map(clean, evidence.condition_words)))]
        return [*fields, *([("then", clean(evidence.operation_words))] if evidence.operation_words else [])]
    if isinstance(evidence, QuoteEvidence):
        quote = f"“{clean(evidence.words)}” [{_place(evidence.span)}]{_unverified(evidence.verified)}"
        return [("quote", quote)]
    quotes = evidence.quotes if isinstance(evidence, StatementEvidence) else ()
    quoted = f": “{_shortened(quotes[0])}”" if quotes else ""
    places = ", ".join(map(_place, evidence.spans[:MAX_SPANS]))
    return [("fact", clean(evidence.words) + quoted + (f" [{places}]" if places else ""))]


def _shortened(text: str) -> str:
    text = clean(text)
    return text if len(text) <= MAX_QUOTE_CHARS else f"{text[: MAX_QUOTE_CHARS - 1]}…"


def _place(span: Span) -> str:
    return f"{clean(span.source or span.chunk or span.document)}, {span.begin}–{span.end}"


def _unverified(verified: bool) -> str:
    return "" if verified else " (not found in the text)"


def _shown(named: Named, iris: bool) -> str:
    if isinstance(named.value, Entity) and len(named.name) > MAX_NAME_CHARS:
        named = replace(named, name=f"{named.name[: MAX_NAME_CHARS - 1]}…")
    if isinstance(named.value, Entity) and (iris or named.id in ("", named.value.iri)):
        return f"{clean(named.name)}  <{clean(named.value.iri)}>"
    return display_name(named)


def _query_lines(sparql: str, answer: Answer, iris: bool) -> list[str]:
    text = sparql if iris else shorten_iris(sparql, dict(answer.prefixes))
    return [f"  {line}" for line in safe_text(text).split("\n")]


def graph_line(graph: GraphId) -> str:
    """Describe a graph in one line: location, size, fingerprint, schema."""
    triples = "triples not counted" if graph.triples is None else counted(graph.triples, "triple")
    parts = [" ".join([graph.place, *(f"<{iri}>" for iri in graph.iris)]), triples]
    parts += [f"fingerprint {graph.fingerprint}"] if graph.fingerprint else []
    return clean(", ".join([*parts, f"schema {graph.schema}"]))


def cost_line(answer: Answer) -> str:
    """Describe the cost of an answer in one line."""
    usage = answer.usage
    depth = f" of up to {counted(usage.hops, 'hop')}" if usage.hops > 1 else f" of {counted(usage.hops, 'hop')}"
    parts = [
        counted(usage.candidates, "candidate") + (depth if usage.hops else ""),
        counted(usage.comparisons, "comparison"),
        counted(usage.queries, "SPARQL query", "SPARQL queries"),
    ]
    if usage.calls:
        parts.append(f"{counted(usage.calls, 'model call')} in {counted(usage.rounds, 'round')}")
        parts.append(f"{usage.prompt_tokens + usage.completion_tokens:,} tokens")
    if usage.cost is not None:
        parts.append(f"{usage.cost:.4f} USD")
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)
