"""The interface of language models: it takes a batch of prompts and returns one completion per prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Meta

from kgqa.llm.replies.reply import Reply

T = TypeVar("T")
Role = Literal["system", "user", "assistant"]
Stage = str
STAGES: tuple[Stage, ...] = ("link", "clauses", "filter", "tournament", "entity", "decide", "judge")
"""The stages of a question that several methods share; a method can declare further stages.

"link" finds the topic in the text; "clauses" splits the question; "filter" and "tournament" select relations and paths;
"entity" selects entities; "decide" decides whether the evidence is enough, and answers; "judge" grades answers.
"""
CORPUS_STAGES: tuple[Stage, ...] = ("extract", "resolve", "summarise")
"""The stages of building a corpus: "extract" finds facts in text; "resolve" decides whether two names mean the same
entity; "summarise" describes communities.
"""
Failure = Literal["", "refused", "empty", "length", "rejected", "unreachable"]
"""Why a completion cannot be used; "" if it can.

"refused": the model declined. "empty": the reply has no text. "length": the reply was cut off at its token limit.
"rejected": the server does not accept the prompt. "unreachable": the server could not be reached despite retries.
"""

ImageType = Literal["image/png", "image/jpeg", "image/webp", "image/gif"]
MAX_IMAGE_BYTES = 20 << 20
"""Largest image in a message."""
MAX_TOKEN_COUNT = 10**9
"""Largest plausible token count of one reply; a server that reports more is not believed."""
TokenCount = Annotated[int, Meta(ge=0, le=MAX_TOKEN_COUNT)]


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a message, at most MAX_IMAGE_BYTES large. It is sent as data; nothing is fetched from a URL."""

    data: bytes = field(repr=False)
    media_type: ImageType


Content = str | tuple[str | Image, ...]
"""The content of a message: a text, or texts and images in order."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: Content

    @property
    def text(self) -> str:
        """The text of the message, without its images."""
        parts = (self.content,) if isinstance(self.content, str) else self.content
        return "\n".join(part for part in parts if isinstance(part, str))


@dataclass(frozen=True)
class Sampling:
    """The sampling parameters of a reply; None leaves a value to the server.

    `extra_body` is added to the request unchanged. For Qwen3, for example, it turns off reasoning:
    `{"chat_template_kwargs": {"enable_thinking": false}}`.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """One request to a language model.

    Attributes:
        messages: The messages, in order.
        stage: The stage of the question that sends the prompt.
        sampling: The sampling parameters of the reply.
        choices: If not empty, the reply should be one of these strings; a server that supports choices enforces them.
        schema: JSON schema of the reply, which a server that supports schemas enforces; ignored if there are choices.
    """

    messages: tuple[Message, ...]
    stage: Stage
    sampling: Sampling = Sampling()
    choices: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TypedPrompt(Prompt, Generic[T]):
    """A prompt with the form of its reply, which gives the choices or the schema."""

    reply: Reply[T] = field(kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply to one prompt.

    Attributes:
        text: The reply without reasoning; unusable if `failure` is not "".
        reasoning: The model's reasoning.
        failure: Why the completion cannot be used; "" if it can.
        detail: The cause of the failure, for messages to the user.
        prompt_tokens: Number of tokens in the prompt.
        completion_tokens: Number of tokens in the reply.
        seconds: Duration of the request with its retries; for a reply from a replay file, the original duration.
        constrained: Whether the server constrained the model to the prompt's choices or schema.
    """

    text: str = ""
    reasoning: str = ""
    failure: Failure = ""
    detail: str = ""
    prompt_tokens: TokenCount = 0
    completion_tokens: TokenCount = 0
    seconds: Annotated[float, Meta(ge=0, le=1e7)] = 0.0
    constrained: bool = False


OnCompletion = Callable[[int, Completion], None]
"""Callback that gets the index of a prompt in its batch and the prompt's completion; called from any thread."""


class LLM(Protocol):
    """A language model. Thread-safe. If one prompt fails, its completion has a `failure`, and no error is raised.

    `name` identifies the model in messages, runs and replay files; it contains no API key and no password. `notes` are
    the distinct messages for the user from all requests, for example that the server does not support a parameter.
    """

    name: str

    @property
    def notes(self) -> tuple[str, ...]: ...

    def complete(
        self,
        prompts: Sequence[Prompt],
        *,
        deadline: float | None = None,
        on_completion: OnCompletion | None = None,
        stop: threading.Event | None = None,
    ) -> list[Completion]:
        """Return one completion for each prompt, in order.

        Args:
            prompts: The batch.
            deadline: Time on the clock of `time.monotonic()` at which unfinished prompts are abandoned; None for no
                deadline.
            on_completion: Called with each completion as it arrives, even if another prompt fails later; not called by
                models that return all completions at once.
            stop: When it is set, unfinished prompts are abandoned, too.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: The model cannot answer any prompt: unknown model, wrong API key, no server, missing
                library.
        """
        ...

    def close(self) -> None: ...
