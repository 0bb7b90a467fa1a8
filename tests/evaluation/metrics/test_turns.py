"""Counts of trials, turns, calls and edits."""

from __future__ import annotations

from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.metrics.turns import TurnTable
from kgqa.report.comparison import compare, figures_of
from kgqa.report.tables import as_text
from tests.report.agents.traces import GRAPH_TURNS, TOOL_TURNS, acting_record
from tests.report.test_comparison import FakeRun
from tests.report.text.traces import text_record


def test_counts():
    found = summary_of([acting_record(GRAPH_TURNS), acting_record(TOOL_TURNS), text_record()])["turns"]
    assert found == {
        "n": 2,
        "trials": 1.5,
        "turns": (5 + 6) / 2,
        "calls": (5 + 4) / 2,
        "failed_calls": 2 / 9,
        "replies": 9,
        "unread": 1 / 9,
        "verdicts": {"no": 1, "yes": 1},
        "edits": {"proposed": 3, "accepted": 1, "rejected": 1, "gates": {"sources": 1}},
    }


def test_other_methods_have_no_turns():
    metrics = summary_of([text_record()])
    assert metrics["turns"] == {}
    assert not any("trials" in name or "edits" in name for name in figures_of(metrics))


def test_broken_events_are_not_counted():
    table = TurnTable()
    table.add([{"kind": "called", "name": "f"}, {"kind": "called", "trial": []}, {}, {"kind": ["called"]}])
    assert table.summary()["turns"] == table.summary()["calls"] == 1


def test_comparison_shows_what_was_done_in_turns():
    runs = [FakeRun("graph", [acting_record(GRAPH_TURNS)]), FakeRun("tools", [acting_record(TOOL_TURNS)])]
    rows = {line.split("  ")[0]: line.split() for line in as_text(compare(runs)).splitlines()}
    assert rows["trials per question"][-3:] == ["2", "1", "1"]
    assert rows["calls of functions and tools per question"][-3:] == ["5", "4", "1"]
    assert rows["edits proposed"][-3:] == ["–", "3", "1"]
    assert rows["edits accepted"][-2] == rows["edits rejected"][-2] == "1"
