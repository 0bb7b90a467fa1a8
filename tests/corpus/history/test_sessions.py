"""Random sessions: merges in any order are equal, all undone is the first state, and what is disputed follows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import Edit, as_of, live_tags, merge, sealed, verify_chain
from kgqa.corpus.editing.disputes import disputes_of
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.standing import computed_standing
from kgqa.corpus.reader import DatabaseReader
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from tests.conftest import SOAK
from tests.corpus.editing.edited_corpus import build, overlay, parties, shown

TEXTS = ("Ada met Babbage in Paris", "Ada met Babbage in Rome", "Byron left England for Venice", "Ada knew Somerville")
TRUSTS = ("web", "domain", "corpus", "user")

actions = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "update", "delete"]),
        st.integers(0, 9),
        st.sampled_from(TEXTS),
        st.sampled_from(TRUSTS),
    ),
    min_size=1,
    max_size=4,
)


def act(made: Overlay, performed) -> None:
    """Perform actions; those that trust forbids are left out."""
    for number, (kind, which, text, trust) in enumerate(performed):
        live = [each.iri for each in made.corpus.reader.hyperedges() if made.record(each.iri)]
        live += [each.iri for each in made.added]
        source = [shown(number + 1, text, trust, f"http://web.example/{which % 3}")]
        who = parties(*text.split()[:3:2])
        if kind == "insert":
            made.insert(text, who, source)
        elif live:
            target = live[which % len(live)]
            with suppress(CorpusError):
                made.update(target, text, who, source) if kind == "update" else made.delete(target, source)


@dataclass(frozen=True)
class Base:
    corpus: Corpus
    log: tuple[Edit, ...]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Corpus.open(build(tmp_path_factory.mktemp("sessions") / "c")) as corpus:
        yield Base(corpus, tuple(map(corpus.database.whole, corpus.database.edits())))


def undone(log: tuple[Edit, ...], since: int) -> tuple[Edit, ...]:
    """Return a log in which all edits with numbers above `since` are undone."""
    found = list(log)
    for edit in reversed(log[since:]):
        undo = Edit("", len(found) + 1, "undo", "a", target=edit.id, at="2027", previous=(found[-1].id,))
        found.append(sealed(undo))
    return tuple(found)


@pytest.mark.soak
@pytest.mark.timeout(5000)
@settings(max_examples=1000 if SOAK else 30)
@given(actions, actions, actions)
def test_triples_of_sessions(base, first, second, third):
    made = []
    for name, performed in zip(("s1", "s2", "s3"), (first, second, third)):
        made.append(overlay(base.corpus, session=name))
        act(made[-1], performed)
    logs = [(*base.log, *(each.edit for each in one.edits)) for one in made]
    merged = [merge(*order) for order in permutations(logs)]
    assert all(each == merged[0] for each in merged)
    assert verify_chain(merged[0]) == []
    assert live_tags(undone(merged[0], len(base.log))) == live_tags(base.log)
    for number in range(len(base.log), len(merged[0]) + 1):
        assert live_tags(as_of(merged[0], number)) == live_tags(merged[0][:number])
    # what a session saw is what its log says
    for one, log in zip(made, logs):
        live = {each.item for each in live_tags(log)}
        assert all(tag.removal.item in live for record in one.added for tag in one._tags[record.iri])


@pytest.mark.soak
@pytest.mark.timeout(5000)
@settings(max_examples=100 if SOAK else 8)
@given(actions, actions)
def test_the_database_shows_the_same_disputes_in_any_order(base, tmp_path_factory, first, second):
    made = []
    for name, performed in zip(("s1", "s2"), (first, second)):
        made.append(overlay(base.corpus, session=name))
        act(made[-1], performed)
    found = []
    for number, order in enumerate(permutations(made)):
        path = tmp_path_factory.mktemp("merged") / f"{number}.sqlite"
        with Database(path, writable=True) as database:
            database.append_foreign(base.log)
            before = disputes_of(database, database.seq)
            for one in order:
                database.append_foreign(each.edit for each in one.edits)
            seq = database.seq
            live = {each.iri for each in DatabaseReader(database).hyperedges()}
            disputes = disputes_of(database, seq)
            assert {iri for pair in disputes.hyperedges for iri in pair} | disputes.contested <= live
            found.append((live, disputes, computed_standing(database, seq)))
            assert disputes_of(database, len(base.log)) == before  # earlier states are kept
    assert found[0] == found[1]
    # what a question saw as a conflict is one in its log
    with Database(tmp_path_factory.mktemp("one") / "c.sqlite", writable=True) as database:
        database.append_foreign([*base.log, *(each.edit for each in made[0].edits)])
        pairs = disputes_of(database, database.seq).hyperedges
        assert set(pairs) == {
            (iri, other) for iri, others in made[0].conflicts.items() for other in others if iri < other
        }
        assert {each.iri for each in DatabaseReader(database).hyperedges()} == {
            *(each.iri for each in base.corpus.reader.hyperedges() if each.iri not in made[0].removed),
            *(each.iri for each in made[0].added),
        }
