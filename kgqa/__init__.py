"""Answers questions from a knowledge graph, with the relation path and the SPARQL query behind each answer.

The names in `__all__` are enough for a short program. Each name is imported at its first use, so `import kgqa` is
fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgqa.version import __version__

if TYPE_CHECKING:
    from kgqa.corpus.building.build import build_corpus
    from kgqa.corpus.corpus import Corpus
    from kgqa.graph.opening import open_graph
    from kgqa.methods.ask import ask, open_resources
    from kgqa.model import Answer, Entity, Literal, Question, RelationPath, Step

__all__ = [
    "Answer",
    "Corpus",
    "Entity",
    "Literal",
    "Question",
    "RelationPath",
    "Step",
    "__version__",
    "ask",
    "build_corpus",
    "open_graph",
    "open_resources",
]
_MODULES = {
    "open_graph": "kgqa.graph.opening",
    "ask": "kgqa.methods.ask",
    "build_corpus": "kgqa.corpus.building.build",
    "Corpus": "kgqa.corpus.corpus",
    "open_resources": "kgqa.methods.ask",
    "Answer": "kgqa.model",
    "Entity": "kgqa.model",
    "Literal": "kgqa.model",
    "Question": "kgqa.model",
    "RelationPath": "kgqa.model",
    "Step": "kgqa.model",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'kgqa' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
