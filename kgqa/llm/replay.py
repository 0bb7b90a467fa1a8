"""A language model whose replies are kept in a file: what was asked once is not asked again, or not at all."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa.errors import ModelRefused, ModelUnavailable
from kgqa.llm.client import LLM, Completion, OnCompletion, Prompt
from kgqa.llm.replay_file import ReplayFile
from kgqa.words import clean

_PASSING = ("unreachable", "not_recorded")
"""Failures that say nothing of the prompt: they are not kept, so that it is asked again the next time."""
_SHOWN = 80
_LISTED = 20


class Replay:
    """Another model with a memory on disk, or the memory alone. Thread-safe; several processes may share the file.

    The same prompt to the same model with the same sampling and choices has one reply, for good: the first one that
    was kept. So is a prompt that stands several times in one batch asked once, and one that two threads ask at the
    same time. The stage a prompt belongs to makes no difference.

    Attributes:
        name: of the model whose replies these are.
        path: of the file.
    """

    def __init__(self, path: Path | str, *, model: LLM | None, name: str | None = None) -> None:
        """Opens the file; with a model, one that does not exist is created.

        Args:
            model: answers what is not in the file, and is closed with the replay. None: nothing is asked, and the
                file is only read.
            name: whose replies are wanted. None: the model's, or those of the only model in the file.

        Raises:
            SettingsError: the file is no replay file, is of a newer format, or cannot be written or read.
            ModelUnavailable: without a model: there is no file, it holds nothing, or replies of several models.
        """
        self.path = Path(path)
        self._model = model
        self._file = ReplayFile(self.path, write=model is not None)
        self._asking: dict[str, threading.Event] = {}  # what a thread of this process asks right now
        self._needed = False
        self._lock = threading.Lock()
        try:
            self.name = name or (model.name if model is not None else self._only_model())
        except BaseException:
            self._file.close()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        return self._model.notes if self._model is not None else ()

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, on_completion: OnCompletion | None = None
    ) -> list[Completion]:
        """One completion for each prompt, in order; see `LLM`. What it returns is on disk, but for failures that may
        pass, and so is what came before anything went wrong with the others.

        Raises:
            TimeoutError: it is later than `deadline`.
            ModelUnavailable: without a model, the file has no reply to one of the prompts. The file is damaged, full
                or closed. Whatever the model raises.
        """
        keys = [reply_key(self.name, prompt) for prompt in prompts]
        missing = dict(zip(keys, prompts))
        found: dict[str, Completion] = {}
        while missing:
            with self._lock:
                found |= self._file.get(list(missing), deadline=deadline)
                missing = {key: prompt for key, prompt in missing.items() if key not in found}
                if missing and self._model is None:
                    raise self._not_recorded(list(missing.values()))
                others = [self._asking[key] for key in missing if key in self._asking]
                mine = {key: prompt for key, prompt in missing.items() if key not in self._asking}
                done = threading.Event()
                self._asking.update(dict.fromkeys(mine, done))
            if mine:
                found |= self._ask(mine, done, deadline)
                missing = {key: prompt for key, prompt in missing.items() if key not in found}
            for event in others:
                # whatever came of it: what is in the file then is taken, the rest is asked here
                if not event.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                    raise TimeoutError
        found_in_order = _in_order(keys, found)
        if on_completion is not None:
            for place, completion in enumerate(found_in_order):
                on_completion(place, completion)
        return found_in_order

    def responds(self, seconds: float) -> bool:
        """Whether its model's server sends any reply within so many seconds, where it has one that was needed so far."""
        responds = getattr(self._model, "responds", None)
        return responds is None or not self._needed or responds(seconds)

    def close(self) -> None:
        """Closes the model too. May be called again."""
        if self._model is not None:
            self._model.close()
        self._file.close()

    def _ask(self, mine: Mapping[str, Prompt], done: threading.Event, deadline: float | None) -> dict[str, Completion]:
        """Replies of the model, kept as they come. `done` is set in the end, however it ends."""
        assert self._model is not None
        self._needed = True
        names = list(mine)
        kept: dict[str, Completion] = {}

        def keep(place: int, completion: Completion) -> None:
            if completion.failure not in _PASSING:
                kept.update(self._file.put(self.name, {names[place]: completion}))

        try:
            replies = self._model.complete(list(mine.values()), deadline=deadline, on_completion=keep)
            completions = dict(zip(mine, replies, strict=True))
            lasting = {k: each for k, each in completions.items() if each.failure not in _PASSING and k not in kept}
            return completions | kept | self._file.put(self.name, lasting)
        finally:
            with self._lock:
                for key in mine:
                    del self._asking[key]
            done.set()

    def _only_model(self) -> str:
        models = self._file.models()
        if len(models) == 1:
            return models[0]
        if not models:
            raise ModelUnavailable(f"{self.path} holds no replies yet. Run once with --llm MODEL --replay {self.path}.")
        raise ModelUnavailable(
            f"{self.path} holds replies of several models: say which one is wanted, with "
            f"--llm MODEL --replay {self.path} --replay-only. It has: {_listed(models)}."
        )

    def _not_recorded(self, missing: Sequence[Prompt]) -> ModelRefused:
        messages = missing[0].messages
        text = clean(messages[-1].content) if messages else ""
        shown = text if len(text) <= _SHOWN else f"...{text[-_SHOWN:]}"
        models = self._file.models()
        others = "" if self.name in models else f" It has replies of: {_listed(models) or 'no model'}."
        more = f" (and to {len(missing) - 1} more)" if len(missing) > 1 else ""
        return ModelRefused(
            f"{self.path} has no reply of {clean(self.name)} to this prompt{more}: {shown!r}.{others} Other settings "
            f"make other prompts: use those it was recorded with, or record this one by running with --llm MODEL "
            f"--replay {self.path} and without --replay-only."
        )


def _listed(models: Sequence[str]) -> str:
    more = f" and {len(models) - _LISTED} more" if len(models) > _LISTED else ""
    return ", ".join(clean(name[:_SHOWN]) for name in models[:_LISTED]) + more


def reply_key(model: str, prompt: Prompt) -> str:
    """What a reply depends on, as 64 hexadecimal digits: the SHA-256 of canonical JSON."""
    sampling = prompt.sampling
    # 0 and 0.0 are the same temperature, but not the same JSON
    numbers = [None if value is None else float(value) for value in (sampling.temperature, sampling.top_p)]
    parts = [
        model,
        [*numbers, sampling.seed, sampling.max_tokens, sampling.extra_body],
        [[message.role, message.content] for message in prompt.messages],
        list(prompt.choices),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_plain).encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"sampling holds {type(value).__name__}, which is no JSON")


def _in_order(keys: Sequence[str], found: Mapping[str, Completion]) -> list[Completion]:
    """Where a prompt stands more than once, only its first place had to be asked."""
    completions: list[Completion] = []
    seen: set[str] = set()
    for key in keys:
        completion = found[key]
        again = key in seen and completion.failure not in _PASSING
        completions.append(replace(completion, recorded=True) if again else completion)
        seen.add(key)
    return completions
