"""The models, the settings and the cache that a build uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa.cache import Cache
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.settings import Settings


@dataclass(frozen=True)
class Tools:
    """The models and the cache that a build uses; `encoder` and `models` are None if there are none."""

    settings: Settings
    encoder: CachedEncoder | None
    models: Models | None
    prompts: Prompts
    cache: Cache
    cluster: Any = None
