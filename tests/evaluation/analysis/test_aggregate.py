"""The summary of a run."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import pytest

from kgqa.evaluation.analysis.aggregate import _Table, summary_of
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.measures import mean
from kgqa.evaluation.runs.records import Record

GOLD = (GoldAnswer("m.1", "Ann"),)


def record(
    number: int, *, right=True, status="answered", usage_object=None, grounding="graph", query_class="exact", **more
) -> Record:
    answers = [{"id": "m.1" if right else "m.2", "name": "x", "iri": "http://e/x"}] if status == "answered" else []
    answer = {"status": status, "grounding": grounding if answers else "none", "answers": answers}
    answer |= {"query_class": query_class if answers else "none", "usage": usage_object or {}}
    more = {"answers": GOLD, "seconds": 1.0} | more
    return Record(id=f"q{number}", dataset="d", text="?", answer=answer, **more)


def usage_object(calls, cost, queries=2, unparsed=0, tokens=10) -> dict:
    stage = {"stage": "tournament", "calls": calls, "unparsed": unparsed, "repaired": 1, "reasked": 0, "failed": 0}
    return {
        "calls": calls,
        "prompt_tokens": tokens,
        "completion_tokens": 5,
        "cost": cost,
        "queries": queries,
        "stages": [stage],
    }


RECORDS = [
    record(0, usage_object=usage_object(2, 0.5, unparsed=1), hops=1, kind="composition", topics=("m.9",), loss="right"),
    record(
        1,
        usage_object=usage_object(4, 1.5),
        hops=2,
        kind="composition",
        topics=("m.9", "m.8"),
        right=False,
        loss="prefilter",
    ),
    record(
        2,
        usage_object=usage_object(6, None, queries=8),
        hops=2,
        grounding="model",
        query_class="none",
        leaks=3,
        seconds=3.0,
    ),
    record(3, status="failed", failure="StoreTimeout", hops=2, seconds=10.0),
    record(4, status="no_answer", query_class="restricted", hops=2, loss="prefilter"),
    record(5, query_class="restricted", answers=()),  # no gold answers
]


def test_summary_of_a_run():
    found = summary_of(RECORDS)
    assert (found["n"], found["scored"], found["failed"]) == (6, 5, 1)
    # right by id, wrong, right id from the model (its name does not match), failed, no answer
    assert found["scores"]["em"]["value"] == pytest.approx(1 / 5) and found["scores"]["em"]["n"] == 5
    assert found["scores_without_failed"]["em"] == {**found["scores_without_failed"]["em"], "value": 0.25, "n": 4}
    assert found["lost_to_failures"]["em"] == pytest.approx(0.05)
    assert found["statuses"] == {"answered": 4, "failed": 1, "no_answer": 1}
    assert found["failures"] == {"StoreTimeout": 1}
    assert found["losses"] == {"prefilter": 2, "right": 1}
    assert found["grounding"] == {"n": 4, "graph": 0.75, "text": 0, "model": 0.25, "none": 0}
    assert found["reproduced"] == {"n": 4, "exact": 0.5, "restricted": 0.25, "superset": 0, "none": 0.25}
    assert found["leaks"] == {"questions": 1, "names": 3, "share": pytest.approx(1 / 6)}
    assert found["unparsed"]["rate"] == pytest.approx(1 / 12) and found["unparsed"]["questions"] == 0
    assert found["unparsed"]["by_stage"]["tournament"] == {
        "calls": 12, "unparsed": 1, "repaired": 3, "reasked": 0, "failed": 0, "rate": pytest.approx(1 / 12),
    }  # fmt: skip
    used = found["usage"]
    assert used["calls"] == {"n": 6, "mean": 2, "p50": 1, "p95": pytest.approx(5.5), "total": 12}
    assert used["queries"]["total"] == 12 and used["tokens"]["total"] == 45
    assert used["cost"]["total"] == 2.0 and used["cost"]["n"] == 5 and used["unpriced"] == 1
    assert (used["seconds"]["mean"], used["seconds"]["p50"]) == (pytest.approx(17 / 6), 1.0)


def cited(number: int, *verified: bool, status="answered") -> Record:
    """Return a record whose answer cites a quote for each flag."""
    found = record(number, status=status)
    citations = [{"claim": "c", "piece": "p", "span": None, "quote": "q", "verified": each} for each in verified]
    return replace(found, answer={**found.answer, "citations": citations})


def test_share_of_answers_with_a_verified_quote():
    records = [cited(0, True, False), cited(1, False), cited(2), cited(3, True, status="no_answer")]
    found = summary_of(records)["quotes"]
    assert found == {"n": 3, "answers": pytest.approx(1 / 3), "count": 3, "verified": pytest.approx(1 / 3)}
    assert summary_of([])["quotes"] == {"n": 0, "answers": None, "count": 0, "verified": None}


def test_metrics_that_an_older_version_did_not_record_are_computed():
    old = record(0, scores={"em": 0.0, "token_f1": 0.25})
    found = summary_of([replace(old, answers=(GoldAnswer("", "x"),))])["scores"]
    assert (found["em"]["value"], found["token_f1"]["value"], found["token_em"]["value"]) == (0, 0.25, 1)


def test_groups():
    groups = summary_of(RECORDS)["groups"]
    assert set(groups) == {"dataset", "hops", "kind", "topics"}  # no question has a level
    assert [(name, group["n"]) for name, group in groups["hops"].items()] == [("1", 1), ("2", 4)]
    assert groups["hops"]["1"]["em"]["value"] == 1 and groups["hops"]["2"]["em"]["value"] == 0
    assert groups["kind"]["not known"]["n"] == 3 and groups["kind"]["composition"]["em"]["value"] == 0.5
    assert [(name, group["n"]) for name, group in groups["topics"].items()] == [("0", 3), ("1", 1), ("2", 1)]


def test_intervals_equal_those_of_mean():
    records = [record(n, right=n % 3 == 0) for n in range(60)]
    found, wanted = summary_of(records)["scores"]["em"], mean([float(n % 3 == 0) for n in range(60)])
    assert (found["value"], found["low"], found["high"], found["n"]) == (wanted.value, wanted.low, wanted.high, 60)
    normal = summary_of(records, interval="normal")["scores"]["em"]
    assert normal["low"] == mean([float(n % 3 == 0) for n in range(60)], interval="normal").low


def test_summary_is_plain_json():
    for records in ([], RECORDS, RECORDS[:1], RECORDS[5:]):
        json.dumps(summary_of(records), allow_nan=False)
    assert summary_of([])["scores"]["em"] == {"value": None, "low": None, "high": None, "n": 0}


def test_recorded_scores_are_used():
    scored = record(0, right=False, scores={"em": 1.0, "f1": 0.5})
    found = summary_of([scored])["scores"]
    assert (found["em"]["value"], found["f1"]["value"]) == (1, 0.5)


@pytest.mark.parametrize(
    "junk", [{"calls": "many"}, {"calls": None, "cost": "x"}, {"queries": float("nan")}, {"stages": [{}]}]
)
def test_invalid_usage_numbers_are_ignored(junk):
    json.dumps(summary_of([record(0, usage_object=junk)]), allow_nan=False)


def test_failures_lower_the_scores():
    """Failures in 5% of the questions lower the scores by 5%."""
    records = [
        record(n, status="failed" if n % 20 == 0 else "answered", failure="X" if n % 20 == 0 else "")
        for n in range(200)
    ]
    found = summary_of(records)
    assert found["scores"]["em"]["value"] == 0.95 and found["scores_without_failed"]["em"]["value"] == 1
    assert found["lost_to_failures"]["em"] == pytest.approx(0.05) and found["failures"] == {"X": 10}


def test_record_with_a_failure_counts_as_failed():
    found = summary_of([record(0), record(1, status="budget_exhausted", failure="StoreTimeout")])
    assert (found["failed"], found["failures"]) == (1, {"StoreTimeout": 1})
    assert found["scores_without_failed"]["em"]["n"] == 1


def test_memory_per_record_is_bounded():
    def records(count):
        for number in range(count):
            built = record(number, usage_object=usage_object(3, 0.1), hops=2)
            yield Record(
                **{**vars(built), "answer": {**built.answer, "trace": [{"kind": "pool", "paths": ["y" * 1000] * 100}]}}
            )

    table = _Table()
    tracemalloc.start()
    for group in records(2000):
        table.add(group)
    allocated = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert allocated / 2000 < 600, f"{allocated / 2000:.0f} bytes a question"
