"""A language model that vLLM runs in this process, on a GPU (tested with vLLM 0.32 and 0.33)."""

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

from kgqa.errors import ModelUnavailable
from kgqa.llm.backends.batching import RequestBatcher
from kgqa.llm.backends.chat_response import read_reply
from kgqa.llm.backends.constraints import held_text, mentions_constraint
from kgqa.llm.backends.wire_messages import concerns_roles, encodable, wire_messages, without_system
from kgqa.llm.client import Completion, OnCompletion, Prompt
from kgqa.text.hints import Install
from kgqa.text.words import clean

DEFAULT_MAX_TOKENS = 1024
"""Token limit of a reply if `Sampling.max_tokens` is None; vLLM's default of 16 would cut off most replies."""
KWARGS = "chat_template_kwargs"
_ADVISED = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
"""Sampling parameters that kgqa does not set; their values come from the model's authors."""
_ABORTED = ("error", "abort")
_SHOWN = 300
"""Most characters of a vLLM message that are shown to the user."""
_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",  # no telemetry
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # standard output is for answers
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would inherit locks held by other threads
}
"""Environment variables set before vLLM is imported; variables that are set already are kept."""


class VLLMChat:
    """A language model in this process. Thread-safe: prompts that arrive at about the same time form one batch.

    The first request loads the model, which takes minutes and most of the GPU's memory. If all replies of a run are
    recorded, the model is never loaded. If vLLM rejects a prompt (too long for the model, refused by the chat
    template), only that prompt fails, not the batch. Choices constrain the reply from the first token on. A constrained
    model therefore does not reason before it answers, unless vLLM is told how to recognise reasoning
    (`structured_outputs_config={"reasoning_parser": "qwen3"}`).

    Attributes:
        name: The model's name or folder.
    """

    def __init__(self, model: str, *, batch_wait: float = 0.02, seed: int = 0, **engine: Any) -> None:
        """Create the model without loading it.

        Args:
            model: Name of a model on the Hugging Face Hub, or a folder.
            batch_wait: Seconds that a prompt waits for further prompts.
            seed: Seed for prompts whose sampling has no seed.
            engine: Further options of `vllm.LLM`, such as `max_model_len` or `gpu_memory_utilization`, except
                `trust_remote_code`: kgqa never runs code from a model's folder.
        """
        self.name = model
        # without runner="generate", vLLM also loads embedding models, which then reject every prompt
        self._options = {"seed": seed, "runner": "generate", **engine, "trust_remote_code": False}
        self._engine: Any = None
        self._broken = ""
        self._notes: dict[str, None] = {}
        self._batcher = RequestBatcher(self._answer, wait=batch_wait)

    @property
    def notes(self) -> tuple[str, ...]:
        """Distinct messages for the user about settings that have no effect."""
        return tuple(self._notes)

    def complete(
        self,
        prompts: Sequence[Prompt],
        *,
        deadline: float | None = None,
        on_completion: OnCompletion | None = None,
        stop: threading.Event | None = None,
    ) -> list[Completion]:
        """Return one completion for each prompt, in order; `seconds` in each completion is the time of the whole batch.

        All completions arrive at once, so `on_completion` is not called.

        Raises:
            TimeoutError: The deadline has passed, or `stop` was set.
            ModelUnavailable: vLLM is missing, cannot load the model, or has failed permanently; or `close` was called.
        """
        return self._batcher.complete(prompts, deadline=deadline, stop=stop)

    def close(self) -> None:
        """Stop the model and free the GPU at the end of the running batch; may be called more than once."""
        self._batcher.close()
        self._engine = None

    # ---- in the batcher's thread ----

    def _answer(self, prompts: list[Prompt]) -> list[Completion]:
        if self._broken:
            raise ModelUnavailable(self._broken)
        start = time.monotonic()
        groups: dict[str, list[int]] = {}
        for index, prompt in enumerate(prompts):
            kwargs = prompt.sampling.extra_body.get(KWARGS) or {}
            if not isinstance(kwargs, Mapping):
                self._note(f"{KWARGS} in llm.extra_body has no effect, because it is not a table.")
                kwargs = {}
            groups.setdefault(json.dumps(kwargs, sort_keys=True, default=dict), []).append(index)
            for name in prompt.sampling.extra_body.keys() - {KWARGS}:
                self._note(f"{name} in llm.extra_body has no effect on a model vllm:..., only on a model on a server.")
        completions: dict[int, Completion] = {}
        try:
            if self._engine is None:
                self._engine = _load(self.name, self._options)
            # vLLM takes one set of chat template arguments per call, so prompts are grouped by these arguments
            for text, indices in (*groups.items(), *groups.items()):  # replies that vLLM aborted are asked for again
                left = [i for i in indices if i not in completions or completions[i].failure == "unreachable"]
                if left:
                    completions.update(zip(left, self._chat([prompts[index] for index in left], json.loads(text))))
        except ModelUnavailable as error:
            self._broken = str(error)
            raise
        seconds = time.monotonic() - start
        return [replace(completions[index], seconds=seconds) for index in range(len(prompts))]

    def _chat(self, prompts: Sequence[Prompt], kwargs: dict[str, Any]) -> list[Completion]:
        """Return one completion for each prompt, in order.

        If vLLM rejects one prompt, it rejects the whole batch. The two halves of a rejected batch are sent separately.
        """
        try:
            outputs = self._engine.chat(
                [wire_messages(prompt.messages) for prompt in prompts],
                # created for each attempt, because vLLM modifies these objects
                sampling_params=[_sampling_params(self._engine, prompt) for prompt in prompts],
                use_tqdm=False,
                chat_template_kwargs=kwargs or None,
            )
            if len(outputs) != len(prompts):
                raise RuntimeError(f"{len(prompts)} prompts returned {len(outputs)} replies")
        except Exception as error:
            if not _rejects_prompt(error):
                cause = f"vLLM failed with {clean(self.name)}: {_message(error)}."
                raise ModelUnavailable(cause, "Start the program again.") from error
            if len(prompts) == 1:
                changed = self._adapted(prompts[0], str(error))
                detail = _message(error)
                return self._chat([changed], kwargs) if changed else [Completion(failure="rejected", detail=detail)]
            half = len(prompts) // 2
            return [*self._chat(prompts[:half], kwargs), *self._chat(prompts[half:], kwargs)]
        return [_completion(output, prompt) for output, prompt in zip(outputs, prompts)]

    def _adapted(self, prompt: Prompt, error: str) -> Prompt | None:
        """Return a rejected prompt without its schema or system message, if the error is about these."""
        if prompt.schema is not None and mentions_constraint(error):
            self._note(f"vLLM does not support the JSON schema of a reply, so it is free text: {clean(error)[:_SHOWN]}")
            return replace(prompt, schema=None)
        merged = without_system(prompt.messages)
        if merged == prompt.messages or not concerns_roles(error):
            return None
        self._note(f"{clean(self.name)} takes no system messages, so they are sent as the user's.")
        return replace(prompt, messages=merged)

    def _note(self, note: str) -> None:
        self._notes[note] = None


def _load(model: str, options: Mapping[str, Any]) -> Any:
    """Load a `vllm.LLM`.

    Raises:
        ModelUnavailable: vLLM is missing or cannot load the model.
    """
    if importlib.util.find_spec("vllm") is None:
        raise ModelUnavailable(f"A language model vllm:... needs the vllm library and a GPU: {Install('vllm')}")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm import LLM

        return LLM(model=model, **options)
    except Exception as error:  # vLLM, torch and the GPU driver raise many kinds of errors
        raise ModelUnavailable(
            f"vLLM cannot load {clean(model)}: {_message(error)}.",
            "Check that vLLM supports the model and that the GPU "
            "has enough free memory; vLLM's output above may explain more.",
        ) from error


def _sampling_params(engine: Any, prompt: Prompt) -> Any:
    """Return vLLM's sampling parameters; a value that is None is replaced by the value from the model's authors."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    sampling, advised = prompt.sampling, engine.get_default_sampling_params()
    constraint: dict[str, Any] = {} if prompt.schema is None else {"json": prompt.schema}
    if prompt.choices:
        constraint = {"choice": list(dict.fromkeys(map(encodable, prompt.choices)))}
    return SamplingParams(
        temperature=advised.temperature if sampling.temperature is None else sampling.temperature,
        top_p=advised.top_p if sampling.top_p is None else sampling.top_p,
        **{name: getattr(advised, name) for name in _ADVISED},
        seed=sampling.seed,
        max_tokens=DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
        structured_outputs=StructuredOutputsParams(**constraint) if constraint else None,
    )


def _completion(output: Any, prompt: Prompt) -> Completion:
    """Build a completion from a `vllm.RequestOutput`."""
    if not output.outputs or output.outputs[0].finish_reason in _ABORTED:
        return Completion(failure="unreachable", detail="vLLM aborted the reply")
    reply = output.outputs[0]
    completion = read_reply(
        reply.text,
        finish_reason=reply.finish_reason or "stop",
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(reply.token_ids),
    )
    text = held_text(completion.text, "structured_outputs", prompt)
    return completion if completion.failure or text is None else replace(completion, text=text, constrained=True)


def _rejects_prompt(error: Exception) -> bool:
    """Return whether an error was caused by one prompt, so that other prompts may succeed.

    Older versions of vLLM raise ValueError for such a prompt.
    """
    names = {each.__name__ for each in type(error).__mro__}
    if "ChatTemplateResolutionError" in names:  # the model has no chat template, so every prompt fails
        return False
    return isinstance(error, (ValueError, TemplateError)) or "VLLMClientError" in names


def _message(error: Exception) -> str:
    return clean(str(error))[:_SHOWN].rstrip(".") or type(error).__name__
