"""Events about language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgqa.trace.event import Event


@dataclass(frozen=True, kw_only=True)
class StageModels(Event):
    """The language model and the sampling parameters of each stage."""

    kind = "models"
    stages: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Unparsed(Event):
    """Replies that could not be read, even after asking again. `count`: number of replies."""

    stage: str
    count: int


@dataclass(frozen=True, kw_only=True)
class NoReply(Event):
    """A prompt without a reply.

    `failure`: the cause, such as "unreachable". `text`: the server's message; its key in JSON is `detail`.
    """

    stage: str
    failure: str
    text: str = field(metadata={"formerly": "detail"})


@dataclass(frozen=True, kw_only=True)
class Reasoning(Event):
    """The reasoning that a model sent beside its reply; the first 2,000 characters."""

    stage: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Leaks(Event):
    """The check of all prompts of the question. `texts`: number of texts; `leaks`: texts that name a masked topic."""

    texts: int
    leaks: int
