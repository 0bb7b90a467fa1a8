"""Hints that are written as on the command line, for rooms whose hints are not values yet."""

from __future__ import annotations

import json
import re

from kgqa.text.hints import current_place

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
_LOAD_INTO_URL = "kgqa.virtuoso.bulk.url_loading.load_into_url([{values}]{options})"
_ARGUMENT = r"""(?:'[^']*'|"[^"]*"|[^\s`,;()'"]*[^\s`,;()'".:])"""
_END = r"(?=[,;)]|[.:]?$|[.:] | --)"
# a lower-case word such as "skip" is an option's value only at the end of a clause: "--on-error skip."
_TAKES_VALUE = "".join(f"(?<!--{flag})" for flag in _FLAGS)
_OPTION = rf"--([a-z][a-z-]*[a-z])(?:{_TAKES_VALUE} (?!--)((?=['\"A-Z0-9]|\S*[:/]\S){_ARGUMENT}|{_ARGUMENT}{_END}))?"
_COMMAND = re.compile(rf"`?(kgqa(?: {_ARGUMENT})+)`?|(?<![\w-]){_OPTION}")
_SEARCH, _GIVE = "search for it", "give its id as a topic, or write its full name in the question"
_CHOOSE = "choose a language model, if the service offers one"
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
        (r"(?<=: )(--[a-z][a-z-]*(?: [^ -]\S*?)?)(?=\.?$)", r"\1 of kgqa serve"),
        ("`", ""),
    )
]
"""What a client of the service can do, for what a user of the command line can."""
_ASKS_GRAPH = re.compile(r"kgqa (ask|chat|doctor|explain|graph info|graph search|serve)\b(?![^`\n]*--graph\b)")


def _with_options(match: re.Match[str]) -> str:
    place = current_place()
    return match[0] + place.graph + place.others.get(match[1], "")


def hint_text(hint: str, *, python: str = "") -> str:
    """Return a hint in the words of the place where it is shown.

    Args:
        hint: the hint, as on the command line.
        python: the hint in Python, if it cannot be derived from `hint`.
    """
    if current_place().name in ("page", "agent", "chat"):
        return _for_clients(hint)
    if current_place().name != "Python":
        return _ASKS_GRAPH.sub(_with_options, hint)
    return python or _COMMAND.sub(_in_python, hint)


def _for_clients(hint: str) -> str:
    for pattern, words in _FOR_CLIENTS:
        hint = pattern.sub(lambda match, words=words: _as_begun(match[0], match.expand(words)), hint)  # type: ignore[misc]
    return hint


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
