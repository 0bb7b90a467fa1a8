"""`kgqa corpus search`: find chunks, statements, entities and more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.corpus.options import GRAPH, embedding_options, opened_tools
from kgqa.cli.options import JSON, print_result, say, verbosity_options, whole
from kgqa.text.words import clean

if TYPE_CHECKING:
    from kgqa.corpus.inspection.searching import Found
    from kgqa.model import Piece, PieceKind

MAX_SHOWN_CHARS = 300


@click.command("search")
@click.argument("text")
@GRAPH
@click.option(
    "--kind",
    type=click.Choice(["chunk", "statement", "entity", "hyperedge", "community", "path"]),
    default="chunk",
    show_default=True,
    help="what to find",
)
@click.option("-k", "--limit", type=whole(1, 1000), default=10, show_default=True, help="how many to find")
@embedding_options
@JSON
@verbosity_options
def search(text: str, folder: Path, kind: PieceKind, limit: int, as_json: bool, **options: Any) -> int:
    """Find what the corpus says about TEXT, best first, without a language model.

    \b
    Examples:
      kgqa corpus search "who designed the lighthouse?" --graph corpus/
      kgqa corpus search "lighthouse architect" --graph corpus/ --kind statement -k 5

    Exit code 3 if nothing was found.
    """
    from kgqa.corpus.inspection.searching import search_corpus
    from kgqa.methods.text.path_pieces import search_paths

    with opened_tools(options) as tools:
        opened: dict[str, Any] = {"k": limit, "encoder": tools.encoder, "cache": tools.cache}
        if kind == "path":
            found = search_paths(folder, text, **opened)
        else:
            found = search_corpus(folder, text, kind=kind, **opened)
    print_result(as_json, [_object(piece, found) for piece in found.pieces], _lines(found))
    for note in () if as_json else found.notes:
        say(f"kgqa: {clean(note)}")
    if not found.pieces and not as_json:
        say("kgqa: Nothing was found.")
    return 0 if found.pieces else 3


def _object(piece: Piece, found: Found) -> dict[str, Any]:
    from msgspec import to_builtins

    sources = list(dict.fromkeys(found.sources.get(each.document, each.document) for each in piece.spans))
    data = {**to_builtins(piece), "sources": sources}
    if piece.iri in found.trusts:
        data |= {"trust": found.trusts[piece.iri], "conflicts_with": list(found.conflicts.get(piece.iri, ()))}
    return data


def _lines(found: Found) -> list[str]:
    lines = []
    for number, piece in enumerate(found.pieces, 1):
        lines.append(f"{number:>3}  {_shown(piece.text)}")
        where = list(dict.fromkeys(clean(found.sources.get(each.document, each.document)) for each in piece.spans))
        trust = found.trusts.get(piece.iri, "")
        if trust and not where:
            where = [f"an edit, trusted as {trust}"]
        lines.append(f"     [{piece.score:.3f}] {', '.join(where[:3])}".rstrip())
        lines += [f"     in conflict with: {_shown(text)}" for text in found.conflicts.get(piece.iri, ())]
    return lines


def _shown(text: str) -> str:
    text = clean(text)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"
