"""What edits change in the graphs is the difference between all triples before and after them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.corpus.difference import difference
from kgqa.corpus.edit_log import Edit, Removal
from kgqa.corpus.items import Addition, LinkItem, SameItem, document_iri, item_key
from kgqa.corpus.rdf.triples import texts_of
from kgqa.corpus.snapshot import snapshot_of
from kgqa.corpus.storage.database import Database
from tests.conftest import SOAK
from tests.corpus.small_corpus import party, read_document

SOURCES = ("one.txt", "two.txt", "three.txt")
NAMES = ("Ada", "ada/person", "Lovelace", "Engine/machine", "London/city")
FACTS = [
    f"{one} {rest}" for one in NAMES[:3] for rest in ("made Engine/machine", "knew Ada", "met Lovelace London/city")
]
FACTS += ["Bob made tea", "Carl/person made beer/drink", "Dora met Eve Rome/city", "Finn knew Gus/person"]
IRIS = sorted(party(name).iri for name in NAMES)

documents = st.tuples(
    st.just("read"), st.sampled_from(SOURCES), st.lists(st.sampled_from(FACTS), min_size=1, max_size=3)
)
actions = st.one_of(
    documents,
    documents,
    st.tuples(st.just("remove"), st.sampled_from(SOURCES)),
    st.tuples(st.just("delete"), st.integers(0, 99)),
    st.tuples(st.just("same"), st.lists(st.sampled_from(IRIS), min_size=2, max_size=2, unique=True).map(sorted)),
    st.tuples(st.just("link"), st.sampled_from(IRIS), st.sampled_from(("http://e/1", "http://e/2"))),
    st.tuples(st.just("undo"), st.integers(0, 99)),
)


def perform(database: Database, kind: str, *values) -> None:
    def removals(source: str) -> list[Removal]:
        document = document_iri(source)
        return [Removal(edit=id, document=document) for id in database.edits_of_document(document)]

    edit = Edit("", 0, "insert", "a")
    if kind == "read":
        database.append(edit, read_document(values[0], *values[1])[0], removals(values[0]))
    elif kind == "remove":
        database.append(edit, (), removals(values[0]))
    elif kind == "same":
        database.append(edit, [Addition(SameItem(*values[0]))])
    elif kind == "link":
        database.append(edit, [Addition(LinkItem(*values))])
    elif kind == "delete":
        live = [each for each in database.live.all(database.seq) if each.document]
        if live:
            chosen = live[values[0] % len(live)]
            database.append(edit, (), [Removal(document=chosen.document, item=item_key(chosen.item))])
    elif edits := list(database.edits()):
        database.append(Edit("", 0, "undo", "a", target=edits[values[0] % len(edits)].id))


@pytest.mark.soak
@settings(max_examples=500 if SOAK else 60)
@given(st.lists(actions, min_size=1, max_size=12))
def test_the_difference_of_two_states(tmp_path_factory, performed):
    with Database(tmp_path_factory.mktemp("log") / "corpus.sqlite", writable=True) as database:
        with database.transaction():
            for action in performed:
                perform(database, *action)
        last = database.seq
        states = [texts_of(snapshot_of(database.live.all(seq))) for seq in range(last + 1)]
        pairs = {(seq, seq + 1) for seq in range(last)} | {(seq, last) for seq in range(last)} | {(0, last // 2)}
        for before, after in sorted(pairs):
            change = difference(database, before, after)
            for view, texts in states[before].items():
                removes, adds = change.removes.get(view, set()), change.adds.get(view, set())
                assert (texts - removes) | adds == states[after][view], (before, after, view)
