"""The methods by name: methods of kgqa, and methods from other packages (entry points `kgqa.methods`)."""

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
    """A question answering method.

    Attributes:
        answer: Called as `(question, *, resources, trace, topics, names)`; an exception becomes a failed answer.
        topics: Whether the method needs the topic entities of the question.
        model: Whether the method needs a language model.
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
    """List the names of all methods; methods of kgqa come first."""
    return list(dict.fromkeys([*_OURS, *plugin_names("method")]))


@lru_cache(32)
def method(name: str) -> Method:
    """Return a method by name.

    An entry point from another package is a `Method` or a function. A function becomes a method that needs topics and
    no language model.

    Raises:
        SettingsError: There is no such method, or the package of the method cannot be imported.
    """
    if name in _OURS:
        module, function, topics, model = _OURS[name]
        return Method(getattr(import_module(module), function), topics, model)
    found = plugin("method", name, ours=list(_OURS))
    if not isinstance(found, Method) and not callable(found):
        raise SettingsError(f"The entry point of method {name} is neither a Method nor a function: {found!r:.100}")
    found = found if isinstance(found, Method) else Method(found)
    return replace(found, answer=_contained(name, found.answer))


def _contained(name: str, answer: Callable[..., Answer]) -> Callable[..., Answer]:
    """Wrap a method from another package; an exception in the method then fails only the current question."""

    def guarded(*arguments: Any, **options: Any) -> Answer:
        try:
            found = answer(*arguments, **options)
        except (KgqaError, BudgetExhausted):
            raise
        except Exception as error:
            raise KgqaError(f"The method {name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(found, Answer):
            raise KgqaError(f"The method {name} returned {type(found).__name__} instead of an Answer.")
        return found

    return guarded
