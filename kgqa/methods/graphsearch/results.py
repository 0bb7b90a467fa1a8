"""What a search offers as its answer: what the model wrote, its checked quotes, and the pieces that it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.text.pieces import Quotes
from kgqa.model import Piece
from kgqa.text.words import clean

LAST_STEP = "This is the answer of the last sub-question that was answered."
DISPUTED = "The answers to a sub-question disagree: {}"
MAX_ANSWER_CHARS = 500


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of a search. `used`: the pieces that it rests on. `notes`: what the user should know."""

    read: QuotedAnswer
    quotes: Quotes = field(default_factory=Quotes)
    used: tuple[Piece, ...] = ()
    notes: tuple[str, ...] = ()


def result_of_quotes(read: QuotedAnswer, quotes: Quotes, pieces: Iterable[Piece], notes: Iterable[str] = ()) -> Result:
    """Return the result of a reply with quotes; it rests on the pieces with verified quotes."""
    cited = {each.piece for each in quotes.citations if each.verified}
    return Result(read, quotes, tuple(piece for piece in pieces if piece.iri in cited), tuple(dict.fromkeys(notes)))


def result_of_text(text: str) -> Result:
    """Return the result of a reply in free text: the answers that it marks, or else the whole text."""
    read = read_answers(text).value
    answers = (clean(text)[:MAX_ANSWER_CHARS].strip(),) if read is None else read
    return Result(QuotedAnswer(answers, text))
