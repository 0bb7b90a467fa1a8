"""Comparison of runs: figures, labels and differences."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.runs.records import Record
from kgqa.report.comparison import compare, figures_of, groups_of, metrics_of


def record(number: int, hit: float, **more: Any) -> Record:
    scores = dict.fromkeys(("hit@1", "f1", "em"), hit)
    answer = {"status": "answered", "grounding": "graph", "query_class": "exact", "usage": {"queries": 4, "calls": 2}}
    return Record(str(number), "set", f"question {number}", answer, (GoldAnswer("m.1", "x"),), scores=scores, **more)


@dataclass
class FakeRun:
    name: str
    found: list[Record]
    folder: Path = Path("nowhere")
    manifest: dict[str, Any] = field(default_factory=dict)

    def records(self):
        return iter(self.found)

    def metrics(self):
        return {}


def run_of(name: str, *hits: float, **more: Any) -> FakeRun:
    return FakeRun(name, [record(number, hit, hops=1 + number % 2) for number, hit in enumerate(hits)], **more)


def test_rows_and_figures():
    found = compare([run_of("a", 1, 0, 1, 1), run_of("b", 0, 0, 0, 1)])
    assert found.columns == ("a", "b")
    hit = found.row("hit@1")
    assert [figure.value for figure in hit.figures] == [0.75, 0.25]
    assert all(figure.low <= figure.value <= figure.high and figure.n == 4 for figure in hit.figures)
    assert [figure.value for figure in found.row("SPARQL queries a question").figures] == [4.0, 4.0]
    assert found.row("SPARQL queries a question").label == "SPARQL queries per question"
    assert found.row("nothing of the sort") is None


def test_differences_use_shared_questions():
    first, second = run_of("a", 1, 0, 1, 1), run_of("b", 0, 0, 0, 1)
    second.found.append(record(99, 1.0))
    title, rows = compare([first, second]).groups[-1]
    assert title == "Difference from a"
    first_figure, figure = next(row.figures for row in rows if row.name == "hit@1")
    assert first_figure is None
    assert (figure.value, figure.n) == (-0.5, 4)
    # two of four questions differ in one direction: by McNemar 2 * 1/4
    assert figure.p == 0.5


def test_questions_with_other_texts_are_not_compared():
    first, second = run_of("a", 1, 0, 1, 1), run_of("b", 0, 0, 0, 1)
    second.found = [replace(each, text=f"another {each.text}") for each in second.found]
    assert [title for title, _ in compare([first, second]).groups] == ["Hit@1 by hops"]


def test_groups_with_several_values_are_shown():
    (title, rows), *other_groups = compare([run_of("a", 1, 0, 1, 1)]).groups
    assert title == "Hit@1 by hops" and other_groups == []
    assert [(row.label, row.figures[0].value, row.figures[0].n) for row in rows] == [("1", 1.0, 2), ("2", 0.5, 2)]


def test_figures_of_a_summary():
    found = figures_of(summary_of([record(1, 1.0), record(2, 0.0)]))
    assert found["hit@1"].value == 0.5
    assert found["answers grounded in the graph"].value == 1.0
    assert found["queries that give exactly the answer"].value == 1.0
    assert found["model calls a question"].value == 2.0
    assert "USD a question" not in found  # calls without a known price have no cost
    assert groups_of(summary_of([record(1, 1.0, kind="a"), record(2, 0.0, kind="b")]))["type"]["b"].value == 0.0


def test_failed_questions_count():
    failed = replace(record(2, 0.0, failure="StoreTimeout"), answer={"status": "failed"})
    found = figures_of(summary_of([record(1, 1.0), failed]))
    assert found["hit@1"].value == 0.5
    assert found["Hit@1 without failed questions"].value == 1.0
    assert found["failed questions"].value == 0.5


def test_empty_summary_has_no_figures():
    assert {name for name, figure in figures_of(summary_of([])).items() if figure.value} == set()
    assert figures_of({}) == {} and groups_of({"groups": [1]}) == {}
    assert figures_of({"scores": {"hit@1": "a"}, "usage": 3, "grounding": []}) == {}


def test_facts_of_runs():
    manifest = {
        "topics": "linked",
        "seed": 3,
        "dataset": {"source": "cwq", "questions": 200},
        "graph": {"fingerprint": "f"},
        "models": {"decide": {"model": "oracle"}, "filter": {"model": "oracle"}},
    }
    facts = dict(compare([run_of("a", 1, manifest=manifest), run_of("b", 0)]).facts)
    assert facts == {
        "data set": ("cwq", ""),
        "topics": ("none", ""),
        "graph": ("f", ""),
        "model": ("oracle", ""),
        "seed": ("3", ""),
        "questions": ("200", ""),
    }


def test_topics_are_those_that_were_used():
    """A data set may have gold topics for some of its questions only; the topics of the others are linked."""
    linked = {"trace": [{"kind": "linked", "at": 0.1, "mentions": []}]}
    gold = replace(record(1, 1.0), topics=("m.1",))
    gold = replace(gold, answer={**gold.answer, "topics": [{"id": "m.1"}]})
    other = replace(record(2, 1.0), answer={**record(2, 1.0).answer, **linked})
    run = FakeRun("a", [gold, other, replace(other, id="3")], manifest={"topics": "gold"})
    assert dict(compare([run]).facts)["topics"] == ("gold for 1, linked for 2 of 3 questions",)
    run.found = [gold]
    assert dict(compare([run]).facts)["topics"] == ("gold",)
    run.found = [replace(gold, answer={**gold.answer, **linked})]  # the run was made with --topics linked
    assert dict(compare([run]).facts)["topics"] == ("linked",)


def test_outdated_metrics_are_recomputed(offline, tmp_path):
    from kgqa.evaluation.runs.run_files import METRICS, PREDICTIONS, Run

    for name in ("run.json", PREDICTIONS):
        (tmp_path / name).write_bytes((offline.folder / name).read_bytes())
    run = Run(tmp_path, offline.manifest)
    assert metrics_of(run)["n"] == 12
    (tmp_path / METRICS).write_text(json.dumps({"n": 7}))
    os.utime(tmp_path / PREDICTIONS, (1, 1))
    assert metrics_of(run) == {"n": 7}
    os.utime(tmp_path / METRICS, (0, 0))
    assert metrics_of(run)["n"] == 12


def test_questions_of_all_runs():
    """Questions that are missing from one run are left out of the side-by-side groups."""
    true, fictional = run_of("true", 1, 1, 1, 0), run_of("fictional", 0, 1)
    (title, rows), (_, differences) = compare([true, fictional]).groups[-2:]
    assert title == "On the questions that all have"
    assert [(f.value, f.n) for f in next(row.figures for row in rows if row.name == "hit@1")] == [(1.0, 2), (0.5, 2)]
    assert next(row.figures for row in differences if row.name == "hit@1")[1].value == -0.5
    assert all(name != title for name, _ in compare([true, run_of("b", 1, 0, 0, 0)]).groups)


def quoting(name: str, *values: float) -> FakeRun:
    """Return a run whose answers quote a text, with these values of token F1."""
    found = []
    for number, value in enumerate(values):
        each = record(number, 0.0)
        answer = {**each.answer, "citations": [{"quote": "q", "verified": value > 0}]}
        found.append(replace(each, answer=answer, scores={**each.scores, "token_f1": value}))
    return FakeRun(name, found)


def test_methods_over_text_are_compared_by_token_f1():
    found = compare([quoting("rag", 0.5, 0.5, 0.0, 1.0), quoting("tog3", 1.0, 0.0, 0.0)])
    groups = dict(found.groups)
    assert next(row.figures[1].value for row in groups["Difference from rag"] if row.name == "token_f1") == 0
    counted = groups["Questions won and lost against rag"]
    assert [(row.label, row.figures[0], row.figures[1].value) for row in counted] == [
        ("Token F1: won", None, 1), ("Token F1: lost", None, 1), ("Token F1: equal", None, 1),
    ]  # fmt: skip
    assert [figure.value for figure in found.row("answers with a verified quote").figures] == [0.75, 1 / 3]


def test_nothing_is_won_or_lost_without_gold_answers():
    runs = [quoting("rag", 0.5), quoting("tog3", 1.0)]
    for run in runs:
        run.found = [replace(each, answers=(), scores={}) for each in run.found]
    assert all("won and lost" not in title for title, _ in compare(runs).groups)


def test_difference_of_each_method_on_another_graph():
    """Each method is compared with itself on the other graph."""
    true, fiction = {"graph": {"fingerprint": "t"}}, {"graph": {"fingerprint": "f"}}
    runs = [
        run_of("io", 1, 1, 1, 1, manifest=true),
        run_of("top", 1, 1, 0, 1, manifest=true),
        run_of("io", 0, 0, 0, 0, manifest=fiction),
        run_of("top", 1, 1, 0, 0, manifest=fiction),
    ]
    groups = dict(compare(runs).groups)
    rows = groups["Difference from the same method on another graph: memory"]
    figures = next(row.figures for row in rows if row.name == "hit@1")
    assert figures[:2] == (None, None) and [figure.value for figure in figures[2:]] == [-1.0, -0.25]
    assert not any("memory" in title for title, _ in compare(runs[:2]).groups)
