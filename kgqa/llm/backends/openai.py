"""A language model on a server with OpenAI's chat interface, such as OpenAI itself or vLLM."""

from __future__ import annotations

import importlib.util
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.errors import KeyRefused, ModelUnavailable, SettingsError
from kgqa.llm.backends.chat_response import UnreadableBody, message_of, read_body
from kgqa.llm.backends.constraints import (
    JSON_TOKENS,
    NEXT_MODES,
    REQUEST_FIELDS,
    ConstraintMode,
    constraint_fields,
    held_text,
    mentions_constraint,
)
from kgqa.llm.backends.exchange import NOTHING_ANSWERS, RequestFailure, exchange
from kgqa.llm.backends.parameters import TOKEN_LIMIT_FIELDS, refused_parameter, sampling_fields
from kgqa.llm.backends.wire_messages import concerns_roles, encodable, wire_messages, without_system
from kgqa.llm.client import Completion, Message, OnCompletion, Prompt
from kgqa.net.servers import (
    KEY_VARIABLE,
    NO_OPENAI_KEY,
    OPENAI_KEY_VARIABLE,
    OPENAI_URL,
    base_url,
    usable_key,
)
from kgqa.net.threads import ThreadPool, wait_for_all
from kgqa.text.hints import Hint, Install, Option
from kgqa.text.words import clean

_SHOWN = 300
"""Most characters of a server's message that are shown to the user."""
_CHOICES = "choices"


class OpenAIChat:
    """A language model on a server. Thread-safe: all threads together have at most `concurrency` requests in progress.

    When the server rejects a parameter or does not enforce choices, the client stops sending the parameter, or changes
    to another constraint mode, and adds a message to `notes`.

    Attributes:
        name: Name of the model.
        url: URL of the server, without a password.
    """

    def __init__(
        self,
        model: str | None,
        *,
        url: str | None = None,
        key: str = "",
        concurrency: int = 16,
        timeout: float = 120.0,
        retries: int = 4,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Create the client. Without `model`, ask the server for its models; otherwise send nothing yet.

        Args:
            model: Name of the model; None for the first model in the server's list.
            url: URL of the server; None for OpenAI itself.
            key: API key, sent only to this server.
            concurrency: Most requests in progress at the same time.
            timeout: Seconds within which the next part of a reply has to arrive.
            retries: Most attempts after the first attempt, for temporary failures.
            sleep: Waits the given number of seconds between attempts.

        Raises:
            SettingsError: The URL or the API key cannot be used, or both the URL and the model are missing.
            ModelUnavailable: The client library is missing, OpenAI has no API key, or the server cannot list its
                models.
        """
        if importlib.util.find_spec("openai") is None:
            raise ModelUnavailable(f"A language model on a server needs the openai library: {Install('openai')}")
        self.url = OPENAI_URL if url is None else base_url(url)
        self._key_variable = OPENAI_KEY_VARIABLE if url is None else KEY_VARIABLE
        self._key = usable_key(key, self._key_variable)
        if url is None and not self._key:
            raise KeyRefused("OpenAI needs an API key.", NO_OPENAI_KEY)
        if url is None and not model:
            raise SettingsError("OpenAI has several models.", "Name one of them: openai:NAME")
        self._retries = retries
        self._sleep = sleep
        self._closed = threading.Event()
        self._notes: dict[str, None] = {}
        self._refused: set[str] = set()  # fields that the server does not take
        self._no_system = False  # whether the model refuses messages of the system
        # for choices, and by schema: a server may reject only some schemas; only vLLM has structured_outputs
        self._modes: dict[str, ConstraintMode] = {_CHOICES: "structured_outputs" if url is not None else "json_schema"}
        # the library's own retries are off: `exchange` also repeats after invalid JSON and after errors with status 200
        from kgqa.net.model_server import ModelServer

        self._server = ModelServer(self.url, self._key, timeout=timeout, is_openai=url is None)
        self._workers = ThreadPool(concurrency, name="kgqa-llm")
        self.name = model or "(first listed)"
        self.name = model or self._first_model()

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user about features that the server does not support."""
        return tuple(self._notes)

    @property
    def constraint_mode(self) -> ConstraintMode:
        """How the next request constrains the model to choices."""
        return self._modes[_CHOICES]

    def complete(
        self,
        prompts: Sequence[Prompt],
        *,
        deadline: float | None = None,
        on_completion: OnCompletion | None = None,
        stop: threading.Event | None = None,
    ) -> list[Completion]:
        """Return one completion for each prompt, in order; see `LLM`.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: The server rejects the API key, does not have the model, or could not be reached for any
                prompt.
            RuntimeError: The client was closed during the request.
        """
        if not prompts:
            return []
        abandoned = threading.Event()
        futures = [
            self._workers.submit(self._complete, prompt, abandoned, index, on_completion)
            for index, prompt in enumerate(prompts)
        ]
        try:
            wait_for_all(futures, deadline=deadline, stop=stop)
        except CancelledError:
            raise RuntimeError("the model was closed during a request") from None
        finally:
            # after an error, a timeout or an interrupt, the other replies are not needed
            abandoned.set()
            for future in futures:
                future.cancel()
        completions = [future.result() for future in futures]
        if all(completion.failure == "unreachable" for completion in completions):
            raise self._unavailable(completions[0].detail, "Check the server and the URL, or try again later.")
        return completions

    def responds(self, seconds: float) -> bool:
        """Return whether the server sends any reply within `seconds`."""
        return self._server.responds(seconds)

    def close(self) -> None:
        """Abort the requests in progress; may be called more than once."""
        self._closed.set()
        self._workers.close()
        self._server.close()

    # ---- one prompt, in a thread of the workers ----

    def _complete(
        self, prompt: Prompt, abandoned: threading.Event, index: int, on_completion: OnCompletion | None
    ) -> Completion:
        start = time.monotonic()
        prompt = replace(prompt, choices=tuple(map(encodable, prompt.choices)))
        completion = replace(self._ask(prompt, abandoned), seconds=time.monotonic() - start)
        if on_completion is not None:
            on_completion(index, completion)
        return completion

    def _ask(self, prompt: Prompt, abandoned: threading.Event) -> Completion:
        """Send a prompt until the server replies or rejects it, each time without what the server has refused."""
        what = _CHOICES if prompt.choices else json.dumps(prompt.schema, sort_keys=True)
        while not (abandoned.is_set() or self._closed.is_set()):
            is_free = prompt.schema is None and not prompt.choices
            mode: ConstraintMode = "free" if is_free else self._modes.setdefault(what, "json_schema")
            more_tokens = JSON_TOKENS if prompt.choices and mode == "json_schema" else 0
            fields = sampling_fields(prompt.sampling, self._refused, more_tokens=more_tokens)
            fields |= constraint_fields(mode, prompt)
            messages = without_system(prompt.messages) if self._no_system else prompt.messages
            result = exchange(
                partial(self._post, messages, fields),
                read_body,
                retries=self._retries,
                sleep=self._sleep,
                stopped=lambda: abandoned.is_set() or self._closed.is_set(),
            )
            if isinstance(result, Completion):
                return self._held(result, prompt, what, mode)
            if result.kind == "fatal":
                raise self._fatal(result)
            if result.kind == "temporary":
                return Completion(failure="unreachable", detail=self._shown(result.cause))
            if not self._adapt(result.error, messages, what, mode, fields):
                return Completion(failure="rejected", detail=self._shown(result.cause))
        return Completion(failure="unreachable", detail="given up")

    def _post(self, messages: Sequence[Message], fields: dict[str, Any]) -> Any:
        return self._server.api.chat.completions.with_raw_response.create(
            model=self.name,
            messages=wire_messages(messages),
            extra_body=fields,
        )

    def _held(self, completion: Completion, prompt: Prompt, what: str, mode: ConstraintMode) -> Completion:
        """Return the completion, with the chosen option as its text if the server constrained the model."""
        if mode == "free" or completion.failure:
            return completion
        text = held_text(completion.text, mode, prompt)
        if text is not None:
            # if another thread has found that the server ignores constraints, the reply fits only by chance
            return replace(completion, text=text, constrained=self._modes[what] == mode)
        problem = "was none of the choices" if prompt.choices else "does not have the form of the schema"
        self._fall_back(what, mode, f"the server's reply {problem}")
        return completion

    def _adapt(
        self, error: Any, messages: Sequence[Message], what: str, mode: ConstraintMode, fields: dict[str, Any]
    ) -> bool:
        """Stop sending what the server refused; return False if it refused none of what may be left out."""
        message, name = message_of(error), refused_parameter(error, fields)
        if messages != without_system(messages) and concerns_roles(message):
            self._no_system = True
            self._note(f"{self.name} takes no system messages, so they are sent as the user's.")
        elif mode != "free" and (name == REQUEST_FIELDS[mode] or (name is None and mentions_constraint(message))):
            self._fall_back(what, mode, message)
        elif name is None:
            return False
        elif name not in self._refused:
            self._refused.add(name)
            limit, other = TOKEN_LIMIT_FIELDS
            instead = f"{other} is sent instead" if name == limit else "the parameter is no longer sent"
            self._note(
                f"The server at {self.url} does not support {name}, so {instead}. The server's message: {message}"
            )
        return True

    def _fall_back(self, what: str, mode: ConstraintMode, reason: str) -> None:
        if self._modes[what] == mode:
            self._modes[what] = now = NEXT_MODES[mode]
            held = "choices" if what == _CHOICES else "a JSON schema"
            instead = "replies are free text" if now == "free" else f"{REQUEST_FIELDS[now]} is used"
            self._note(
                f"The server at {self.url} does not constrain the model to {held} with {REQUEST_FIELDS[mode]}, "
                f"so {instead} from now on. Reason: {reason}"
            )

    # ---- messages ----

    def _first_model(self) -> str:
        result = exchange(
            self._server.api.models.with_raw_response.list, _first_listed, retries=self._retries, sleep=self._sleep
        )
        if isinstance(result, RequestFailure):
            self.close()
            raise self._fatal(result)
        return result

    def _fatal(self, failure: RequestFailure) -> ModelUnavailable:
        server = "openai" if self.url == OPENAI_URL else self.url
        no_access = (
            f"Keep an API key that the server accepts, with `kgqa keys set {server}`, or set the environment variable "
            f"{self._key_variable} to one."
        )
        no_credit = "The account may have no credit left: check its billing, or use another API key."
        redirected = Hint(
            "Check the URL. If you trust the address of the redirect, use that address: ",
            *(Option("llm", "URL#NAME"), " (llm.model)."),
        )
        unknown = f"Check the URL and the model's name. {self.url}/models lists the server's models."
        hints: dict[int, Hint | str] = {401: no_access, 403: no_access, 402: no_credit, 429: no_credit}
        hints |= {0: "Check that the server runs and that the URL is right, or name the model."}
        hints |= dict.fromkeys(range(300, 400), redirected)
        kind = KeyRefused if failure.status in (401, 403) else ModelUnavailable
        return self._unavailable(failure.cause, hints.get(failure.status, unknown), kind)

    def _unavailable(
        self, cause: str, hint: Hint | str, kind: type[ModelUnavailable] = ModelUnavailable
    ) -> ModelUnavailable:
        if cause == NOTHING_ANSWERS:
            return kind(f"Nothing answers at {self.url}.", "Start the server, or change ", Option("llm"), ".")
        cause = self._shown(cause).rstrip(".")
        return kind(f"The language model {clean(self.name)} at {self.url} cannot be used: {cause}.", hint)

    def _note(self, text: str) -> None:
        self._notes[self._shown(text)] = None

    def _shown(self, text: str) -> str:
        """Return a text as one line of limited length, with the API key masked."""
        return clean(text.replace(self._key, "***") if self._key else text)[:_SHOWN]


def _first_listed(body: Any) -> str:
    data = body.get("data") if isinstance(body, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    name = first.get("id") if isinstance(first, dict) else None
    if not isinstance(name, str) or not name:
        error = body.get("error") if isinstance(body, dict) else None
        raise UnreadableBody(f"the server lists no models{': ' + message_of(error) if error else ''}")
    return name
