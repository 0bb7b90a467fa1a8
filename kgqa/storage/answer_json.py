"""Converts answers to JSON objects and back, and JSON objects to text that does not affect a terminal.

The fields of an answer object are documented in docs/answer-json.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from msgspec import to_builtins

from kgqa.model import (
    Answer,
    Entity,
    Evidence,
    HyperedgeEvidence,
    Named,
    PathEvidence,
    StatementEvidence,
    Triple,
)
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.storage.loading import convert
from kgqa.trace import read_event

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")


def answer_object(answer: Answer, *, trace: bool = False) -> dict[str, Any]:
    """Convert an answer to its documented JSON object. `trace` adds all events."""
    found: dict[str, Any] = {
        "id": answer.question.id,
        "question": answer.question.text,
        "status": answer.status,
        "reason": answer.reason,
        "nearest": [{**to_builtins(each), "score": _finite(each.score)} for each in answer.nearest],
        "hints": list(answer.hints),
        "answers": [named_object(item) for item in answer.answers],
        "topics": [named_object(item) for item in answer.topics],
        "paths": [_evidence_object(each) for each in answer.paths],
        "evidence": [_evidence_object(each) for each in answer.evidence if not isinstance(each, PathEvidence)],
        "evidence_sparql": answer.evidence_sparql,
        "evidence_class": answer.evidence_class,
        "response": answer.response,
        "citations": to_builtins(answer.citations),
        "sparql": answer.sparql,
        "query_class": answer.query_class,
        "prefixes": dict(answer.prefixes),
        "grounding": answer.grounding,
        "approximate": answer.approximate,
        "accepted": answer.accepted and (answer.status == "answered" or bool(answer.answers)),
        "confidence": _finite(answer.confidence),
        "weak": answer.weak,
        "method": answer.method,
        "notes": list(answer.notes),
        "defects": list(answer.defects),
        "graph": to_builtins(answer.graph),
        "usage": to_builtins(answer.usage),
    }
    if trace:
        found["trace"] = [{"kind": event.kind, "at": event.at, **event.detail} for event in answer.trace]
    return found


def _finite(number: float | None) -> float | None:
    """Return the number, or None for NaN and infinity, for which JSON has no notation."""
    return number if number is not None and math.isfinite(number) else None


def named_object(named: Named) -> dict[str, Any]:
    """Return the JSON object of an entity or a literal with its name."""
    if isinstance(named.value, Entity):
        about = {"description": named.description} if named.description else {}
        return {"id": named.id, "name": named.name, "iri": named.value.iri, **about}
    value = named.value
    found = {"id": None, "name": named.name, "value": value.value, "datatype": value.datatype}
    found |= {"language": value.language} if value.language else {}
    return found | ({"unit": named.unit} if named.unit else {})


def _evidence_object(evidence: Evidence) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": evidence.kind, "words": evidence.words}
    if isinstance(evidence, PathEvidence):
        return {
            **found,
            "topic": evidence.path.topic.iri,
            "steps": to_builtins(evidence.path.steps),
            "step_words": list(evidence.step_words),
            "conditions": [
                {**_condition_object(each), "words": words}
                for each, words in zip_longest(evidence.conditions, evidence.condition_words, fillvalue="")
                if isinstance(each, Condition)
            ],
            "operation": _operation_object(evidence.operation) | {"words": evidence.operation_words}
            if evidence.operation
            else None,
            "score": _finite(evidence.score),
            "approximate": evidence.approximate,
            "mediators": list(evidence.mediators),
            "walks": [[named_object(node) for node in walk] for walk in evidence.walks],
            "triples": [_triple_object(each) for each in evidence.triples],
        }
    more: dict[str, Any]
    if isinstance(evidence, StatementEvidence):
        more = {
            "triple": _triple_object(evidence.triple),
            "confidence": _finite(evidence.confidence),
            "model": evidence.model,
            "quotes": list(evidence.quotes),
        }
    elif isinstance(evidence, HyperedgeEvidence):
        more = {"participants": [{"role": each.role, **named_object(each.node)} for each in evidence.participants]}
    else:
        return {**found, "span": to_builtins(evidence.span), "verified": evidence.verified}
    return {**found, "iri": evidence.iri, **more, "spans": to_builtins(evidence.spans)}


def _condition_object(condition: Condition) -> dict[str, Any]:
    found = {"at": condition.at, "steps": to_builtins(condition.steps), "negated": condition.negated}
    test = condition.test
    if isinstance(test, Comparison):
        return {**found, "operator": test.operator, "value": test.value.value, "datatype": test.value.datatype}
    return {**found, "entity": test.iri} if test else found


def _operation_object(operation: Operation) -> dict[str, Any]:
    return {**to_builtins(operation), "topics": [topic.iri for topic in operation.topics]}


def _triple_object(triple: Triple) -> list[str]:
    object_ = triple.object
    return [triple.subject.iri, triple.relation, object_.iri if isinstance(object_, Entity) else object_.value]


def answer_data(answer: Answer) -> dict[str, Any]:
    """Convert an answer to JSON data from which `answer_from` restores an equal one, with its trace."""
    trace = [{"kind": event.kind, "at": event.at, **event.detail} for event in answer.trace]
    return {**to_builtins(replace(answer, trace=())), "trace": trace}


def answer_from(data: Mapping[str, Any]) -> Answer:
    """Restore an answer from the output of `answer_data`. Raises ValueError if it does not fit."""
    answer: Answer = convert({**data, "trace": ()}, Answer)
    return replace(answer, trace=tuple(read_event(event) for event in data.get("trace", ())))


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Convert JSON data to text; letters of all scripts stay readable, and control characters are escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
