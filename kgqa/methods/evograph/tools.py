"""The tools of a session: they search the graph and the web, and propose edits. They need no language model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.trust import CORPUS, trust_of_address
from kgqa.errors import KgqaError
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.editing import Edits
from kgqa.methods.evograph.results import Observation, Result, Results, without_marks
from kgqa.methods.evograph.segments import Segments
from kgqa.methods.evograph.web import WebSearch
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Piece
from kgqa.text.words import clean
from kgqa.trace import Called, Retrieved
from kgqa.trace.trace import Trace

SEARCH_TOKENS = 2_000
"""About how many tokens the segments of one search have together; a long chunk is shown whole."""
IMAGE_QUERY = "<img>"
"""The query that stands for the image of the question."""
EDITS = ("insert", "update", "delete")
NOTHING = "Nothing was found."
MAX_NAME_CHARS, MAX_NAMES = 200, 20
_QUERY = {"type": "string", "description": "words of the text that is looked for"}
CONTENT = {"type": "string", "description": "one plain sentence that can be understood alone, at most 500 characters"}
_SOURCES = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "the numbers of the results that say so",
}
_TARGET = {"type": ["integer", "string"], "description": "the number of the result, or its whole text"}
_REASON = {"type": "string", "description": "why it is wrong"}
_AGAINST = {**_SOURCES, "description": "the numbers of the results that contradict it"}


def schema_of(name: str, about: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the language model is told of a tool; all properties are required unless some are named."""
    parameters = {"type": "object", "properties": properties, "required": list(required or properties)}
    return {"name": name, "description": about, "parameters": {**parameters, "additionalProperties": False}}


SCHEMAS = (
    schema_of("graph_search", "Searches the knowledge base.", {"query": _QUERY}),
    schema_of("web_search", "Searches the web, for what the knowledge base lacks.", {"query": _QUERY}),
    schema_of(
        "insert",
        "Adds a fact that results state and the knowledge base lacks.",
        {"content": CONTENT, "sources": _SOURCES},
    ),
    schema_of(
        "update",
        "Replaces a hyperedge that is wrong, vague or out of date.",
        {"target": _TARGET, "new_content": CONTENT, "sources": _SOURCES},
    ),
    schema_of(
        "delete",
        "Hides a hyperedge that another result contradicts.",
        {"target": _TARGET, "reason": _REASON, "sources": _AGAINST},
        ["target", "reason"],
    ),
)


def allowed_tools(settings: EvographSettings, web: WebSearch | None) -> list[str]:
    """Return the names of the tools that may be called."""
    names = map(str.strip, settings.tools.split(","))
    return [name for name in names if name != "web_search" or web is not None]


class Tools:
    """The tools of one question, and what they have shown and edited; other sessions do not see its edits.

    Args:
        question: The question.
        corpus: The corpus.
        settings: The settings of the method.
        trace: The trace of the question.
        web: The search of the web; None if there is none.
        session, agent: The name of the session and of who edits, for edits.

    Attributes:
        image_names: The names of what the image of the question may show.
    """

    segments_of: type[Segments] = Segments
    edits_of: type[Edits] = Edits
    ranked = True
    """Whether trust counts in edits; see `Overlay`."""

    def __init__(
        self,
        question: str,
        corpus: Corpus,
        settings: EvographSettings,
        trace: Trace,
        *,
        web: WebSearch | None = None,
        session: str = "",
        agent: str = "",
    ) -> None:
        self._settings = settings
        overlay = Overlay(corpus, session=session, question=question, agent=agent, ranked=self.ranked)
        self.shown = Results(corpus)
        self._segments = self.segments_of(overlay, settings.pieces, trace)
        self.edits = self.edits_of(overlay, self.shown, self._segments, trace)
        self._web = web
        self._trace = trace
        self.image_names: tuple[str, ...] = ()

    @property
    def overlay(self) -> Overlay:
        """The edits of the question."""
        return self.edits.overlay

    def call(self, name: str, arguments: Mapping[str, Any], *, step: int = 1) -> Observation:
        """Call a tool and record the call.

        Args:
            name: A tool.
            arguments: Its arguments, as its schema says.
            step: The turn.
        """
        if name == "graph_search":
            found = self._graph_search(arguments["query"], step)
        elif name == "web_search":
            found = self._web_search(arguments["query"], step)
        else:
            found = self.edits.edit(name, arguments, step=step)
        names = tuple(result.text[:MAX_NAME_CHARS] for result in found.results[:MAX_NAMES])
        total, given = len(found.results), json.dumps(dict(arguments), ensure_ascii=False)
        self._trace.record(
            Called(name=name, arguments=(given,), names=names, total=total, failed=found.failed, step=step)
        )
        return found

    def _graph_search(self, query: str, step: int) -> Observation:
        notes: list[str] = []
        if query.strip() == IMAGE_QUERY:
            names = tuple(filter(None, map(without_marks, self.image_names)))
            if not names:
                return Observation(notes=("The question has no image.",), failed=True)
            query = " ".join(names)
            notes.append(f"The image may show: {json.dumps(names, ensure_ascii=False)}.")
        shown = frozenset(result.iri for result in self.shown)
        new, known = self._segments.find(query, self._settings.results, shown, step=step)
        results = [self._show(piece) for piece in (within_tokens(new, SEARCH_TOKENS) if new else ())]
        return Observation(tuple(results), (*notes, *self._notes(results, [piece.iri for piece in known])))

    def _show(self, piece: Piece) -> Result:
        overlay = self.overlay
        partners = overlay.conflicts.get(piece.iri, frozenset()) | self._segments.contradicted.get(piece.iri, set())
        return self.shown.show(
            piece.text,
            "chunk" if piece.kind == "chunk" else "hyperedge",
            piece.iri,
            trust=overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS,
            title=_title(piece, overlay.corpus),
            score=piece.score,
            piece=piece,
            disputes=self.shown.known(partners),
        )

    def _web_search(self, query: str, step: int) -> Observation:
        if self._web is None:
            return Observation(notes=("Web search is not available.",), failed=True)
        try:
            passages = self._web(query, self._settings.results)
        except KgqaError as error:
            problem = f"The web could not be searched: {clean(str(error))[:300]}"
            return Observation(notes=(problem,), failed=True)
        iris = tuple(each.address for each in passages)
        self._trace.record(Retrieved(query=query, pieces=iris, step=step, channel="web"))
        domains = [each.strip() for each in self._settings.domains.split(",") if each.strip()]
        known = [iri for iri in iris if self.shown.number(iri)]
        results = [
            self.shown.show(
                each.text,
                "web",
                each.address,
                trust=trust_of_address(each.address, domains),
                title=each.title,
                score=1 / rank,
            )
            for rank, each in enumerate((each for each in passages if each.address not in known), 1)
        ]
        return Observation(tuple(results), self._notes(results, known))

    def _notes(self, results: Sequence[Result], known: Sequence[str]) -> tuple[str, ...]:
        """Return notes on results that were shown before, or that nothing was found."""
        numbers = ", ".join(map(str, self.shown.known(known)))
        again = (f"Found again: {numbers}, shown above.",) if numbers else ()
        return again if results else (*again, "Nothing else was found." if numbers else NOTHING)


def _title(piece: Piece, corpus: Corpus) -> str:
    """Return the title of the document of a chunk that does not contain it."""
    record = corpus.reader.document(piece.spans[0].document) if piece.kind == "chunk" and piece.spans else None
    title = record.title.strip() if record else ""
    return "" if title in piece.text else title
