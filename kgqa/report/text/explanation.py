"""Explains a saved answer in plain words: the steps of its method, and what each claim rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kgqa.report.lenient_json import count_of, object_of, objects_of, text_of
from kgqa.text.words import clean
from kgqa.trace import read_event, step_lines

MAX_CITED = 60
MAX_STEPS = 60


def explanation(answer: Mapping[str, Any]) -> str:
    """Explain an answer object (docs/answer-json.md); "" if it has neither steps nor citations.

    The steps are explained if the object has a trace.
    """
    trace = [read_event(each) for each in objects_of(answer.get("trace"))]
    citations = objects_of(answer.get("citations"))[:MAX_CITED]
    steps = step_lines(trace, most=MAX_STEPS)
    if not steps and not citations:
        return ""
    names = [clean(text_of(each.get("name"))) for each in objects_of(answer.get("answers"))]
    answers = ", ".join(names) or clean(text_of(answer.get("reason"))) or "no answer"
    lines = [f"Question: {clean(text_of(answer.get('question')))}", f"Answer: {answers}"]
    if steps:
        lines += ["Steps:", *(f"  {clean(each)}" for each in steps)]
    if citations:
        verified = sum(each.get("verified") is True for each in citations)
        lines.append(f"Claims, {verified} of {len(citations)} with a quote that stands in the text:")
        lines += [f"  {number}. {' '.join(_cited(each))}" for number, each in enumerate(citations, 1)]
    return "\n".join(lines)


def _cited(citation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the claim, the quote and its place, and whether the quote was found."""
    span = object_of(citation.get("span"))
    if claim := clean(text_of(citation.get("claim"))):
        yield claim
    if quote := clean(text_of(citation.get("quote"))):
        yield f"“{quote}”"
    names = (span.get("source"), span.get("chunk"), span.get("document"), citation.get("piece"))
    if where := next((clean(name) for name in map(text_of, names) if name), ""):
        begin, end = count_of(span.get("begin")), count_of(span.get("end"))
        yield f"[{where}]" if begin is None or end is None else f"[{where}, {begin}–{end}]"
    yield "✓" if citation.get("verified") is True else "(not found in the text)"
