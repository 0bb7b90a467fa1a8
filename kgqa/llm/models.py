"""The language models of a run, one for each stage of a question, and the accounting of their requests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kgqa.errors import KeyRefused, ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.backends.vllm import VLLMChat
from kgqa.llm.client import CORPUS_STAGES, LLM, STAGES, Completion, Prompt, Sampling, Stage
from kgqa.llm.replay import Replay
from kgqa.net.servers import KEY_VARIABLE, NO_OPENAI_KEY, OPENAI_KEY_VARIABLE
from kgqa.plugins import did_you_mean, method_extension, stage_names
from kgqa.settings.keys import find_key
from kgqa.settings.setting import check
from kgqa.settings.table import own_settings
from kgqa.settings.values import Settings
from kgqa.storage.loading import Amount, load, parse_toml
from kgqa.text.hints import Hint, Option
from kgqa.text.words import clean
from kgqa.trace import NoReply, Reasoning
from kgqa.trace.trace import BudgetExhausted, Trace

_SAMPLING = tuple(each.name for each in fields(Sampling))
_MILLION = 1_000_000
MOST_EMPTY = 3
"""Empty replies in a row after which a question ends."""
ADD_MODEL = Hint(
    *("Add ", Option("llm", "openai:NAME"), ", ", Option("llm", "URL"), " or ", Option("llm", "vllm:FOLDER"), ".")
)


@dataclass(frozen=True)
class Models:
    """The language models of a run, shared by all its questions. Thread-safe.

    Attributes:
        by_stage: The model of each stage.
        sampling: The sampling parameters of each stage.
        prices: Map from a model's name to two prices in USD per million tokens, for prompts and for replies.
    """

    by_stage: Mapping[str, LLM]
    sampling: Mapping[str, Sampling]
    prices: Mapping[str, tuple[float, float]]

    @property
    def name(self) -> str:
        """The names of all models, separated by commas; the model of the stage "decide" comes first."""
        return ", ".join(dict.fromkeys(m.name for m in (self.by_stage["decide"], *self.by_stage.values())))

    @property
    def notes(self) -> tuple[str, ...]:
        """The distinct notes of all models."""
        return tuple(dict.fromkeys(note for model in self._distinct() for note in model.notes))

    def require_prices(self, option: Option | str) -> None:
        """Raise SettingsError if a model has no known price; the message says that `option` needs the price."""
        if names := [name for name in dict.fromkeys(m.name for m in self._distinct()) if name not in self.prices]:
            raise SettingsError(
                f"{option} needs the price of {', '.join(names)}.",
                "Write it to a TOML file and set llm.prices to that file, for example: "
                f'"{names[0]}" = {{ prompt = 0.4, completion = 1.6 }}  (USD per million tokens).',
            )

    def stage_settings(self) -> dict[str, dict[str, Any]]:
        """Return the model and the sampling parameters of each stage, for the file run.json."""
        return {stage: {"model": model.name, **asdict(self.sampling[stage])} for stage, model in self.by_stage.items()}

    def seeded(self, number: int) -> Models:
        """Return the same models with `number` added to the seed of every stage; a stage without a seed has 0."""
        sampling = {stage: replace(each, seed=(each.seed or 0) + number) for stage, each in self.sampling.items()}
        return replace(self, sampling=sampling)

    def for_question(self, trace: Trace) -> QuestionModels:
        """Return the models for one question; their calls, tokens and costs are charged to its `trace`."""
        return QuestionModels(self, trace)

    def unresponsive(self, seconds: float) -> list[str]:
        """Return descriptions of the models whose server sends no reply within `seconds`, with its URL."""
        return [
            f"the language model {clean(model.name)}" + (f" at {url}" if (url := getattr(model, "url", "")) else "")
            for model in self._distinct()
            if (responds := getattr(model, "responds", None)) is not None and not responds(seconds)
        ]

    def close(self) -> None:
        """Close every model."""
        for model in self._distinct():
            model.close()

    def _distinct(self) -> list[LLM]:
        return list({id(model): model for model in self.by_stage.values()}.values())


class QuestionModels:
    """The language models for one question, with the sampling of each stage and the limits of the question's budget."""

    def __init__(self, models: Models, trace: Trace) -> None:
        self._models = models
        self.trace = trace
        self.name = models.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion for each prompt, in order; all prompts belong to one stage.

        Calls are charged to the question's budget before the request, tokens after it.

        Raises:
            BudgetExhausted: The question's budget is spent.
            ModelUnavailable: See `LLM`; or `MOST_EMPTY` replies in a row were empty.
            SettingsError: The method does not declare the stage.
        """
        if not prompts:
            return []
        stage = prompts[0].stage
        if stage not in self._models.by_stage:
            known = ", ".join(self._models.by_stage)
            raise SettingsError(
                f"The method asks at the stage {stage!r}, which it does not declare.",
                f"Declare it with Method(..., stages={{...}}), or use one of: {known}.",
            )
        model = self._models.by_stage[stage]
        self.trace.charge_calls(stage, len(prompts))
        sampled = [replace(prompt, sampling=self._models.sampling[stage]) for prompt in prompts]
        received: dict[int, Completion] = {}
        try:
            left = self.trace.remaining()
            deadline = None if left is None else time.monotonic() + left
            stop = self.trace.stopped
            completions = model.complete(sampled, deadline=deadline, on_completion=received.__setitem__, stop=stop)
        except BaseException as error:
            # completions that arrived cost money even if other prompts failed
            self._charge(stage, model.name, list(received.values()))
            if isinstance(error, TimeoutError):
                if stop.is_set():
                    self.trace.remaining()  # raises the error that says so
                raise BudgetExhausted("a language model has not answered in time") from None
            raise
        self._charge(stage, model.name, completions)
        silent = all(completion.failure == "empty" for completion in completions)
        self.trace.empty_replies = self.trace.empty_replies + len(completions) if silent else 0
        if self.trace.empty_replies >= MOST_EMPTY:
            raise ModelUnavailable(
                f"The replies of {clean(model.name)} stay empty: {completions[-1].detail}.",
                "Turn its reasoning off, allow more tokens, or use another model.",
            )
        return completions

    def _charge(self, stage: Stage, model: str, completions: Sequence[Completion]) -> None:
        price = self._models.prices.get(model)
        prompt_tokens = sum(c.prompt_tokens for c in completions)
        completion_tokens = sum(c.completion_tokens for c in completions)
        cost = None if price is None else (prompt_tokens * price[0] + completion_tokens * price[1]) / _MILLION
        self.trace.tally(stage, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost=cost)
        for completion in completions:
            if completion.failure:
                self.trace.tally(stage, failed=1)
                self.trace.record(NoReply(stage=stage, failure=completion.failure, text=completion.detail[:300]))
            if completion.reasoning:
                self.trace.record(Reasoning(stage=stage, text=completion.reasoning[:2000]))


def open_models(settings: Settings, *, stages: Sequence[Stage] = ()) -> Models | None:
    """Open the language models named in the settings; return None if no model is named.

    Args:
        settings: The settings.
        stages: Stages beside those of questions, such as `CORPUS_STAGES`.

    Raises:
        SettingsError: A name or a value is invalid.
        ModelUnavailable: A library, an API key or a file is missing.
    """
    default = (settings.llm.model or "none").strip()
    declared = _declared_stages(settings)
    tables = settings.llm.stages or {}
    used = tuple(dict.fromkeys((*STAGES, *stages, *declared)))
    if unknown := tables.keys() - {*used, *CORPUS_STAGES} and tables.keys() - {*used, *CORPUS_STAGES, *stage_names()}:
        every = list(dict.fromkeys((*used, *CORPUS_STAGES)))
        near = did_you_mean(min(unknown), every)
        raise SettingsError(f"Unknown stage {min(unknown)!r} in llm.stages.", f"{near}Stages: {', '.join(every)}.")
    tables = _checked(tables, "llm.stages", ("model", *_SAMPLING))
    if default == "none" and settings.llm.replay and settings.llm.replay_only == "on":
        default = f"replay:{settings.llm.replay}"
    if default == "none":
        if settings.llm.replay or settings.llm.replay_only == "on":
            raise SettingsError(
                "The language model whose replies are recorded is not set.", "Add ", Option("llm", "MODEL"), "."
            )
        if any("model" in table for table in tables.values()):
            raise SettingsError(
                "llm.stages names a language model for some stages only.", "Set llm.model for the other stages."
            )
        return None
    base = {name: getattr(settings.llm, name) for name in _SAMPLING}
    base["extra_body"] = base["extra_body"] or {}
    opened: dict[str, LLM] = {}
    by_stage: dict[str, LLM] = {}
    sampling: dict[str, Sampling] = {}
    with ExitStack() as closing:
        for stage in used:
            table = tables.get(stage, {})
            name = table.get("model", default)
            if name not in opened:
                opened[name] = open_model(name, settings)
                closing.callback(opened[name].close)
            by_stage[stage] = opened[name]
            given = {key: table[key] for key in _SAMPLING if key in table}
            sampling[stage] = Sampling(**{**base, **declared.get(stage, {}), **given})
        models = Models(by_stage, sampling, read_prices(settings.llm.prices))
        if settings.budget.cost is not None:
            models.require_prices(Option("max-cost"))
        closing.pop_all()
    return models


def open_model(name: str, settings: Settings) -> LLM:
    """Open one model by its name: `openai:NAME`, a URL with or without `#NAME`, `vllm:NAME|FOLDER`, `replay:FILE`.

    Raises:
        SettingsError: The name has none of these forms.
        ModelUnavailable: A library, an API key or a file is missing.
    """
    kind, _, rest = name.partition(":")
    if kind == "replay" and rest:
        return Replay(Path(rest), model=None)
    if kind not in ("http", "https") and (kind not in ("openai", "vllm") or not rest):
        raise SettingsError(
            f"{name!r} is not a language model.",
            "Use openai:NAME, the URL of an OpenAI-compatible server "
            "(http://host:8000/v1), vllm:NAME or vllm:FOLDER, replay:FILE, or none.",
        )
    if settings.llm.replay_only == "on":
        if settings.llm.replay is None:
            raise SettingsError("The file with recorded replies is missing.", "Add ", Option("replay", "FILE"), ".")
        # nothing is sent to the server, not even a request for the model's name, and no API key is needed
        called = name.partition("#")[2] or None if kind in ("http", "https") else rest
        return Replay(Path(settings.llm.replay), model=None, name=called)
    model = _live(name, kind, rest, settings)
    if settings.llm.replay is None:
        return model
    try:
        return Replay(Path(settings.llm.replay), model=model)
    except BaseException:
        model.close()
        raise


def _live(name: str, kind: str, rest: str, settings: Settings) -> LLM:
    if kind == "vllm":
        return VLLMChat(rest)
    limits = {key: getattr(settings.llm, key) for key in ("concurrency", "timeout", "retries")}
    if kind == "openai":
        key = find_key(OPENAI_KEY_VARIABLE, "openai")
        if not key:
            raise KeyRefused(f"{name} needs an API key.", NO_OPENAI_KEY)
        return OpenAIChat(rest, key=key, **limits)
    url, _, model = name.partition("#")
    return OpenAIChat(model or None, url=url, key=find_key(KEY_VARIABLE, url), **limits)


def _declared_stages(settings: Settings) -> dict[Stage, Mapping[str, Any]]:
    """Return the stages of the method with their default sampling, without parameters that the user has set."""
    method = settings.ask.method
    found = {
        stage: {
            key: value
            for key, each in sampling.items()
            if settings.origins.get(f"llm.{key}", "default") == "default"
            and (value := settings.values[each] if isinstance(each, str) else each) is not None
        }
        for stage, sampling in method_extension(method).stages.items()
    }
    return _checked(found, f"stages of the method {method}", _SAMPLING)


def _checked(tables: Mapping[str, Any], origin: str, keys: Sequence[str]) -> dict[Stage, Mapping[str, Any]]:
    """Return a table of values for each stage; each value is valid for the setting `llm.KEY`."""
    found: dict[Stage, Mapping[str, Any]] = {}
    for stage, table in tables.items():
        if not isinstance(table, dict) or any(key not in keys or value is None for key, value in table.items()):
            raise SettingsError(f"{origin}: invalid {stage} = {table!r}. The keys of a stage are {', '.join(keys)}.")
        found[stage] = {
            key: check(own_settings()[f"llm.{key}"], value, f"{origin}, {stage}") for key, value in table.items()
        }
    return found


def read_prices(file: str | None) -> dict[str, tuple[float, float]]:
    """Read the prices of language models from the packaged table; prices in `file`, if given, replace packaged prices.

    Returns:
        Map from a model's name to two prices in USD per million tokens, for prompts and for replies.

    Raises:
        SettingsError: The file cannot be read or is not a table of prices.
    """
    hint = 'Write one line per model: "gpt-4.1-mini" = { prompt = 0.4, completion = 1.6 }'
    prices: dict[str, _Price] = parse_toml(files("kgqa.llm").joinpath("prices.toml").read_bytes(), dict[str, _Price])
    if file:
        prices |= load(Path(file), dict[str, _Price], error=SettingsError, hint=hint)
    return {model: (price.prompt, price.completion) for model, price in prices.items()}


class _Price(msgspec.Struct, frozen=True):
    """USD per million tokens."""

    prompt: Amount
    completion: Amount
