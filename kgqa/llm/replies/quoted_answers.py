"""Replies that answer from numbered passages: short answers, a response, and quotes that support it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from kgqa.llm.replies.answers import read_names
from kgqa.llm.replies.reply import Form, Prose, Reply, reply_of

MAX_SUPPORTS = 100
_WORD = re.compile(r"[^\W_]")


Names = Annotated[tuple[str, ...], Form(keys=("answers", "answer"), read=read_names)]
"""Short answers; empty if the reply states that there is none."""
Quoted = Annotated[str, Form(chars=4_000, lines=True)]


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A quote of a reply. `passage`: the number of the passage."""

    claim: Prose = ""
    passage: Annotated[int, Form(keys=("piece",))] = 0
    quote: Quoted = ""


Quotes = Annotated[tuple[Quote, ...], Form(keys=("supports", "citations", "claims", "quotes"))]


@dataclass(frozen=True, kw_only=True)
class QuotedReply:
    """A reply with quotes, as it came."""

    answers: Names
    response: Annotated[Prose, Form(keys=("explanation",))] = ""
    support: Quotes = ()


@dataclass(frozen=True, slots=True)
class Support:
    """A claim and the quote that it rests on. `passage`: the passage's position in the prompt, from 0."""

    claim: str
    passage: int
    quote: str


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """What a reply says.

    Attributes:
        answers: The short answers; empty if the reply states that the passages do not contain the answer.
        response: The answer as a text; may be empty.
        supports: The quotes, not yet compared with the passages.
        unquoted: The claims without a quote from one of the passages.
        likely: If there are no answers, what may be the answer although the passages do not prove it.
    """

    answers: tuple[str, ...]
    response: str = ""
    supports: tuple[Support, ...] = ()
    unquoted: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()


def quoted_reply(size: int) -> Reply[QuotedAnswer]:
    """Return the form of a reply to a prompt with `size` passages, numbered from 1."""
    return reply_of(QuotedReply).then(
        lambda reply: quoted_answer(reply.answers, reply.response, reply.support, size=size)
    )


def quoted_answer(
    answers: tuple[str, ...], response: str, quotes: Iterable[Any], *, size: int, likely: tuple[str, ...] = ()
) -> QuotedAnswer:
    """Return an answer with the quotes of passages that exist and have words; the claims of the others are `unquoted`.

    Args:
        quotes: `Quote`s, or objects with the same fields.
        size: Number of passages in the prompt.
    """
    supports, unquoted = [], []
    for each in list(quotes)[:MAX_SUPPORTS]:
        if 1 <= each.passage <= size and _WORD.search(each.quote):
            supports.append(Support(each.claim, each.passage - 1, each.quote))
        else:
            unquoted.append(each.claim)
    return QuotedAnswer(answers, response, tuple(supports), tuple(unquoted), () if answers else likely)
