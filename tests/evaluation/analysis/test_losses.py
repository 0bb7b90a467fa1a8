"""Which stage lost a right answer: hand-made traces and a real exploration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.analysis.losses import LOSSES, lost_at, paths_of
from kgqa.evaluation.analysis.reach import Reach
from kgqa.model import Answer, Candidate, Entity, Named, PathEvidence, Question, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.search.beam import BeamSettings, explore
from kgqa.text.words import path_key, paths_key
from kgqa.trace import Event, Kept, PathsRanked, Pool, Rejected, Shortlist, UnknownEvent
from kgqa.trace.trace import Trace
from tests.evaluation.analysis.test_text_losses import CASES as TEXT_CASES

NS = "http://rdf.freebase.com/ns/"
SCHEMA = bundled_schema("freebase")


def path(topic: str, *steps: str) -> RelationPath:
    return RelationPath(
        Entity(NS + topic), tuple(Step(NS + s.removeprefix("^"), "in" if s[0] == "^" else "out") for s in steps)
    )


ONE = path("m.1", "a.b.c")
TWO = path("m.1", "a.b.c", "^d.e.f")
SIDE = path("m.2", "g.h.i")
WRONG = path("m.1", "x.y.z")
K1, K2, KS, KW = (path_key(p, SCHEMA) for p in (ONE, TWO, SIDE, WRONG))


def test_path_keys():
    assert K1 == "m.1 -> a.b.c"
    assert K2 == "m.1 -> a.b.c <- d.e.f"
    assert paths_key([SIDE, ONE], SCHEMA) == paths_key([ONE, SIDE], SCHEMA) == "m.1 -> a.b.c & m.2 -> g.h.i"
    assert paths_key([ONE], SCHEMA) == paths_key([ONE, ONE], SCHEMA) == K1
    assert path_key(path("m.1"), SCHEMA) == "m.1"


topics = st.sampled_from([NS + "m.1", "http://elsewhere.org/x", "http://www.w3.org/2001/XMLSchema#date"])
relations = st.sampled_from([NS + "a.b.c", "http://elsewhere.org/r", NS + "d/e"])
steps = st.builds(Step, relations, st.sampled_from(["in", "out"]))
paths = st.builds(RelationPath, st.builds(Entity, topics), st.lists(steps, max_size=3).map(tuple))


@given(st.lists(paths, min_size=1, max_size=3, unique=True))
def test_keys_identify_paths(some):
    assert set(paths_of(paths_key(some, SCHEMA), SCHEMA)) == set(some)
    assert len({path_key(path, SCHEMA) for path in some}) == len(some)


def hop(pool=(), shortlist=(), kept=(), number=1) -> list[Event]:
    return [
        Pool(hop=number, paths=tuple(pool)),
        Shortlist(hop=number, paths=tuple(shortlist)),
        Kept(hop=number, paths=(), keys=tuple(kept)),
    ]


def ranked(*keys) -> list[Event]:
    return [PathsRanked(paths=(), keys=keys)]


def rejected(key) -> list[Event]:
    return [Rejected(path="", score=None, key=key)]


def answer(events=(), status="answered", paths=(), topics=("m.1",)) -> Answer:
    return Answer(
        Question("?"),
        status,
        evidence=tuple(PathEvidence(p, "") for p in paths),
        topics=tuple(Named(Entity(NS + t), t, t) for t in topics),
        trace=tuple(events),
    )


def lost(solutions, events=(), *, capped=False, gold_topics=(), **fields) -> str:
    reach = Reach(tuple(solutions), capped)
    topics = [Entity(NS + t) for t in gold_topics]
    return lost_at(answer(events, **fields), reach, SCHEMA, right=False, gold_topics=topics)


ALL = ([K1, KW], [K1, KW], [K1, KW])
HOPS = [*hop(*ALL), *hop([K2, KW], [K2, KW], [K2, KW], number=2)]

CASES = [
    # loss, solutions, events
    ("not expanded", [(TWO,)], [*hop([K1, KW], [K1, KW], [KW]), *hop([KW], [KW], [KW]), *ranked(KW)]),
    ("prefilter", [(ONE,)], [*hop([K1, KW], [KW], [KW]), *ranked(KW)]),
    ("tournament", [(ONE,)], [*hop([K1, KW], [K1, KW], [KW]), *ranked(KW)]),
    ("depth", [(TWO,)], [*HOPS, *ranked(KW, K2)]),
    ("last comparison", [(ONE,)], [*hop(*ALL), *ranked(KW, K1)]),
    ("rejected", [(ONE,)], [*hop(*ALL), *ranked(K1, KW), *rejected(K1)]),
    ("rejected", [(ONE,)], [*hop(*ALL), *ranked(KW, K1), *rejected(KW), *rejected(K1)]),
    ("last comparison", [(ONE,)], [*hop(*ALL), *ranked(KW, K1), *rejected(KW)]),
    ("read", [(ONE,)], [*hop(*ALL), *ranked(K1, KW)]),
    # of several solutions the one that got furthest counts
    ("depth", [(ONE,), (TWO,)], [*hop([K1, KW], [KW], [KW]), *hop([K2, KW], [K2, KW], [K2, KW]), *ranked(KW, K2)]),
    ("tournament", [(ONE,), (TWO,)], [*hop([K1, KW], [K1, KW], [KW]), *ranked(KW)]),
    # a path cut in one hop and kept in the next counts as kept
    ("last comparison", [(ONE,)], [*hop([K1, KW], [KW], [KW]), *hop([K1, KW], [K1, KW], [K1, KW]), *ranked(KW, K1)]),
    # joins
    ("joining", [(ONE, SIDE)], [*hop([K1, KS], [K1, KS], [K1, KS]), *ranked(K1, KS)]),
    ("joining", [(ONE, SIDE)], [*hop([K1, KS], [K1, KS], [K1]), *ranked(K1)]),
    ("tournament", [(ONE, SIDE)], [*hop([K1, KS, KW], [K1, KS, KW], [KW]), *ranked(KW)]),
    ("prefilter", [(ONE, SIDE)], [*hop([K1, KS, KW], [KW], [KW]), *ranked(KW)]),
    ("not expanded", [(ONE, SIDE)], [*hop([KW], [KW], [KW]), *ranked(KW)]),
    ("last comparison", [(ONE, SIDE)], [*hop([K1, KS], [K1, KS], [K1, KS]), *ranked(KW, f"{K1} & {KS}")]),
    ("rejected", [(SIDE, ONE)], [*hop([K1, KS], [K1, KS], [K1, KS]), *rejected(f"{K1} & {KS}")]),
]


@pytest.mark.parametrize(("loss", "solutions", "events"), CASES)
def test_lost_stage(loss, solutions, events):
    assert lost(solutions, events) == loss


def test_right_answer_is_not_lost():
    assert lost_at(answer(status="answered"), Reach(), SCHEMA, right=True) == "right"


@pytest.mark.parametrize(
    ("status", "loss"),
    [("unsupported", "unsupported"), ("failed", "failed"), ("no_answer", "no path"), ("answered", "no path")],
)
def test_losses_before_exploration(status, loss):
    assert lost([], status=status) == loss


def test_unknown_loss():
    assert lost([], capped=True) == "unknown"  # the search for gold paths was capped
    assert lost([(ONE,)], [UnknownEvent("filtered", {"pool": 9, "kept": 3})]) == "unknown"  # no keys in the trace


def test_linking_loss():
    assert lost([(ONE,)], hop(*ALL), topics=("m.9",), gold_topics=("m.1",)) == "linking"
    assert lost([(ONE,)], hop([K1, KW], [KW], [KW]), topics=("m.1", "m.9"), gold_topics=("m.1",)) == "prefilter"


def test_budget_loss():
    assert lost([(ONE,)], status="budget_exhausted") == "budget"
    assert lost([(TWO,)], hop(*ALL), status="budget_exhausted") == "budget"
    assert lost([(ONE,)], hop([K1, KW], [KW], [KW]), status="budget_exhausted") == "prefilter"


def test_custom_measure_of_path_length():
    reach = Reach(((TWO,),))
    found = answer([*HOPS, *ranked(KW, K2)])
    assert lost_at(found, reach, SCHEMA, right=False, hops=lambda path: 1) == "last comparison"


def test_paths_of_the_answer_replace_a_missing_ranking():
    assert lost([(TWO,)], HOPS, paths=(WRONG,)) == "depth"
    assert lost([(ONE,)], HOPS, paths=(WRONG,)) == "last comparison"


def test_every_loss_is_covered():
    covered = {loss for loss, *_ in [*CASES, *TEXT_CASES]} | {
        "right",
        "unsupported",
        "failed",
        "no path",
        "unknown",
        "linking",
        "budget",
    }
    assert covered == set(LOSSES)


# --- a real exploration that prefers keys in alphabetical order


@pytest.fixture(scope="module")
def graph(make_graph):
    return make_graph("m.1 a.b.c m.x", "m.1 x.y.z m.y", "m.1 x.y.w m.v", "m.x d.e.f m.u", "m.y d.e.g m.w")


@pytest.mark.parametrize(
    ("goal", "short", "keep", "loss"),
    [
        (("a.b.c",), 1, 1, "read"),
        (("x.y.z",), 1, 1, "prefilter"),
        (("x.y.z",), 3, 1, "tournament"),
        (("x.y.z",), 3, 3, "last comparison"),
        (("a.b.c", "d.e.f"), 3, 2, "depth"),
        (("x.y.z", "d.e.g"), 3, 2, "not expanded"),
    ],
)
def test_losses_in_a_real_exploration(graph, goal, short, keep, loss):
    trace = Trace()

    def in_order(count):
        return lambda pool: sorted(pool, key=order)[:count]

    def order(candidate):
        return path_key(candidate.path, SCHEMA)

    topic = Entity(NS + "m.1")
    start = [Candidate(RelationPath(topic))]
    hops = explore(graph, start, BeamSettings(), prefilter=in_order(short), tournament=in_order(keep), trace=trace)
    trace.record(PathsRanked(paths=(), keys=tuple(order(c) for c in sorted(hops[-1].kept, key=order))))
    found = answer(trace.events())
    assert lost_at(found, Reach(((path("m.1", *goal),),)), SCHEMA, right=False, gold_topics=[topic]) == loss
