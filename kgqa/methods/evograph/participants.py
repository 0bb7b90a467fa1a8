"""The participants of a new hyperedge, found by their names, without a language model, or by one call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Participants
from kgqa.corpus.items import Party, normal_name
from kgqa.corpus.snapshot import parties_of
from kgqa.llm.replies.participants import read_participants
from kgqa.methods.resources import Resources
from kgqa.text.quotes import find_name
from kgqa.trace.trace import Trace

MAX_PARTICIPANTS = 12
STAGE = "extract"
_CANDIDATES = 40
_NAME = re.compile(r"[A-Z][\w'’-]*(?:(?: (?:of|the|de|la|von|van|du|da))? [A-Z0-9][\w'’-]*)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?] )$")


def asked_participants(contents: Sequence[str], resources: Resources, trace: Trace) -> dict[str, Participants]:
    """Return the participants of texts, with types and roles, as the language model lists them in one call.

    A text is missing in the result if the reply cannot be read or names nothing in it.
    """
    prompt = resources.prompts.prompt("evograph/participants", STAGE, sentences=list(contents))
    (rows,) = resources.ask_model([prompt], [partial(read_participants, sentences=contents)], trace)
    return {
        content: [(each.role, Party(each.name, each.type)) for each in row]
        for content, row in zip(contents, rows or ())
        if row
    }


def named_participants(content: str, corpus: Corpus) -> Participants:
    """Return the entities of a corpus that a text names, and after them the other names in it; roles are unknown.

    A name that is a part of a longer one is left out.
    """
    known = [party for party in _candidates(content, corpus) if find_name(content, party.name)]
    known.sort(key=lambda each: (-len(each.name), each.name, each.type))
    found: dict[str, Party] = {}
    for party in (*known, *map(Party, _names(content))):
        if not any(find_name(longer, party.name) for longer in found):
            found.setdefault(normal_name(party.name), party)
    return [("", party) for party in list(found.values())[:MAX_PARTICIPANTS]]


def _candidates(content: str, corpus: Corpus) -> Iterable[Party]:
    """Yield the names of entities that share words with a text."""
    (pieces,) = corpus.retriever("entity", ("bm25",)).search([content], _CANDIDATES)
    wanted = {piece.iri for piece in pieces}
    additions = corpus.database.live.concerning(wanted, corpus.reader.seq).values() if wanted else ()
    return (party for addition in additions for party in parties_of(addition.item) if party.iri in wanted)


def _names(content: str) -> Iterator[str]:
    """Yield names by their capitals; a single word that begins a sentence is none."""
    for match in _NAME.finditer(content):
        if " " in match[0] or not _SENTENCE_START.search(content[: match.start()]):
            yield match[0]
