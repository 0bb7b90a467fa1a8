"""An opened corpus: records, texts, chunks, several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.index.corpus_index import OLDER
from kgqa.corpus.items import document_iri
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import CorpusError, StoreUnavailable
from kgqa.storage.corpus_file import VectorDatabase
from tests.corpus.small_corpus import insert, new_editor, read_document
from tests.corpus.word_encoder import WordEncoder

FACTS = ("Ada wrote notes", "Ada knew Babbage/person")
ADA = document_iri("ada.txt")


@pytest.fixture
def folder(tmp_path):
    with new_editor(tmp_path / "c") as editor:
        insert(editor, "ada.txt", *FACTS)
        editor.publish()
    return tmp_path / "c"


def test_records_and_texts(folder):
    snapshot = snapshot_of(read_document("ada.txt", *FACTS)[0])
    with Corpus.open(folder) as corpus:
        reader = corpus.reader
        assert reader.seq == 1
        assert tuple(reader.documents()) == snapshot.documents
        assert tuple(reader.chunks()) == snapshot.chunks
        assert tuple(reader.entities()) == snapshot.entities
        assert tuple(reader.statements()) == snapshot.statements
        text = corpus.text(ADA)
        for chunk in reader.chunks():
            assert text[chunk.begin : chunk.end] == chunk.text
            assert corpus.chunk(chunk.iri) == chunk
        assert corpus.chunk("urn:kgqa:chunk:none") is None
        with pytest.raises(CorpusError, match="no text"):
            corpus.text(document_iri("other.txt"))


def test_only_a_build_writes_to_the_database_that_the_folder_names(folder, tmp_path):
    lance = tmp_path / "mine"
    corpus_folder = CorpusFolder(folder)
    corpus_folder.save(structs.replace(corpus_folder.file, vectors=VectorDatabase(uri=str(lance), prefix="c")))
    with Corpus.open(folder, encoder=WordEncoder()) as corpus:
        with pytest.raises(StoreUnavailable, match="has no index"):
            corpus.index
        assert not list(lance.glob("*"))
    with Corpus.open(folder, encoder=WordEncoder(), writable=True) as corpus:
        insert(corpus.editor, "engine.txt", "Babbage/person designed engine")
        assert corpus.index.vectors and list(lance.glob("*"))
        insert(corpus.editor, "more.txt", "Babbage/person liked music")
    with Corpus.open(folder, encoder=WordEncoder()) as corpus:
        assert corpus.index.notes == (str(OLDER),) and corpus.index.seq == 2


def test_a_reader_keeps_its_state_while_another_process_writes(folder):
    with Corpus.open(folder) as corpus:
        before = corpus.fingerprint
        with Corpus.open(folder, writable=True) as writer:
            insert(writer.editor, "engine.txt", "Babbage/person designed engine")
            insert(writer.editor, "ada.txt", "Ada wrote letters", kind="update")
            assert {each.title for each in writer.reader.documents()} == {"Ada.Txt", "Engine.Txt"}
            assert writer.fingerprint != before
            with Corpus.open(folder) as other:  # what it shows fits the graph, which is not published yet
                assert (other.text(ADA), other.fingerprint) == ("\n".join(FACTS), before)
            writer.editor.publish()
        assert [each.title for each in corpus.reader.documents()] == ["Ada.Txt"]
        assert {each.words for each in corpus.reader.statements()} == {"Ada wrote notes", "Ada knew Babbage"}
        assert corpus.text(ADA) == "\n".join(FACTS)
        assert corpus.fingerprint == before
    with Corpus.open(folder) as corpus:
        assert corpus.text(ADA) == "Ada wrote letters"


def test_undo_brings_back_the_text(folder):
    with Corpus.open(folder, writable=True) as corpus:
        update = insert(corpus.editor, "ada.txt", "Ada wrote letters", kind="update")
        assert corpus.text(ADA) == "Ada wrote letters"
        corpus.editor.undo(update.id, agent="ann")
        assert corpus.text(ADA) == "\n".join(FACTS)


def test_threads_read_together(folder):
    with Corpus.open(folder) as corpus, ThreadPoolExecutor(8) as pool:
        chunks = [chunk.iri for chunk in corpus.reader.chunks()] * 20
        assert [chunk.iri for chunk in pool.map(corpus.chunk, chunks)] == chunks


def test_no_corpus(tmp_path):
    with pytest.raises(CorpusError, match="no corpus"):
        Corpus.open(tmp_path)
    (tmp_path / "corpus.json").write_text('{"format": 1}')
    with pytest.raises(CorpusError, match="no corpus"):
        Corpus.open(tmp_path)
