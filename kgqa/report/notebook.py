"""HTML of answers and runs for notebooks: a fragment with its own style sheet, without scripts, all text escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from kgqa.evaluation.runs.run_files import Run
from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import Answer, HyperedgeEvidence, QuoteEvidence, Span, StatementEvidence
from kgqa.report.answer import (
    EVIDENCE_CLASSES,
    MAX_SHOWN,
    QUERY_CLASSES,
    SCORE,
    STATUS_WORDS,
    cost_line,
    source_text,
    weak_text,
)
from kgqa.report.comparison import Comparison, compare
from kgqa.report.drawing import draw_path
from kgqa.report.pages import fragment, read
from kgqa.report.tables import figure_text, questions_text
from kgqa.storage.answer_json import answer_object, json_text
from kgqa.trace import step_lines

MAX_PATHS = 4
MAX_QUOTES = 12


def answer_html(answer: Answer) -> str:
    """Return an answer as HTML: answers, score, path, quotes, notes, and the query."""
    data = answer_object(answer)
    return fragment(
        "notebook_answer",
        style=_style(),
        key=_key(data),
        answer=answer,
        answers=[(each.description or each.name, each.id, each.unit) for each in answer.answers[:MAX_SHOWN]],
        answers_more=max(0, len(answer.answers) - MAX_SHOWN),
        status=STATUS_WORDS.get(answer.status, answer.status),
        unanswered=not answer.answers or answer.status != "answered",
        weak=weak_text(answer) if answer.weak else "",
        score=f"{answer.confidence:.0%}" if answer.confidence is not None and answer.answers else "",
        score_words=SCORE,
        paths=[_path(each) for each in data["paths"][:MAX_PATHS]],
        paths_more=max(0, len(data["paths"]) - MAX_PATHS),
        quotes=(quotes := _quotes(answer))[:MAX_QUOTES],
        quotes_more=max(0, len(quotes) - MAX_QUOTES),
        source=source_text(answer),
        steps=step_lines(answer.trace),
        queries=[
            (title, shorten_iris(text, dict(answer.prefixes)), classes[class_])
            for title, text, classes, class_ in (
                ("Query", answer.sparql, QUERY_CLASSES, answer.query_class),
                ("Query of the evidence", answer.evidence_sparql, EVIDENCE_CLASSES, answer.evidence_class),
            )
            if text
        ],
        cost="" if answer.status in ("failed", "unsupported") else cost_line(answer),
    )


def run_html(run: Run) -> str:
    """Return the table of metrics of a run as HTML, with the 95% intervals."""
    return comparison_html(compare([run]), title=str(run.folder))


def comparison_html(comparison: Comparison, *, title: str = "Runs") -> str:
    """Return a comparison of runs as HTML tables."""
    tables = [("", comparison.rows), *comparison.groups]
    return fragment(
        "notebook_run",
        style=_style(),
        title=title,
        columns=comparison.columns,
        facts=comparison.facts,
        tables=[
            (name, [(row.label, [figure_text(each) for each in row.figures], questions_text(row)) for row in rows])
            for name, rows in tables
        ],
    )


def _style() -> Markup:
    return Markup(read("notebook.css"))


def _key(data: Mapping[str, Any]) -> str:
    """Return a name for the elements of a drawing, since a notebook shows many answers on one page."""
    return hashlib.sha256(json_text(data).encode()).hexdigest()[:12]


def _path(path: Mapping[str, Any]) -> dict[str, Any]:
    drawing = draw_path(path) if any(path["walks"]) else None
    return {
        "words": path["words"],
        "drawing": drawing,
        "walks": len(path["walks"]),
        "conditions": [each["words"] for each in path["conditions"] if each["words"]],
        "operation": (path["operation"] or {}).get("words", ""),
    }


def _quotes(answer: Answer) -> list[tuple[str, list[str], str, bool]]:
    """Return what an answer over text rests on: a claim or fact, its quotes, the place, and whether it was found."""
    found = [(c.claim, [c.quote] if c.quote else [], _place(c.span) or c.piece, c.verified) for c in answer.citations]
    cited = {(each.quote, each.span) for each in answer.citations}
    for each in answer.evidence:
        if isinstance(each, QuoteEvidence) and (each.words, each.span) not in cited:
            found.append(("", [each.words], _place(each.span), each.verified))
        elif isinstance(each, StatementEvidence):
            found.append((each.words, list(each.quotes[:1]), _place(*each.spans[:1]), True))
        elif isinstance(each, HyperedgeEvidence):
            found.append((each.words, [], _place(*each.spans[:1]), True))
    return found


def _place(span: Span | None = None) -> str:
    return f"{span.source or span.chunk or span.document}, {span.begin}–{span.end}" if span else ""
