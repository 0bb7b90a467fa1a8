"""Retrieval-augmented generation, the baseline over text: the best chunks of a corpus, and one call of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from kgqa.corpus.corpus import Corpus
from kgqa.events import Retrieved
from kgqa.llm.replies.quoted_answers import QuotedAnswer, read_quoted_answer
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.path_pieces import with_paths
from kgqa.methods.pieces import check_quotes, quoted_answer, shown_passages, with_quote_query
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import Trace

RETRIEVERS: Mapping[str, tuple[str, ...]] = {
    "best": (),
    "paths": (),
    "pagerank": ("pagerank",),
    "rrf": ("bm25", "dense"),
    "dense": ("dense",),
    "bm25": ("bm25",),
}
"""The channels of each retriever; empty for the best of the index (see `open_retriever`)."""
TOKENS = 4000
"""About how many tokens the passages of a prompt have, if `rag.chunks` is not set."""
MAX_CHUNKS = 100
_BYTES_PER_TOKEN = 4


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer from the chunks that are found for the question; arguments and errors as in `top.answer`.

    Topics are ignored. Every quote is compared with the text that it is said to come from.
    """
    corpus, settings = resources.corpus, resources.settings
    assert isinstance(corpus, Corpus)
    empty = Answer(question, "no_answer", method="rag", notes=corpus.index.notes)
    graph = resources.graph.for_question(trace)
    retriever = corpus.retriever("chunk", RETRIEVERS[settings["rag.retriever"]])
    if settings["rag.retriever"] == "paths":
        retriever = with_paths(retriever, graph, corpus.index, resources.encoder, trace=trace)
    (found,) = retriever.search([question.text], settings["rag.chunks"] or MAX_CHUNKS)
    pieces = found if settings["rag.chunks"] else _first(found, TOKENS)
    trace.record(Retrieved(query=question.text, pieces=tuple(piece.iri for piece in pieces)))
    if not pieces:
        return replace(empty, reason="The corpus contains no text about this question.")
    prompt = resources.prompts.prompt(
        "rag/answer", "decide", question=question.text, passages=shown_passages(pieces, corpus)
    )
    read: QuotedAnswer | None
    (read,) = resources.ask_model([prompt], [partial(read_quoted_answer, size=len(pieces))], trace)
    if read is None:
        return replace(empty, reason=UNREADABLE)
    found_answer = quoted_answer(empty, read, check_quotes(read.supports, pieces, corpus))
    return with_quote_query(found_answer, graph, corpus)


def _first(pieces: Sequence[Piece], tokens: int) -> list[Piece]:
    """Return the first pieces that have about this many tokens together; at least one."""
    kept: list[Piece] = []
    for piece in pieces:
        tokens -= len(piece.text.encode()) // _BYTES_PER_TOKEN
        if kept and tokens < 0:
            break
        kept.append(piece)
    return kept
