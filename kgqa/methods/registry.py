"""All methods by name: ours, and those that other packages bring by the entry point `kgqa.methods`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from kgqa.errors import KgqaError, SettingsError
from kgqa.model import Answer
from kgqa.plugins import plugin, plugin_names
from kgqa.trace import BudgetExhausted


@dataclass(frozen=True, slots=True)
class Method:
    """A way to answer. `answer` is called `(question, *, resources, trace, topics, names)`; what it raises becomes a
    failed answer.

    `topics`: whether the question's topics have to be known first; `model`: whether it needs a language model.
    """

    answer: Callable[..., Answer]
    topics: bool = True
    model: bool = False


_OURS: dict[str, tuple[str, str, bool, bool]] = {
    "top": ("kgqa.methods.top", "answer", True, False),
    "top-1": ("kgqa.methods.top", "answer", True, False),
    "top-2": ("kgqa.methods.top", "answer", True, False),
    "tog": ("kgqa.methods.tog", "answer", True, True),
    "io": ("kgqa.methods.direct", "answer_io", False, True),
    "cot": ("kgqa.methods.direct", "answer_cot", False, True),
}


def method_names() -> list[str]:
    """All names, ours first."""
    return list(dict.fromkeys([*_OURS, *plugin_names("method")]))


@lru_cache(32)
def method(name: str) -> Method:
    """A method by its name. An entry point names a `Method` or a function, which is taken to need topics.

    Raises:
        SettingsError: there is no such method, or the package that brings it fails.
    """
    if name in _OURS:
        module, function, topics, model = _OURS[name]
        return Method(getattr(import_module(module), function), topics, model)
    found = plugin("method", name, ours=list(_OURS))
    if not isinstance(found, Method) and not callable(found):
        raise SettingsError(f"The method {name} of another package is neither a Method nor a function: {found!r:.100}.")
    found = found if isinstance(found, Method) else Method(found)
    return replace(found, answer=_contained(name, found.answer))


def _contained(name: str, answer: Callable[..., Answer]) -> Callable[..., Answer]:
    """A foreign method whose mistakes end its question and nothing else."""

    def guarded(*arguments: Any, **options: Any) -> Answer:
        try:
            found = answer(*arguments, **options)
        except (KgqaError, BudgetExhausted):
            raise
        except Exception as error:
            raise KgqaError(f"The method {name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(found, Answer):
            raise KgqaError(f"The method {name} gave no Answer but {type(found).__name__}.")
        return found

    return guarded
