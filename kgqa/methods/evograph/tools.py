"""The tools of a session: they search the graph and the web, and propose edits. They need no language model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.trust import CORPUS, trust_of_address
from kgqa.methods.acting.declarations import EvographSettings
from kgqa.methods.evograph.editing import EditTools
from kgqa.methods.evograph.participants import named_participants
from kgqa.methods.evograph.published import PublishedEdits, PublishedSegments
from kgqa.methods.evograph.results import Result, ShownResults, without_marks
from kgqa.methods.evograph.schemas import EDITS, IMAGE_QUERY, PUBLISHED_NAMES
from kgqa.methods.evograph.segments import SegmentSearch, kinds_of
from kgqa.methods.evograph.web import WebSearch, search_or_problem
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import TextSearch, within_tokens
from kgqa.model import Piece
from kgqa.trace import Called, Retrieved
from kgqa.trace.trace import Trace

SEARCH_TOKENS = 2_000
"""About how many tokens the segments of one search have together; a long chunk is shown whole."""
NO_WEB = "There is no search of the web here."
NOTHING = "Nothing was found."
NO_IMAGE = "The question has no image."
MAX_NAME_CHARS = 200
MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call returns to the language model. `results`: new ones. `notes`: sentences. `failed`: see `Called`."""

    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The results as lines of JSON."""
        return tuple(result.line for result in self.results)


def session_tools(
    question: str,
    resources: Resources,
    trace: Trace,
    *,
    web: WebSearch | None = None,
    session: str = "",
    agent: str = "",
    image_names: Sequence[str] = (),
) -> Tools:
    """Return the tools of a new session; other sessions do not see its edits.

    Args:
        question: The question.
        resources: The resources of the run, with a corpus.
        trace: The trace of the question.
        web: The search of the web.
        session, agent: The name of the session and of who edits, for edits.
        image_names: The names of what the image of the question may show.
    """
    corpus, settings = resources.corpus, resources.settings.of(EvographSettings)
    assert isinstance(corpus, Corpus)
    published = settings.reading == "published"
    search = TextSearch(resources, trace)
    overlay = Overlay(corpus, session=session, question=question, agent=agent, ranked=not published)
    kinds = kinds_of(settings.pieces, search)
    segments = (PublishedSegments if published else SegmentSearch)(search, overlay, kinds, trace)
    shown = ShownResults()
    edits = (PublishedEdits if published else EditTools)(
        overlay,
        shown,
        segments,
        lambda content: named_participants(content, corpus),
        trace,
        about=(session, question, agent),
    )
    domains = [each.strip() for each in settings.domains.split(",") if each.strip()]
    k = settings.results
    return Tools(segments, overlay, edits, web, shown, trace, k=k, domains=domains, image_names=image_names)


class Tools:
    """The tools of one question.

    Args:
        segments: The search of the graph.
        overlay: The edits of the question.
        edits: What proposes edits.
        web: The search of the web; None if there is none.
        shown: The results of the session.
        k: How many results a search shows.
        domains: Hosts whose pages are trusted more than others.
        image_names: The names of what the image may show; empty without an image.
        trace: The trace of the question.
    """

    def __init__(
        self,
        segments: SegmentSearch,
        overlay: Overlay,
        edits: EditTools,
        web: WebSearch | None,
        shown: ShownResults,
        trace: Trace,
        *,
        k: int,
        domains: Sequence[str] = (),
        image_names: Sequence[str] = (),
    ) -> None:
        self.shown = shown
        self.overlay = overlay
        self._segments = segments
        self.edits = edits
        self._web = web
        self._trace = trace
        self._k = k
        self._domains = tuple(domains)
        self._image_names = tuple(filter(None, map(without_marks, image_names)))

    def call(self, name: str, arguments: Mapping[str, Any], *, step: int = 1) -> Observation:
        """Call a tool and record the call.

        Args:
            name: A tool, by our name or that of the published code.
            arguments: Its arguments, as its schema says.
            step: The turn.
        """
        tool = PUBLISHED_NAMES.get(name, name)
        if tool == "graph_search":
            found = self._graph_search(arguments["query"], step)
        elif tool == "web_search":
            found = self._web_search(arguments["query"], step)
        elif tool in EDITS:
            done = self.edits.edit(tool, arguments, step=step)
            found = Observation(done.shown, done.notes, done.failed)
        else:
            found = Observation((), (f"There is no tool {name}.",), failed=True)
        names = tuple(result.text[:MAX_NAME_CHARS] for result in found.results[:MAX_NAMES])
        total, given = len(found.results), json.dumps(dict(arguments), ensure_ascii=False)
        self._trace.record(
            Called(name=tool, arguments=(given,), names=names, total=total, failed=found.failed, step=step)
        )
        return found

    def _graph_search(self, query: str, step: int) -> Observation:
        notes: list[str] = []
        if query.strip() == IMAGE_QUERY:
            if not self._image_names:
                return Observation((), (NO_IMAGE,), failed=True)
            query = " ".join(self._image_names)
            notes.append(f"The image may show: {json.dumps(self._image_names, ensure_ascii=False)}.")
        new, known = self._segments.find(query, self._k, self._iris(), step=step)
        kept = within_tokens(new, SEARCH_TOKENS) if new else []
        results = [self.show(piece) for piece in kept]
        if numbers := self.shown.known(piece.iri for piece in known):
            notes.append(f"Found again: {_numbers(numbers)}, shown above.")
        if not results:
            notes.append(NOTHING if not numbers else "Nothing else was found.")
        return Observation(tuple(results), tuple(notes))

    def show(self, piece: Piece) -> Result:
        """Return a piece as a result with its number."""
        trust = self.overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS
        partners = self.overlay.conflicts.get(piece.iri, frozenset())
        partners |= self._segments.contradicted.get(piece.iri, frozenset())
        return self.shown.add(
            piece.text,
            "chunk" if piece.kind == "chunk" else "hyperedge",
            piece.iri,
            trust=trust,
            title=_title(piece, self.overlay.corpus),
            score=piece.score,
            piece=piece,
            disputes=self.shown.known(partners),
        )

    def _web_search(self, query: str, step: int) -> Observation:
        if self._web is None:
            return Observation((), (NO_WEB,), failed=True)
        found, problem = search_or_problem(self._web, query, self._k)
        if problem:
            return Observation((), (f"The web could not be searched: {problem}",), failed=True)
        iris = tuple(each.address for each in found)
        self._trace.record(Retrieved(query=query, pieces=iris, step=step, channel="web"))
        new = [each for each in found if each.address not in self.shown]
        known = self.shown.known(each.address for each in found)
        results = [
            self.shown.add(
                each.text,
                "web",
                each.address,
                trust=trust_of_address(each.address, self._domains),
                title=each.title,
                score=1 / rank,
            )
            for rank, each in enumerate(new, 1)
        ]
        notes = [f"Found again: {_numbers(known)}, shown above."] if known else []
        if not results:
            notes.append("Nothing else was found." if known else NOTHING)
        return Observation(tuple(results), tuple(notes))

    def _iris(self) -> frozenset[str]:
        return frozenset(result.iri for result in self.shown)


def _title(piece: Piece, corpus: Corpus) -> str:
    """Return the title of the document of a chunk that does not contain it."""
    record = corpus.reader.document(piece.spans[0].document) if piece.kind == "chunk" and piece.spans else None
    title = record.title.strip() if record else ""
    return "" if title in piece.text else title


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
