"""The sampling parameters that a server accepts; a parameter that the server refuses is not sent to it again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from kgqa.llm.backends.chat_response import message_of
from kgqa.llm.client import Sampling

TOKEN_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
"""Fields for the token limit of a reply, in the order in which they are tried."""

# errors that name a parameter, although the cause is a prompt that is too long or a value that is too high
_TOO_MUCH = re.compile(
    r"context.(?:length|window|size)|too (?:large|long|many|big|high)|exceed|at most|greater than", re.IGNORECASE
)
_NOT_TAKEN = (
    r"(?:\b(?:unsupported|unavailable|unknown|unrecogni[sz]ed|unexpected|forbidden|invalid|illegal|extra|additional|"
    r"deprecated|must|only)|(?:\b(?:not|cannot|never)|n't)\W+(?:(?:be|both|currently|yet|a)\W+)*"
    r"(?:support|allow|permit|accept|recogni|implement|availab|valid|take|known|specif|used|set\b)\w*)"
)
_FILLER = (
    r"(?:\W+(?:request|argument|parameter|field|property|value|name|key|option|input|body|supplied|the|for|of|with)s?)*"
)
_VERBS = r"(?:\W+(?:is|are|was|were|does|do|has|can|this|that|value|currently))*"
_READ = 4000
"""Characters of an error message that are searched; some servers send a whole page."""
_QUOTED_INPUT = re.compile(r"""['"]?\binput(?:_value)?['"]?\s*[:=]""")


class SupportedParameters:
    """The parameters that one server has not refused. Thread-safe."""

    def __init__(self) -> None:
        self._dropped: set[str] = set()

    def request_fields(self, sampling: Sampling, *, more_tokens: int = 0) -> dict[str, Any]:
        """Return the request fields for sampling and `extra_body`, with `more_tokens` added to the token limit."""
        fields: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
        }
        if sampling.max_tokens is not None and (limit := self.limit):
            fields[limit] = sampling.max_tokens + more_tokens
        fields = {name: value for name, value in fields.items() if value is not None} | dict(sampling.extra_body)
        return {name: value for name, value in fields.items() if name not in self._dropped}

    @property
    def limit(self) -> str | None:
        """The request field for the token limit; None if the server refuses all such fields."""
        return next((name for name in TOKEN_LIMIT_FIELDS if name not in self._dropped), None)

    def drop(self, name: str) -> bool:
        """Stop sending a parameter; return False if another thread has dropped the parameter already."""
        before = len(self._dropped)
        self._dropped.add(name)
        return len(self._dropped) > before


def refused_parameter(error: Any, sent: Collection[str]) -> str | None:
    """Return the request field that the server refused; None if the error has another cause.

    Servers name the field in `param` (OpenAI, vLLM), in the `loc` of a list (FastAPI, Mistral), or only in the message.
    Another cause is, for example, a prompt that is too long, even if the message mentions `max_tokens`.

    Args:
        error: The body of a response with status 400 or 422, with or without an outer `error` object.
        sent: Names of the fields in the request.
    """
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    message = message_of(error)[:_READ]
    if _TOO_MUCH.search(message):
        return None
    for name in _named(error):
        if name in sent:
            return name
    # a message may quote the request, and a question in it may contain the word "temperature"
    message = _QUOTED_INPUT.split(message, maxsplit=1)[0]
    found = [(position, name) for name in sent if (position := _complained_of(name, message)) is not None]
    return min(found)[1] if found else None


def _named(error: Any) -> Iterator[str]:
    """Yield the names from the fields of an error that hold parameter names."""
    if not isinstance(error, dict):
        return
    if isinstance(error.get("param"), str):
        yield re.split(r"[.\[]", error["param"].removeprefix("body."))[0]
    for value in (error.get("detail"), error.get("message")):
        items = value.get("detail") if isinstance(value, dict) else value
        for item in items if isinstance(items, list) else ():
            location = item.get("loc") if isinstance(item, dict) else None
            location = location if isinstance(location, list) else []
            names = [part for part in location if isinstance(part, str) and part != "body"]
            yield from names[:1]


def _complained_of(name: str, message: str) -> int | None:
    """Return the position at which the message names the parameter as unsupported; None if it does not."""
    word = re.escape(name)
    quoted = rf"(?<=['\"`]){word}(?=(?:\.[\w.]+)?['\"`])"
    if re.search(_NOT_TAKEN, message, re.IGNORECASE) and (found := re.search(quoted, message)):
        return found.start()
    for pattern in (
        rf"{_NOT_TAKEN}{_FILLER}\W+({word})(?![\w-])",
        rf"(?<![\w-])({word}){_FILLER}{_VERBS}\W+{_NOT_TAKEN}",
    ):
        if found := re.search(pattern, message, re.IGNORECASE):
            return found.start(1)
    return None
