"""Answers questions over a knowledge graph, and shows why.

The names below are the whole of what a short program needs; each is imported when it is first used, so that
`import kgqa` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgqa.version import __version__

if TYPE_CHECKING:
    from kgqa.graph.opening import open_graph
    from kgqa.methods.ask import ask, open_resources
    from kgqa.model import Answer, Entity, Literal, Question, RelationPath, Step

_HOMES = {
    "open_graph": "kgqa.graph.opening",
    "ask": "kgqa.methods.ask",
    "open_resources": "kgqa.methods.ask",
    "Answer": "kgqa.model",
    "Entity": "kgqa.model",
    "Literal": "kgqa.model",
    "Question": "kgqa.model",
    "RelationPath": "kgqa.model",
    "Step": "kgqa.model",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'kgqa' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
