"""Random sessions, reviews, undos, rebuilds and merges of one corpus: its graph and its log agree at every step."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kgqa.corpus.checking import check, log_findings
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import live_tags
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.standing import computed_standing
from kgqa.corpus.editor import Editor
from kgqa.corpus.history.as_of import write_as_of
from kgqa.corpus.history.merging import merge_from
from kgqa.corpus.history.reviewing import accept, read_book, reject
from kgqa.corpus.history.undoing import plan_undo, undo_all
from kgqa.corpus.items import HyperedgeItem
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import CorpusError
from tests.conftest import SOAK
from tests.corpus.editing.edited_corpus import FACTS, build, overlay
from tests.corpus.history.test_sessions import act, actions
from tests.corpus.small_corpus import insert

MORE = (*FACTS, "Dora met Eve Rome")


def records(corpus: Corpus):
    reader = corpus.reader
    return tuple(tuple(each()) for each in (reader.documents, reader.entities, reader.statements, reader.hyperedges))


class History(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="kgqa-test-"))
        self.path = build(self.folder / "c")
        self.forks = 0
        self.sessions = 0
        with Corpus.open(self.path) as corpus:
            self.first = records(corpus)
        self.reviewed = False

    @initialize()
    def fork(self):
        shutil.copytree(self.path, self.folder / f"fork{self.forks}")
        self.forks += 1

    def _session(self, path: Path, performed, mode: str):
        self.sessions += 1
        with Corpus.open(path) as corpus:
            made = overlay(corpus, session=f"s{self.sessions}", now=lambda: f"2026-02-{self.sessions:02}T00:00:00.000Z")
            act(made, performed)
            outcome = commit(made, mode)
            assert outcome.notes == () and len(outcome.committed) + len(outcome.proposed) == len(made.edits)
            assert mode == "auto" or not outcome.committed

    @rule(performed=actions, mode=st.sampled_from(["auto", "proposed"]))
    def session(self, performed, mode):
        self._session(self.path, performed, mode)

    @rule(performed=actions, hold=st.booleans(), number=st.integers(0, 9))
    def merge_a_fork(self, performed, hold, number):
        fork = self.folder / f"fork{number % self.forks}"
        self._session(fork, performed, "auto")
        with Editor(self.path) as editor:
            before = {each.iri for each in Corpus(editor.folder, editor=editor).reader.hyperedges()}
            done = merge_from(editor, fork, hold=hold)
            assert len(done.held) == 0 or hold
            assert merge_from(editor, fork, hold=hold).edits == 0
            editor.publish()
        assert before

    @rule(number=st.integers(0, 99), yes=st.booleans())
    def review(self, number, yes):
        with Editor(self.path) as editor:
            book = read_book(editor.folder, editor.database)
            pending = book.pending()
            if not pending:
                return
            chosen = pending[number % len(pending)]
            if yes:
                try:
                    accept(editor, book, [chosen], by="reviewer")
                    self.reviewed = True
                except CorpusError as error:
                    assert "builds on" in error.message  # noqa: PT017
            else:
                reject(editor.folder, book, [chosen], by="reviewer")
            editor.publish()
            after = len(read_book(editor.folder, editor.database).pending())
            assert after <= len(pending)

    @precondition(lambda self: self.sessions)
    @rule(number=st.integers(0, 99), what=st.sampled_from(["edit", "session", "source"]))
    def undo(self, number, what):
        with Editor(self.path) as editor:
            edits = list(editor.database.edits(1))
            if not edits:
                return
            chosen = edits[number % len(edits)]
            about = {"edit": {"edits": [chosen]}, "session": {"session": chosen.session}}.get(what)
            if about is None:
                about = {"source": chosen.sources[0].iri} if chosen.sources else {"edits": [chosen]}
            if what == "session" and (not chosen.session or chosen.kind == "undo"):
                return
            plan = plan_undo(editor.database, **about)
            undo_all(editor, plan, agent="a person", cascade=True)
            assert not any(editor.database.is_active(each) for each in (*plan.edits, *plan.dependents))
            editor.publish()

    @rule(facts=st.lists(st.sampled_from(MORE), min_size=1, max_size=3, unique=True))
    def rebuild(self, facts):
        with Editor(self.path) as editor:
            insert(editor, "two.txt", *facts, kind="update")
            editor.publish()

    @invariant()
    def log_and_graph_agree(self):
        with Corpus.open(self.path) as corpus:
            database = corpus.database
            assert log_findings(corpus) == []
            edits = list(map(database.whole, database.edits()))
            wanted = {tag.item for tag in live_tags(edits)}
            assert {tag[2] for tag in database.tags() if tag[3]} == wanted
            assert corpus.reader.seq == len(edits)
            if not self.reviewed:  # nobody but documents and reviewers takes away what a document says
                said = {
                    each.item.segment
                    for each in database.live.all(database.seq)
                    if each.document and isinstance(each.item, HyperedgeItem)
                }
                assert said >= set(FACTS)
                trusts = computed_standing(database, database.seq).trusts
                assert not {each.iri for each in corpus.reader.hyperedges() if each.segment in FACTS} & trusts.keys()

    def teardown(self):
        try:
            with Corpus.open(self.path) as corpus:
                assert check(corpus) == []
                seq = corpus.database.seq
                for number in {1, seq // 2 or 1}:
                    write_as_of(corpus.folder, corpus.database, number, self.folder / f"as-of-{number}")
                    with Corpus.open(self.folder / f"as-of-{number}") as then:
                        assert then.reader.seq == number
                        again = snapshot_of(corpus.database.live.all(number))
                        assert tuple(then.reader.hyperedges()) == again.hyperedges
                        assert check(then) == []
            with Editor(self.path) as editor:
                for edit in reversed(list(editor.database.edits(1))):
                    if editor.database.is_active(edit):
                        editor.undo(edit.id, agent="a person", cascade=True)
                editor.publish()
            with Corpus.open(self.path) as corpus:
                assert records(corpus) == self.first
                assert check(corpus) == []
            with Corpus.open(self.folder / "as-of-1") as then:
                assert records(then) == self.first
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


TestHistory = pytest.mark.soak(pytest.mark.timeout(5000)(History.TestCase))
TestHistory.settings = settings(max_examples=15 if SOAK else 2, stateful_step_count=15 if SOAK else 6)
