"""Opens the extractor that the settings name."""

from __future__ import annotations

from kgqa.corpus.extraction.model_extractor import ModelExtractor
from kgqa.corpus.extraction.requests import Extractor
from kgqa.corpus.extraction.rules.extractor import RuleExtractor
from kgqa.errors import SettingsError
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.settings.values import Settings
from kgqa.text.hints import Option


def open_extractor(
    settings: Settings, models: Models | None, prompts: Prompts, *, max_cost: float | None = None
) -> Extractor | None:
    """Return the extractor that `corpus.extract` names; None for "none".

    Args:
        settings: The settings.
        models: The language models, opened with the stages of a corpus; None if there are none.
        prompts: The prompt files.
        max_cost: The most that may be spent, in USD; None for `budget.cost`.

    Raises:
        SettingsError: It needs a language model, and none is set.
    """
    mode = settings.corpus.extract
    if mode == "none":
        return None
    if mode == "rules" or (mode == "auto" and models is None):
        return RuleExtractor()
    if models is None:
        raise SettingsError(
            f"Extraction of {mode} needs a language model.",
            "Add ",
            Option("llm", "MODEL"),
            ", or ",
            Option("extract", "rules"),
        )
    return ModelExtractor(models, prompts, settings, max_cost=max_cost)
