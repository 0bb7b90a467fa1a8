"""Samples and shards of questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.sampling import sample, shard

DRAWN = {0: [43, 70, 72, 90, 94], 1: [21, 41, 50, 68, 73]}


def questions(count: int) -> list[GoldQuestion]:
    return [GoldQuestion(f"q{n}?", f"id-{n}", "x", n) for n in range(count)]


def test_samples_never_change():
    """Samples are the same on every machine and in every version, or earlier runs could not be sampled again."""
    assert [q.number for q in sample(questions(100), 5, 0)] == DRAWN[0]
    assert [q.number for q in sample(questions(100), 5, 1)] == DRAWN[1]


@given(st.integers(0, 60), st.integers(1, 70), st.integers(-3, 10))
def test_sample_is_ordered_and_nested(count, n, seed):
    all_questions = questions(count)
    drawn = sample(all_questions, n, seed)
    assert len(drawn) == min(n, count) and drawn == sorted(drawn, key=lambda q: q.number)
    assert {q.id for q in drawn} <= {q.id for q in sample(all_questions, n + 1, seed)}, (
        "a larger sample has the smaller one in it"
    )
    assert {q.id for q in sample(all_questions[::-1], n, seed)} == {q.id for q in drawn}, (
        "whatever the order of the file"
    )


def test_seeds_give_different_even_samples():
    all_questions = questions(1000)
    draws = [{q.number for q in sample(all_questions, 100, seed)} for seed in range(20)]
    assert len(set(map(frozenset, draws))) == 20
    assert 400 < sum(number < 500 for drawn in draws for number in drawn) / 20 * 10 < 600


def test_repeated_ids_and_lone_surrogates():
    same = [GoldQuestion(f"q{n}?", "same", "x", n) for n in range(5)]
    assert [q.number for q in sample(same, 2)] == [0, 1]
    assert len(sample([GoldQuestion("q?", "\ud800", "x", 0)], 1)) == 1


@given(st.integers(0, 50), st.integers(1, 12))
def test_shards_are_disjoint_and_complete(count, n):
    all_questions = questions(count)
    parts = [shard(all_questions, i, n) for i in range(1, n + 1)]
    assert sorted((q for part in parts for q in part), key=lambda q: q.number) == all_questions
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(part == sorted(part, key=lambda q: q.number) for part in parts)


@pytest.mark.parametrize(("i", "n"), [(0, 3), (4, 3), (-1, 3), (1, 0)])
def test_invalid_shard(i, n):
    with pytest.raises(SettingsError, match="shard"):
        shard(questions(5), i, n)


def test_sample_of_zero_and_of_no_questions():
    with pytest.raises(SettingsError):
        sample(questions(5), 0)
    assert sample([], 3) == []


def distinct(questions):
    """Make ids distinct with all ids in memory."""
    seen: Counter[str] = Counter()
    taken = {question.id for question in questions}
    found = []
    for question in questions:
        seen[question.id] += 1
        ident, number = question.id, seen[question.id]
        while number > 1 and ident in taken:
            ident, number = f"{question.id}#{number}", number + 1
        taken.add(ident)
        found.append(replace(question, id=ident))
    return found


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "b#2", "a#2#2", "c"]), max_size=14),
    st.integers(1, 15),
    st.integers(0, 3),
)
def test_streamed_sample_equals_list_sample(tmp_path_factory, ids, n, seed):
    import json

    from kgqa.evaluation.datasets.questions import iter_questions, read_questions
    from kgqa.evaluation.datasets.sampling import QuestionIds, sample

    file = tmp_path_factory.mktemp("ids") / "q.jsonl"
    file.write_text(
        "".join(json.dumps({"question": f"q{number}", "id": ident}) + "\n" for number, ident in enumerate(["x", *ids]))
    )
    recorded_ids = QuestionIds()
    found = sample(recorded_ids.recorded(iter_questions(file)), n, seed)
    if recorded_ids.repeated():
        found = sample(recorded_ids.made_distinct(iter_questions(file)), n, seed)
    questions = distinct(read_questions(file))
    assert found == sample(questions, n, seed)
    assert list(recorded_ids.made_distinct(iter_questions(file))) == questions
    assert recorded_ids.repeated() == len(ids) - len(set(ids))
