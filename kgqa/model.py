"""The data classes for entities, relation paths, questions and answers. All are frozen; `to_json` converts them.

A relation path names no entity except its topic (Tournament on Path, Xiang & Wu 2026, section 3.2). Two walks belong to
the same path if and only if they start at the same topic and follow the same sequence of relations. Two
`RelationPath`s are equal if their topics and steps are equal, so a set of paths is a set of equivalence classes of
walks.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from html import escape
from typing import Any, TypeVar, Union
from typing import Literal as OneOf

from kgqa.event_json import read_event
from kgqa.events import Event

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

Direction = OneOf["out", "in"]
Status = OneOf["answered", "no_answer", "budget_exhausted", "unsupported", "failed"]
Grounding = OneOf["graph", "model", "none"]
QueryClass = OneOf["exact", "restricted", "superset", "none"]


@dataclass(frozen=True, slots=True)
class Entity:
    """A node named by an IRI."""

    iri: str

    def __hash__(self) -> int:
        return hash(self.iri)  # called thousands of times per question; a dataclass's default hash takes twice as long


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: a string with a datatype IRI or a language tag; if there is a tag, the datatype is rdf:langString."""

    value: str
    datatype: str = XSD_STRING
    language: str = ""

    def __post_init__(self) -> None:
        if self.language and self.datatype == XSD_STRING:
            object.__setattr__(self, "datatype", RDF_LANG_STRING)
        if self.language and self.datatype != RDF_LANG_STRING:
            raise ValueError("a literal has a language or a datatype, not both")


Value = Union[Entity, Literal]  # noqa: UP007  `_build` compares it to type hints


@dataclass(frozen=True, slots=True)
class Step:
    """A relation and its direction in a path: `out` from subject to object, `in` from object to subject."""

    relation: str
    direction: Direction = "out"

    def reversed(self) -> Step:
        return Step(self.relation, "in" if self.direction == "out" else "out")


@dataclass(frozen=True, slots=True)
class RelationPath:
    """A topic entity and a sequence of steps; these determine whether paths are equal (Tournament on Path, 3.2)."""

    topic: Entity
    steps: tuple[Step, ...] = ()

    def __hash__(self) -> int:
        return hash((self.topic.iri, *[step.relation for step in self.steps]))

    def __len__(self) -> int:
        return len(self.steps)

    def then(self, *steps: Step) -> RelationPath:
        return RelationPath(self.topic, self.steps + steps)


@dataclass(frozen=True, slots=True)
class Join:
    """A second path that must meet a first path.

    `at`: position in the walks of the first path where both paths meet. If `at` is the length of the first path, the
    paths meet at the answer; otherwise they meet at an inner node, such as a mediator.
    """

    at: int
    path: RelationPath


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path and its wording for ranking.

    `hops`: the words of each logical hop; the two edges through a mediator are one logical hop. `leads_to`: the type of
    the path's end nodes in words, if known. `approximate`: whether the path was found from a limited number of nodes.
    `joins`: paths from other topics that the walks of this path must meet. `restricted`: one pair (position, entities)
    for each inner position at which a chooser selected entities.
    """

    path: RelationPath
    words: str
    approximate: bool = False
    hops: tuple[str, ...] = ()
    leads_to: str = ""
    joins: tuple[Join, ...] = ()
    restricted: tuple[tuple[int, tuple[Entity, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question and, if known, its topic entities. `id` is any string; the answer contains the same `id`."""

    text: str
    topics: tuple[Entity, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Triple:
    """One triple of the graph."""

    subject: Entity
    relation: str
    object: Value


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name. `id`: the short id in the schema. `name`: the label, or the id if there is no label.

    A literal has an empty `id`, and its text is its `name`.
    """

    value: Value
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A path that leads to the answers, in words, and some walks along it.

    `walks`: some walks from the topic to an answer, each a tuple of named nodes. `mediators`: positions of mediators in
    each walk; 0 is the topic. `score`: the chooser's score; scores of different questions are not comparable.
    """

    path: RelationPath
    words: str
    walks: tuple[tuple[Named, ...], ...] = ()
    mediators: tuple[int, ...] = ()
    triples: tuple[Triple, ...] = ()
    score: float | None = None
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class StageUsage:
    """The language model usage of one stage of a question.

    `rounds`: number of batches sent one after the other. `cost`: USD, None if a price is unknown. `unparsed`: number
    of unusable replies. `repaired`: number of repaired replies. `reasked`: number of repeated requests. `failed`:
    number of prompts without a usable completion.
    """

    stage: str
    calls: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    unparsed: int = 0
    repaired: int = 0
    reasked: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a question.

    `seconds`: wall time. `cost`: USD, None if nothing was paid or a price is unknown. All other fields are counts.
    `calls`, `prompt_tokens` and `completion_tokens` count language model calls, including recorded replies.
    """

    hops: int = 0
    candidates: int = 0
    comparisons: int = 0
    queries: int = 0
    seconds: float = 0.0
    calls: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    stages: tuple[StageUsage, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphId:
    """The address, fingerprint and schema that identify the graph of a question.

    `place`: folder or URL, without a password. `iris`: the named graphs used; empty for the default graph.
    `fingerprint`: a string that changes with the triples; "" if the server could not compute it in time. `triples`:
    number of triples; None if the server could not count them. `schema`: name of the schema.
    """

    place: str
    iris: tuple[str, ...] = ()
    fingerprint: str = ""
    triples: int | None = None
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers to a question, with their evidence, query and cost.

    `grounding`: `graph` if every answer is a node at the end of a path in `paths`. `query_class`: relation of the
    result of `sparql` to the answers (`exact`, `restricted`, `superset` or `none`). `notes`: notes for the reader, for
    example about an ambiguous topic. `defects`: failed internal checks, normally empty. `graph`: None for methods that
    use a language model without a graph.
    """

    question: Question
    status: Status
    answers: tuple[Named, ...] = ()
    paths: tuple[Evidence, ...] = ()
    sparql: str = ""
    query_class: QueryClass = "none"
    grounding: Grounding = "none"
    method: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    topics: tuple[Named, ...] = ()
    usage: Usage = Usage()
    trace: tuple[Event, ...] = ()
    approximate: bool = False
    graph: GraphId | None = None

    def __str__(self) -> str:
        """Return the names of the answers, or the reason why there are none."""
        return ", ".join(answer.name for answer in self.answers) or f"{self.status}: {self.reason}"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks. Everything from the graph is escaped."""
        rows = "".join(f"<li><b>{escape(a.name)}</b> <code>{escape(a.id)}</code></li>" for a in self.answers)
        paths = "".join(f"<li>{escape(evidence.words)}</li>" for evidence in self.paths)
        parts = [f"<p>{escape(self.question.text)}</p>"]
        parts.append(f"<ul>{rows}</ul>" if rows else f"<p><i>{escape(self.status)}: {escape(self.reason)}</i></p>")
        if paths:
            parts.append(f"<p>via</p><ul>{paths}</ul>")
        if self.sparql:
            parts.append(f"<details><summary>SPARQL</summary><pre>{escape(self.sparql)}</pre></details>")
        return f'<div class="kgqa-answer">{"".join(parts)}</div>'


T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Convert a model object to plain JSON data. `from_json` restores an equal object."""
    if isinstance(value, Event):
        return {"kind": value.kind, "at": value.at, "detail": to_json(value.detail)}
    if is_dataclass(value) and not isinstance(value, type):
        data = {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
        if isinstance(value, (Entity, Literal)):  # distinguishes the members of the union `Value`
            data["kind"] = "entity" if isinstance(value, Entity) else "literal"
        return data
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Build a `kind` from the output of `to_json`.

    Raises:
        ValueError: the data does not have the shape of `kind`.
    """
    try:
        found: T = _build(kind, data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the JSON of {getattr(kind, '__name__', kind)}: {error}") from error
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if kind == Value:
        return _build({"entity": Entity, "literal": Literal}[data["kind"]], data)
    if isinstance(kind, type) and issubclass(kind, Event):
        return read_event({**data["detail"], "kind": data["kind"], "at": data["at"]})
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        return _build(next(a for a in typing.get_args(kind) if a is not type(None)), data)
    if origin is tuple:
        if not isinstance(data, (list, tuple)):
            raise TypeError(f"{data!r} is not a list")
        item = typing.get_args(kind)[0]
        return tuple(_build(item, each) for each in data)
    if origin is OneOf:
        if data not in typing.get_args(kind):
            raise TypeError(f"{data!r} is not one of {typing.get_args(kind)}")
        return data
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(data, dict):
            raise TypeError(f"{data!r} is not an object")
        hints = _hints(kind)
        return kind(**{name: _build(hints[name], data[name]) for name in hints if name in data})
    kind = origin or kind
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and (not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool)):
        raise TypeError(f"{data!r} is not {kind.__name__}")
    return data
