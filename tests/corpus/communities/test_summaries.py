"""Summaries of communities: without a model, with one, from the store, within a budget."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from kgqa.corpus.communities.finding import communities_of
from kgqa.corpus.communities.summaries import Summary, summarise
from kgqa.llm.client import CORPUS_STAGES
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.reply import reply_of
from kgqa.settings.values import resolve
from kgqa.testing import faults
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Budget, Trace
from tests.corpus.memory_corpus import corpus_of

FACTS = [("Halden Bridge", "designed by", "Ann Li"), ("Ann Li", "born in", "Halden"), ("Halden Bridge", "in", "Halden")]
SMALL = [("Barlow", "twinned with", "Ostmark")]
CORPUS = corpus_of([("Halden", "x", FACTS), ("Barlow", "y", SMALL)])
COMMUNITIES = communities_of(CORPUS)
GOOD = json.dumps({"title": "Bridge of Halden", "summary": "Ann Li designed Halden Bridge."})


class Store(dict):
    def summaries(self, hashes):
        return {each: self[each] for each in hashes if each in self}

    def put_summary(self, members_hash, title, summary, model=""):
        self[members_hash] = (title, summary, model)


@contextmanager
def scripted(replies):
    with ScriptedServer(replies, constrains="none") as server:
        settings = resolve({"llm.model": f"{server.url}#m", "llm.retries": 0}, environment={})
        models = open_models(settings, stages=CORPUS_STAGES)
        try:
            yield server, models
        finally:
            models.close()


def summaries(found):
    return {each.title: each.summary for each in found.communities}


def test_without_a_model():
    found = summarise(COMMUNITIES, CORPUS)
    assert found == summarise(COMMUNITIES, CORPUS) and not found.written + found.reused + found.failed
    (large,) = (each for each in found.communities if "Ann Li" in each.title)
    assert large.summary.startswith("Ann Li, Halden, Halden Bridge. Relations: born in, designed by, in.")
    assert "Halden Bridge designed by Ann Li." in large.summary


def test_a_model_writes_each_summary_once():
    store = Store()
    with scripted([GOOD]) as (server, models):
        first = summarise(COMMUNITIES, CORPUS, store=store, models=models, prompts=Prompts())
        assert server.calls == 1 and first.written == 1, "a community with one fact needs no model"
        assert "Halden Bridge designed by Ann Li" in server.requests[0].body["messages"][1]["content"]
        again = summarise(COMMUNITIES, CORPUS, store=store, models=models, prompts=Prompts())
        assert server.calls == 1 and again.reused == 1 and again.communities == first.communities
    assert summaries(first)["Bridge of Halden"] == "Ann Li designed Halden Bridge."
    assert summarise(COMMUNITIES, CORPUS, store=store).communities == first.communities, "kept without the model"
    changed = corpus_of([("Halden", "x", [*FACTS, ("Ann Li", "lived in", "Halden")]), ("Barlow", "y", SMALL)])
    with scripted([GOOD]) as (server, models):
        summarise(communities_of(changed), changed, store=store, models=models, prompts=Prompts())
        assert server.calls == 1


@pytest.mark.parametrize("reply", ["No.", "", faults.refusal(), '{"title": "x"}', "[1]", '{"summary": "  "}'])
def test_unusable_replies_leave_a_summary_of_facts(reply):
    store = Store()
    with scripted([reply]) as (server, models):
        found = summarise(COMMUNITIES, CORPUS, store=store, models=models, prompts=Prompts())
        assert server.calls == 2
    assert found.failed == 1 and found.reason and not store
    assert found.communities == summarise(COMMUNITIES, CORPUS).communities


def test_a_half_reply_is_repaired():
    read = reply_of(Summary).read
    assert read('{"title": "T", "summary": "S').value == Summary(title="T", summary="S")
    assert read(f"Here you are: {GOOD}").value.title == "Bridge of Halden"
    assert read("{" * 5000).value is None


def test_a_model_that_is_out_of_reach_or_out_of_budget():
    with scripted([faults.server_error()]) as (_, models):
        found = summarise(COMMUNITIES, CORPUS, models=models, prompts=Prompts())
        assert found.failed == 1 and found.reason
    with scripted([GOOD]) as (server, models):
        trace = Trace(Budget(calls=0))
        found = summarise(COMMUNITIES, CORPUS, models=models, prompts=Prompts(), trace=trace)
        assert not server.calls and found.failed == 1 and "budget" in found.reason


def test_larger_communities_are_summarised_from_the_smaller_ones_inside():
    facts = [(f"E{one}", "near", f"E{other}") for one in range(9) for other in range(one)]
    corpus = corpus_of([("All", "x", facts)])
    communities = communities_of(corpus, max_size=4)
    assert {each.level for each in communities} > {0}
    with scripted(lambda messages: GOOD) as (server, models):
        found = summarise(communities, corpus, models=models, prompts=Prompts())
        assert found.written == server.calls > 1
        last = server.requests[-1].body["messages"][1]["content"]
    assert "Bridge of Halden: Ann Li designed Halden Bridge." in last
