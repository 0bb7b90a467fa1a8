"""A language model with recorded replies: a prompt with a recorded reply is not sent again."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import ModelRefused, ModelUnavailable, SettingsError
from kgqa.llm.client import LLM, Completion, Content, OnCompletion, Prompt
from kgqa.storage.loading import parse_json
from kgqa.text.hints import Option
from kgqa.text.words import clean

_SHOWN = 80
_LISTED = 20
_LARGEST_LINE = 64 << 20
_START = b'{"key": "'
"""How each line begins; a last line that begins otherwise was not left by a killed process, and is not removed."""


@dataclass(frozen=True)
class _Line:
    """A line of a replay file: a reply of `model`, by the key of its prompt."""

    key: str
    model: str
    reply: Completion


def _recorded_with(path: Path) -> tuple[Option | str, ...]:
    return Option("llm", "MODEL"), " ", Option("replay", path)


class ReplayFile:
    """A file of recorded replies, one JSON object a line. A reply never changes: of two with one key, the first counts.

    Threads and processes may share the file: each appends whole lines while it holds a lock, and reads the lines that
    others have added. A line that a killed process left incomplete is removed. Files may come from other people, so
    every line is checked.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open the file; with `write`, create a missing file.

        Raises:
            SettingsError: The file is not a replay file, or cannot be written or read.
            ModelUnavailable: Without `write`, the file does not exist.
        """
        self.path = path
        self.models: set[str] = set()
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._lock = threading.RLock()
        try:
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise OSError(errno.EINVAL, "it is not an ordinary file")
            self._stream = path.open("a+b" if write else "rb")
        except FileNotFoundError:
            record = (
                "Record it by running with ",
                *_recorded_with(path),
                " and without ",
                Option("replay-only", True),
                ".",
            )
            raise ModelUnavailable(f"There is no replay file {path}.", *record) from None
        except OSError as error:
            hint = ("Add ", Option("replay-only", True), " to read it without writing, or name") if write else ("Name",)
            verb = "written" if write else "read"
            raise SettingsError(f"{path} cannot be {verb}: {error.strerror}.", *hint, " another file.") from error
        try:
            self.refresh()
        except ModelUnavailable as error:
            self._stream.close()
            raise SettingsError(f"{path} is not a replay file: {error.__cause__}.", "Choose another file.") from error

    def refresh(self) -> None:
        """Read the lines that were added since the last call."""
        with self._open() as stream:
            stream.seek(0, os.SEEK_END)  # empties the buffer, which may hold what another process has removed
            stream.seek(self._end)
            while (text := stream.readline(_LARGEST_LINE)).endswith(b"\n"):
                line: _Line = parse_json(text, _Line)
                self.models.add(line.model)
                self._places.setdefault(line.key, (self._end, len(text)))
                self._end += len(text)
            if len(text) == _LARGEST_LINE:
                raise ValueError("a reply is too large")
            if text[: len(_START)] != _START[: len(text)]:
                raise ValueError("its last line is not a recorded reply")

    def get(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Return the recorded replies by their keys; keys without a reply are left out.

        Raises:
            ModelUnavailable: The file is damaged or closed.
        """
        if not all(key in self._places for key in keys):
            self.refresh()
        found: dict[str, Completion] = {}
        with self._open() as stream:
            for key in keys:
                if key in self._places:
                    begin, length = self._places[key]
                    stream.seek(begin)
                    found[key] = parse_json(stream.read(length), _Line).reply
        return found

    def put(self, model: str, completions: Mapping[str, Completion]) -> dict[str, Completion]:
        """Record completions and return the reply that is now in the file for each key.

        Raises:
            ModelUnavailable: The file is damaged or closed, or the disk is full.
        """
        with self._open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            try:
                self.refresh()
                stream.truncate(self._end)
                known = self.get([key for key in completions if key in self._places])
                lines = [_Line(key, model, each) for key, each in completions.items() if key not in known]
                # ASCII, because a reply may contain an unpaired surrogate
                text = b"".join(json.dumps(asdict(line)).encode("ascii") + b"\n" for line in lines)
                if os.write(stream.fileno(), text) < len(text):
                    raise OSError(errno.ENOSPC, "the disk is full")
                self.refresh()
            finally:
                fcntl.flock(stream, fcntl.LOCK_UN)
        return {**completions, **known}

    def close(self) -> None:
        """Close the file; may be called more than once."""
        with self._lock:
            self._stream.close()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with self._lock:
            if self._stream.closed:
                raise ModelUnavailable(f"The replay file {self.path} was closed while a reply was being read.")
            try:
                yield self._stream
            except OSError as error:
                hint = "Check the disk and run the command again; the replies recorded so far are intact."
                raise ModelUnavailable(f"{self.path} cannot be used: {error.strerror}.", hint) from error
            except ValueError as error:
                hint = "Move it away and record the replies again."
                raise ModelUnavailable(f"The replay file {self.path} is damaged: {error}.", hint) from error


class Replay:
    """A language model whose replies are recorded in a file; without a model, only recorded replies are available.

    Thread-safe; several processes may share the file. The same prompt to the same model with the same sampling and
    choices always gets the first recorded reply, whatever the stage. A prompt that is twice in a batch is sent once.

    Attributes:
        name: Name of the model whose replies are used.
        path: Path of the file.
    """

    def __init__(self, path: Path | str, *, model: LLM | None, name: str | None = None) -> None:
        """Open the replay file; if `model` is given, create a missing file.

        Args:
            path: The replay file.
            model: The model that answers prompts without a recorded reply; `close` also closes this model. None: the
                file is only read, and a prompt without a recorded reply is an error.
            name: Name of the model whose replies are used. None: the name of `model`, or if `model` is None, the name
                of the only model in the file.

        Raises:
            SettingsError: The file is not a replay file, or cannot be written or read.
            ModelUnavailable: `model` is None, and the file is missing, is empty, or has replies of several models.
        """
        self.path = Path(path)
        self._model = model
        self._file = ReplayFile(self.path, write=model is not None)
        self._model_used = False
        try:
            self.name = name or (model.name if model is not None else self._only_model())
        except BaseException:
            self._file.close()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        return self._model.notes if self._model is not None else ()

    def complete(
        self,
        prompts: Sequence[Prompt],
        *,
        deadline: float | None = None,
        on_completion: OnCompletion | None = None,
        stop: threading.Event | None = None,
    ) -> list[Completion]:
        """Return one completion for each prompt, in order; see `LLM`.

        Every completion except a temporary failure is written to the file as soon as it arrives.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: There is no model, and the file has no reply to one of the prompts; or the file is damaged
                or closed; or the disk is full; or the model raised this error.
        """
        keys = [reply_key(self.name, prompt) for prompt in prompts]
        found = self._file.get(keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts) if key not in found}
        if missing and self._model is None:
            raise self._not_recorded(list(missing.values()))
        if missing:
            found |= self._ask(missing, deadline, stop)
        completions = [found[key] for key in keys]
        if on_completion is not None:
            for index, completion in enumerate(completions):
                on_completion(index, completion)
        return completions

    def responds(self, seconds: float) -> bool:
        """Return whether the model's server replies within `seconds`; True if no server has been needed so far."""
        responds = getattr(self._model, "responds", None)
        return responds is None or not self._model_used or responds(seconds)

    def close(self) -> None:
        """Close the file and the model; may be called more than once."""
        if self._model is not None:
            self._model.close()
        self._file.close()

    def _ask(
        self, missing: Mapping[str, Prompt], deadline: float | None, stop: threading.Event | None
    ) -> dict[str, Completion]:
        """Send prompts to the model, and record the replies as they arrive."""
        assert self._model is not None
        self._model_used = True
        keys = list(missing)
        kept: dict[str, Completion] = {}

        def keep(index: int, completion: Completion) -> None:
            # a prompt whose server could not be reached is sent again by the next run
            if completion.failure != "unreachable" and keys[index] not in kept:
                kept.update(self._file.put(self.name, {keys[index]: completion}))

        replies = self._model.complete(list(missing.values()), deadline=deadline, on_completion=keep, stop=stop)
        for index, completion in enumerate(replies):  # of a model that returns all completions at once
            keep(index, completion)
        return {**dict(zip(keys, replies, strict=True)), **kept}

    def _only_model(self) -> str:
        models = sorted(self._file.models)
        if not models:
            raise ModelUnavailable(f"{self.path} contains no replies.", "Record some with ", *_recorded_with(self.path))
        if len(models) > 1:
            raise ModelUnavailable(
                f"{self.path} has replies of several models: {_listed(models)}.",
                *("Choose one of them with ", *_recorded_with(self.path), " ", Option("replay-only", True)),
            )
        return models[0]

    def _not_recorded(self, missing: Sequence[Prompt]) -> ModelRefused:
        text = clean(missing[0].messages[-1].text)
        shown = text if len(text) <= _SHOWN else f"...{text[-_SHOWN:]}"
        models = sorted(self._file.models)
        others = "" if self.name in models else f" The file has replies of: {_listed(models) or 'no model'}."
        more = f" (and to {len(missing) - 1} more)" if len(missing) > 1 else ""
        return ModelRefused(
            f"{self.path} has no reply of {clean(self.name)} to this prompt{more}: {shown!r}.{others} Prompts depend "
            "on the settings.",
            *("Use the settings of the recording, or record the prompt by running with ", *_recorded_with(self.path)),
            *(" and without ", Option("replay-only", True), "."),
        )


def _listed(models: Sequence[str]) -> str:
    more = f" and {len(models) - _LISTED} more" if len(models) > _LISTED else ""
    return ", ".join(clean(name[:_SHOWN]) for name in models[:_LISTED]) + more


def reply_key(model: str, prompt: Prompt) -> str:
    """Return the key of a reply: the SHA-256, in hexadecimal digits, of canonical JSON.

    The JSON contains the model's name, the sampling, the messages, the choices and, if there is one, the schema.
    """
    sampling = prompt.sampling
    # the temperatures 0 and 0.0 are equal, but their JSON differs
    numbers = [None if value is None else float(value) for value in (sampling.temperature, sampling.top_p)]
    parts: list[Any] = [
        model,
        [*numbers, sampling.seed, sampling.max_tokens, sampling.extra_body],
        [[message.role, _content(message.content)] for message in prompt.messages],
        list(prompt.choices),
        *([] if prompt.schema is None else [prompt.schema]),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode("ascii")).hexdigest()


def _content(content: Content) -> Any:
    if isinstance(content, str):
        return content
    return [
        part if isinstance(part, str) else {"type": part.media_type, "sha256": hashlib.sha256(part.data).hexdigest()}
        for part in content
    ]
