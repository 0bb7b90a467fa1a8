"""Random sequences of edits, rebuilds, crashes and undos: the graphs have what follows from the live items."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kgqa.corpus.checking import check
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import Edit, Removal, Tag, cancelled_edits, dependents, live_tags, sealed
from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, LinkItem, SameItem, document_iri, item_key
from kgqa.corpus.rdf.edit_triples import edit_triples
from kgqa.corpus.rdf.triples import constant_triples, triples_of
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import CorpusError
from kgqa.graph.query.text import render
from kgqa.model import Entity, Triple
from tests.conftest import SOAK
from tests.corpus.small_corpus import TIME, ServerStore, party, read_document

SOURCES = ("one.txt", "two.txt", "three.txt")
NAMES = ("Ada", "ada/person", "Lovelace", "Engine/machine")
FACTS = tuple(
    f"{subject} {rest}"
    for subject in NAMES
    for rest in ("made Engine/machine", "knew Ada", "made 7", "met Lovelace London/city")
)
FACTS += (
    "Bob made tea",
    "Carl made beer/drink",
    "Dora met Eve Rome/city",
    "Finn knew Gus/person",
    "Hal met Ivy beer/drink",
)
ENTITIES = sorted({party(name).iri for name in (*NAMES, "London/city", "7")})
TARGETS = ("http://example.org/1", "http://example.org/2")


class Killed(Exception):
    """Stands for the end of the process."""


class Editing(RuleBasedStateMachine):
    """Edits of one corpus. `log` is what the Editor said that it has done, with the content that it was given."""

    on_server = False

    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="kgqa-test-"))
        self.folder = CorpusFolder(self.path / "c")
        self.folder.create(graph="http://127.0.0.1:1/sparql" if self.on_server else "graph")
        self.server = ServerStore() if self.on_server else None
        self.log: list[Edit] = []
        self.editor = self.opened()
        self.is_published = False

    def opened(self) -> Editor:
        return Editor(self.folder, store=self.server, now=lambda: TIME)

    def record(self, edit: Edit, additions=(), removals=()) -> None:
        self.log.append(replace(edit, adds=tuple(additions), removes=tuple(removals)))
        assert sealed(self.log[-1]).id == edit.id
        self.is_published = False

    def apply(self, kind, additions=(), removals=(), **more):
        self.record(self.editor.apply(kind, additions, removals, agent="a", **more), additions, removals)

    # --- what an Editor does

    facts = st.lists(st.sampled_from(FACTS), min_size=1, max_size=3, unique=True)

    @initialize(facts=st.lists(facts, min_size=1, max_size=2), publish=st.booleans())
    def first_build(self, facts, publish):
        for source, each in zip(SOURCES, facts):
            additions, texts = read_document(source, *each)
            self.apply("insert", additions, texts=texts)
        if publish:
            self.publish()

    @rule(source=st.sampled_from(SOURCES), facts=facts, then=st.booleans())
    def read(self, source, facts, then):
        """Read a document, or read it again; often nothing has changed."""
        additions, texts = read_document(source, *facts)
        removals = self.editor.removals_of_document(additions[0].document)
        self.apply("update" if removals else "insert", additions, removals, texts=texts)
        self.maybe_publish(then)

    @rule(source=st.sampled_from(SOURCES), then=st.booleans())
    def remove(self, source, then):
        removals = self.editor.removals_of_document(document_iri(source))
        if removals:
            self.apply("delete", (), removals)
            self.maybe_publish(then)

    @rule(number=st.integers(0, 50), for_ever=st.booleans(), then=st.booleans())
    def delete_item(self, number, for_ever, then):
        tags = sorted(tag for tag in live_tags(self.log) if tag.document)
        if tags:
            tag = tags[number % len(tags)]
            removal = Removal("" if for_ever else tag.edit, tag.document, tag.item)
            self.apply("delete", (), [removal])
            self.maybe_publish(then)

    @rule(pair=st.lists(st.sampled_from(ENTITIES), min_size=2, max_size=2, unique=True), then=st.booleans())
    def merge(self, pair, then):
        self.apply("insert", [Addition(SameItem(*sorted(pair)), reason="same")])
        self.maybe_publish(then)

    @rule(entity=st.sampled_from(ENTITIES), meant=st.sampled_from(TARGETS), then=st.booleans())
    def link(self, entity, meant, then):
        self.apply("insert", [Addition(LinkItem(entity, meant), reason="same")])
        self.maybe_publish(then)

    @precondition(lambda self: any(isinstance(item, SameItem) for item in self.items()))
    @rule(number=st.integers(0, 50), then=st.booleans())
    def separate(self, number, then):
        """Undo a merge."""
        same = [edit for edit in self.log if any(isinstance(each.item, SameItem) for each in edit.adds)]
        same = [edit for edit in same if edit.id not in cancelled_edits(self.log)]
        (undone,) = self.editor.undo(same[number % len(same)].id, agent="a")
        self.record(undone)
        self.maybe_publish(then)

    @precondition(lambda self: self.log)
    @rule(number=st.integers(0, 50), cascade=st.booleans(), then=st.booleans())
    def undo(self, number, cascade, then):
        edit = self.log[number % len(self.log)]
        possible = edit.id not in cancelled_edits(self.log) and (cascade or not dependents(self.log, [edit.id]))
        before = self.editor.database.seq
        try:
            for each in self.editor.undo(edit.id, agent="a", cascade=cascade):
                self.record(each)
        except CorpusError:
            assert not possible
            assert self.editor.database.seq == before
        else:
            assert possible
            self.maybe_publish(then)

    def maybe_publish(self, then):
        if then:
            self.publish()

    @rule()
    def publish(self):
        self.editor.publish()
        self.is_published = True
        assert not self.editor.publish()

    # --- crashes

    @rule(source=st.sampled_from(SOURCES), facts=facts, number=st.integers(0, 3))
    def killed_in_an_edit(self, source, facts, number):
        additions, texts = read_document(source, *facts)

        def until_killed():
            yield from additions[:number]
            raise Killed

        with pytest.raises(Killed):
            self.editor.apply("insert", until_killed(), agent="a", texts=texts)
        self.reopen()

    @rule(number=st.integers(1, 8))
    def killed_while_publishing(self, number):
        steps = [number]

        def step(name):
            steps[0] -= 1
            if not steps[0]:
                raise Killed

        try:
            self.editor.publish(step)
            self.is_published = True
        except Killed:
            self.is_published = False
        self.reopen()

    @rule()
    def reopen(self):
        self.editor.close()
        self.editor = self.opened()

    @rule()
    def lose_the_graph(self):
        self.editor.close()
        if not self.on_server:
            shutil.rmtree(self.folder.graph, ignore_errors=True)
        self.editor = self.opened()
        self.is_published &= self.on_server

    # --- what must hold

    def items(self):
        return [each.item for each in self.additions()]

    def additions(self) -> list[Addition]:
        live = live_tags(self.log)
        return [
            each for edit in self.log for each in edit.adds if Tag(edit.id, each.document, item_key(each.item)) in live
        ]

    @invariant()
    def live_additions_follow_from_the_log(self):
        database = self.editor.database
        assert list(database.live.all(database.seq)) == self.additions()

    @invariant()
    def graphs_follow_from_the_log(self):
        if not self.is_published:
            return
        wanted = triples_of(snapshot_of(self.additions()))
        wanted["edits"] = {triple for edit in self.log for triple in edit_triples(edit)}
        store = self.editor._graphs.store
        for view, constants in constant_triples().items():
            rows = store.select(render("all_triples", view=(Entity(self.folder.graphs[view]),)))
            assert {Triple(s, r.iri, o) for s, r, o in rows} == wanted[view] | constants, view

    def teardown(self):
        try:
            self.editor.publish()
            self.is_published = True
            self.graphs_follow_from_the_log()
            self.editor.close()
            with Corpus.open(self.folder.path) as corpus:
                assert check(corpus, self.server) == []
        finally:
            self.editor.close()
            shutil.rmtree(self.path, ignore_errors=True)


class EditingOnServer(Editing):
    """The same with graphs on a server, where each step is visible at once."""

    on_server = True


TestEditing = pytest.mark.soak(pytest.mark.timeout(5000)(Editing.TestCase))
TestEditing.settings = settings(max_examples=40 if SOAK else 6, stateful_step_count=20 if SOAK else 8)
TestEditingOnServer = pytest.mark.soak(pytest.mark.timeout(5000)(EditingOnServer.TestCase))
TestEditingOnServer.settings = settings(max_examples=30 if SOAK else 8, stateful_step_count=30 if SOAK else 10)
