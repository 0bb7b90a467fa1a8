"""Hints: what the user should do next, as values that are put into words where they are shown.

A hint consists of texts and of actions: an `Option` to give, a `Command` to run, an extra of kgqa to `Install`. The
command line shows `--timeout 60` and `kgqa graph search ada`, Python `timeout=60` and `graph.search("ada")`. Clients of
`kgqa serve` cannot give options: its page, agents and chat front ends are told what they can do instead.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from kgqa.text.installation import install_command


@dataclass(frozen=True)
class Place:
    """Where hints are shown.

    `repeated`: on the command line, the options that hints repeat, as one text for each command. `clients`: at a
    service, what clients do instead of giving options and running commands.
    """

    name: Literal["Python", "command line", "page", "agent", "chat"]
    repeated: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)


PAGE = Place(
    "page",
    clients={
        "graph search": "search for it",
        "topic": "give its id as a topic",
        "llm": "choose a model, if the service offers one",
    },
)
AGENT = Place(
    "agent",
    clients={
        "graph search": "call search",
        "topic": "pass its id in topics",
        "llm": "start the server with a language model",
    },
)
CHAT = Place(
    "chat",
    clients={
        "graph search": "look it up on the page of the service",
        "topic": "write its full name in the question",
        "llm": "choose a model with @ in its name, if there is one",
    },
)
_program = [Place("Python")]
"""The place of this process, in all threads; the last item counts."""
_call: ContextVar[Place | None] = ContextVar("place", default=None)
"""The place of the running call, if it is another."""
_KEYWORDS = {"topic": "topics", "into": "folder"}
"""Keyword arguments whose name is not the option's."""
_CALLS = {
    "ask": "kgqa.ask(question{options})",
    "graph search": "graph.search({values})",
    "graph load": "kgqa.load_into_folder([{values}]{options})",
    "corpus build": "kgqa.build_corpus(paths=[{values}]{options})",
    "eval run": "kgqa.evaluation.run(plan, out)",
    "eval resume": "kgqa.evaluation.resume({values}{options})",
}
"""The Python calls for commands."""
_WITH_GRAPH = ("ask", "chat", "doctor", "explain", "graph info", "graph search", "serve")
_LOGIN = re.compile(r"^([a-z]+://)[^/]*@")


@dataclass(frozen=True)
class Option:
    """An option of the command line; in Python, the keyword argument of the same name.

    `value`: the value to give; True for an option without a value, None if the user knows the value.
    """

    name: str
    value: object = None

    def __str__(self) -> str:
        place = current_place()
        if place.name == "Python":
            name = _KEYWORDS.get(self.name, self.name).replace("-", "_")
            return f"{name}={'' if self.value is None else _literal(self.value)}"
        if place.clients:
            return place.clients.get(self.name) or f"{self.typed()} of kgqa serve"
        return self.typed()

    def typed(self) -> str:
        """Return the option as it is typed."""
        is_bare = self.value is None or self.value is True
        return f"--{self.name}" if is_bare else f"--{self.name} {shlex.quote(_text(self.value))}"


@dataclass(init=False, unsafe_hash=True)
class Command:
    """A command of kgqa; in Python, the call that does the same, if there is one.

    Args:
        name: the command, such as "graph search".
        arguments: its arguments and options in their order.
        options: options that follow, by name with underscores.
    """

    name: str
    arguments: tuple[str | Option, ...]

    def __init__(self, name: str, *arguments: object, **options: object) -> None:
        self.name = name
        given = (each if isinstance(each, Option) else str(each) for each in arguments)
        self.arguments = (*given, *(Option(key.replace("_", "-"), value) for key, value in options.items()))

    def __str__(self) -> str:
        place = current_place()
        options = [each for each in self.arguments if isinstance(each, Option)]
        if place.clients:
            return place.clients.get(self.name) or self.typed()
        into_server = any("://" in str(each.value) for each in options)
        if place.name == "Python" and self.name in _CALLS and not into_server:
            values = ", ".join(_literal(each) for each in self.arguments if not isinstance(each, Option))
            return _CALLS[self.name].format(values=values, options="".join(f", {each}" for each in options))
        names_graph = any(each.name == "graph" for each in options)
        return self.typed("" if names_graph else place.repeated.get(self.name, ""))

    def typed(self, repeated: str = "") -> str:
        """Return the command as it is typed, with more options after its name."""
        words = (each.typed() if isinstance(each, Option) else shlex.quote(each) for each in self.arguments)
        return " ".join([f"kgqa {self.name}{repeated}", *words])


@dataclass(frozen=True)
class Install:
    """The installation of an extra of kgqa, as a command of the shell."""

    extra: str

    def __str__(self) -> str:
        # a client need not know where kgqa is installed
        return f"pip install 'kgqa[{self.extra}]'" if current_place().clients else install_command(self.extra)


@dataclass(init=False, unsafe_hash=True)
class Hint:
    """What the user should do next.

    `python`: the hint to show in Python, if it differs. `client`: the one for clients of `kgqa serve`, if it differs.
    """

    parts: tuple[Part, ...]
    python: Part | None
    client: Part | None

    def __init__(self, *parts: Part, python: Part | None = None, client: Part | None = None) -> None:
        self.parts, self.python, self.client = parts, python, client

    def __str__(self) -> str:
        place = current_place()
        other = self.python if place.name == "Python" else self.client if place.clients else None
        return "".join(map(str, self.parts)) if other is None else str(other)


Part: TypeAlias = str | Option | Command | Install | Hint


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _literal(value: object) -> str:
    return _text(value) if isinstance(value, int | float) else json.dumps(str(value), ensure_ascii=False)


def current_place() -> Place:
    """Return the place where hints are shown now."""
    return _call.get() or _program[-1]


def place() -> str:
    """Return where this process was started: "Python" or "command line"."""
    return _program[-1].name


@contextmanager
def command_line_wording() -> Iterator[None]:
    """Show hints in the words of the command line, in all threads of this process, until the context ends."""
    _program.append(Place("command line"))
    try:
        yield
    finally:
        _program.pop()


@contextmanager
def shown_at(place: Place) -> Iterator[None]:
    """Show hints in the words of a place until the context ends, in the calls made in it."""
    token = _call.set(place)
    try:
        yield
    finally:
        _call.reset(token)


def repeat_options(graph: Sequence[tuple[str, str]], others: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Add options to the commands in hints until the command line's context ends.

    Args:
        graph: the names and values of the options that choose the graph; a login in an address is left out.
        others: further options by command, such as those of the SPARQL endpoint for `doctor`.
    """
    repeated = {command: _option_text([*graph, *others.get(command, ())]) for command in _WITH_GRAPH}
    _program[-1] = Place(_program[-1].name, repeated)


def _option_text(options: Sequence[tuple[str, str]]) -> str:
    return "".join(" " + name + " " + shlex.quote(_LOGIN.sub(r"\1", value)) for name, value in options)
