"""One answer for a program (a JSON object) and for a person (text). The object's schema is in docs/answer-json.md."""

from __future__ import annotations

import json
import re
from typing import Any

from kgqa.model import Answer, Entity, Evidence, GraphId, Named, to_json
from kgqa.words import clean, display_name, safe_text

MAX_SHOWN = 30
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
_STATUS_WORDS = {
    "no_answer": "No answer",
    "budget_exhausted": "Stopped",
    "unsupported": "Not supported",
    "failed": "Failed",
}


def answer_object(answer: Answer, *, trace: bool = False) -> dict[str, Any]:
    """The documented JSON object of an answer; `trace` adds every decision."""
    found: dict[str, Any] = {
        "id": answer.question.id,
        "question": answer.question.text,
        "status": answer.status,
        "reason": answer.reason,
        "answers": [_named_object(item) for item in answer.answers],
        "topics": [_named_object(item) for item in answer.topics],
        "paths": [_path_object(evidence) for evidence in answer.paths],
        "sparql": answer.sparql,
        "query_class": answer.query_class,
        "grounding": answer.grounding,
        "approximate": answer.approximate,
        "method": answer.method,
        "notes": list(answer.notes),
        "defects": list(answer.defects),
        "graph": to_json(answer.graph),
        "usage": to_json(answer.usage),
    }
    if trace:
        found["trace"] = [{"kind": event.kind, "at": event.at, **event.detail} for event in answer.trace]
    return found


def _named_object(named: Named) -> dict[str, Any]:
    if isinstance(named.value, Entity):
        return {"id": named.id, "name": named.name, "iri": named.value.iri}
    value = named.value
    found = {"id": None, "name": named.name, "value": value.value, "datatype": value.datatype}
    return {**found, "language": value.language} if value.language else found


def _path_object(evidence: Evidence) -> dict[str, Any]:
    return {
        "words": evidence.words,
        "topic": evidence.path.topic.iri,
        "steps": [{"relation": step.relation, "direction": step.direction} for step in evidence.path.steps],
        "score": evidence.score,
        "approximate": evidence.approximate,
        "mediators": list(evidence.mediators),
        "walks": [[_named_object(node) for node in walk] for walk in evidence.walks],
        "triples": [
            [t.subject.iri, t.relation, t.object.iri if isinstance(t.object, Entity) else t.object.value]
            for t in evidence.triples
        ],
    }


def json_text(data: Any, *, indent: int | None = None) -> str:
    """JSON that is safe to print: readable in any language, but nothing in it that a terminal obeys."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def answer_text(answer: Answer, *, iris: bool = False, notes: bool = True, graph: bool = False) -> str:
    """An answer for a person: names first, ids beside them, full IRIs only if asked for; `graph`: which graph it is of."""
    lines: list[str] = []
    if answer.answers:
        for item in answer.answers[:MAX_SHOWN]:
            lines.append(_shown(item, iris))
        if len(answer.answers) > MAX_SHOWN:
            lines.append(f"... and {len(answer.answers) - MAX_SHOWN:,} more (--json gives all)")
    if not answer.answers or answer.status != "answered":
        lines.append(f"{_STATUS_WORDS.get(answer.status, answer.status)}: {clean(answer.reason)}")
    fields: list[tuple[str, str]] = []
    for evidence in answer.paths:
        fields.append(("path", clean(evidence.words)))
        shown = _walk_lines(evidence)
        fields += [("walk" if index == 0 else "", line) for index, line in enumerate(shown)]
    if answer.grounding == "model":
        fields.append(("source", "the language model's own knowledge: nothing in the graph stands for this"))
    if answer.sparql:
        fields.append(("query", _CLASS_WORDS[answer.query_class]))
        fields += [("", line) for line in _query_lines(answer.sparql, iris)]
    if answer.status not in ("failed", "unsupported"):
        fields.append(("cost", cost_line(answer)))
    if graph and answer.graph:
        fields.append(("graph", graph_line(answer.graph)))
    if answer.approximate:
        fields.append(("note", "Approximate: the neighbourhood of a hub was capped while looking for the path."))
    if notes:
        fields += [("note", clean(note)) for note in answer.notes]
    fields += [("DEFECT", clean(defect)) for defect in answer.defects]
    if fields:
        lines.append("")
    lines += [f"  {label:<6} {text}".rstrip() for label, text in fields]
    return "\n".join(lines)


_CLASS_WORDS = {
    "exact": "returns exactly these answers (checked)",
    "restricted": "returns exactly these answers; a model chose entities on the way (checked)",
    "superset": "returns these answers and others; a model chose among them",
    "none": "does not return these answers",
}


def _shown(named: Named, iris: bool) -> str:
    if iris and isinstance(named.value, Entity):
        return f"{clean(named.name)}  <{clean(named.value.iri)}>"
    return display_name(named)


def _walk_lines(evidence: Evidence, most: int = 3) -> list[str]:
    """The first walks, mediators left out; an inner node that tells nothing is a mediator's business."""
    lines: dict[str, None] = {}
    for walk in evidence.walks:
        names = [clean(node.name) for place, node in enumerate(walk) if place not in evidence.mediators]
        lines[" → ".join(names)] = None
    shown = list(lines)[:most]
    return shown + ([f"... and {len(lines) - most} more"] if len(lines) > most else [])


def _query_lines(sparql: str, iris: bool) -> list[str]:
    text = sparql if iris else shorten_query(sparql)
    return [f"  {line}" for line in safe_text(text).split("\n")]


def shorten_query(sparql: str) -> str:
    """The same query with a PREFIX for every namespace it uses, for people and for engines that take dotted
    local names (the embedded store expands them itself)."""
    from kgqa.graph.sparql_text import shorten_iris

    return shorten_iris(sparql)


def graph_line(graph: GraphId) -> str:
    """A graph for a person, in one line: where it is, how large, its fingerprint, how it is read."""
    triples = "triples not counted" if graph.triples is None else _counted(graph.triples, "triple")
    parts = [" ".join([graph.place, *(f"<{iri}>" for iri in graph.iris)]), triples]
    parts += [f"fingerprint {graph.fingerprint}"] if graph.fingerprint else []
    return clean(", ".join([*parts, f"schema {graph.schema}"]))


def cost_line(answer: Answer) -> str:
    usage = answer.usage
    parts = [
        _counted(usage.hops, "hop"),
        _counted(usage.candidates, "candidate"),
        _counted(usage.comparisons, "comparison"),
        _counted(usage.queries, "SPARQL query", "SPARQL queries"),
    ]
    if usage.calls:
        parts.append(f"{_counted(usage.calls, 'model call')} in {_counted(usage.rounds, 'round')}")
        parts.append(f"{usage.prompt_tokens + usage.completion_tokens:,} tokens")
    if usage.cost is not None:
        parts.append(f"{usage.cost:.4f} USD")
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
