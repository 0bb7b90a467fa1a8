"""A conversation: the open graph, the turns so far, and how a question is asked and stopped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from kgqa.cli.bars import StatusLine
from kgqa.cli.options import repeat_graph
from kgqa.errors import KgqaError
from kgqa.methods.ask import ask, budget_of, open_resources
from kgqa.methods.conversation import ChatTurn, Resolved, turn_of
from kgqa.methods.conversation import resolve as resolve_references
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity
from kgqa.report.answer import answer_text
from kgqa.report.path_text import signs_for
from kgqa.settings.values import Settings, resolve
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

T = TypeVar("T")
MAX_TURNS = 50
_MAX_SHOWN = 300
_OF_ONE_GRAPH = ("graph.iri", "graph.view", "graph.schema", "endpoint.profile")
"""Settings that another graph does not take over."""


def in_chat(text: str) -> str:
    """Return a message with the command of the chat in place of the option of the command line."""
    return text.replace("--topic", "/topic")


class Session:
    """A conversation about one graph.

    Args:
        given: Settings by key, as for `resolve`.
        say: Called with messages for the user.
        note: The same, from any thread.
        notes: Whether notes on answers are shown.

    Attributes:
        resources: The open graph with the models of the method.
        turns: The turns so far, the latest last.
        topics: Ids or names of the entities that the next question is about; empty to find them in its text.
        last: The last answer.

    A note on an answer is shown once in a conversation.

    Raises:
        KgqaError: see `open_resources`.
    """

    def __init__(
        self,
        given: dict[str, Any],
        *,
        say: Callable[[str], None],
        note: Callable[[str], None] = lambda text: None,
        notes: bool = True,
    ) -> None:
        self._given = given
        self._say, self._note, self._notes = say, note, notes
        self.resources = self._open(given)
        self._opened = {self.method: self.resources}
        self._worker = ThreadPoolExecutor(1, "kgqa-chat")
        self.turns: list[ChatTurn] = []
        self.topics: tuple[str, ...] = ()
        self.last: Answer | None = None
        self._seen: set[str] = set()

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.resources.settings.ask.method

    @property
    def place(self) -> str:
        """Where the graph is, for people."""
        path = self.resources.settings.graph.path
        return "the demo graph" if path is None else clean(str(path))

    def ask(self, text: str) -> str:
        """Ask a question; return what is shown. Ctrl-C stops it. Errors become text."""
        with StatusLine() as status:
            trace = Trace(budget_of(self.resources.settings), listener=status.listener)
            answer = self._stoppable(lambda: self._answer(text, trace), trace)
        if isinstance(answer, str):
            return answer
        self.last, self.topics = answer, ()
        self.turns = [*self.turns, turn_of(answer)][-MAX_TURNS:]
        new = tuple(each for each in answer.notes if each not in self._seen)
        self._seen.update(new)
        return self.answer_shown(replace(answer, notes=new))

    def _answer(self, text: str, trace: Trace) -> Answer | str:
        """Answer a question, in the thread of the conversation; what is asked is shown first, if it is something else.

        Returns the text of the error if it cannot be asked.
        """
        try:
            resolved = Resolved(text)
            if not self.topics:
                resolved = resolve_references(text, self.turns, self.resources, trace=trace)
            if resolved.by:
                print(f"Asking: {self.shown(resolved.question)}", flush=True)
            for line in resolved.notes:
                print(clean(line), flush=True)
            named = [each.value for each in resolved.topics if isinstance(each.value, Entity)]
            return ask(resolved.question, topics=named or list(self.topics), resources=self.resources, trace=trace)
        except KgqaError as error:
            return in_chat(f"kgqa: {clean(str(error))}")
        except Exception as error:  # noqa: BLE001  one question must not end the conversation
            return clean(f"kgqa: internal error: {type(error).__name__}: {error}. This is a defect of kgqa.")

    def _stoppable(self, function: Callable[[], T], trace: Trace) -> T:
        """Call a function in the thread of the conversation; Ctrl-C stops the question and waits for its end."""
        future: Future[T] = self._worker.submit(function)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                first = not trace.stopped.is_set()
                trace.stop()
                self._say("Stopping..." if first else "Waiting for the query that is running.")

    def answer_shown(self, answer: Answer, *, short: bool = True) -> str:
        """Return the text of an answer."""
        width = shutil.get_terminal_size((120, 0)).columns
        signs = signs_for(sys.stdout.encoding)
        return in_chat(answer_text(answer, short=short, notes=self._notes, width=width, signs=signs))

    def shown(self, text: str) -> str:
        """Return a line of input as it is shown."""
        return clean(text)[:_MAX_SHOWN]

    def forget(self) -> None:
        """Forget the turns and the last answer."""
        self.turns, self.topics, self.last = [], (), None
        self._seen.clear()

    def use_method(self, name: str) -> None:
        """Answer the next questions by another method, with the same graph. Raises the errors of `open_resources`."""
        if name not in self._opened:
            given = {**self._given, "ask.method": name}
            self._opened[name] = open_resources(
                self.resources.graph, settings=resolve(given), corpus=self.resources.corpus, say=self._say
            )
        self.resources = self._opened[name]

    def use_graph(self, place: str | None) -> None:
        """Open another graph with the same method, and forget the conversation.

        Raises:
            KgqaError: it cannot be opened; the graph stays as it is.
        """
        kept = {key: value for key, value in self._given.items() if key not in _OF_ONE_GRAPH}
        given = {**kept, "ask.method": self.method, "graph.path": place}
        opened = self._open(given)
        self._close_all()
        repeat_graph(given)
        self._given, self.resources, self._opened = given, opened, {self.method: opened}
        self.forget()

    def close(self) -> None:
        """Close the graph and the models."""
        self._worker.shutdown()
        self._close_all()

    def _open(self, given: dict[str, Any]) -> Resources:
        settings: Settings = resolve(given)
        for text in settings.notes:
            self._say(f"kgqa: {text}")
        resources = open_resources(settings=settings, say=self._say)
        try:
            resources.open_names(required=False, note=self._note)
        except BaseException:
            resources.close()
            raise
        return resources

    def _close_all(self) -> None:
        first, *others = self._opened.values()
        for each in others:
            if each.models is not None:
                each.models.close()
        first.close()
