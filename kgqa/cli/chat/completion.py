"""Completes commands, their arguments, and names of entities in a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kgqa.cli.chat.commands import COMMANDS
from kgqa.cli.chat.session import Session
from kgqa.errors import KgqaError
from kgqa.plugins import plugin_names
from kgqa.text.words import clean, normalise

MAX_NAMES = 20
MAX_WORDS = 5
"""Words before the cursor that may be the beginning of a name."""
MIN_CHARS = 2


class ChatCompleter(Completer):
    """Completes what stands before the cursor; names come from the index of the graph."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions: commands at the beginning of the line, else what can follow."""
        text = document.text_before_cursor
        command, space, argument = text.partition(" ")
        if not text.startswith("/"):
            yield from self._names(text)
        elif not space:
            for name in COMMANDS:
                if name.startswith(text):
                    yield Completion(name, -len(text), display_meta=COMMANDS[name].about)
        elif command == "/method":
            yield from (
                Completion(name, -len(argument)) for name in plugin_names("method") if name.startswith(argument)
            )
        elif command == "/topic":
            yield from self._called(argument)

    def _names(self, text: str) -> Iterable[Completion]:
        """Return the names that begin with the last words of a text, for as many words as possible."""
        words = list(re.finditer(r"\S+", text))
        for word in words[-MAX_WORDS:]:
            if found := list(self._called(text[word.start() :])):
                return found
        return ()

    def _called(self, beginning: str) -> Iterator[Completion]:
        wanted = normalise(beginning)
        if len(wanted) < MIN_CHARS:
            return
        graph = self._session.resources.graph
        try:
            matches = graph.search(beginning, limit=MAX_NAMES)
        except KgqaError:
            return  # no names can be completed now; a question will say why
        seen = set()
        for match in matches:
            name = clean(match.name)
            if normalise(name).startswith(wanted) and name not in seen:
                seen.add(name)
                yield Completion(name, -len(beginning), display_meta=clean(graph.schema.short_id(match.entity.iri)))
