"""The language models of a run, by stage of a question, and the view of one question that charges for its requests."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.backends.vllm import VLLMChat
from kgqa.llm.client import LLM, STAGES, Completion, Prompt, Sampling, Stage
from kgqa.llm.replay import Replay
from kgqa.servers import KEY_VARIABLE, OPENAI_KEY_VARIABLE
from kgqa.settings import Settings, check
from kgqa.settings_table import BY_KEY
from kgqa.toml_text import parse_toml
from kgqa.trace import BudgetExhausted, Trace
from kgqa.words import clean

_SAMPLING = tuple(each.name for each in fields(Sampling))
_MILLION = 1_000_000


@dataclass(frozen=True)
class Models:
    """The model and the sampling of each stage. Thread-safe; shared by all questions of a run."""

    by_stage: Mapping[str, LLM]
    sampling: Mapping[str, Sampling]
    prices: Mapping[str, tuple[float, float]]

    @property
    def name(self) -> str:
        """The name of the model that decides, then those of the others."""
        return ", ".join(dict.fromkeys(m.name for m in (self.by_stage["decide"], *self.by_stage.values())))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all models, each once."""
        return tuple(dict.fromkeys(note for model in self._distinct() for note in model.notes))

    def without_price(self) -> list[str]:
        """Return the names of the models without a known price."""
        return [name for name in dict.fromkeys(m.name for m in self._distinct()) if name not in self.prices]

    def require_prices(self, option: str) -> None:
        """Raise SettingsError if `option` needs the price of a model that has none."""
        if names := self.without_price():
            raise SettingsError(
                f"{option} needs the price of {', '.join(names)}. Write it to a TOML file and set llm.prices to that "
                f'file, for example: "{names[0]}" = {{ prompt = 0.4, completion = 1.6 }}  (USD per million tokens).'
            )

    def stage_settings(self) -> dict[str, dict[str, Any]]:
        """Return the model and every sampling value of each stage, for the record of a run."""
        return {stage: {"model": model.name, **asdict(self.sampling[stage])} for stage, model in self.by_stage.items()}

    def for_question(self, trace: Trace) -> QuestionModels:
        """Return a view that charges one question's trace."""
        return QuestionModels(self, trace)

    def unresponsive(self, seconds: float) -> list[str]:
        """Return the models whose server sends no reply within `seconds`; models without a server are left out."""
        return [
            f"the language model {clean(model.name)}"
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
    """The models for one question: adds the stage's sampling, charges calls and tokens, and keeps to the time left."""

    def __init__(self, models: Models, trace: Trace) -> None:
        self._models = models
        self.trace = trace
        self.name = models.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion for each prompt, all of one stage, in order.

        Calls are charged before, tokens after the request.

        Raises:
            BudgetExhausted: The question's budget is spent.
            ModelUnavailable: See `LLM`.
        """
        if not prompts:
            return []
        stage = prompts[0].stage
        model = self._models.by_stage[stage]
        self.trace.charge_calls(stage, len(prompts))
        sampled = [replace(prompt, sampling=self._models.sampling[stage]) for prompt in prompts]
        received: dict[int, Completion] = {}
        try:
            left = self.trace.remaining()
            deadline = None if left is None else time.monotonic() + left
            completions = model.complete(sampled, deadline=deadline, on_completion=received.__setitem__)
        except BaseException as error:
            # completions that arrived are paid for, even if others failed
            self._charge(stage, model.name, list(received.values()))
            if isinstance(error, TimeoutError):
                raise BudgetExhausted("a language model has not answered in time") from None
            raise
        self._charge(stage, model.name, completions)
        return completions

    def _charge(self, stage: Stage, model: str, completions: Sequence[Completion]) -> None:
        price = self._models.prices.get(model)
        prompt_tokens = sum(c.prompt_tokens for c in completions)
        completion_tokens = sum(c.completion_tokens for c in completions)
        cost = None if price is None else (prompt_tokens * price[0] + completion_tokens * price[1]) / _MILLION
        self.trace.spend(stage, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost=cost)
        for completion in completions:
            if completion.failure:
                self.trace.tally(stage, failed=1)
                self.trace.event("no_reply", stage=stage, failure=completion.failure, detail=completion.detail[:300])
            if completion.reasoning:
                self.trace.event("reasoning", stage=stage, text=completion.reasoning[:2000])


def open_models(settings: Settings) -> Models | None:
    """Open the models that the settings name; return None if they name none.

    Raises:
        SettingsError: A name or a value is invalid.
        ModelUnavailable: A library or a file is missing.
    """
    default = (settings["llm.model"] or "none").strip()
    stages = _stages(settings["llm.stages"] or {})
    if default == "none" and settings["llm.replay"] and settings["llm.replay_only"] == "on":
        default = f"replay:{settings['llm.replay']}"
    if default == "none":
        if settings["llm.replay"] or settings["llm.replay_only"] == "on":
            raise SettingsError(
                "A replay file needs the language model whose replies it keeps: --llm MODEL (see `kgqa ask --help`)."
            )
        if any("model" in table for table in stages.values()):
            raise SettingsError("llm.stages names a model for one stage, but the others have none. Set llm.model too.")
        return None
    base = {name: settings[f"llm.{name}"] for name in _SAMPLING}
    base["extra_body"] = base["extra_body"] or {}
    opened: dict[str, LLM] = {}
    by_stage: dict[str, LLM] = {}
    sampling: dict[str, Sampling] = {}
    with ExitStack() as closing:
        for stage in STAGES:
            table = stages.get(stage, {})
            name = table.get("model", default)
            if name not in opened:
                opened[name] = open_model(name, settings)
                closing.callback(opened[name].close)
            by_stage[stage] = opened[name]
            sampling[stage] = Sampling(
                **{**base, **_method_sampling(stage, settings), **{k: table[k] for k in _SAMPLING if k in table}}
            )
        models = Models(by_stage, sampling, read_prices(settings["llm.prices"]))
        if settings["budget.cost"] is not None:
            models.require_prices("--max-cost")
        closing.pop_all()
    return models


def _method_sampling(stage: Stage, settings: Settings) -> dict[str, Any]:
    """Return the method's sampling defaults of a stage: Think-on-Graph explores with a temperature above 0."""
    given = settings.origins.get("llm.temperature", "default") != "default"
    exploring = settings["ask.method"] == "tog" and stage in ("filter", "entity")
    return {"temperature": settings["tog.temperature"]} if exploring and not given else {}


def open_model(name: str, settings: Settings) -> LLM:
    """Open one model by its name: `openai:NAME`, a URL with or without `#NAME`, `vllm:NAME|FOLDER`, `replay:FILE`.

    Raises:
        SettingsError: The name has none of these forms.
        ModelUnavailable: A library, a key or a file is missing.
    """
    kind, _, rest = name.partition(":")
    if kind == "replay" and rest:
        return Replay(Path(rest), model=None)
    if kind not in ("http", "https") and (kind not in ("openai", "vllm") or not rest):
        raise SettingsError(
            f"{name!r} is not a language model. Use openai:NAME, the URL of an OpenAI-compatible server "
            "(http://host:8000/v1), vllm:NAME or vllm:FOLDER, replay:FILE, or none."
        )
    if settings["llm.replay_only"] == "on":
        if settings["llm.replay"] is None:
            raise SettingsError("--replay-only needs the file with recorded replies: --replay FILE.")
        # the server is not asked, not even for its model's name, and no key is needed
        called = name.partition("#")[2] or None if kind in ("http", "https") else rest
        return Replay(Path(settings["llm.replay"]), model=None, name=called)
    model = _live(name, kind, rest, settings)
    if settings["llm.replay"] is None:
        return model
    try:
        return Replay(Path(settings["llm.replay"]), model=model)
    except BaseException:
        model.close()
        raise


def _live(name: str, kind: str, rest: str, settings: Settings) -> LLM:
    if kind == "vllm":
        return VLLMChat(rest)
    limits = {key: settings[f"llm.{key}"] for key in ("concurrency", "timeout", "retries")}
    if kind == "openai":
        key = _key(OPENAI_KEY_VARIABLE)
        if not key:
            raise ModelUnavailable(f"{name} needs a key. Set the environment variable {OPENAI_KEY_VARIABLE}.")
        return OpenAIChat(rest, key=key, **limits)
    url, _, model = name.partition("#")
    return OpenAIChat(model or None, url=url, key=_key(KEY_VARIABLE), **limits)


def _key(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _stages(tables: Mapping[str, Any]) -> dict[Stage, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for stage, table in tables.items():
        if stage not in STAGES or not isinstance(table, dict):
            raise SettingsError(
                f"Unknown stage {stage!r} in llm.stages; the stages are tables named {', '.join(STAGES)}."
            )
        for key, value in table.items():
            if key not in ("model", *_SAMPLING) or value is None:
                raise SettingsError(
                    f"llm.stages: invalid {stage}.{key} = {value!r}; a stage has model, {', '.join(_SAMPLING)}."
                )
        found[stage] = {key: check(BY_KEY[f"llm.{key}"], value, f"llm.stages, {stage}") for key, value in table.items()}
    return found  # type: ignore[return-value]


def read_prices(file: str | None) -> dict[str, tuple[float, float]]:
    """Read prices of models, USD per million tokens of prompts and of replies: the packaged table, updated by a file.

    Raises:
        SettingsError: The file cannot be read or is not a table of prices.
    """
    found: dict[str, tuple[float, float]] = {}
    sources = [files("kgqa.llm").joinpath("prices.toml"), *([Path(file)] if file else [])]
    for source in sources:
        try:
            data = parse_toml(source.read_text(encoding="utf-8"))
            found |= {model: (_price(each["prompt"]), _price(each["completion"])) for model, each in data.items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{source} is not a table of prices: {error}. Write one line per model: "
                '"gpt-4.1-mini" = { prompt = 0.4, completion = 1.6 }'
            ) from error
    return found


def _price(value: Any) -> float:
    price = float(value)
    if not (price >= 0 and math.isfinite(price)):
        raise ValueError(f"{value!r} is not a price")
    return price
