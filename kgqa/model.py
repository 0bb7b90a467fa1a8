"""The data classes for entities, relation paths, questions, evidence and answers. All are frozen.

`kgqa.model_json` converts them to JSON and back.

A relation path names no entity except its topic (Tournament on Path, Xiang & Wu 2026, section 3.2). Two walks belong to
the same path if and only if they start at the same topic and follow the same sequence of relations. Two
`RelationPath`s are equal if their topics and steps are equal, so a set of paths is a set of equivalence classes of
walks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from typing import Literal as OneOf

from kgqa.conditions import Condition, Operation
from kgqa.display import html_of
from kgqa.events import Event
from kgqa.terms import RDF_LANG_STRING as RDF_LANG_STRING
from kgqa.terms import XSD_STRING as XSD_STRING
from kgqa.terms import Direction as Direction
from kgqa.terms import Entity as Entity
from kgqa.terms import Literal as Literal
from kgqa.terms import Step as Step
from kgqa.terms import Value as Value

Status = OneOf["answered", "no_answer", "budget_exhausted", "unsupported", "failed"]
Grounding = OneOf["graph", "text", "model", "none"]
PieceKind = OneOf["chunk", "statement", "entity", "community", "hyperedge", "path"]
QueryClass = OneOf["exact", "restricted", "superset", "none"]
WEAK = 0.5
"""The confidence below which an answer is called a weak match: fewer than half of such answers are right."""


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

    def triples_along(self, walk: Sequence[Value]) -> Iterator[tuple[Value, str, Value]]:
        """Yield subject, relation and object of each triple along a walk, which starts with the topic."""
        for step, here, there in zip(self.steps, walk, walk[1:]):
            yield (here, step.relation, there) if step.direction == "out" else (there, step.relation, here)


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
    for each inner position at which a chooser selected entities. `conditions`: what nodes of the walks must fulfil.
    `operation`: what is computed from the end nodes, or which of them are the answers.
    """

    path: RelationPath
    words: str
    approximate: bool = False
    hops: tuple[str, ...] = ()
    leads_to: str = ""
    joins: tuple[Join, ...] = ()
    restricted: tuple[tuple[int, tuple[Entity, ...]], ...] = ()
    conditions: tuple[Condition, ...] = ()
    operation: Operation | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """What limits the walks along the path, as keyword arguments of the methods of `KnowledgeGraph`."""
        return {"joins": self.joins, "restricted": self.restricted, "conditions": self.conditions}

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the candidate asks the graph, without the wording."""
        return self.path, self.joins, self.restricted, self.conditions, self.operation


@dataclass(frozen=True, slots=True)
class Question:
    """A question and, if known, its topic entities.

    `id`: any string; the answer contains the same `id`. `images`: paths of the image files that the question is about.
    """

    text: str
    topics: tuple[Entity, ...] = ()
    id: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Triple:
    """One triple of the graph."""

    subject: Entity
    relation: str
    object: Value


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name. `id`: the short id in the schema. `name`: the label, or the id if there is no label.

    A literal has an empty `id`, and its text is its `name`. `unit`: the unit of a number, if it is known.
    """

    value: Value
    id: str
    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: `text[begin:end]`, in code points.

    `document`, `chunk`: IRIs. The positions count in the text of the chunk; if `chunk` is empty, in that of the
    document. `source`: path or address of the document, for people; may be empty.
    """

    document: str
    chunk: str
    begin: int
    end: int
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a retriever returns: a chunk of text, a statement, an entity, a hyperedge, a community or a path.

    `score`: the retriever's score; scores of different retrievers are not comparable. `spans`: the parts of documents
    that the piece comes from.
    """

    iri: str
    kind: PieceKind
    text: str
    score: float = 0.0
    spans: tuple[Span, ...] = ()
    triples: tuple[Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class PathEvidence:
    """A path that leads to the answers, in words, and some walks along it.

    `walks`: some walks from the topic to an answer, each a tuple of named nodes. `mediators`: positions of mediators in
    each walk; 0 is the topic. `score`: the chooser's score; scores of different questions are not comparable.
    `conditions`, `operation`: those of the query. A computed answer is not on the walks, which lead to some of the
    nodes that it was computed from. `condition_words`, `operation_words`: the same in words, one text a condition.
    `step_words`: the relation of each step in words.
    """

    kind: ClassVar = "path"
    unmarked: ClassVar = True  # JSON without `kind` was written when all evidence was a path
    path: RelationPath
    words: str
    walks: tuple[tuple[Named, ...], ...] = ()
    mediators: tuple[int, ...] = ()
    triples: tuple[Triple, ...] = ()
    score: float | None = None
    approximate: bool = False
    conditions: tuple[Condition, ...] = ()
    operation: Operation | None = None
    condition_words: tuple[str, ...] = ()
    operation_words: str = ""
    step_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementEvidence:
    """A statement extracted from text.

    `iri`: the statement's IRI. `words`: the triple in words. `spans`: where the statement stands. `confidence`: from 0
    to 1, None if unknown. `model`: the model that extracted the statement. `quotes`: the words at each of the spans.
    """

    kind: ClassVar = "statement"
    iri: str
    triple: Triple
    words: str
    spans: tuple[Span, ...] = ()
    confidence: float | None = None
    model: str = ""
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """A node of a hyperedge and its role, an IRI or a word."""

    role: str
    node: Named


@dataclass(frozen=True, slots=True)
class HyperedgeEvidence:
    """A fact with any number of participants, and the segment of text that states it."""

    kind: ClassVar = "hyperedge"
    iri: str
    words: str
    participants: tuple[Participant, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class QuoteEvidence:
    """Words quoted from a text. `verified`: whether they stand at `span` (see `kgqa.quotes`)."""

    kind: ClassVar = "quote"
    span: Span
    words: str
    verified: bool


Evidence = PathEvidence | StatementEvidence | HyperedgeEvidence | QuoteEvidence
"""What an answer rests on. All have `words`, a text for people. In JSON, `kind` distinguishes them."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim of a response and the piece that it cites.

    `piece`: IRI of the piece. `span`: where the quote stands, None if it was not found. `verified`: whether `quote`
    stands at `span`.
    """

    claim: str
    piece: str
    span: Span | None = None
    quote: str = ""
    verified: bool = False


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
class NearPath:
    """A path, in words, that was not accepted as the answer. `score`: None if no score decides."""

    words: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers to a question, with their evidence, query and cost.

    `grounding`: `graph` if every answer is a node at the end of a path in `evidence`, `text` if every answer stands in
    a verified quote. `query_class`: relation of the result of `sparql` to the answers (`exact`, `restricted`,
    `superset` or `none`). `notes`: notes for the reader, for example about an ambiguous topic. `defects`: failed
    internal checks, normally empty. `graph`: None for methods that use a language model without a graph.

    `response`: the answer as a longer text, if the method writes one. `citations`: what the claims of the response
    cite. `evidence_sparql`: a query that returns the statements and chunks in `evidence`. `evidence_class`: `exact` if
    the query returned the same rows when it was run again.

    `accepted`: False if nothing accepted the path as an answer to the question, and it is only the best path found.
    `confidence`: the share of right answers (0 to 1) that was measured among similar answers to test questions; None if
    a language model or chance chose the answer.

    `prefixes`: names of the namespaces in the queries, from the schema and from the files of the graph.

    `nearest`: if there is no answer, the best paths of the search, best first. `hints`: what would help if there is no
    answer or the budget is used up.
    """

    question: Question
    status: Status
    answers: tuple[Named, ...] = ()
    evidence: tuple[Evidence, ...] = field(default=(), metadata={"formerly": "paths"})
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
    response: str = ""
    citations: tuple[Citation, ...] = ()
    evidence_sparql: str = ""
    evidence_class: QueryClass = "none"
    nearest: tuple[NearPath, ...] = ()
    hints: tuple[str, ...] = ()
    accepted: bool = True
    confidence: float | None = None
    prefixes: tuple[tuple[str, str], ...] = ()

    @property
    def weak(self) -> bool:
        """Whether the answer is a weak match: not accepted, or with a confidence below `WEAK`."""
        unsure = self.confidence is not None and self.confidence < WEAK
        return bool(self.answers) and (not self.accepted or unsure)

    @property
    def paths(self) -> tuple[PathEvidence, ...]:
        """The paths in the evidence."""
        return tuple(each for each in self.evidence if isinstance(each, PathEvidence))

    def __str__(self) -> str:
        """Return the names of the answers, or the reason why there are none."""
        return ", ".join(answer.name for answer in self.answers) or f"{self.status}: {self.reason}"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: path, score, notes and query."""
        return html_of(self)
