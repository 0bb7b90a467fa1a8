"""Communities: determinism, the limit on their size, levels, stable members after a change, hashes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.communities.finding import communities_of, entity_edges, find_communities
from kgqa.corpus.records import HyperedgeRecord
from kgqa.errors import SettingsError
from tests.corpus.memory_corpus import corpus_of

EDGES = st.lists(
    st.tuples(st.integers(0, 30).map(str), st.integers(0, 30).map(str), st.sampled_from([1.0, 2.0, 0.5])), max_size=60
)


def random_edges(count=600, seed=1):
    numbers = random.Random(seed)
    return [
        (f"e{int(count / 3 * numbers.random() ** 2):04}", f"e{numbers.randrange(count // 3):04}", 1.0)
        for _ in range(count)
    ]


def leaves(communities):
    parents = {each.parent for each in communities}
    return [each for each in communities if each.iri not in parents]


@given(EDGES, st.randoms(use_true_random=False), st.integers(2, 6))
def test_communities_follow_from_the_set_of_edges(edges, shuffler, max_size):
    found = find_communities(edges, max_size=max_size)
    shuffled = [edge if shuffler.random() < 0.5 else (edge[1], edge[0], edge[2]) for edge in edges]
    shuffler.shuffle(shuffled)
    assert find_communities(shuffled, max_size=max_size) == found
    assert len({each.iri for each in found}) == len(found)
    by_iri = {each.iri: each for each in found}
    for each in found:
        assert len(each.members) > 1 and list(each.members) == sorted(set(each.members))
        if each.parent:
            parent = by_iri[each.parent]
            assert parent.level == each.level - 1
            assert set(each.members) < set(parent.members)
        else:
            assert each.level == 0
    for level in {each.level for each in found}:
        members = [member for each in found if each.level == level for member in each.members]
        assert len(members) == len(set(members)), "communities of one level have no member in common"
    assert all(len(each.members) <= max_size for each in leaves(found))


@pytest.mark.parametrize(
    "edges",
    [
        [("hub", f"leaf{number:03}", 1.0) for number in range(100)],
        [(f"e{one:02}", f"e{other:02}", 1.0) for one in range(30) for other in range(one)],
        [(f"e{number:03}", f"e{number + 1:03}", 1.0) for number in range(100)],
    ],
    ids=["hub", "clique", "chain"],
)
def test_the_limit_holds_where_leiden_finds_no_parts(edges):
    found = find_communities(edges, max_size=5)
    assert max(len(each.members) for each in leaves(found)) <= 5
    assert {member for each in leaves(found) for member in each.members} >= {"hub"} & {edges[0][0]}


def test_two_groups_with_one_bridge():
    group = [("a1", "a2", 1.0), ("a2", "a3", 1.0), ("a1", "a3", 1.0)]
    edges = group + [(one.replace("a", "b"), other.replace("a", "b"), 1.0) for one, other, _ in group]
    found = find_communities([*edges, ("a1", "b1", 0.1)], max_size=4)
    assert {each.members for each in leaves(found)} == {("a1", "a2", "a3"), ("b1", "b2", "b3")}


def test_another_process_finds_the_same():
    code = (
        "from tests.corpus.communities.test_finding import random_edges, find_communities;"
        "print(hash(tuple(each.iri for each in find_communities(random_edges()))))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(prints) == 1


def test_a_small_change_touches_few_communities():
    edges = random_edges()
    before = find_communities(edges)
    new = [("x1", "x2", 1.0), ("x2", edges[0][0], 1.0)]
    touched = {end for edge in new for end in edge[:2]}
    after = find_communities([*edges, *new], previous=before, touched=touched)
    assert {"x1", "x2"} <= {member for each in after for member in each.members}
    changed = {each.iri for each in after} ^ {each.iri for each in before}
    assert 0 < len(changed) <= 12 < len(before)
    assert find_communities(edges, previous=before, touched=()) == before
    assert all(len(each.members) <= 10 for each in leaves(after))


def test_many_changes_compute_all_anew():
    edges, more = random_edges(), random_edges(seed=2)
    before = find_communities(edges)
    touched = {end for edge in more for end in edge[:2]}
    assert find_communities([*edges, *more], previous=before, touched=touched) == find_communities([*edges, *more])


@given(EDGES, EDGES, st.integers(2, 5))
def test_communities_after_any_change_keep_their_rules(edges, more, max_size):
    before = find_communities(edges, max_size=max_size)
    after_edges = [*edges[len(edges) // 4 :], *more[:3]]
    gone = {end for edge in [*edges[: len(edges) // 4], *more[:3]] for end in edge[:2]}
    after = find_communities(after_edges, max_size=max_size, previous=before, touched=gone)
    known = {end for one, other, _ in after_edges if one != other for end in (one, other)}
    assert all(set(each.members) <= known for each in after)
    assert all(len(each.members) <= max_size for each in leaves(after))
    assert len({each.iri for each in after}) == len(after)


def test_settings():
    with pytest.raises(SettingsError, match="at least 2"):
        find_communities([("a", "b", 1.0)], max_size=1)
    assert find_communities([]) == find_communities([("a", "a", 1.0)]) == ()


PASSAGES = [
    ("Halden Bridge", "Ann Li designed Halden Bridge.", [("Halden Bridge", "designed by", "Ann Li")]),
    ("Ann Li", "Ann Li was born in Halden.", [("Ann Li", "born in", "Halden")]),
    ("Barlow", "Barlow is twinned with Ostmark.", [("Barlow", "twinned with", "Ostmark")]),
]


def test_communities_of_a_corpus_have_titles_and_hashes_of_what_is_said():
    corpus = corpus_of(PASSAGES)
    first = communities_of(corpus)
    assert {each.title for each in first} == {"Ann Li, Halden, Halden Bridge", "Barlow, Ostmark"}
    assert communities_of(corpus) == first
    corpus = corpus_of([*PASSAGES, ("More", "Ostmark is near Barlow.", [("Ostmark", "near", "Barlow")])])
    second = {each.title: each for each in communities_of(corpus)}
    for each in first:
        same = second[each.title]
        assert same.iri == each.iri and same.members == each.members
        assert (same.members_hash == each.members_hash) == (each.title != "Barlow, Ostmark")


def test_weights_of_edges():
    corpus = corpus_of([*PASSAGES, ("More", "x", [("Ann Li", "lived in", "Halden"), ("Halden", "is", "Halden")])])
    weights = {weight for *_, weight in entity_edges(corpus.statements())}
    assert weights == {1.0, 2.0}

    def hyperedge(count):
        return HyperedgeRecord(f"h{count}", "segment", tuple(("", f"e{number:02}") for number in range(count)))

    assert sum(weight for *_, weight in entity_edges((), [hyperedge(4)])) == pytest.approx(2.0)
    star = entity_edges((), [hyperedge(12)])
    assert len(star) == 11 and {edge[0] for edge in star} == {"e00"}
    assert entity_edges((), [hyperedge(1)]) == []
