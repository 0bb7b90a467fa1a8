"""What is asked of a model for a chunk: triples, hyperedges, named entities and triples, or what an image shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.corpus.documents.document import Figure, Span
from kgqa.corpus.extraction.acceptance import Acceptor, Origin
from kgqa.corpus.extraction.images import open_image
from kgqa.corpus.extraction.replies import ENTITIES, HYPEREDGES, TRIPLES, RawReply, read_lists
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.llm.asking import ReplyReader
from kgqa.llm.client import Prompt
from kgqa.llm.prompts import Prompts

STAGE = "extract"
Ask = Callable[[Prompt, ReplyReader[RawReply]], RawReply]
"""Sends a prompt and returns what was read from the reply."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to read a chunk.

    Attributes:
        prompts: The names of the prompts, in the order in which they are sent.
        read: Asks about a chunk and gives what was found to an `Acceptor`.
        tokens_per_fact: Tokens of a reply per fact, for estimates.
    """

    prompts: tuple[str, ...]
    read: Callable[[ExtractionRequest, Acceptor, Prompts, int, Ask], None]
    tokens_per_fact: int


def _values(request: ExtractionRequest) -> dict[str, Any]:
    return {"title": request.document.title, "passage": request.chunk.text}


def _read_triples(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    prompt = prompts.prompt("corpus/triples", STAGE, limit=limit, **_values(request))
    acceptor.triples(ask(prompt, partial(read_lists, facts=TRIPLES, entities=ENTITIES)))


def _read_hyperedges(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    prompt = prompts.prompt("corpus/hyperedges", STAGE, limit=limit, **_values(request))
    acceptor.hyperedges(ask(prompt, partial(read_lists, facts=HYPEREDGES)))


def _read_openie(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    values = _values(request)
    listed = ask(prompts.prompt("corpus/entities", STAGE, **values), partial(read_lists, facts=_NAMED))
    names = acceptor.names(listed.facts)
    prompt = prompts.prompt("corpus/openie", STAGE, entities=names, limit=limit, **values)
    acceptor.triples(ask(prompt, partial(read_lists, facts=TRIPLES)))


_NAMED = ("named entities", "entities")
MODES: Mapping[str, Mode] = {
    "triples": Mode(("corpus/triples",), _read_triples, 55),
    "hyperedges": Mode(("corpus/hyperedges",), _read_hyperedges, 110),
    "openie": Mode(("corpus/entities", "corpus/openie"), _read_openie, 22),
}
IMAGE_PROMPT = "corpus/image"


def read_image(
    request: ExtractionRequest, figure: Figure, origin: Origin, prompts: Prompts, limit: int, ask: Ask
) -> Acceptor:
    """Ask what a figure shows; the facts have the place of the figure in the chunk.

    Raises:
        ValueError: The image cannot be sent; the message says why.
    """
    chunk = request.chunk
    image = open_image(figure)
    text = figure.caption or chunk.text
    prompt = prompts.prompt(
        IMAGE_PROMPT, STAGE, images=(image,), title=request.document.title, passage=text, limit=limit
    )
    acceptor = Acceptor(request, origin, limit, place=_figure_place(figure, request))
    acceptor.hyperedges(ask(prompt, partial(read_lists, facts=HYPEREDGES)))
    return acceptor


def _figure_place(figure: Figure, request: ExtractionRequest) -> Span:
    """Return the place of a figure in its chunk: its caption, the line at which it stands, or the whole chunk."""
    chunk = request.chunk
    at = min(max(figure.begin - chunk.begin, 0), len(chunk.text))
    if figure.caption and (found := chunk.text.find(figure.caption, at)) >= 0:
        return found, found + len(figure.caption)
    begin = chunk.text.rfind("\n", 0, at) + 1
    end = chunk.text.find("\n", at)
    end = len(chunk.text) if end < 0 else end
    return (begin, end) if chunk.text[begin:end].strip() else (0, len(chunk.text))
