"""Events about language models and about problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from kgqa.trace.event import Event


class StageModels(Event, frozen=True, tag="models"):
    """The language model and the sampling parameters of each stage."""

    stages: Mapping[str, Any]


class NoReply(Event, frozen=True):
    """A prompt without a reply.

    `failure`: the cause, such as "unreachable". `text`: the server's message; its key in JSON is `detail`.
    """

    stage: str
    failure: str
    text: str = field(name="detail")


class Reasoning(Event, frozen=True):
    """The reasoning that a model sent beside its reply; the first 2,000 characters."""

    stage: str
    text: str


class Leaks(Event, frozen=True):
    """The check of all prompts of the question. `texts`: number of texts; `leaks`: texts that name a masked topic."""

    texts: int
    leaks: int


class Timeout(Event, frozen=True):
    """A query exceeded its time limit. `error`: the class of the exception."""

    error: str


class GaveUp(Event, frozen=True, kw_only=True, omit_defaults=True):
    """A query failed, and the question was continued without its result. `path`: the path in words.

    `evidence`: whether only the evidence lacks the result; if False, the search may have missed a path.
    """

    path: str = ""
    error: str
    evidence: bool = False


class Failed(Event, frozen=True):
    """The question ended with an error; the answer's reason is its message. `error`: the class of the exception."""

    error: str
