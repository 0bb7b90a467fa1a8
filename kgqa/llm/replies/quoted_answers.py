"""Replies that answer from numbered passages: short answers, a response, and quotes that support it."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from kgqa.llm.replies.answers import read_names
from kgqa.llm.replies.reply import Form, Prose, Reply, reply_of, schema_like

MAX_SUPPORTS = 100
_WORD = re.compile(r"[^\W_]")

Names = Annotated[tuple[str, ...], Form(keys=("answers", "answer"), read=read_names)]
"""Short answers; empty if the reply states that there is none."""


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A quote of a reply. `piece`: the number of the passage or fact."""

    claim: Prose = ""
    piece: Annotated[int, Form(keys=("passage",))] = 0
    quote: Annotated[str, Form(chars=4_000, lines=True)] = ""


@dataclass(frozen=True, kw_only=True)
class QuotedReply:
    """A reply with quotes, as it came; a prompt asks for some of the fields."""

    answers: Names
    likely: Names = ()
    response: Prose = ""
    explanation: Prose = ""
    support: Annotated[tuple[Quote, ...], Form(keys=("supports", "citations", "claims", "quotes"))] = ()


SUPPORT: Mapping[str, Any] = {"claim": "...", "piece": 1, "quote": "..."}
RAG: Mapping[str, Any] = {
    "answers": ["a name"],
    "response": "...",
    "support": [{"claim": "...", "passage": 1, "quote": "..."}],
}


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


def quoted_reply(size: int, example: Mapping[str, Any] = RAG, optional: Container[str] = ()) -> Reply[QuotedAnswer]:
    """Return the form of an answer with quotes.

    Args:
        size: Number of passages and facts in the prompt, which are numbered from 1.
        example: A reply with the keys that the prompt asks for; further fields of `QuotedReply` are read, too.
        optional: The keys that a reply may lack.
    """
    return reply_of(QuotedReply, schema_like(example, optional)).then(lambda reply: quoted_answer(reply, size))


def quoted_answer(reply: QuotedReply, size: int) -> QuotedAnswer:
    """Return an answer with the quotes of pieces that exist and have words; the claims of the others are `unquoted`."""
    supports, unquoted = [], []
    for each in reply.support[:MAX_SUPPORTS]:
        if 1 <= each.piece <= size and _WORD.search(each.quote):
            supports.append(Support(each.claim, each.piece - 1, each.quote))
        else:
            unquoted.append(each.claim)
    likely = () if reply.answers else reply.likely
    return QuotedAnswer(reply.answers, reply.response or reply.explanation, tuple(supports), tuple(unquoted), likely)
