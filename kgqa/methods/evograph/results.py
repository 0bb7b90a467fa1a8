"""The results that a session has shown: numbered through the session, as JSON lines without anything but text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.corpus.items import normal_name
from kgqa.model import Piece
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
    def line(self) -> str:
        """The result as one line of JSON."""
        shown: dict[str, Any] = {"number": self.number, "text": self.text, "kind": self.kind, "trust": self.trust}
        shown["score"] = round(self.score, 4)
        if self.title:
            shown["from"] = self.title
        if self.disputes:
            shown["contradicts"] = list(self.disputes)
        return json.dumps(shown, ensure_ascii=False)


class ShownResults:
    """The results of one session, by number. A text that is shown again keeps its number."""

    def __init__(self) -> None:
        self._results: dict[int, Result] = {}
        self._numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, iri: object) -> bool:
        return iri in self._numbers

    def get(self, number: int) -> Result | None:
        """Return a result by its number."""
        return self._results.get(number)

    def of(self, iri: str) -> Result | None:
        """Return the result of a piece or page."""
        return self._results.get(self._numbers.get(iri, 0))

    def add(self, text: str, kind: ResultKind, iri: str, **more: Any) -> Result:
        """Give a text its number, unless it has one."""
        known = self.of(iri)
        if known is not None:
            return known
        number = len(self._results) + 1
        title = without_marks(more.pop("title", ""))[:MAX_TITLE_CHARS]
        found = Result(number, without_marks(text), kind, iri, title=title, **more)
        self._results[number] = found
        self._numbers[iri] = number
        return found

    def find(self, text: str) -> Result | None:
        """Return the result with a text, case and blanks aside; None if there is none."""
        wanted = normal_name(without_marks(text))
        return next((each for each in self if normal_name(each.text) == wanted), None)

    def known(self, iris: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the pieces or pages that were shown, sorted."""
        return tuple(sorted({self._numbers[iri] for iri in iris if iri in self._numbers}))


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
