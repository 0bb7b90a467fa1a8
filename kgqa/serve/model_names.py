"""The names by which clients see and choose the language models of a service."""

from __future__ import annotations

from collections.abc import Iterable

from kgqa.llm.models import open_model
from kgqa.settings import Settings


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
