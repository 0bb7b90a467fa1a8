"""Questions, and their answers with evidence, query and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.model.evidence import Citation, Evidence, Named, PathEvidence
from kgqa.model.terms import Entity
from kgqa.storage.loading import Amount, Count
from kgqa.text.display import html_of
from kgqa.trace.event import Event

Status = OneOf["answered", "no_answer", "budget_exhausted", "unsupported", "failed"]
Grounding = OneOf["graph", "text", "model", "none"]
QueryClass = OneOf["exact", "restricted", "superset", "none"]
WEAK = 0.6
"""The confidence below which an answer is called a weak match: of the answers above it, about nine of ten are right."""


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
class StageUsage:
    """The language model usage of one stage of a question.

    `rounds`: number of batches sent one after the other. `cost`: USD, None if a price is unknown. `unparsed`: number
    of unusable replies. `repaired`: number of repaired replies. `reasked`: number of repeated requests. `failed`:
    number of prompts without a usable completion.
    """

    stage: str
    calls: Count = 0
    rounds: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Amount | None = None
    unparsed: Count = 0
    repaired: Count = 0
    reasked: Count = 0
    failed: Count = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a question.

    `seconds`: wall time. `cost`: USD, None if nothing was paid or a price is unknown. All other fields are counts.
    `calls`, `prompt_tokens` and `completion_tokens` count language model calls, including recorded replies.
    """

    hops: Count = 0
    candidates: Count = 0
    comparisons: Count = 0
    queries: Count = 0
    seconds: Amount = 0.0
    calls: Count = 0
    rounds: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Amount | None = None
    stages: tuple[StageUsage, ...] = ()

    @property
    def no_usable_reply(self) -> bool:
        """Whether the language model was called and none of its replies could be used."""
        asked = sum(each.calls - each.reasked for each in self.stages)
        return asked > 0 and sum(each.unparsed for each in self.stages) >= asked


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

    `answers`: of more than 1,000 entities, only the first 1,000 have the names of the graph, the others those of their
    IRIs; `path_answers.with_all_names` looks up all. `grounding`: `graph` if every answer is a node at the end of a
    path in `evidence`, `text` if every answer stands in a verified quote. `query_class`: relation of the result
    of `sparql` to the answers (`exact`, `restricted`, `superset` or `none`). `notes`: notes for the reader, for example
    about an ambiguous topic. `defects`: failed internal checks, normally empty. `graph`: None for methods that use a
    language model without a graph.

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
    evidence: tuple[Evidence, ...] = ()
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
