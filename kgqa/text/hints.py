"""Hints: what the user should do next, in the words of the place where they are shown.

A hint is written as on the command line: `allow more time: --timeout`, `look it up: kgqa graph search NAME`. The
command line adds --graph and similar options that the user gave to commands that take them. In Python, options become
keyword arguments (`timeout=`, `graph_iri="IRI"`), and commands with a counterpart in Python become calls; other
commands, such as `kgqa virtuoso start`, stay commands. A client of `kgqa serve` has no options: it is told what it can
do in words. Answers of the service are worded for its page and its API, and `reworded` for agents and chats, so that a
kept answer can be shown in every place.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

_FLAGS = ("as-published", "keep-going", "losses", "replay-only", "restart", "resume", "trust")
_KEYWORDS = {"topic": "topics"}
"""Keyword arguments whose name is not the option's name with underscores."""
_CALLS = {
    "-v COMMAND": 'logging.basicConfig(level="DEBUG")',
    "ask": "kgqa.ask({values}{options})",
    "graph search": "graph.search({values})",
    "graph load": "kgqa.load_into_folder([{values}]{options})",
    "corpus build": "kgqa.build_corpus(paths=[{values}]{options})",
    "eval run": "kgqa.evaluation.run(plan, out)",
    "eval resume": "kgqa.evaluation.resume({values}{options})",
}
"""The Python calls for commands."""
_LOAD_INTO_URL = "kgqa.virtuoso.graph_loading.load_into_url([{values}]{options})"
_ARGUMENT = r"""(?:'[^']*'|"[^"]*"|[^\s`,;()'"]*[^\s`,;()'".:])"""
_END = r"(?=[,;)]|[.:]?$|[.:] | --)"
# a lower-case word such as "skip" is an option's value only at the end of a clause: "--on-error skip."
_TAKES_VALUE = "".join(f"(?<!--{flag})" for flag in _FLAGS)
_OPTION = rf"--([a-z][a-z-]*[a-z])(?:{_TAKES_VALUE} (?!--)((?=['\"A-Z0-9]|\S*[:/]\S){_ARGUMENT}|{_ARGUMENT}{_END}))?"
_COMMAND = re.compile(rf"`?(kgqa(?: {_ARGUMENT})+)`?|(?<![\w-]){_OPTION}")
_LOGIN = re.compile(r"^([a-z]+://)[^/]*@")
_places = ["Python"]
"""Where hints are shown; the last item counts."""
_serving = ContextVar("serving", default=False)
"""Whether the running call answers a client of the service."""
_SEARCH, _GIVE, _CHOOSE = "search for it", "give its id as a topic", "choose a model, if the service offers one"
_CLIENT: dict[str, dict[str, str]] = {
    "agent": {
        _SEARCH: "call search",
        _GIVE: "pass its id in topics",
        _CHOOSE: "start the server with a language model",
    },
    "chat": {
        _SEARCH: "look it up on the page of the service",
        _GIVE: "write its full name in the question",
        _CHOOSE: "choose a model with @ in its name, if there is one",
    },
}
"""The words of agents and of chat front ends for those of the page and the API."""
_SEARCH_COMMAND = rf"`?kgqa graph search(?: (?!--){_ARGUMENT})?(?: --graph {_ARGUMENT})?`?"
_FOR_CLIENTS = [
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (rf"look up its id with {_SEARCH_COMMAND} and add --topic ID", f"{_SEARCH}, and {_GIVE}"),
        (rf"(?:look it up|search): {_SEARCH_COMMAND}", _SEARCH),
        (r"(?:add|use) --topic(?: ID)?", _GIVE),
        (r"with --topic(?: ID)?", "by its id"),
        (r"(?<=: )(?:kgqa ask )?--topic(?: ID)?", _GIVE),
        (r"(?<=: )(?:--chooser llm )?--llm MODEL|(?:add|set) --llm [^.]*[^.,; ]", _CHOOSE),
        (r"(?<=: )(--[a-z][a-z-]*(?: [^ -]\S*?)?)(?=\.?$)", r"\1 (an option of kgqa serve)"),
        ("`", ""),
    )
]
"""What a client of the service can do, for what a user of the command line can."""
_ASKS_GRAPH = re.compile(r"kgqa (ask|chat|doctor|explain|graph info|graph search|serve)\b(?![^`\n]*--graph\b)")
Repeated = list[tuple[str, dict[str, str]]]
_given: Repeated = []
"""The options of the running command that choose the graph, and further options by command, each as one text."""


@contextmanager
def command_line_wording(repeated: Repeated | None = None) -> Iterator[None]:
    """Show hints in the words of the command line, in all threads of this process, until the context ends.

    Args:
        repeated: what `repeated_options` returned in another process.
    """
    _places.append("command line")
    _given[:] = repeated or _given
    try:
        yield
    finally:
        _places.pop()
        if place() == "Python":
            _given.clear()


def repeated_options() -> Repeated:
    """Return the options that hints repeat now, for `command_line_wording` in another process."""
    return list(_given)


@contextmanager
def service_wording() -> Iterator[None]:
    """Show hints in the words of the service's page and API until the context ends, in the calls made in it."""
    token = _serving.set(True)
    try:
        yield
    finally:
        _serving.reset(token)


def repeat_options(
    graph: Sequence[tuple[str, str]], others: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> None:
    """Add options to the commands in hints until the command line's context ends.

    Args:
        graph: the names and values of the options that choose the graph; a login in an address is left out.
        others: further options by command, such as those of the SPARQL endpoint for `doctor`.
    """
    texts = {command: _option_text(options) for command, options in (others or {}).items()}
    _given[:] = [(_option_text(graph), texts)]


def _option_text(options: Sequence[tuple[str, str]]) -> str:
    return "".join(" " + name + " " + shlex.quote(_LOGIN.sub(r"\1", value)) for name, value in options)


def _with_options(match: re.Match[str]) -> str:
    graph, others = _given[-1] if _given else ("", {})
    return match[0] + graph + others.get(match[1], "")


def place() -> str:
    """Return where this process was started: "Python" or "command line"."""
    return _places[-1]


def hint_text(hint: str, *, python: str = "") -> str:
    """Return a hint in the words of the place where it is shown.

    Args:
        hint: the hint, as on the command line.
        python: the hint in Python, if it cannot be derived from `hint`.
    """
    if _serving.get():
        return _for_clients(hint)
    if place() != "Python":
        return _ASKS_GRAPH.sub(_with_options, hint)
    return python or _COMMAND.sub(_in_python, hint)


def _for_clients(hint: str) -> str:
    for pattern, words in _FOR_CLIENTS:
        hint = pattern.sub(lambda match, words=words: _as_begun(match[0], match.expand(words)), hint)  # type: ignore[misc]
    return hint


def reworded(text: str, client: Literal["agent", "chat"]) -> str:
    """Return a text of the service with hints in the words of an agent or of a chat front end."""
    for words, own in _CLIENT[client].items():
        text = re.sub(words, lambda match, own=own: _as_begun(match[0], own), text, flags=re.IGNORECASE)  # type: ignore[misc]
    return text


def _as_begun(text: str, words: str) -> str:
    """Return words that begin with a capital letter if a text does."""
    return words[0].upper() + words[1:] if text[:1].isupper() and words else words


def _in_python(match: re.Match[str]) -> str:
    command, option, value = match.groups()
    return _call(command) or match[0] if command else _keyword(option, value)


def _keyword(option: str, value: str | None) -> str:
    name = option.replace("-", "_")
    name = _KEYWORDS.get(name, name)
    if value is None:
        return f"{name}=True" if option in _FLAGS else f"{name}="
    return f"{name}={_literal(value)}"


def _literal(value: str) -> str:
    text = value.strip("'\"")
    return text if re.fullmatch(r"-?\d+(\.\d+)?", text) else json.dumps(text, ensure_ascii=False)


def _call(command: str) -> str | None:
    """Return the call that corresponds to a command; None if Python has no such call."""
    name = next((each for each in _CALLS if f"{command} ".startswith(f"kgqa {each} ")), None)
    if name is None:
        return None
    text = command.removeprefix(f"kgqa {name}")
    options = [_keyword(option, value or None) for option, value in re.findall(_OPTION, text)]
    values = [_literal(value) for value in re.findall(_ARGUMENT, re.sub(_OPTION, "", text))]
    if name == "ask" and not values:
        values = ["question"]
    call, target = (_LOAD_INTO_URL, "url=") if name == "graph load" and "://" in command else (_CALLS[name], "folder=")
    options = [option.replace("into=", target) for option in options]
    separator = ", " if values or "[{values}]" in call else ""
    return call.format(values=", ".join(values), options=separator + ", ".join(options) if options else "")
