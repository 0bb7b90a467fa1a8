"""Many questions at once: records, stops, budgets and outages."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgqa.errors import StoreTimeout
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.runs import asking, outages, runner
from kgqa.evaluation.runs.progress import RunProgress, StopSignal
from kgqa.evaluation.runs.run_files import open_run
from kgqa.evaluation.runs.run_folder import create_run
from kgqa.evaluation.runs.runner import run_questions
from kgqa.model import Answer, Entity, Named, Usage
from kgqa.settings.values import resolve
from kgqa.trace import Failed, Timeout, UnknownEvent

RIGHT = Named(Entity("http://rdf.freebase.com/ns/m.1"), "m.1", "One")
RESOURCES = SimpleNamespace(graph=None, settings=resolve(environment={}), silent=lambda seconds: [])


def questions(count: int) -> list[GoldQuestion]:
    return [
        GoldQuestion(f"Question {n}?", f"q{n}", "made", n, answers=(GoldAnswer("m.1", "One"),), topics=("m.2",))
        for n in range(count)
    ]


@pytest.fixture
def answers(monkeypatch):
    """Replace the method by a function of the question and its topics."""

    def set_method(function):
        def ask(question, *, topics, resources, trace):
            trace.tally("judge", cost=0.5)
            return function(question, topics)

        monkeypatch.setattr(asking, "ask", ask)

    return set_method


@pytest.fixture
def run(tmp_path):
    def run(asked_questions, **options):
        progress = RunProgress(total=len(asked_questions))
        with create_run(tmp_path / "x", {"format": 1}) as folder:
            stop = run_questions(asked_questions, RESOURCES, folder, progress=progress, **options)
        return SimpleNamespace(records=list(open_run(tmp_path / "x").records()), progress=progress, stop=stop)

    return run


def right(question, topics):
    return Answer(question, "answered", answers=(RIGHT,), usage=Usage(cost=0.01))


def test_one_record_per_question(answers, run):
    def some(question, topics):
        number = int(question.id[1:])
        if number % 5 == 1:
            raise ZeroDivisionError("a mistake of ours")
        if number % 5 == 2:
            event = Failed(error="StoreTimeout")
            return Answer(question, "failed", reason="Late.", trace=(event,))
        if number % 5 == 3:
            return Answer(question, "no_answer", reason="None.")
        return right(question, topics)

    answers(some)
    found = run(questions(50), concurrency=7)
    assert sorted(record.id for record in found.records) == sorted(f"q{n}" for n in range(50))
    assert found.progress.failures == {"ZeroDivisionError": 10, "StoreTimeout": 10}
    assert found.progress.statuses == {"answered": 20, "failed": 20, "no_answer": 10}
    assert found.progress.mean("em") == 0.4, "what failed stays in the denominator"
    assert not found.stop.soon.is_set()
    broken = next(record for record in found.records if record.failure == "ZeroDivisionError")
    assert broken.answer["reason"] == "ZeroDivisionError: a mistake of ours" and broken.scores["em"] == 0.0


def test_concurrency_is_used(answers, run):
    running, maximum, lock = 0, 0, threading.Lock()

    def slow(question, topics):
        nonlocal running, maximum
        with lock:
            running += 1
            maximum = max(maximum, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return right(question, topics)

    answers(slow)
    assert len(run(questions(40), concurrency=6).records) == 40
    assert maximum == 6


def test_done_questions_are_not_asked_again(answers, run, tmp_path):
    asked_questions = []

    def record_call(question, topics):
        asked_questions.append((question.id, topics))
        return right(question, topics)

    answers(record_call)
    with create_run(tmp_path / "y", {"format": 1}) as folder:
        progress = RunProgress(total=4)
        run_questions(questions(2), RESOURCES, folder, progress=progress)
        run_questions(questions(4), RESOURCES, folder, progress=progress, topics="linked")
    assert sorted(asked_questions) == [("q0", ("m.2",)), ("q1", ("m.2",)), ("q2", ()), ("q3", ())]
    assert progress.done == 4


def test_first_stop_waits_for_questions_in_flight(answers, run):
    stop = StopSignal()

    def slow(question, topics):
        if question.id == "q5":
            assert stop.request()
        time.sleep(0.05)
        return right(question, topics)

    answers(slow)
    found = run(questions(100), concurrency=4, stop=stop)
    ids = {record.id for record in found.records}
    assert "q5" in ids and 6 <= len(ids) <= 12 and not stop.now.is_set()


def test_second_stop_does_not_wait(answers, run):
    stop, go = StopSignal(), threading.Event()

    def stuck(question, topics):
        if question.id == "q0":
            return right(question, topics)
        go.wait(30)
        return right(question, topics)

    def on_progress(progress):  # q0 is written, the other question hangs
        threading.Timer(0.1, stop.request).start()
        threading.Timer(0.3, stop.request).start()

    answers(stuck)
    started = time.monotonic()
    found = run(questions(10), concurrency=2, stop=stop, on_progress=on_progress)
    assert time.monotonic() - started < 25 and [record.id for record in found.records] == ["q0"]
    go.set()


def test_no_question_starts_beyond_the_budget(answers, run):
    answers(right)
    found = run(questions(500), concurrency=2, budget=0.1)
    assert "0.1 USD" in found.stop.reason and found.stop.soon.is_set()
    assert 10 <= len(found.records) <= 10 + 4 * 2, "those in flight and those on their way"


def failed(question, error: str, reason: str = "Nothing answers.") -> Answer:
    return Answer(question, "failed", reason=reason, trace=(Failed(error=error),))


@pytest.mark.parametrize("classes", [["StoreUnavailable"], ["StoreUnavailable", "QueueTimeout"], ["ModelUnavailable"]])
def test_outage_ends_the_run(answers, run, classes):
    """Failures of an outage are not recorded, so resuming asks those questions again."""

    def outage(question, topics):
        number = int(question.id[1:])
        return right(question, topics) if number < 3 else failed(question, classes[number % len(classes)])

    answers(outage)
    found = run(questions(500), concurrency=2)
    assert "Nothing answers" in found.stop.reason and "questions in a row failed since" in found.stop.reason
    assert {record.id for record in found.records} == {"q0", "q1", "q2"} and found.progress.done == 3
    assert found.progress.asked < 100 and +found.progress.statuses == {"answered": 3}
    assert found.stop.lost_cost == 0.0 and not found.progress.complete


def test_keep_going_through_an_outage(answers, run):
    answers(lambda question, topics: failed(question, "StoreUnavailable"))
    found = run(questions(60), concurrency=2, keep_going=True)
    assert len(found.records) == 60 and not found.stop.reason and not found.progress.complete


@pytest.fixture
def quick_outages(monkeypatch):
    """Outages are declared after half a second."""
    for name in ("OUTAGE_SECONDS", "QUIET_SECONDS", "PROBE_SECONDS"):
        monkeypatch.setattr(outages, name, 0.5)
    monkeypatch.setattr(outages, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(runner, "LAST_SECONDS", 0.3)


def test_hanging_server_ends_the_run(answers, run, quick_outages, monkeypatch):
    """Servers are probed, questions in flight are dropped, and timeouts on the way are asked again."""
    never = threading.Event()

    def hangs(question, topics):
        if question.id == "q1":
            return replace(right(question, topics), trace=(Timeout(error="StoreTimeout"),))
        if question.id != "q0":
            never.wait(30)
        return right(question, topics)

    answers(hangs)
    monkeypatch.setattr(RESOURCES, "silent", lambda seconds: ["http://127.0.0.1:1/sparql"])
    started = time.monotonic()
    found = run(questions(9), concurrency=2)
    assert time.monotonic() - started < 25 and "http://127.0.0.1:1/sparql has not answered since" in found.stop.reason
    assert [record.id for record in found.records] == ["q0"] and found.progress.done == 1
    never.set()


def test_slow_server_is_waited_for(answers, run, quick_outages):
    def slow(question, topics):
        time.sleep(1.5 if question.id == "q1" else 0)
        return right(question, topics)

    answers(slow)
    found = run(questions(3), concurrency=1)
    assert len(found.records) == 3 and not found.stop.reason


def test_outage_at_concurrency_one_ends_the_run_in_time(answers, run, quick_outages):
    """At concurrency 1 it takes long for many questions to fail."""

    def outage(question, topics):
        time.sleep(0.15)
        return failed(question, "StoreUnavailable")

    answers(outage)
    found = run(questions(60), concurrency=1)
    assert found.records == [] and 5 <= found.progress.asked < 20


@pytest.mark.parametrize(("lost", "whole"), [(1, True), (2, True), (3, False)])
def test_many_questions_lost_to_servers_make_the_run_incomplete(answers, run, lost, whole):
    """Short outages spread over the run make it incomplete."""

    def flaky(question, topics):
        number = int(question.id[1:])
        return (
            failed(question, "ConnectionLost") if number % 33 == 7 and number < 33 * lost else right(question, topics)
        )

    answers(flaky)
    found = run(questions(100), concurrency=4)
    assert found.progress.complete is whole
    assert len(found.records) == (100 if whole else 100 - lost)
    assert ("lost to servers (ConnectionLost 3)" in found.stop.reason) is not whole


def test_answer_with_an_unsent_query_is_lost(answers, run):
    """A query that was never sent because of a full queue leaves its path unknown."""
    event = Timeout(error="QueueTimeout")
    answers(lambda question, topics: replace(right(question, topics), trace=(event,)))
    found = run(questions(3), concurrency=1)
    assert found.records == [] and "QueueTimeout 3" in found.stop.reason


def test_kgqa_error_is_recorded_with_its_message(answers, run):
    def late(question, topics):
        raise StoreTimeout("Too late. Ask for less.")

    answers(late)
    (record,) = run(questions(1)).records
    assert (record.failure, record.answer["reason"]) == ("StoreTimeout", "Too late. Ask for less.")


def test_spent_budget_asks_no_question(answers, run):
    answers(right)
    assert run(questions(5), budget=1.0, spent=1.0).records == []


def test_questions_without_gold_are_not_scored(answers, run):
    answers(right)
    asked_questions = [replace(each, answers=()) if each.number % 2 else each for each in questions(10)]
    found = run(asked_questions)
    assert found.progress.mean("em") == 1.0 and (found.progress.scored, found.progress.done) == (5, 10)


def test_scores_that_an_older_version_did_not_record_count(answers, run):
    answers(right)
    (record,) = run(questions(1)).records
    progress = RunProgress(total=1)
    progress.add(replace(record, scores={"em": 1.0}), asked=False)
    assert (progress.mean("em"), progress.mean("token_em")) == (1.0, 1.0)


def test_cost_of_an_error_is_counted(answers, run):
    def broken(question, topics):
        raise ZeroDivisionError

    answers(broken)
    (record,) = run(questions(1)).records
    assert record.answer["usage"]["cost"] == 0.5


@pytest.mark.parametrize("value", [object(), {1, 2}])
def test_unserialisable_trace_fails_its_question(answers, run, value):
    answers(lambda question, topics: replace(right(question, topics), trace=(UnknownEvent("odd", {"it": value}),)))
    found = run(questions(3))
    assert [record.failure for record in found.records] == ["TypeError"] * 3


def test_loss_is_unknown_after_a_timeout(answers, run, monkeypatch):
    def late(*_, **__):
        raise StoreTimeout("Late.")

    monkeypatch.setattr(asking, "loss_of", late)
    answers(right)
    (record,) = run(questions(1), losses=True).records
    assert (record.status, record.loss) == ("answered", "unknown")


def test_garbage_collection_settings_are_restored(answers, run):
    answers(right)
    before, during = gc.get_threshold(), []
    run(questions(2), on_progress=lambda progress: during.append(gc.get_freeze_count() > 0))
    assert set(during) == {True} and gc.get_freeze_count() == 0 and gc.get_threshold() == before
