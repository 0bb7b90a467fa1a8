"""What a session has shown, on which edits may rest."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.corpus.edit_log import EditSource
from kgqa.corpus.editing.trust import WEB
from kgqa.corpus.items import digest

MAX_QUOTE = 2_000
"""Longest part of a source that is kept for a review."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text that a tool showed in a session.

    Attributes:
        number: Its number in the session, from 1.
        iri: The IRI of a hyperedge or a chunk, or the URL of a page.
        text: What was shown.
        trust: How far it is trusted; the tool says so, not the text.
        begin, end: Which part of the source was shown, in code points; both 0 for all of it.
    """

    number: int
    iri: str
    text: str
    trust: str = WEB
    begin: int = 0
    end: int = 0

    @property
    def source(self) -> EditSource:
        """The text as the source of an edit, with a hash of its content."""
        return EditSource(encodable(self.iri), self.begin, self.end, text_hash(self.text), self.trust)


def text_hash(text: str) -> str:
    """Return the hash of the content of a source."""
    return digest(encodable(text), length=32)


def encodable(text: str) -> str:
    """Return a text in which question marks replace single surrogates, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
