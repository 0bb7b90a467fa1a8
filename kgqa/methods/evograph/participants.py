"""Who takes part in a hyperedge that an edit adds: the names in its text, or what a language model lists."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay, Participants
from kgqa.corpus.items import Party, normal_name
from kgqa.corpus.snapshot import parties_of
from kgqa.llm.replies.reply import Form, reply_of
from kgqa.methods.resources import Resources
from kgqa.text.quotes import find_name
from kgqa.trace.trace import Trace

MAX_PARTICIPANTS = 12
_CANDIDATES = 40
_WORD = r"[\w'’-]"
_NAME = re.compile(
    rf"(?<!{_WORD})(?:[A-Z]{_WORD}*(?:(?: (?:of|the|de|la|von|van|du|da))? [A-Z0-9]{_WORD}*)+"
    rf"|(?<!^)(?<![.!?] )[A-Z]{_WORD}*)"
)
"""Words with capitals; a single word that begins a sentence is no name."""


@dataclass(frozen=True)
class _Participant:
    sentence: int
    name: Annotated[str, Form(chars=200)]
    type: Annotated[str, Form(chars=60)] = ""
    role: Annotated[str, Form(chars=60)] = ""


@dataclass(frozen=True)
class _Listed:
    participants: tuple[_Participant, ...]


def asked_participants(overlay: Overlay, resources: Resources, trace: Trace) -> dict[str, Participants]:
    """Return the participants of the added texts, with types and roles, as the language model lists them in one call.

    A text is missing in the result if the reply cannot be read or names nothing in it.
    """
    contents = list(dict.fromkeys(each.added.segment for each in overlay.edits if each.added))
    prompt = resources.prompts.prompt("evograph/participants", "extract", reply_of(_Listed), sentences=contents)
    (reply,) = resources.ask([prompt], trace)
    found: dict[str, list[tuple[str, Party]]] = defaultdict(list)
    for each in dict.fromkeys(reply.participants if reply else ()):
        content = contents[each.sentence - 1] if 1 <= each.sentence <= len(contents) else ""
        if find_name(content, each.name) and len(found[content]) < MAX_PARTICIPANTS:
            found[content].append((each.role, Party(each.name, each.type)))
    return {content: parties for content, parties in found.items() if parties}


def named_participants(content: str, corpus: Corpus) -> Participants:
    """Return the entities of a corpus that a text names, and after them the other names in it; roles are unknown.

    A name that is a part of a longer one is left out.
    """
    (pieces,) = corpus.retriever("entity", ("bm25",)).search([content], _CANDIDATES)
    wanted = {piece.iri for piece in pieces}
    additions = corpus.database.live.concerning(wanted, corpus.reader.seq).values()
    parties = {party for addition in additions for party in parties_of(addition.item) if party.iri in wanted}
    known = [party for party in parties if find_name(content, party.name)]
    known.sort(key=lambda each: (-len(each.name), each.name, each.type))
    found: dict[str, Party] = {}
    for party in (*known, *map(Party, _NAME.findall(content))):
        if not any(find_name(longer, party.name) for longer in found):
            found.setdefault(normal_name(party.name), party)
    return [("", party) for party in list(found.values())[:MAX_PARTICIPANTS]]
