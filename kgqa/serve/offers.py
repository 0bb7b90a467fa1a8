"""The methods and language models that the clients of a service may choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from kgqa.errors import SettingsError
from kgqa.llm.models import open_model
from kgqa.methods.registry import method
from kgqa.plugins import plugin_names
from kgqa.settings.values import Settings


def offered_methods(
    settings_for: Callable[[str], Settings], *, models: bool, corpus: bool
) -> dict[str, dict[str, Any]]:
    """Return what clients are told about each method that can be used, by its name.

    Args:
        settings_for: Returns the settings of a method; a method whose settings are not valid is left out.
        models: Whether there is a language model.
        corpus: Whether the graph is that of a text corpus.
    """
    found = {}
    for name in plugin_names("method"):
        with suppress(SettingsError):
            chosen = method(name)
            settings_for(name)
            if (models or not chosen.model) and (corpus or not chosen.corpus):
                found[name] = {
                    "name": name,
                    "summary": chosen.summary,
                    "model": chosen.model,
                    "corpus": chosen.corpus,
                }
    return found


def client_names(models: Iterable[str], settings: Settings) -> dict[str, str]:
    """Return the models, as in the setting llm.model, by names that contain no address or folder.

    A server's model without a name is asked for; equal names are numbered.

    Raises:
        SettingsError, ModelUnavailable: see `open_model`.
    """
    found: dict[str, str] = {}
    for each in dict.fromkeys(models):
        name, number = _name(each, settings), 1
        while (numbered := name if number == 1 else f"{name} {number}") in found:
            number += 1
        found[numbered] = each
    return found


def _name(model: str, settings: Settings) -> str:
    kind, _, rest = model.partition(":")
    if kind in ("http", "https"):
        rest = model.partition("#")[2]
        if not rest:
            opened = open_model(model, settings)
            rest = opened.name
            opened.close()
    elif kind == "replay":
        return "replay"
    return rest.rstrip("/").rpartition("/")[2] or rest if kind == "vllm" else rest or model
