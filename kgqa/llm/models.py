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

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.backends.vllm import VLLMChat
from kgqa.llm.client import CORPUS_STAGES, LLM, STAGES, Completion, Prompt, Sampling, Stage
from kgqa.llm.replay import Replay
from kgqa.net.servers import KEY_VARIABLE, OPENAI_KEY_VARIABLE
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
PRICE_HINT = 'Write one line per model: "gpt-4.1-mini" = { prompt = 0.4, completion = 1.6 } (USD per million tokens)'
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


@dataclass(frozen=True)
class QuestionModels:
    """The language models for one question, with the sampling of each stage and the limits of the question's budget."""

    models: Models
    trace: Trace

    @property
    def name(self) -> str:
        """The names of all models."""
        return self.models.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion for each prompt, in order; all prompts belong to one stage.

        Calls are charged to the question's budget before the request, tokens after it.

        Raises:
            BudgetExhausted: The question's budget is spent.
            ModelUnavailable: See `LLM`; or `MOST_EMPTY` replies in a row were empty.
        """
        if not prompts:
            return []
        stage = prompts[0].stage
        model, sampling = self.models.by_stage[stage], self.models.sampling[stage]
        self.trace.charge_calls(stage, len(prompts))
        received: dict[int, Completion] = {}
        stop = self.trace.stopped
        try:
            left = self.trace.remaining()
            completions = model.complete(
                [replace(prompt, sampling=sampling) for prompt in prompts],
                deadline=None if left is None else time.monotonic() + left,
                on_completion=received.__setitem__,
                stop=stop,
            )
            received = dict(enumerate(completions))
        except TimeoutError:
            if stop.is_set():
                self.trace.remaining()  # raises the error that says so
            raise BudgetExhausted("a language model has not answered in time") from None
        finally:  # completions that arrived cost money even if other prompts failed
            self._charge(stage, model.name, list(received.values()))
        silent = all(completion.failure == "empty" for completion in completions)
        self.trace.empty_replies = self.trace.empty_replies + len(completions) if silent else 0
        if self.trace.empty_replies >= MOST_EMPTY:
            raise ModelUnavailable(
                f"The replies of {clean(model.name)} stay empty: {completions[-1].detail}.",
                "Turn its reasoning off, allow more tokens, or use another model.",
            )
        return completions

    def _charge(self, stage: Stage, model: str, completions: Sequence[Completion]) -> None:
        price = self.models.prices.get(model)
        sent, received = sum(c.prompt_tokens for c in completions), sum(c.completion_tokens for c in completions)
        cost = None if price is None else (sent * price[0] + received * price[1]) / _MILLION
        failed = sum(bool(c.failure) for c in completions)
        self.trace.tally(stage, prompt_tokens=sent, completion_tokens=received, cost=cost, failed=failed)
        for completion in completions:
            if completion.failure:
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
    declared = _declared_stages(settings)
    used = tuple(dict.fromkeys((*STAGES, *stages, *declared)))
    tables = _stage_tables(settings, used)
    is_replay_only = settings.llm.replay_only == "on"
    default = (settings.llm.model or "none").strip()
    if default == "none" and settings.llm.replay and is_replay_only:
        default = f"replay:{settings.llm.replay}"
    if default == "none":
        if settings.llm.replay or is_replay_only:
            raise SettingsError(
                "The language model whose replies are recorded is not set.", "Add ", Option("llm", "MODEL"), "."
            )
        if any("model" in table for table in tables.values()):
            raise SettingsError(
                "llm.stages names a language model for some stages only.", "Set llm.model for the other stages."
            )
        return None
    base = {name: getattr(settings.llm, name) for name in _SAMPLING}
    opened: dict[str, LLM] = {}
    by_stage: dict[str, LLM] = {}
    sampling: dict[str, Sampling] = {}
    with ExitStack() as closing:
        for stage in used:
            given = {**base, **declared.get(stage, {}), **tables.get(stage, {})}
            name = given.pop("model", default)
            if name not in opened:
                opened[name] = open_model(name, settings)
                closing.callback(opened[name].close)
            by_stage[stage] = opened[name]
            sampling[stage] = Sampling(**{**given, "extra_body": given["extra_body"] or {}})
        models = Models(by_stage, sampling, read_prices(settings.llm.prices))
        if settings.budget.cost is not None:
            models.require_prices(Option("max-cost"))
        closing.pop_all()
    return models


def _declared_stages(settings: Settings) -> dict[Stage, dict[str, Any]]:
    """Return the stages of the method with their default sampling, without parameters that the user has set."""
    return {
        stage: {
            key: value
            for key, each in sampling.items()
            if settings.origins.get(f"llm.{key}", "default") == "default"
            and (value := settings.values[each] if isinstance(each, str) else each) is not None
        }
        for stage, sampling in method_extension(settings.ask.method).stages.items()
    }


def _stage_tables(settings: Settings, used: Sequence[Stage]) -> dict[Stage, dict[str, Any]]:
    """Return the tables of llm.stages; each of their values is valid for the setting `llm.KEY`."""
    keys = ("model", *_SAMPLING)
    found: dict[Stage, dict[str, Any]] = {}
    for stage, table in (settings.llm.stages or {}).items():
        every = list(dict.fromkeys((*used, *CORPUS_STAGES)))
        if stage not in (*every, *stage_names()):
            near = did_you_mean(stage, every)
            raise SettingsError(f"Unknown stage {stage!r} in llm.stages.", f"{near}Stages: {', '.join(every)}.")
        if not isinstance(table, dict) or not table.keys() <= {*keys} or None in table.values():
            raise SettingsError(f"llm.stages: invalid {stage} = {table!r}. A stage has the keys {', '.join(keys)}.")
        origin = f"llm.stages, {stage}"
        found[stage] = {key: check(own_settings()[f"llm.{key}"], value, origin) for key, value in table.items()}
    return found


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
    url, _, listed = name.partition("#")
    is_url = kind in ("http", "https")
    model_name = listed or None if is_url else rest
    replay = settings.llm.replay
    if settings.llm.replay_only == "on":
        if replay is None:
            raise SettingsError("The file with recorded replies is missing.", "Add ", Option("replay", "FILE"), ".")
        # nothing is sent to the server, not even a request for the model's name, and no API key is needed
        return Replay(Path(replay), model=None, name=model_name)
    limits = {key: getattr(settings.llm, key) for key in ("concurrency", "timeout", "retries")}
    model: LLM
    if kind == "vllm":
        model = VLLMChat(rest)
    elif is_url:
        model = OpenAIChat(model_name, url=url, key=find_key(KEY_VARIABLE, url), **limits)
    else:
        model = OpenAIChat(rest, key=find_key(OPENAI_KEY_VARIABLE, "openai"), **limits)
    with ExitStack() as closing:
        closing.callback(model.close)
        opened = model if replay is None else Replay(Path(replay), model=model)
        closing.pop_all()
    return opened


def read_prices(file: str | None) -> dict[str, tuple[float, float]]:
    """Read the prices of language models from the packaged table; prices in `file`, if given, replace packaged prices.

    Returns:
        Map from a model's name to two prices in USD per million tokens, for prompts and for replies.

    Raises:
        SettingsError: The file cannot be read or is not a table of prices.
    """
    prices: dict[str, _Price] = parse_toml(files("kgqa.llm").joinpath("prices.toml").read_bytes(), dict[str, _Price])
    if file:
        prices |= load(Path(file), dict[str, _Price], error=SettingsError, hint=PRICE_HINT)
    return {model: (price.prompt, price.completion) for model, price in prices.items()}


class _Price(msgspec.Struct, frozen=True):
    """USD per million tokens."""

    prompt: Amount
    completion: Amount
