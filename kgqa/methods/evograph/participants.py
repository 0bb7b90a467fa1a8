"""The participants of a new hyperedge, found by their names, without a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.items import EntityItem, HyperedgeItem, Item, Party, StatementItem, normal_name
from kgqa.llm.replies.participants import read_participants
from kgqa.methods.resources import Resources
from kgqa.text.quotes import find_name
from kgqa.trace.trace import Trace

MAX_PARTICIPANTS = 12
_CANDIDATES = 40
_NAME = re.compile(r"[A-Z][\w'’-]*(?:(?: (?:of|the|de|la|von|van|du|da))? [A-Z0-9][\w'’-]*)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?] )$")

Participants = tuple[tuple[str, Party], ...]
STAGE = "extract"


def asked_participants(contents: Sequence[str], resources: Resources, trace: Trace) -> dict[str, Participants]:
    """Return the participants of texts, with types and roles, as the language model lists them in one call.

    A text is missing in the result if the reply cannot be read or names nothing in it.
    """
    if not contents:
        return {}
    prompt = resources.prompts.prompt("evograph/participants", STAGE, sentences=list(contents))
    reader = partial(read_participants, sentences=contents)
    (rows,) = resources.ask_model([prompt], [reader], trace)
    return {
        content: tuple((each.role, Party(each.name, each.type)) for each in row)
        for content, row in zip(contents, rows or ())
        if row
    }


def named_participants(content: str, corpus: Corpus) -> Participants:
    """Return the entities of a corpus that a text names, and after them the other names in it; roles are unknown.

    A name that is a part of a longer one is left out.
    """
    known = [party for party in _candidates(content, corpus) if find_name(content, party.name)]
    found: dict[str, Party] = {}
    for party in sorted(known, key=lambda each: (-len(each.name), each.name, each.type)):
        if not _is_covered(party.name, found):
            found.setdefault(normal_name(party.name), party)
    for name in _names(content):
        if not _is_covered(name, found):
            found.setdefault(normal_name(name), Party(name))
    return tuple(("", party) for party in list(found.values())[:MAX_PARTICIPANTS])


def _candidates(content: str, corpus: Corpus) -> Iterator[Party]:
    """Yield the names of entities that share words with a text."""
    (pieces,) = corpus.retriever("entity", ("bm25",)).search([content], _CANDIDATES)
    if not pieces:
        return
    wanted = {piece.iri for piece in pieces}
    for addition in corpus.database.live.concerning(wanted, corpus.reader.seq).values():
        yield from (party for party in _parties(addition.item) if party.iri in wanted)


def _parties(item: Item) -> Iterable[Party]:
    if isinstance(item, EntityItem):
        return (item.party,)
    if isinstance(item, StatementItem):
        return (each for each in (item.subject, item.object) if isinstance(each, Party))
    if isinstance(item, HyperedgeItem):
        return (party for _, party in item.participants)
    return ()


def _is_covered(name: str, found: Iterable[str]) -> bool:
    return any(find_name(longer, name) for longer in found)


def _names(content: str) -> Iterator[str]:
    """Yield names by their capitals; a single word that begins a sentence is none."""
    for match in _NAME.finditer(content):
        if " " in match[0] or not _SENTENCE_START.search(content[: match.start()]):
            yield match[0]
