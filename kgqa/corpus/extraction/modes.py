"""What is asked of a model for a chunk: triples, hyperedges, named entities and triples, or what an image shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.documents.document import Figure, Span
from kgqa.corpus.extraction.acceptance import Acceptor, Origin
from kgqa.corpus.extraction.images import open_image
from kgqa.corpus.extraction.replies import REPLIES, RawReply
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.llm.client import TypedPrompt
from kgqa.llm.prompts import Prompts

STAGE = "extract"
Ask = Callable[[TypedPrompt[RawReply]], RawReply]
"""Sends a prompt and returns what was read from the reply."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to read a chunk.

    Attributes:
        prompts: The names of the prompts, in the order in which they are sent.
        read: Asks about a chunk and gives what was found to an `Acceptor`.
        tokens_per_fact: Tokens of a reply per fact, for estimates.
        image: The name of the prompt about an image.
    """

    prompts: tuple[str, ...]
    read: Callable[[ExtractionRequest, Acceptor, Prompts, int, Ask], None]
    tokens_per_fact: int
    image: str = "corpus/image"


def _prompt(prompts: Prompts, name: str, request: ExtractionRequest, **values: Any) -> TypedPrompt[RawReply]:
    title, passage = request.document.title, request.chunk.text
    return prompts.prompt(name, STAGE, REPLIES[name], **{"title": title, "passage": passage, **values})


def _read_triples(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    acceptor.triples(ask(_prompt(prompts, "corpus/triples", request, limit=limit)))


def _read_hyperedges(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    acceptor.hyperedges(ask(_prompt(prompts, "corpus/hyperedges", request, limit=limit)))


def _read_segments(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    acceptor.hyperedges(ask(_prompt(prompts, "corpus/segments", request, limit=limit)), scored=True)


def _read_openie(request: ExtractionRequest, acceptor: Acceptor, prompts: Prompts, limit: int, ask: Ask) -> None:
    names = acceptor.names(ask(_prompt(prompts, "corpus/entities", request)).facts)
    acceptor.triples(ask(_prompt(prompts, "corpus/openie", request, entities=names, limit=limit)))


SCORED_IMAGE = "corpus/segments_image"
MODES: Mapping[str, Mode] = {
    "triples": Mode(("corpus/triples",), _read_triples, 55),
    "hyperedges": Mode(("corpus/hyperedges",), _read_hyperedges, 110),
    "segments": Mode(("corpus/segments",), _read_segments, 150, SCORED_IMAGE),
    "openie": Mode(("corpus/entities", "corpus/openie"), _read_openie, 22),
}


def read_image(
    request: ExtractionRequest, figure: Figure, origin: Origin, prompts: Prompts, limit: int, ask: Ask, mode: Mode
) -> Acceptor:
    """Ask what a figure shows; the facts have the place of the figure in the chunk.

    Raises:
        ValueError: The image cannot be sent; the message says why.
    """
    chunk = request.chunk
    image = open_image(figure)
    text = figure.caption or chunk.text
    prompt = _prompt(prompts, mode.image, request, images=(image,), passage=text, limit=limit)
    acceptor = Acceptor(request, origin, limit, place=_figure_place(figure, request))
    acceptor.hyperedges(ask(prompt), scored=mode.image == SCORED_IMAGE)
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
