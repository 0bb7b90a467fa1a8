"""The results that a session has shown: numbered through the session, as JSON lines without anything but text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.corpus.items import normal_name
from kgqa.methods.evidence import Exhibits
from kgqa.model import Piece, Span
from kgqa.text.words import clean

ResultKind = Literal["hyperedge", "chunk", "web"]
MAX_TITLE_CHARS = 200
_TAG = re.compile(
    r"<\s{0,3}/?\s{0,3}(?:answer|think|tool_\w{1,20}|tools?|system|user|assistant|information|observation|results?)"
    r"\s{0,3}>|</?[A-Za-z!?|][^<>]{0,200}>|<\|[^<>|]{0,60}\|>|\[/?INST\]|</?SYS>|\b(?:im_start|im_end|endoftext)\b",
    re.IGNORECASE,
)
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Result:
    """A text that was shown.

    Attributes:
        number: Its number in the session, from 1.
        text: The text as it was shown.
        kind: What it is.
        iri: The IRI of the piece, or the address of the page.
        trust: How far it is trusted; the search says so, never the text.
        title: The title of its document or page; may be empty.
        score: The score of the search.
        piece: The piece of the corpus; None for a page.
        disputes: Numbers of results that contradict it.
    """

    number: int
    text: str
    kind: ResultKind
    iri: str
    trust: str = "corpus"
    title: str = ""
    score: float = 0.0
    piece: Piece | None = None
    disputes: tuple[int, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """The places of documents that it comes from."""
        return self.piece.spans if self.piece else ()

    @property
    def line(self) -> str:
        """The result as one line of JSON."""
        shown: dict[str, Any] = {"number": self.number, "text": self.text, "kind": self.kind, "trust": self.trust}
        shown["score"] = round(self.score, 4)
        shown |= {"from": self.title} if self.title else {}
        shown |= {"contradicts": list(self.disputes)} if self.disputes else {}
        return json.dumps(shown, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call returns to the language model. `results`: new ones. `notes`: sentences. `failed`: see `Called`."""

    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False


class Results(Exhibits[Result]):
    """The results of one session. A text that is shown again keeps its number."""

    def show(self, text: str, kind: ResultKind, iri: str, *, title: str = "", **more: Any) -> Result:
        """Return the result of a piece or page, with a new number unless it has one."""
        known = self.get(self.number(iri))
        if known is None:
            title = without_marks(title)[:MAX_TITLE_CHARS]
            known = Result(len(self) + 1, without_marks(text), kind, iri, title=title, **more)
            self.add(known)
        return known

    def find(self, text: str) -> Result | None:
        """Return the result with a text, case and blanks aside; None if there is none."""
        wanted = normal_name(without_marks(text))
        return next((each for each in self if normal_name(each.text) == wanted), None)

    def known(self, iris: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the pieces or pages that were shown, sorted."""
        return tuple(sorted({self.number(iri) for iri in iris} - {0}))


def without_marks(text: str) -> str:
    """Return a text as one line without tags, marks of chats and control characters.

    What is left has no tag either: removing one may join the halves of another.
    """
    text = clean(text)
    for _ in range(_ROUNDS):
        shorter = _TAG.sub(" ", text)
        if shorter == text:
            return " ".join(text.split())
        text = shorter
    return " ".join(_TAG.sub(" ", text.replace("<", " ").replace(">", " ")).split())
