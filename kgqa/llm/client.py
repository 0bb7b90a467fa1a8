"""What a language model is to the rest of the program: prompts in, completions out, whole batches, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]
Stage = Literal["link", "clauses", "filter", "tournament", "entity", "decide", "judge"]
STAGES: tuple[Stage, ...] = ("link", "clauses", "filter", "tournament", "entity", "decide", "judge")
"""What a question asks a model for: to cut its text up, to prefer paths, to select entities, to have the last word."""
Failure = Literal["", "refused", "empty", "length", "rejected", "unreachable", "not_recorded"]
"""Why a completion cannot be used: the model declined, said nothing, was cut off at its token limit; the server
refused this prompt; it could not be reached although tried again; a replay file has no such reply."""

MAX_TOKEN_COUNT = 10**9
"""Whoever counts more tokens of one reply counts wrong."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn. None leaves it to the server; `extra_body` goes into the request as it is (Qwen3's
    `{"chat_template_kwargs": {"enable_thinking": false}}`).
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """One request. `choices`: the reply is wanted to be one of these, where the server can hold the model to that."""

    messages: tuple[Message, ...]
    stage: Stage
    sampling: Sampling = Sampling()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply.

    `text` has no reasoning in it: that is in `reasoning`. With a `failure` the text is not to be used, and `detail`
    says what happened, for people. `constrained`: the server held the model to the prompt's choices. `recorded`: it
    came from a replay file. `seconds`: what it took, tries included, or took when it was recorded.
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
"""Place of a prompt in its batch, and its completion; called from any thread."""


class LLM(Protocol):
    """A language model. Thread-safe; what concerns one prompt is a failure of its completion, never an exception.

    `name` is the model's, for people, runs and replay keys; it holds no key and no password. `notes`: what came up
    while talking to it that people should know (a parameter that was dropped), each once.
    """

    name: str

    @property
    def notes(self) -> tuple[str, ...]: ...

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, on_completion: OnCompletion | None = None
    ) -> list[Completion]:
        """One completion for each prompt, in order.

        Args:
            deadline: what is not there by this time of `time.monotonic()` is given up and not sent any more.
            on_completion: told of each completion as it comes, where they come one by one; of what it was told nothing is
                lost, whatever happens to the others.

        Raises:
            TimeoutError: it got too late.
            ModelUnavailable: nothing can be had from this model: no such model, a wrong key, no server, a library
                that is missing.
        """
        ...

    def close(self) -> None: ...
