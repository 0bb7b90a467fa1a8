"""The sampling parameters that a server accepts; a parameter that the server refuses is not sent to it again."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from kgqa.llm.backends.chat_response import safe_str
from kgqa.llm.client import Sampling

TOKEN_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
"""Fields for the token limit of a reply, in the order in which they are tried."""

# errors that name a parameter, although the cause is a prompt that is too long or a value that is too high
_TOO_MUCH = re.compile(
    r"context.(?:length|window|size)|too (?:large|long|many|big|high)|exceed|at most|greater than", re.IGNORECASE
)
_NOT_TAKEN = re.compile(
    r"\b(?:unsupported|unavailable|unknown|unrecogni[sz]ed|unexpected|forbidden|invalid|illegal|extra|additional|"
    r"deprecated|must|only)|(?:\b(?:not|cannot|never)|n't)\W+(?:(?:be|both|currently|yet|a)\W+)*"
    r"(?:support|allow|permit|accept|recogni|implement|availab|valid|take|known|specif|used|set\b)",
    re.IGNORECASE,
)
_QUOTED_INPUT = re.compile(r"""['"]?\binput(?:_value)?['"]?\s*[:=]""")
_READ = 4000
"""Characters of an error that are searched; some servers send a whole page."""


def sampling_fields(sampling: Sampling, refused: Collection[str], *, more_tokens: int = 0) -> dict[str, Any]:
    """Return the request fields for sampling and `extra_body`.

    Args:
        sampling: The sampling parameters.
        refused: The fields that the server has refused; they are left out.
        more_tokens: Added to the token limit.
    """
    fields: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
    limit = next((name for name in TOKEN_LIMIT_FIELDS if name not in refused), None)
    if sampling.max_tokens is not None and limit:
        fields[limit] = sampling.max_tokens + more_tokens
    fields = {name: value for name, value in fields.items() if value is not None} | dict(sampling.extra_body)
    return {name: value for name, value in fields.items() if name not in refused}


def refused_parameter(error: Any, sent: Collection[str]) -> str | None:
    """Return the request field that the server refused; None if the error has another cause.

    Servers name the field in `param` (OpenAI, vLLM), in the `loc` of a list (FastAPI, Mistral), or only in the message.
    Another cause is, for example, a prompt that is too long, even if the message mentions `max_tokens`.

    Args:
        error: The body of a response with status 400 or 422.
        sent: Names of the fields in the request.
    """
    # an error may quote the request, and a question in it may contain the word "temperature"
    text = _QUOTED_INPUT.split(safe_str(error)[:_READ], maxsplit=1)[0]
    if _TOO_MUCH.search(text) or not _NOT_TAKEN.search(text):
        return None
    named = [
        (found.start(), name) for name in sent if (found := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))
    ]
    return min(named)[1] if named else None
