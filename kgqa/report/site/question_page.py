"""Renders the page of a question: masked question, answers, turns, paths, query, tournaments and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.runs.records import Record
from kgqa.graph.query.tokens import shorten_iris
from kgqa.report.agents.section import agents_section
from kgqa.report.answer import EVIDENCE_CLASSES, QUERY_CLASSES, SCORE, UNPROVEN, UNQUOTED
from kgqa.report.drawing import draw_path, relation_name
from kgqa.report.lenient_json import count_of, list_of, number_of, object_of, objects_of, text_of, texts_of
from kgqa.report.pages import render
from kgqa.report.site.bracket import stages_of
from kgqa.report.site.outcomes import (
    OUTCOMES,
    SIGNS,
    STAGES,
    UNSCORED,
    AnswersAndGold,
    answers_and_gold,
    hit_of,
    outcome_of,
    stage_of,
    usage_of,
)
from kgqa.report.text.passages import chunk_of
from kgqa.report.text.piece_texts import NoTexts, PieceTexts
from kgqa.report.text.section import text_section
from kgqa.schema import usable_prefixes
from kgqa.storage.answer_json import json_text
from kgqa.text.words import local_name
from kgqa.trace import (
    ActingEvent,
    Event,
    Kept,
    Leaks,
    Linked,
    Masked,
    MatchPlayed,
    Pool,
    Shortlist,
    TextEvent,
    read_event,
)

MAX_PATHS = 12
MAX_TRIPLES = 60
MAX_PIECES = 60
MAX_SPANS = 5
MAX_EVENTS = 400
LONGEST_EVENT = 600
GROUNDS = {
    "graph": "every answer is an end of the evidence",
    "text": "every answer stands in a verified quote",
    "model": "from the language model's own knowledge; the graph has no evidence for this",
    "none": "nothing",
}
_GROUNDS_OF_TEXT = {**GROUNDS, "model": UNQUOTED}
_GROUNDS_OF_TURNS = {**GROUNDS, "model": UNPROVEN}
_SHOWN_ELSEWHERE = (Pool, Shortlist, MatchPlayed, Kept, Masked, Linked, TextEvent, ActingEvent)
_NO_TEXTS = NoTexts()


@dataclass(frozen=True)
class PageContext:
    """The position of a question's page in the report: its run, its number, and links to other pages.

    `number`: position of the question, from 1 to `total`. `others`: pages of the same question in other runs, as pairs
    of label and link. Links must be paths of files in this report, never text from data.
    """

    run: str
    number: int
    total: int
    index: str
    before: str = ""
    after: str = ""
    others: tuple[tuple[str, str], ...] = ()
    compare: str = ""


def question_page(record: Record, place: PageContext, texts: PieceTexts = _NO_TEXTS) -> Iterator[str]:
    """Render the page of a question, in pieces of HTML. `texts`: the texts of the corpus that was asked."""
    answer = record.answer
    trace = [read_event(each) for each in objects_of(answer.get("trace"))]
    stage, outcome = stage_of(record), outcome_of(record)
    sides = answers_and_gold(record)
    right = {} if stage == UNSCORED else _right(answer, sides)
    agents = agents_section(trace, answer)
    text = text_section(trace, answer, texts, record.support, acting=agents is not None)
    grounds = _GROUNDS_OF_TURNS if agents else _GROUNDS_OF_TEXT if text else GROUNDS
    prefixes = usable_prefixes(answer.get("prefixes"))
    evidence = objects_of(answer.get("evidence"))
    if text is not None:
        evidence = _uncited(evidence, objects_of(answer.get("citations")))
    return render(
        "question",
        "question",
        place=place,
        record=record,
        status=record.status,
        reason=text_of(answer.get("reason")),
        nearest=[
            (text_of(each.get("words")), number_of(each.get("score"))) for each in objects_of(answer.get("nearest"))
        ],
        hints=texts_of(answer.get("hints")),
        confidence=_percent(answer.get("confidence")),
        score_words=SCORE,
        weak=answer.get("weak") is True,
        outcome="unscored" if outcome == UNSCORED else outcome,
        outcome_words=OUTCOMES[outcome],
        sign=SIGNS[outcome],
        stage=stage,
        unscored=UNSCORED,
        stage_words=STAGES[stage],
        hit=hit_of(record),
        scores=[(name, number_of(value)) for name, value in record.scores.items()],
        seen=_seen(trace),
        topics=_topics(trace, answer, record),
        sides=sides,
        stages=stages_of(trace),
        text=text,
        agents=agents,
        paths=[_path(each, right) for each in objects_of(answer.get("paths"))[:MAX_PATHS]],
        paths_more=max(0, len(objects_of(answer.get("paths"))) - MAX_PATHS),
        response=text_of(answer.get("response")),
        citations=[_citation(each, texts) for each in objects_of(answer.get("citations"))[:MAX_PIECES]],
        evidence=[_evidence(each, of_text=text is not None) for each in evidence[:MAX_PIECES]],
        evidence_more=max(0, len(evidence) - MAX_PIECES),
        evidence_query=shorten_iris(text_of(answer.get("evidence_sparql")), prefixes),
        evidence_words=EVIDENCE_CLASSES.get(text_of(answer.get("evidence_class")), ""),
        query=shorten_iris(text_of(answer.get("sparql")), prefixes),
        query_words=QUERY_CLASSES.get(text_of(answer.get("query_class")), ""),
        grounding=grounds.get(text_of(answer.get("grounding")), ""),
        approximate=answer.get("approximate") is True,
        notes=texts_of(answer.get("notes")),
        defects=texts_of(answer.get("defects")),
        costs=_costs(record),
        calls=_calls(usage_of(record)),
        events=[_event(each) for each in trace if not isinstance(each, _SHOWN_ELSEWHERE)][:MAX_EVENTS],
    )


def _percent(share: Any) -> str:
    number = number_of(share)
    return "" if number is None else f"{number:.0%}"


def _seen(trace: Sequence[Event]) -> dict[str, Any]:
    """Return the question with its topics masked, as prompts show it or as the ranking compares it with paths."""
    masked = [event for event in trace if isinstance(event, Masked)]
    if not masked:
        return {}
    return {
        "question": masked[-1].shown or masked[-1].question,
        "by": "shown" if masked[-1].shown else "masked",
        "unmasked": masked[-1].unmasked,
        "leaks": sum(event.leaks for event in trace if isinstance(event, Leaks)),
    }


def _topics(trace: Sequence[Event], answer: Mapping[str, Any], record: Record) -> list[dict[str, str]]:
    """Return the topic entities, each with the words of the question that name it, if any."""
    mentions: dict[str, str] = {}
    for event in trace:
        if isinstance(event, Linked):
            for mention in event.mentions:
                for entity in mention.entities[:1]:
                    mentions.setdefault(entity, mention.text)
    gold = set(record.topics)
    return [
        {
            "name": text_of(topic.get("name")),
            "id": text_of(topic.get("id")),
            "mention": mentions.get(text_of(topic.get("id")), ""),
            "gold": "yes" if {text_of(topic.get("id")), text_of(topic.get("iri"))} & gold else "no" if gold else "",
        }
        for topic in objects_of(answer.get("topics"))
    ]


def _right(answer: Mapping[str, Any], sides: AnswersAndGold) -> dict[str, bool]:
    """Return whether each listed answer is right, by its IRI, id and value."""
    return {
        key: listed.right
        for given, listed in zip(objects_of(answer.get("answers")), sides.given)
        for name in ("iri", "id", "value")
        if (key := text_of(given.get(name)))
    }


def _path(path: Mapping[str, Any], right: Mapping[str, bool]) -> dict[str, Any]:
    names = {
        text_of(node.get("iri")): text_of(node.get("name"))
        for walk in list_of(path.get("walks"))
        for node in objects_of(walk)
        if node.get("iri")
    }
    triples = [texts_of(each) for each in list_of(path.get("triples"))]
    triples = [each for each in triples if len(each) == 3]
    return {
        "words": text_of(path.get("words")),
        "score": number_of(path.get("score")),
        "approximate": path.get("approximate") is True,
        "conditions": [words for each in objects_of(path.get("conditions")) if (words := text_of(each.get("words")))],
        "operation": text_of(object_of(path.get("operation")).get("words")),
        "drawing": draw_path(path, right),
        "triples": [
            [
                (names.get(s) or local_name(s), s),
                (relation_name(r), r),
                (names.get(o) or (local_name(o) if "://" in o else o), o),
            ]
            for s, r, o in triples[:MAX_TRIPLES]
        ],
        "triples_more": max(0, len(triples) - MAX_TRIPLES),
    }


def _evidence(evidence: Mapping[str, Any], *, of_text: bool) -> dict[str, Any]:
    """Return the kind, the words and the places of a statement, a hyperedge or a quote.

    `of_text`: the page is that of a method over text, so documents are named, and the quotes of statements are shown.
    """
    spans = objects_of(evidence.get("spans")) or [object_of(evidence.get("span"))]
    return {
        "kind": text_of(evidence.get("kind")),
        "words": text_of(evidence.get("words")),
        "triple": [(local_name(each), each) for each in texts_of(evidence.get("triple"))],
        "participants": [
            (local_name(text_of(each.get("role"))), text_of(each.get("name")))
            for each in objects_of(evidence.get("participants"))
        ],
        "places": [place for each in spans[:MAX_SPANS] if (place := _place(each, named=of_text))],
        "quotes": list(dict.fromkeys(texts_of(evidence.get("quotes"))))[:MAX_SPANS] if of_text else [],
        "unverified": evidence.get("verified") is False,
    }


def _citation(citation: Mapping[str, Any], texts: PieceTexts) -> dict[str, Any]:
    span, iri = object_of(citation.get("span")), chunk_of(citation)
    known = texts.piece(iri) if iri and not text_of(span.get("source")) else None
    place = _place({**span, "source": known.source} if known else span, named=True)
    return {
        "claim": text_of(citation.get("claim")),
        "quote": text_of(citation.get("quote")),
        "place": place or (known.source if known else "") or text_of(citation.get("piece")),
        "unverified": citation.get("verified") is not True,
    }


def _uncited(evidence: Sequence[Mapping[str, Any]], citations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out the quotes that citations show."""
    cited = {text_of(each.get("quote")) for each in citations}
    return [each for each in evidence if each.get("kind") != "quote" or text_of(each.get("words")) not in cited]


def _place(span: Mapping[str, Any], *, named: bool = False) -> str:
    """Return where a span is; `named`: name the document for people, if its source is known."""
    where, begin, end = text_of(span.get("chunk")) or text_of(span.get("document")), span.get("begin"), span.get("end")
    where = (text_of(span.get("source")) if named else "") or where
    if named and begin is None:
        return where
    return f"{where}, {count_of(begin)}–{count_of(end)}" if where else ""


def _costs(record: Record) -> list[tuple[str, float | None]]:
    usage = usage_of(record)
    names = {
        "hops": "hops",
        "candidates": "candidates",
        "comparisons": "comparisons",
        "queries": "SPARQL queries",
        "calls": "model calls",
        "rounds": "rounds of calls",
        "prompt_tokens": "tokens in prompts",
        "completion_tokens": "tokens in replies",
        "cost": "USD",
    }
    rows = [(label, number_of(usage.get(name))) for name, label in names.items()]
    return [*rows, ("seconds", number_of(record.seconds))]


def _calls(usage: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the language model usage of each stage."""
    columns = (
        "calls", "rounds", "prompt_tokens", "completion_tokens", "cost", "unparsed", "repaired", "reasked", "failed",
    )  # fmt: skip
    return [
        {"stage": text_of(each.get("stage")), "numbers": [number_of(each.get(name)) for name in columns]}
        for each in objects_of(usage.get("stages"))
    ]


def _event(event: Event) -> tuple[str, float | None, str]:
    detail = json_text(event.detail)
    if len(detail) > LONGEST_EVENT:
        detail = detail[: LONGEST_EVENT - 1] + "…"
    return event.kind, number_of(event.at), detail
