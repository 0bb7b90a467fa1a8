"""Hints: what the user should do next, as values that are put into words where they are shown.

A hint consists of texts and of actions: an `Option` to give, a `Command` to run, an extra of kgqa to `Install`. The
command line shows `--timeout 60` and `kgqa graph search ada`, Python `timeout=60` and `graph.search("ada")`. Clients of
`kgqa serve` cannot give options, so they are told what they can do.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from kgqa.text.installation import install_command


@dataclass(frozen=True)
class Place:
    """Where hints are shown.

    `graph`: options that commands with a graph repeat, as one text; `others`: further ones by command. Only for the
    command line.
    """

    name: Literal["Python", "command line", "service"]
    graph: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


SERVICE = Place("service")
_program = [Place("Python")]
"""The place of this process, in all threads; the last item counts."""
_call: ContextVar[Place | None] = ContextVar("place", default=None)
"""The place of the running call, if it is another."""


@dataclass(frozen=True)
class Option:
    """An option of the command line; in Python, the keyword argument of the same name.

    `value`: the value to give; True for an option without a value, None if the user knows the value.
    """

    name: str
    value: object = None

    def __str__(self) -> str:
        match current_place().name:
            case "Python":
                name = _KEYWORDS.get(self.name, self.name).replace("-", "_")
                return f"{name}={'' if self.value is None else _literal(self.value)}"
            case "service":
                return _AT_SERVICE.get(self.name) or f"{self.typed()} of kgqa serve"
            case _:
                return self.typed()

    def typed(self) -> str:
        """Return the option as it is typed."""
        bare = self.value is None or self.value is True
        return f"--{self.name}" if bare else f"--{self.name} {shlex.quote(_text(self.value))}"


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
        own = (each if isinstance(each, Option) else str(each) for each in arguments)
        self.arguments = (*own, *(Option(key.replace("_", "-"), value) for key, value in options.items()))

    def __str__(self) -> str:
        place = current_place()
        options = [each for each in self.arguments if isinstance(each, Option)]
        if place.name == "service":
            return _AT_SERVICE.get(self.name) or self.typed()
        into_server = any("://" in str(each.value) for each in options)
        if place.name == "Python" and self.name in _CALLS and not into_server:
            values = ", ".join(_literal(each) for each in self.arguments if not isinstance(each, Option))
            return _CALLS[self.name].format(values=values, options="".join(f", {each}" for each in options))
        repeats = self.name in _WITH_GRAPH and all(each.name != "graph" for each in options)
        return self.typed(place.graph + place.others.get(self.name, "") if repeats else "")

    def typed(self, repeated: str = "") -> str:
        """Return the command as it is typed, with more options after its name."""
        own = (each.typed() if isinstance(each, Option) else shlex.quote(each) for each in self.arguments)
        return " ".join([f"kgqa {self.name}{repeated}", *own])


@dataclass(frozen=True)
class Install:
    """The installation of an extra of kgqa, as a command of the shell."""

    extra: str

    def __str__(self) -> str:
        # a client need not know where kgqa is installed
        return f"pip install 'kgqa[{self.extra}]'" if current_place() == SERVICE else install_command(self.extra)


@dataclass(init=False, unsafe_hash=True)
class Hint:
    """What the user should do next. `python`, `service`: other words in Python, and for clients of the service."""

    parts: tuple[str | Option | Command | Install | Hint, ...]
    python: str | None
    service: str | None

    def __init__(
        self,
        *parts: str | Option | Command | Install | Hint,
        python: str | None = None,
        service: str | None = None,
    ) -> None:
        self.parts, self.python, self.service = parts, python, service

    def __str__(self) -> str:
        own = {"Python": self.python, "service": self.service}.get(current_place().name)
        return "".join(map(str, self.parts)) if own is None else own


Part = str | Option | Command | Install | Hint
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
"""The calls for commands."""
GIVE_TOPIC = "give its id as a topic, or write its full name in the question"
_AT_SERVICE = {
    "graph search": "search for it",
    "topic": GIVE_TOPIC,
    "llm": "choose a language model, if the service offers one",
}
"""What a client of the service does instead of a command or an option."""
_WITH_GRAPH = ("ask", "chat", "doctor", "explain", "graph info", "graph search", "serve")
_LOGIN = re.compile(r"^([a-z]+://)[^/]*@")


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


def repeat_options(
    graph: Sequence[tuple[str, str]], others: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> None:
    """Add options to the commands in hints until the command line's context ends.

    Args:
        graph: the names and values of the options that choose the graph; a login in an address is left out.
        others: further options by command, such as those of the SPARQL endpoint for `doctor`.
    """
    texts = {command: _option_text(options) for command, options in (others or {}).items()}
    _program[-1] = Place(_program[-1].name, _option_text(graph), texts)


def _option_text(options: Sequence[tuple[str, str]]) -> str:
    return "".join(" " + name + " " + shlex.quote(_LOGIN.sub(r"\1", value)) for name, value in options)
