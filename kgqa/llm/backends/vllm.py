"""A language model in this process, on its GPU, by vLLM (checked against 0.32 and 0.33)."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jinja2 import TemplateError

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.batching import RequestBatcher
from kgqa.llm.backends.chat_response import read_reply
from kgqa.llm.backends.constraints import chosen_option
from kgqa.llm.client import Completion, OnCompletion, Prompt
from kgqa.words import clean

DEFAULT_MAX_TOKENS = 1024
"""Of a reply whose sampling names no limit; vLLM's own would be 16."""
KWARGS = "chat_template_kwargs"
_ADVISED = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
"""Parameters that no prompt has, but the makers of a model may give a value."""
_BROKEN_OFF = ("error", "abort")
_SHOWN = 300
"""Characters of what vLLM says that are shown."""
_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",  # it would report them to its makers
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # standard output is for answers
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would take over locks that other threads hold
}
"""Set before vLLM is imported, where they are not set already."""


class VLLMChat:
    """A model in this process. Thread-safe: what all threads ask at about the same time is answered in one batch.

    It is loaded, for minutes and into all of the GPU, when it is first asked, so that a run whose replies are all
    recorded does without. A prompt that vLLM does not take (too long for the model, refused by its chat template)
    fails by itself, not with its batch. Choices hold from the first token on: a model held to them does not think
    first, unless the engine is told how to tell (`structured_outputs_config={"reasoning_parser": "qwen3"}`).

    Attributes:
        name: the model's, or the folder it is in.
    """

    def __init__(self, model: str, *, batch_wait: float = 0.02, seed: int = 0, **engine: Any) -> None:
        """Nothing is loaded yet, nor looked for.

        Args:
            model: a name that vLLM knows, or a folder.
            batch_wait: seconds that a prompt waits for others to be answered along with it, at most.
            seed: of what is left to chance, for prompts that have no seed of their own.
            engine: further options of `vllm.LLM`, such as `max_model_len` or `gpu_memory_utilization`.

        Raises:
            SettingsError: an option that would run code which comes with the model.
        """
        if "trust_remote_code" in engine:
            raise SettingsError(
                "trust_remote_code cannot be set: kgqa runs no code that comes with a model. Use a model that vLLM "
                "itself knows."
            )
        self.name = model
        # left to itself vLLM loads a model of embeddings too, and then rejects each prompt
        self._options = {"seed": seed, "runner": "generate", **engine}
        self._engine: Any = None
        self._broken: ModelUnavailable | None = None
        self._notes: dict[str, None] = {}
        self._lock = threading.Lock()
        self._batcher = RequestBatcher(self._answer, wait=batch_wait)

    @property
    def notes(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._notes)

    def complete(
        self, prompts: Sequence[Prompt], *, deadline: float | None = None, on_completion: OnCompletion | None = None
    ) -> list[Completion]:
        """One completion for each prompt, in order; `seconds` are those of the whole batch it was in. All come at once,
        so that there is nothing to report before.

        Raises:
            TimeoutError: it is later than `deadline`.
            ModelUnavailable: vLLM is missing, cannot load the model or has failed for good; or the model was closed.
        """
        return self._batcher.complete(prompts, deadline=deadline)

    def close(self) -> None:
        """The GPU is free when a batch under way is done. May be called again."""
        self._batcher.close()
        self._engine = None

    # ---- in the gatherer's thread ----

    def _answer(self, prompts: list[Prompt]) -> list[Completion]:
        if self._broken is not None:
            # another object: those who got the first one may still be adding their traces to it
            raise ModelUnavailable(str(self._broken))
        try:
            if self._engine is None:
                self._engine = _load(self.name, self._options)
            return self._answered(self._engine, prompts)
        except ModelUnavailable as error:
            self._broken = error
            raise

    def _answered(self, engine: Any, prompts: list[Prompt]) -> list[Completion]:
        start = time.monotonic()
        groups: dict[str, list[int]] = {}
        for index, prompt in enumerate(prompts):
            groups.setdefault(json.dumps(self._template_kwargs(prompt), sort_keys=True, default=dict), []).append(index)
        completions: dict[int, Completion] = {}
        # one call of vLLM has one set of arguments for the chat template
        for text, indices in groups.items():
            group = [prompts[index] for index in indices]
            answered = self._chat(engine, group, json.loads(text))
            again = [place for place, each in enumerate(answered) if each.failure == "unreachable"]
            if again:
                # what the engine broke off for a reason of its own may go well another time
                for place, each in zip(again, self._chat(engine, [group[place] for place in again], json.loads(text))):
                    answered[place] = each
            completions.update(zip(indices, answered))
        seconds = time.monotonic() - start
        return [replace(completions[index], seconds=seconds) for index in range(len(prompts))]

    def _chat(self, engine: Any, prompts: Sequence[Prompt], kwargs: dict[str, Any]) -> list[Completion]:
        """Completions, in order. vLLM takes all of a batch or nothing: where it takes nothing, each half is tried."""
        try:
            outputs = engine.chat(
                [
                    [{"role": message.role, "content": _encodable(message.content)} for message in prompt.messages]
                    for prompt in prompts
                ],
                # made anew for each try: vLLM writes into them
                sampling_params=[_sampling_params(engine, prompt) for prompt in prompts],
                use_tqdm=False,
                chat_template_kwargs=kwargs or None,
            )
        except Exception as error:
            if not _is_about_a_prompt(error):
                raise self._failed(error) from error
            if len(prompts) == 1:
                return [Completion(failure="rejected", detail=_said(error))]
            half = len(prompts) // 2
            return [*self._chat(engine, prompts[:half], kwargs), *self._chat(engine, prompts[half:], kwargs)]
        if len(outputs) != len(prompts):
            raise self._failed(RuntimeError(f"{len(prompts)} prompts brought {len(outputs)} replies"))
        return [_completion(output, prompt) for output, prompt in zip(outputs, prompts)]

    def _template_kwargs(self, prompt: Prompt) -> Mapping[str, Any]:
        extra = prompt.sampling.extra_body
        for name in extra:
            if name != KWARGS:
                self._note(f"{name} in extra_body is for servers: it has no effect on a model in this process.")
        kwargs = extra.get(KWARGS) or {}
        if not isinstance(kwargs, Mapping):
            self._note(f"{KWARGS} in extra_body is no table: it has no effect.")
            return {}
        return kwargs

    def _note(self, note: str) -> None:
        with self._lock:
            self._notes[note] = None

    def _failed(self, error: Exception) -> ModelUnavailable:
        return ModelUnavailable(f"vLLM cannot go on with {clean(self.name)}: {_said(error)}. Start again.")


def _load(model: str, options: Mapping[str, Any]) -> Any:
    """A `vllm.LLM`. Raises ModelUnavailable."""
    if importlib.util.find_spec("vllm") is None:
        raise ModelUnavailable("A language model in this process needs vLLM and a GPU: pip install 'kgqa[vllm]'")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm import LLM

        return LLM(model=model, trust_remote_code=False, **options)
    except Exception as error:  # of vLLM, torch, the driver, the model's files: anything
        raise ModelUnavailable(
            f"vLLM cannot load {clean(model)}: {_said(error)}. It needs a GPU with room for the model, and a model "
            "that it knows; what it wrote before this may say more."
        ) from error


def _sampling_params(engine: Any, prompt: Prompt) -> Any:
    """How vLLM draws this reply: what the prompt leaves open is as the model's makers advise, as on a server."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    sampling = prompt.sampling
    advised = engine.get_default_sampling_params()
    choices = list(dict.fromkeys(map(_encodable, prompt.choices)))
    return SamplingParams(
        temperature=advised.temperature if sampling.temperature is None else sampling.temperature,
        top_p=advised.top_p if sampling.top_p is None else sampling.top_p,
        **{name: getattr(advised, name) for name in _ADVISED},
        seed=sampling.seed,
        max_tokens=DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
        structured_outputs=StructuredOutputsParams(choice=choices) if choices else None,
    )


def _completion(output: Any, prompt: Prompt) -> Completion:
    """Of a `vllm.RequestOutput`."""
    if not output.outputs or output.outputs[0].finish_reason in _BROKEN_OFF:
        return Completion(failure="unreachable", detail="vLLM broke the reply off")
    said = output.outputs[0]
    completion = read_reply(
        said.text,
        finish_reason=said.finish_reason or "stop",
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(said.token_ids),
    )
    choice = None if completion.failure else chosen_option("structured_outputs", completion.text, prompt.choices)
    return completion if choice is None else replace(completion, text=choice, constrained=True)


def _is_about_a_prompt(error: Exception) -> bool:
    """Whether another prompt may go well. vLLM's own errors for what a request has wrong were ValueErrors once."""
    names = {each.__name__ for each in type(error).__mro__}
    if "ChatTemplateResolutionError" in names:  # the model has no chat template at all
        return False
    return isinstance(error, (ValueError, TemplateError)) or "VLLMClientError" in names


def _said(error: Exception) -> str:
    return clean(str(error))[:_SHOWN].rstrip(".") or type(error).__name__


def _encodable(text: str) -> str:
    """Half a surrogate pair, as broken data has it, becomes a question mark: a tokenizer would not take it."""
    return text.encode(errors="replace").decode()
