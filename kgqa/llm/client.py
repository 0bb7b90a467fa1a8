"""The interface of a language model: a batch of prompts in, completions out, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]
Stage = Literal["link", "clauses", "filter", "tournament", "entity", "decide", "judge"]
STAGES: tuple[Stage, ...] = ("link", "clauses", "filter", "tournament", "entity", "decide", "judge")
"""The stages of a question that ask a model: split the text, prefer paths, select entities, decide."""
Failure = Literal["", "refused", "empty", "length", "rejected", "unreachable", "not_recorded"]
"""Why a completion cannot be used: the model declined, replied nothing, or reached its token limit; the server rejected
this prompt, or could not be reached despite retries; a replay file has no such reply."""

MAX_TOKEN_COUNT = 10**9
"""A server that counts more tokens for one reply is wrong."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: str


@dataclass(frozen=True)
class Sampling:
    """How a reply is sampled; None leaves a value to the server.

    `extra_body` is added to the request unchanged (Qwen3: `{"chat_template_kwargs": {"enable_thinking": false}}`).
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """One request; with `choices` the reply should be one of them, if the server can constrain the model to that."""

    messages: tuple[Message, ...]
    stage: Stage
    sampling: Sampling = Sampling()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply.

    Attributes:
        text: The reply without reasoning; not to be used if there is a `failure`.
        reasoning: The model's reasoning.
        failure: Why the completion cannot be used, empty if it can.
        detail: What happened, for people.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the reply.
        seconds: Time it took, retries included; for a recorded reply the time when it was recorded.
        constrained: The server constrained the model to the prompt's choices.
        recorded: The reply came from a replay file.
    """

    text: str = ""
    reasoning: str = ""
    failure: Failure = ""
    detail: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    constrained: bool = False
    recorded: bool = False


OnCompletion = Callable[[int, Completion], None]
"""Called from any thread with the index of a prompt in its batch and its completion."""


class LLM(Protocol):
    """A language model. Thread-safe; a problem with one prompt is a failure of its completion, never an exception.

    `name` identifies the model for people, runs and replay keys; it contains no key and no password. `notes` are
    messages that came up during requests and matter to people, such as a dropped parameter, each once.
    """

    name: str

    @property
    def notes(self) -> tuple[str, ...]: ...

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, on_completion: OnCompletion | None = None
    ) -> list[Completion]:
        """Return one completion for each prompt, in order.

        Args:
            prompts: The batch.
            deadline: Time of `time.monotonic()` at which unfinished prompts are abandoned.
            on_completion: Called for each completion as it arrives, if they arrive one by one; completions passed to it
                are kept even if others fail.

        Raises:
            TimeoutError: The deadline has passed.
            ModelUnavailable: The model cannot be used at all: unknown model, wrong key, no server, missing library.
        """
        ...

    def close(self) -> None: ...
