"""Samples and shards: the same everywhere, in the order of the file, and no question lost or asked twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.sampling import sample, shard

DRAWN = {0: [43, 70, 72, 90, 94], 1: [21, 41, 50, 68, 73]}


def questions(count: int) -> list[GoldQuestion]:
    return [GoldQuestion(f"q{n}?", f"id-{n}", "x", n) for n in range(count)]


def test_what_is_drawn_is_written_down():
    """These numbers hold on every machine and version: if this fails, samples of earlier runs cannot be drawn again."""
    assert [q.number for q in sample(questions(100), 5, 0)] == DRAWN[0]
    assert [q.number for q in sample(questions(100), 5, 1)] == DRAWN[1]


@given(st.integers(0, 60), st.integers(1, 70), st.integers(-3, 10))
def test_a_sample(count, n, seed):
    every = questions(count)
    drawn = sample(every, n, seed)
    assert len(drawn) == min(n, count) and drawn == sorted(drawn, key=lambda q: q.number)
    assert {q.id for q in drawn} <= {q.id for q in sample(every, n + 1, seed)}, (
        "a larger sample has the smaller one in it"
    )
    assert {q.id for q in sample(every[::-1], n, seed)} == {q.id for q in drawn}, "whatever the order of the file"


def test_seeds_draw_differently_and_evenly():
    every = questions(1000)
    draws = [{q.number for q in sample(every, 100, seed)} for seed in range(20)]
    assert len(set(map(frozenset, draws))) == 20
    assert 400 < sum(number < 500 for drawn in draws for number in drawn) / 20 * 10 < 600


def test_ids_that_repeat_and_half_characters():
    same = [GoldQuestion(f"q{n}?", "same", "x", n) for n in range(5)]
    assert [q.number for q in sample(same, 2)] == [0, 1]
    assert len(sample([GoldQuestion("q?", "\ud800", "x", 0)], 1)) == 1


@given(st.integers(0, 50), st.integers(1, 12))
def test_shards_are_disjoint_and_whole(count, n):
    every = questions(count)
    parts = [shard(every, i, n) for i in range(1, n + 1)]
    assert sorted((q for part in parts for q in part), key=lambda q: q.number) == every
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(part == sorted(part, key=lambda q: q.number) for part in parts)


@pytest.mark.parametrize(("i", "n"), [(0, 3), (4, 3), (-1, 3), (1, 0)])
def test_parts_that_are_not_there(i, n):
    with pytest.raises(SettingsError, match="shard"):
        shard(questions(5), i, n)


def test_a_sample_of_nothing():
    with pytest.raises(SettingsError):
        sample(questions(5), 0)
    assert sample([], 3) == []


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "b#2", "a#2#2", "c"]), max_size=14),
    st.integers(1, 15),
    st.integers(0, 3),
)
def test_questions_that_pass_by_are_sampled_as_a_list_is(tmp_path_factory, ids, n, seed):
    import json

    from kgqa.evaluation.datasets.questions import iter_questions, read_questions
    from kgqa.evaluation.datasets.sampling import QuestionIds, sample, sample_of
    from kgqa.evaluation.runs.plan import distinct

    file = tmp_path_factory.mktemp("ids") / "q.jsonl"
    file.write_text(
        "".join(json.dumps({"question": f"q{place}", "id": ident}) + "\n" for place, ident in enumerate(["x", *ids]))
    )
    noted = QuestionIds()
    found = sample_of(noted.recorded(iter_questions(file)), n, seed)
    if noted.repeated():
        found = sample_of(noted.made_distinct(iter_questions(file)), n, seed)
    assert found == sample(distinct(read_questions(file)), n, seed)
    assert noted.repeated() == len(ids) - len(set(ids))
