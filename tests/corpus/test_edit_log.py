"""The edit log: merges in any order, undo, chained hashes; and the same states in SQLite."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.corpus.edit_log import (
    Edit,
    EditSource,
    Removal,
    as_of,
    cancelled_edits,
    conflicts,
    dependents,
    heads,
    live_items,
    live_tags,
    merge,
    sealed,
    verify_chain,
)
from kgqa.corpus.items import Addition, EntityItem, Party, item_key
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from tests.conftest import SOAK
from tests.corpus.random_logs import DOCUMENTS, actions, extended, key

logs = st.lists(actions, max_size=12)
in_files = settings(max_examples=100 if SOAK else 15)


def addition(name: str, document: str = "", **more) -> Addition:
    return Addition(EntityItem(Party(name)), document, **more)


def log_of(*steps) -> list[Edit]:
    """Return a log of (kind, names added, removals, target) with the numbers of earlier edits, from 1, as ids."""
    log: list[Edit] = []
    for kind, names, removes, target in steps:
        removals = tuple(
            Removal(log[edit - 1].id if edit else "", document, key(item) if item else "")
            for edit, document, item in removes
        )
        id = log[target - 1].id if target else ""
        adds = tuple(addition(*name) if isinstance(name, tuple) else addition(name) for name in names)
        log.append(
            sealed(Edit("", len(log) + 1, kind, "a", target=id, previous=heads(log), adds=adds, removes=removals))
        )
    return log


def names(edits) -> str:
    return "".join(sorted(name for name in "abcde" if key(name) in live_items(edits)))


# --- by hand


def test_a_removal_needs_two_fields():
    with pytest.raises(ValueError):
        Removal(edit="e")
    with pytest.raises(ValueError):
        Removal(document="d")


def test_an_undo_cancels_an_edit_and_an_undo_of_it_brings_it_back():
    steps = [("insert", "a", [], 0), ("delete", "", [(1, "", "a")], 0), ("undo", "", [], 2), ("undo", "", [], 3)]
    assert [names(log_of(*steps[:n])) for n in range(5)] == ["", "a", "", "a", ""]


def test_two_undos_of_one_edit_need_both_to_be_undone():
    log = log_of(("insert", "a", [], 0), ("undo", "", [], 1), ("undo", "", [], 1), ("undo", "", [], 2))
    assert names(log) == ""
    assert names(log_of(*[("insert", "a", [], 0), ("undo", "", [], 1), ("undo", "", [], 2)])) == "a"


def test_a_deletion_of_an_item_of_a_document_outlives_a_rebuild():
    document = DOCUMENTS[1]
    log = log_of(
        ("insert", [("a", document), ("b", document)], [], 0),
        ("delete", "", [(0, document, "a")], 0),
        ("update", [("a", document), ("c", document)], [(1, document, "")], 0),
    )
    assert names(log) == "c"
    assert names(log_of(*[("insert", "a", [], 0)])) == "a"
    assert names([*log[:1], *log[2:]]) == "ac"


def test_an_item_lives_while_one_of_its_tags_does():
    log = log_of(("insert", "a", [], 0), ("insert", "a", [], 0), ("delete", "", [(1, "", "a")], 0))
    assert names(log) == "a"


def test_dependents():
    log = log_of(
        ("insert", "a", [], 0),
        ("insert", "d", [], 0),
        ("update", "b", [(1, "", "a")], 0),
        ("update", "c", [(3, "", "b")], 0),
        ("delete", "", [(2, "", "d")], 0),
        ("undo", "", [], 5),
        ("delete", "", [(2, "", "d")], 0),
    )
    ids = [edit.id for edit in log]
    assert dependents(log, [ids[0]]) == (ids[2], ids[3])
    assert dependents(log, [ids[2]]) == (ids[3],)
    assert dependents(log, [ids[1]]) == (ids[6],)  # what the undone deletion removed, it does not any more
    assert dependents(log, [ids[5]]) == (ids[6],)  # the undo brought back what was deleted again
    source = sealed(Edit("", 8, "insert", "a", sources=(EditSource(ids[3]),), adds=(addition("e"),)))
    assert dependents([*log, source], [ids[0]]) == (ids[2], ids[3], source.id)


def test_two_updates_of_one_tag_are_a_conflict_and_both_texts_live():
    base = log_of(("insert", "a", [], 0))
    here = extended_by(base, "b")
    there = extended_by(base, "c")
    merged = merge(here, there)
    assert names(merged) == "bc"
    (found,) = conflicts(merged)
    assert found.tag.item == key("a")
    assert found.edits == tuple(sorted(edit.id for edit in merged[1:]))
    assert {tag.item for tag in found.replacements} == {key("b"), key("c")}
    deletion = sealed(Edit("", 2, "delete", "a", previous=heads(base), removes=(Removal(base[0].id, "", key("a")),)))
    (found,) = conflicts(merge(here, [*base, deletion]))
    assert {tag.item for tag in found.replacements} == {key("b")}
    assert not conflicts(here)


def extended_by(base: list[Edit], name: str) -> list[Edit]:
    removes = (Removal(base[0].id, "", key("a")),)
    return [*base, sealed(Edit("", 2, "update", "a", previous=heads(base), adds=(addition(name),), removes=removes))]


def test_edits_that_undo_each_other_in_a_circle_are_refused():
    one = Edit("urn:kgqa:edit:1", 1, "undo", "a", target="urn:kgqa:edit:2")
    other = Edit("urn:kgqa:edit:2", 2, "undo", "a", target="urn:kgqa:edit:1")
    with pytest.raises(ValueError, match="circle"):
        cancelled_edits([one, other])


# --- properties


@given(logs, logs, logs, st.randoms())
def test_a_merge_is_the_union_in_any_order(first, second, third, random):
    base = extended([], first)
    here, there = extended(base, second, agent="b"), extended(base, third, agent="c")
    state = live_tags(here + there)
    assert merge(here, there) == merge(there, here) == merge(merge(here, base), there)
    assert live_tags(merge(here, there)) == state
    shuffled = here + there
    random.shuffle(shuffled)
    assert live_tags(shuffled) == state
    assert verify_chain(merge(here, there)) == []


@given(logs)
def test_all_undone_is_the_first_state(performed):
    log = extended([], performed)
    while active := [edit for edit in log if edit.id not in cancelled_edits(log) and edit.kind != "undo"]:
        log = [*log, sealed(Edit("", len(log) + 1, "undo", "a", target=active[-1].id, previous=heads(log)))]
    assert live_tags(log) == frozenset()


@given(logs)
def test_a_state_in_the_past_is_the_fold_of_the_edits_until_then(performed):
    log: list[Edit] = []
    states = [live_tags(log)]
    for action in performed:
        log = extended(log, [action])
        states[len(log) :] = [live_tags(log)]
    for number in range(len(log) + 1):
        assert live_tags(as_of(log, number)) == states[number]
        assert live_tags(as_of(log, at=f"{number - 1:04}")) == states[number]


@given(logs.filter(bool), st.data())
def test_a_changed_edit_is_found(performed, data):
    log = extended([], performed)
    if not log:
        return
    assert verify_chain(log) == []
    number = data.draw(st.integers(0, len(log) - 1))
    field = data.draw(st.sampled_from([field.name for field in fields(Edit)]))
    value = getattr(log[number], field)
    changed = {"seq": lambda: value + 1, "previous": lambda: (*value, "x"), "sources": lambda: (EditSource("x"),)}
    changed |= {"adds": lambda: (*value, addition("z")), "removes": lambda: (*value, Removal("x", "y"))}
    broken = [*log]
    broken[number] = replace(log[number], **{field: changed.get(field, lambda: value + "x")()})
    assert verify_chain(broken)
    if number < len(log) - 1:
        assert verify_chain(log[:number] + log[number + 1 :])


# --- the same in SQLite


def in_database(database: Database, log: list[Edit]) -> None:
    for edit in log:
        unsealed = replace(edit, id="", seq=0, content="", previous=(), adds=(), removes=())
        assert database.append(unsealed, edit.adds, edit.removes).id == edit.id


def stored_tags(database: Database, seq: int) -> list[tuple[str, str]]:
    return sorted({(each.document, item_key(each.item)) for each in database.live.all(seq)})


@pytest.mark.soak
@in_files
@given(logs)
def test_the_database_has_the_same_states(tmp_path_factory, performed):
    log = extended([], performed)
    with Database(tmp_path_factory.mktemp("log") / "corpus.sqlite", writable=True) as database:
        in_database(database, log)
        assert [database.whole(edit) for edit in database.edits()] == log
        for number in range(len(log) + 1):
            tags = live_tags(log[:number])
            assert stored_tags(database, number) == sorted({(tag.document, tag.item) for tag in tags})
            for document in DOCUMENTS:
                assert set(database.edits_of_document(document)) == {
                    tag.edit for tag in live_tags(log) if tag.document == document
                }
        cancelled = cancelled_edits(log)
        for edit in log:
            assert database.is_active(edit) == (edit.id not in cancelled)
            assert tuple(each.id for each in database.dependents(edit)) == dependents(log, [edit.id])


@pytest.mark.soak
@in_files
@given(logs, logs, logs)
def test_logs_of_two_databases_are_merged(tmp_path_factory, first, second, third):
    base = extended([], first)
    here, there = extended(base, second, agent="b"), extended(base, third, agent="c")
    folder = tmp_path_factory.mktemp("log")
    with (
        Database(folder / "here.sqlite", writable=True) as one,
        Database(folder / "there.sqlite", writable=True) as other,
    ):
        in_database(one, here)
        in_database(other, there)
        edits = [other.whole(edit) for edit in other.edits()]
        assert one.append_foreign(edits) == len(there) - len(base)
        assert one.append_foreign(edits) == 0
        merged = [one.whole(edit) for edit in one.edits()]
        assert verify_chain(merged) == []
        tags = live_tags(merged)
        assert tags == live_tags(here + there)
        assert stored_tags(one, one.seq) == sorted({(tag.document, tag.item) for tag in tags})
        if there[len(base) :]:
            broken = replace(there[len(base)], reason="changed")
            with Database(folder / "new.sqlite", writable=True) as new, pytest.raises(CorpusError, match="damaged"):
                new.append_foreign([*base, broken])
