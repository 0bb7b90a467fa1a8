"""Findings and the overall verdict; no graph is examined."""

from __future__ import annotations

import pytest

from kgqa.doctor.examination import CHECKS, Check, run_check
from kgqa.doctor.subject import (
    AGAIN,
    ESSENTIAL,
    Finding,
    Health,
    LimitedStore,
    Subject,
    ok,
    skipped,
)
from kgqa.errors import KgqaError, PartialResult, QueryRejected, StoreTimeout, StoreUnavailable
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.opening import demo_folder
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from tests.doctor.subjects import NAMES


def findings(run, late="failed", names=("x", "y")) -> list[Finding]:
    return list(run_check(Check(names, run, late=late), Subject(resolve(), Cache.default())))


@pytest.mark.parametrize("late", ["failed", "warning"])
@pytest.mark.parametrize(
    "error, in_time, remedy",
    [
        (StoreTimeout("Late.", "Lower the limit."), False, str(AGAIN)),
        (PartialResult("Cut.", "Ask for less."), False, "Ask for less."),
        (StoreUnavailable("Gone.", "Start it."), True, "Start it."),
        (QueryRejected("No SPARQL."), True, ""),
        (KgqaError("No edges."), True, ""),
    ],
)
def test_error_gives_a_verdict_and_a_remedy(error, in_time, remedy, late):
    def run(subject):
        yield ok("x", "Fine.")
        raise error

    first, second = findings(run, late)
    assert (first.verdict, second.name, second.verdict) == ("ok", "y", "failed" if in_time else late)
    assert (second.found, second.remedy) == (error.message, remedy)


def test_findings_after_an_error_are_skipped():
    def run(subject):
        raise StoreUnavailable("Gone.")
        yield

    assert [(finding.name, finding.verdict) for finding in findings(run)] == [("x", "failed"), ("y", "skipped")]
    assert {finding.found for finding in findings(lambda subject: [skipped("x", "No model.")])} == {"No model."}


def test_all_queries_together_have_a_time_limit(monkeypatch):
    monkeypatch.setattr("kgqa.doctor.subject.ALL_SECONDS", 0.0)
    with EmbeddedStore(demo_folder(Cache.default())) as store, pytest.raises(StoreTimeout, match="used up"):
        LimitedStore(store).ask("ASK { ?s ?p ?o }")


def test_names_are_distinct():
    assert len(set(NAMES)) == len(NAMES) and set(ESSENTIAL) <= set(NAMES)
    assert {check.late for check in CHECKS if set(check.names) & set(ESSENTIAL)} == {"failed"}


@pytest.mark.parametrize(
    "verdicts, complete, trusted",
    [(["ok", "warning", "skipped"], True, True), (["ok", "failed"], True, False), (["ok"], False, False)],
)
def test_trusted_unless_a_check_failed_or_was_not_made(verdicts, complete, trusted):
    checks = [Finding(verdict, str(index), "x") for index, verdict in enumerate(verdicts)]
    health = Health((*(ok(name, "x") for name in ESSENTIAL), *checks), None, 1.0, complete)
    assert health.trusted is trusted
    for missing in ESSENTIAL:
        made = [Finding("skipped" if name == missing else "warning", name, "x") for name in ESSENTIAL]
        health = Health(tuple(made), None, 1.0, True)
        assert not health.trusted and health.unseen == [missing]
