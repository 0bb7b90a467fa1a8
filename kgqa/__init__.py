"""Answers questions from a knowledge graph, with the relation path and the SPARQL query behind each answer.

The names in `__all__` are enough for a short program. Each name is imported at its first use, so `import kgqa` is
fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgqa.text.display import draw_with
from kgqa.version import __version__

if TYPE_CHECKING:
    from kgqa.corpus.building.build import build_corpus
    from kgqa.corpus.corpus import Corpus
    from kgqa.evaluation.runs.progress import RunResult
    from kgqa.evaluation.runs.run_files import Run
    from kgqa.graph.opening import load_into_folder, open_graph
    from kgqa.methods.ask import ask, ask_all, open_resources
    from kgqa.model import Answer, Entity, Literal, Question, RelationPath, Step
    from kgqa.report.comparison import Comparison

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
    "ask_all",
    "build_corpus",
    "load_into_folder",
    "open_graph",
    "open_resources",
]
_MODULES = {
    "open_graph": "kgqa.graph.opening",
    "ask": "kgqa.methods.ask",
    "ask_all": "kgqa.methods.ask",
    "load_into_folder": "kgqa.graph.opening",
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


def _answer_html(answer: Answer) -> str:
    from kgqa.report.notebook import answer_html

    return answer_html(answer)


def _run_html(run: Run) -> str:
    from kgqa.report.notebook import run_html

    return run_html(run)


def _result_html(result: RunResult) -> str:
    from kgqa.report.notebook import run_html

    return run_html(result.run)


def _comparison_html(comparison: Comparison) -> str:
    from kgqa.report.notebook import comparison_html

    return comparison_html(comparison)


draw_with("Answer", _answer_html)
draw_with("Comparison", _comparison_html)
draw_with("Run", _run_html)
draw_with("RunResult", _result_html)
