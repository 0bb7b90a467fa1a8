"""The Editor: what is in the graphs after edits, undos and crashes."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from kgqa.corpus.edit_log import Removal
from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, ChunkItem, LinkItem, Party, SameItem, document_iri, item_key
from kgqa.corpus.rdf.triples import constant_triples, triples_of
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import CorpusError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import Journal
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.rdf.files import file_job
from kgqa.model import Entity
from tests.corpus.small_corpus import TIME, ServerStore, insert, new_editor, read_document

VIEWS = ("facts", "hyper", "text", "statements", "communities")


def stored(folder: CorpusFolder) -> dict[str, set[tuple]]:
    """Return the triples of each graph, as it was published."""
    found = {}
    with EmbeddedStore(folder.graph) as store:
        for view in VIEWS:
            rows = store.select(f"SELECT ?s ?p ?o FROM <{folder.graphs[view]}> WHERE {{ ?s ?p ?o }}")
            found[view] = {(row[0], row[1].iri, row[2]) for row in rows}
    return found


def expected(additions) -> dict[str, set[tuple]]:
    snapshot, constants = triples_of(snapshot_of(additions)), constant_triples()
    return {
        view: {(each.subject, each.relation, each.object) for each in snapshot[view] | constants[view]}
        for view in VIEWS
    }


def check_graphs(editor: Editor, additions) -> None:
    editor.publish()
    assert stored(editor.folder) == expected(additions)


ADA = read_document("ada.txt", "Ada wrote notes", "Ada knew Babbage/person")[0]
ENGINE = read_document("engine.txt", "Babbage/person designed engine", "Ada described engine London/city")[0]


def test_documents_come_and_go(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        check_graphs(editor, ADA)
        insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        check_graphs(editor, ADA + ENGINE)
        removals = editor.removals_of_document(document_iri("ada.txt"))
        removed = editor.apply("delete", (), removals, agent="ann", reason="outdated")
        check_graphs(editor, ENGINE)
        editor.undo(removed.id, agent="ann")
        check_graphs(editor, ADA + ENGINE)


def test_an_update_replaces_what_the_document_said(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        editor.publish()
        update = insert(editor, "ada.txt", "Ada wrote letters", kind="update")
        later = read_document("ada.txt", "Ada wrote letters")[0]
        check_graphs(editor, later + ENGINE)
        editor.undo(update.id, agent="ann")
        check_graphs(editor, ADA + ENGINE)


def test_a_deleted_item_stays_away_when_its_document_is_read_again(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        fact = ADA[2]
        removal = Removal(document=fact.document, item=item_key(fact.item))
        deletion = editor.apply("delete", (), [removal], agent="ann", reason="wrong")
        rest = [each for each in ADA if each.item != fact.item]
        check_graphs(editor, rest)
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person", kind="update")
        check_graphs(editor, rest)
        editor.undo(deletion.id, agent="ann")
        check_graphs(editor, ADA)


def test_merges_and_links_of_entities_can_be_undone(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        insert(editor, "engine.txt", "Babbage/person designed engine", "Lovelace described engine London/city")
        documents = (
            ADA
            + read_document(
                "engine.txt", *"Babbage/person designed engine|Lovelace described engine London/city".split("|")
            )[0]
        )
        check_graphs(editor, documents)
        same = Addition(SameItem(*sorted((Party("Ada").iri, Party("Lovelace").iri))), reason="one person", confidence=1)
        merge = editor.apply("insert", [same], agent="resolver")
        check_graphs(editor, [*documents, same])
        link = Addition(LinkItem(Party("Lovelace").iri, "http://example.org/ada"))
        linked = editor.apply("insert", [link], agent="linker")
        check_graphs(editor, [*documents, same, link])
        editor.undo(merge.id, agent="ann")
        check_graphs(editor, [*documents, link])
        editor.undo(linked.id, agent="ann")
        check_graphs(editor, documents)


def test_several_edits_are_published_at_once(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        editor.publish()
        insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        removals = editor.removals_of_document(document_iri("ada.txt"))
        removed = editor.apply("delete", (), removals, agent="ann")
        editor.undo(removed.id, agent="ann")
        check_graphs(editor, ADA + ENGINE)
        assert not editor.publish()


def test_an_edit_on_which_others_build_is_undone_with_them(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        first = insert(editor, "ada.txt", "Ada wrote notes")
        update = insert(editor, "ada.txt", "Ada wrote letters", kind="update")
        with pytest.raises(CorpusError, match=update.id):
            editor.undo(first.id, agent="ann")
        undone = editor.undo(first.id, agent="ann", cascade=True)
        assert [each.target for each in undone] == [update.id, first.id]
        check_graphs(editor, [])
        with pytest.raises(CorpusError, match="undone already"):
            editor.undo(first.id, agent="ann")


def test_a_chunk_must_be_a_part_of_its_text(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        additions, texts = read_document("ada.txt", "Ada wrote notes")
        chunk = ChunkItem(additions[0].document, 0, 3, "Bob")
        with pytest.raises(CorpusError, match="not a part of its text"):
            editor.apply("insert", [*additions, Addition(chunk, additions[0].document)], agent="a", texts=texts)
        assert editor.database.seq == 0
        assert not list(editor.database.items())


def test_only_one_editor_at_a_time(tmp_path):
    with new_editor(tmp_path / "c"), pytest.raises(CorpusError, match="Another process"):
        Editor(tmp_path / "c", now=lambda: TIME)


def test_graphs_are_written_anew_if_they_are_lost(tmp_path):
    import shutil

    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        editor.publish()
        folder = editor.folder
    shutil.rmtree(folder.graph)
    with Editor(folder) as editor:
        check_graphs(editor, ADA + ENGINE)
    with EmbeddedStore(folder.graph) as store:
        (row,) = store.select(
            f"SELECT (COUNT(?s) AS ?n) FROM <{folder.graphs['edits']}> WHERE {{ ?s <urn:kgqa:corpus:seq> ?n1 }}"
        )
        assert row[0].value == "2"
        assert Entity(folder.graphs["edits"])


class Killed(Exception):
    """Stands for the end of the process."""


def killed_after(name: str):
    def step(done):
        if done == name:
            raise Killed

    return step


@pytest.mark.parametrize("step", ["target", "facts", "hyper", "statements", "text", "edits"])
def test_a_server_has_nothing_left_of_an_edit_that_was_cut_off_and_undone(tmp_path, step):
    server, folder = ServerStore(), CorpusFolder(tmp_path / "c")
    folder.create(graph="http://127.0.0.1:1/sparql")
    with Editor(folder, store=server) as editor:
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        editor.publish()
    before = {view: server.fingerprint_of([folder.graphs[view]]) for view in VIEWS}
    with Editor(folder, store=server) as editor:
        edit = insert(editor, "engine.txt", "Babbage/person designed engine", "Ada described engine London/city")
        with pytest.raises(Killed):
            editor.publish(killed_after(step))
    with Editor(folder, store=server) as editor:
        editor.undo(edit.id, agent="ann")
        editor.publish()
    assert {view: server.fingerprint_of([folder.graphs[view]]) for view in VIEWS} == before


def test_a_name_stays_while_anything_uses_it(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "one.txt", "Ada/person wrote notes", "Ada/person met Bob London/city")
        insert(editor, "two.txt", "Carl/person wrote letters", "Carl/person met Dora Rome/city")
        rest = read_document("two.txt", "Carl/person wrote letters", "Carl/person met Dora Rome/city")[0]
        editor.publish()
        editor.apply("delete", (), editor.removals_of_document(document_iri("one.txt")), agent="ann")
        check_graphs(editor, rest)


def test_a_load_that_was_cut_off_is_made_again(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        editor.publish()  # without any edit
        insert(editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")
        (tmp_path / "x.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
        graph = GraphFolder(editor.folder.graph)
        graph.create_generation(2, 1)
        Journal("fail", [file_job(tmp_path / "x.nt")], "", {}).save(graph)
        check_graphs(editor, ADA)


def test_an_unchanged_corpus_is_not_opened_twice(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes")
        editor.publish()
        editor.database.build.put_state("graph written", "")  # as after a kill directly after the publication
    for opened in (True, False):
        with Editor(tmp_path / "c") as editor:
            assert not editor.publish()
            assert (editor._graphs._embedded is not None) == opened


@contextmanager
def small_files(size: int):
    """Let no file grow beyond a size, as if there were no more space."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_without_space_nothing_is_lost(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", "Ada wrote notes")
        with small_files(1000):
            with pytest.raises(CorpusError, match=r"cannot be written: File too large\. Free some space"):
                editor.publish()
            with pytest.raises(CorpusError, match="Check the disk"):
                insert(editor, "engine.txt", "Babbage designed engine")
        insert(editor, "engine.txt", "Babbage designed engine")
        check_graphs(editor, list(editor.database.live.all(2)))
