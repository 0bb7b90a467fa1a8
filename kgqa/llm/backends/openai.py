"""A language model behind any server with OpenAI's chat interface: OpenAI itself, vLLM, and most others."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, wait
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.chat_response import UnreadableBody, message_of, read_body
from kgqa.llm.backends.constraints import (
    JSON_TOKENS,
    REQUEST_FIELDS,
    ConstraintMode,
    ConstraintSupport,
    chosen_option,
    constraint_fields,
    mentions_constraint,
)
from kgqa.llm.backends.exchange import RequestFailure, RetryDelays, exchange
from kgqa.llm.backends.parameters import TOKEN_LIMIT_FIELDS, SupportedParameters, refused_parameter
from kgqa.llm.client import Completion, Message, OnCompletion, Prompt
from kgqa.servers import (
    KEY_VARIABLE,
    OPENAI_KEY_VARIABLE,
    OPENAI_URL,
    base_url,
    open_client,
    responds,
    usable_key,
)
from kgqa.words import clean
from kgqa.workers import Workers

_SHOWN = 300
"""Characters of what a server says that are shown."""


class OpenAIChat:
    """A model on a server. Thread-safe: all threads together have at most `concurrency` requests under way.

    What a server does not take is found out and noted: parameters are dropped, and choices are asked for in another
    way, for as long as the client lives.

    Attributes:
        name: the model's.
        url: of the server, without a password.
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
        """Nothing is sent yet if the model is named.

        Args:
            model: None for the first one that the server lists.
            url: of the server; None for OpenAI itself.
            key: goes to the server and nowhere else.
            timeout: seconds in which something of a reply has to come.
            retries: tries after the first one, of what may pass.
            sleep: how to wait between them.

        Raises:
            SettingsError: no usable URL or key, or no model named where there is more than one to choose from.
            ModelUnavailable: the client library is missing, no key for OpenAI, or the server cannot say its models.
        """
        if concurrency < 1 or retries < 0 or not timeout > 0:
            raise ValueError("concurrency is at least 1, retries at least 0, and timeout above 0")
        if importlib.util.find_spec("openai") is None:
            raise ModelUnavailable("A language model on a server needs the openai library: pip install 'kgqa[openai]'")
        self.url = OPENAI_URL if url is None else base_url(url)
        self._key_variable = OPENAI_KEY_VARIABLE if url is None else KEY_VARIABLE
        self._key = usable_key(key, self._key_variable)
        if url is None and not self._key:
            raise ModelUnavailable(f"OpenAI needs a key: put it into the environment variable {OPENAI_KEY_VARIABLE}.")
        if url is None and not model:
            raise SettingsError("OpenAI has more than one model: name the one to ask.")
        self._retries = retries
        self._sleep = sleep
        self._closed = threading.Event()
        self._notes: list[str] = []
        self._parameters = SupportedParameters()
        # OpenAI knows nothing of vLLM's own field
        self._constraints = ConstraintSupport("structured_outputs" if url is not None else "json_schema")
        # the library tries neither what is no JSON again nor an error with 200, and tells nobody how often: we do
        self._client = open_client(self.url, self._key, timeout=timeout, is_openai=url is None)
        self._workers = Workers(concurrency, name="kgqa-llm")
        self.name = model or "(its first one)"
        if not model:
            self.name = self._first_model()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, on_completion: OnCompletion | None = None
    ) -> list[Completion]:
        """One completion for each prompt, in order; see `LLM`.

        Raises:
            TimeoutError: it is later than `deadline`.
            ModelUnavailable: the server takes no key of ours, has no such model, or could not be reached for any of
                the prompts. RuntimeError: the client was closed.
        """
        if not prompts:
            return []
        given_up = threading.Event()
        futures = [
            self._workers.submit(self._complete, prompt, given_up, place, on_completion)
            for place, prompt in enumerate(prompts)
        ]
        try:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            done, open_ = wait(futures, timeout=left, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            if open_:
                raise TimeoutError
        except CancelledError:
            raise RuntimeError("the model was closed while it was asked") from None
        finally:
            # where one failed for good, or the user interrupts, nobody waits for the others any more
            given_up.set()
            for future in futures:
                future.cancel()
        completions = [future.result() for future in futures]
        if all(completion.failure == "unreachable" for completion in completions):
            raise self._unavailable(completions[0].detail, "Check the server and the URL, or ask again later.")
        return completions

    def responds(self, seconds: float) -> bool:
        """Whether the server sends any reply within so many seconds."""
        return responds(self._client, seconds)

    def close(self) -> None:
        """Ends what is under way. May be called again."""
        self._closed.set()
        self._workers.close()
        self._client.close()

    # ---- one prompt, in a thread of the workers ----

    def _complete(
        self, prompt: Prompt, given_up: threading.Event, place: int, on_completion: OnCompletion | None
    ) -> Completion:
        start = time.monotonic()
        completion = replace(self._persist(_encodable(prompt), given_up), seconds=time.monotonic() - start)
        if on_completion is not None:
            on_completion(place, completion)
        return completion

    def _persist(self, prompt: Prompt, given_up: threading.Event) -> Completion:
        """Asks until there is a reply, a refusal, or no patience left."""
        patience = RetryDelays(self._retries)
        while True:
            if given_up.is_set() or self._closed.is_set():
                return Completion(failure="unreachable", detail="given up")
            mode: ConstraintMode = self._constraints.mode if prompt.choices else "free"
            fields = {
                **self._parameters.of(prompt.sampling, more_tokens=JSON_TOKENS if mode == "json_schema" else 0),
                **constraint_fields(mode, prompt.choices),
            }
            got = exchange(partial(self._post, prompt, fields), read_body)
            if isinstance(got, Completion):
                return self._judged(got, mode, prompt.choices)
            if got.kind == "fatal":
                raise self._fatal(got)
            if got.kind == "refused":
                if not self._adapted(got, mode, fields):
                    return Completion(failure="rejected", detail=self._shown(got.cause))
            elif (pause := patience.pause(got)) is not None:
                self._sleep(pause)
            else:
                return Completion(failure="unreachable", detail=self._shown(got.cause))

    def _post(self, prompt: Prompt, fields: dict[str, Any]) -> Any:
        return self._client.chat.completions.with_raw_response.create(
            model=self.name,
            messages=[{"role": message.role, "content": message.content} for message in prompt.messages],
            extra_body=fields,
        )

    def _judged(self, completion: Completion, mode: ConstraintMode, choices: Sequence[str]) -> Completion:
        """The completion, its text the choice that was made if the server held the model to them."""
        if mode == "free" or completion.failure:
            return completion
        choice = chosen_option(mode, completion.text, choices)
        if choice is not None:
            # an accident, where another reply has shown by now that the server does not
            return replace(completion, text=choice, constrained=self._constraints.mode == mode)
        self._give_up(mode, "its reply was none of them")
        return completion

    def _adapted(self, trouble: RequestFailure, mode: ConstraintMode, fields: dict[str, Any]) -> bool:
        """Whether the request can be sent again, in another form, after the server refused it."""
        if trouble.status not in (400, 422):
            return False
        message = message_of(trouble.error)
        name = refused_parameter(trouble.error, fields)
        if mode != "free" and (name == REQUEST_FIELDS[mode] or (name is None and mentions_constraint(mode, message))):
            self._give_up(mode, message)
            return True
        if name is None:
            return False
        if self._parameters.drop(name):
            limit = self._parameters.limit
            instead = f"{limit} is sent instead" if name == TOKEN_LIMIT_FIELDS[0] and limit else "it is no longer sent"
            self._note(f"The server at {self.url} does not take {name}: {instead}. It says: {message}")
        return True

    def _give_up(self, mode: ConstraintMode, reason: str) -> None:
        if self._constraints.give_up(mode):
            now = self._constraints.mode
            instead = "replies are free text" if now == "free" else f"{REQUEST_FIELDS[now]} is tried"
            self._note(
                f"The server at {self.url} does not hold the model to choices by {REQUEST_FIELDS[mode]}, {instead} from now on. "
                f"Reason: {reason}"
            )

    # ---- what is said of it ----

    def _first_model(self) -> str:
        patience = RetryDelays(self._retries)
        while True:
            got = exchange(self._client.models.with_raw_response.list, _first_listed)
            if isinstance(got, str):
                return got
            pause = patience.pause(got) if got.kind == "passing" else None
            if pause is None:
                self.close()
                raise self._fatal(got)
            self._sleep(pause)

    def _fatal(self, trouble: RequestFailure) -> ModelUnavailable:
        if trouble.status in (401, 403):
            advice = f"Put a key that the server takes into the environment variable {self._key_variable}."
        elif trouble.status == 402 or trouble.status == 429:
            advice = "The account has no credit left: see the bill, or take another key."
        elif 300 <= trouble.status < 400:
            advice = "Check the URL. If the redirect is right, name the server it leads to: --llm URL#NAME (llm.model)."
        elif trouble.status:
            advice = f"Check the URL and the model's name; {self.url}/models lists those that the server has."
        else:
            advice = "Check that the server runs and that the URL is right, or name the model."
        return self._unavailable(trouble.cause, advice)

    def _unavailable(self, cause: str, advice: str) -> ModelUnavailable:
        cause = self._shown(cause).rstrip(".")
        return ModelUnavailable(
            f"The language model {clean(self.name)} at {self.url} cannot be used: {cause}. {advice}"
        )

    def _note(self, text: str) -> None:
        self._notes.append(self._shown(text))

    def _shown(self, text: str) -> str:
        """In one line, not too long, without the key."""
        return clean(text.replace(self._key, "***") if self._key else text)[:_SHOWN]


def _first_listed(body: Any) -> str:
    data = body.get("data") if isinstance(body, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    name = first.get("id") if isinstance(first, dict) else None
    if not isinstance(name, str) or not name:
        error = body.get("error") if isinstance(body, dict) else None
        raise UnreadableBody(f"it lists no models{': ' + message_of(error) if error else ''}")
    return name


def _encodable(prompt: Prompt) -> Prompt:
    """The prompt as UTF-8 can hold it: half a surrogate pair, as broken data has it, becomes a question mark."""
    try:
        "".join([*(message.content for message in prompt.messages), *prompt.choices]).encode()
    except UnicodeEncodeError:
        messages = tuple(Message(message.role, _replaced(message.content)) for message in prompt.messages)
        return replace(prompt, messages=messages, choices=tuple(map(_replaced, prompt.choices)))
    return prompt


def _replaced(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
