"""Extractions in HippoRAG's file format."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.extraction.openie import MAX_NAME_CHARS, MAX_TRIPLES, read_openie, stream_openie
from kgqa.corpus.items import EntityItem
from kgqa.errors import DocumentError
from tests.corpus.extraction.samples import BRIDGE, facts_of

DATA = Path(os.environ.get("KGQA_DATA", "../shared/data")) / "musique/openie_gpt35.json.gz"
PASSAGE = f"Halden Bridge\n{BRIDGE}"


def write(folder: Path, *docs, **more) -> Path:
    file = folder / "openie.json"
    file.write_text(json.dumps({"docs": docs, **more}, ensure_ascii=False), encoding="utf-8")
    return file


def passage(*triples, entities=(), text=PASSAGE, **more) -> dict:
    return {"passage": text, "extracted_entities": list(entities), "extracted_triples": list(triples), **more}


def test_passages_become_documents_with_facts_at_their_sentences(tmp_path):
    file = write(
        tmp_path,
        passage(
            ["Halden Bridge", "designed by", "ann li"],
            ["halden bridge", "designed by", "Ann Li"],  # the same
            ["Halden Bridge", "opened on", "day 3 May 1921"],
            ["Zeus", "is", "a god"],
            entities=["Ann Li", "Lavern", "Zeus"],
        ),
        passage(["A", "is", "B"], text="A is B.", idx="chunk-1", title="A"),
        passage(["A", "is", "B"], text="A is B.", idx="chunk-1"),
        avg_ent_chars=float("nan"),
    )
    corpus = read_openie(file)
    first, second = corpus.documents
    assert (first.title, first.text, second.source) == ("Halden Bridge", PASSAGE, "openie.json#chunk-1")
    assert [chunk.text for chunk in corpus.chunks] == [PASSAGE, "A is B."] and not corpus.malformed
    assert facts_of(corpus.results[0].additions, first) == {
        ("Halden Bridge", "designed by", "ann li", "The bridge over the Lavern was designed by Ann Li."),
        ("Halden Bridge", "opened on", "day 3 May 1921", "It was opened on 3 May 1921."),
        ("Zeus", "is", "a god", ""),
    }
    names = {
        each.item.party.name: first.text[each.begin : each.end]
        for each in corpus.results[0].additions
        if isinstance(each.item, EntityItem)
    }
    assert names == {
        "Ann Li": "Ann Li",
        "Lavern": "Lavern",
        "Zeus": "",
        "Halden Bridge": "Halden Bridge",
        "day 3 May 1921": "",
        "a god": "",
    }


def test_the_shape_with_title_and_text_and_a_compressed_file(tmp_path):
    docs = [{"title": "A", "text": "A is B.", "extracted_entities": None, "extracted_triples": [["A", "is", "B"]]}]
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"docs": docs}).encode()))
    (found,) = stream_openie(file, model="gpt-3.5-turbo")
    assert (found.document.text, found.document.elements[0].kind) == ("A\nA is B.", "heading")
    assert {each.model for each in found.result.additions} == {"gpt-3.5-turbo"}


def test_what_is_malformed_is_listed_with_its_place_and_the_reason(tmp_path):
    wrong = [
        (["a", "b"], "2 parts, not 3: a | b"),
        (["a"], "1 part, not 3"),
        (["a", "b", "c", "d"], "4 parts, not 3"),
        (["a", "b", 3], "not a list of texts"),
        (["a", ["b"], "c"], "not a list of texts"),
        ("a b c", "not a list of texts"),
        (None, "not a list of texts"),
        (["a", " ", "c"], "an empty part"),
        (["a", "\u200b", "c"], "an empty part"),
        (["a", "b", "c" * (MAX_NAME_CHARS + 1)], "a part longer than 500 characters"),
    ]
    file = write(
        tmp_path,
        passage(*(triple for triple, _ in wrong), ["Ann Li", "is", "x"], entities=[7, "", "Ann Li"], title="T"),
        {**passage(text="no list"), "extracted_entities": "Ann Li"},
        passage(*[["a", "is", "b"]] * (MAX_TRIPLES + 1), text="many"),
    )
    corpus = read_openie(file)
    places = [f"docs[0] (T).extracted_triples[{i}]" for i in range(len(wrong))]
    listed = dict(corpus.malformed)
    assert list(listed)[2 : 2 + len(wrong)] == places
    assert all(why in listed[place] for place, (_, why) in zip(places, wrong))
    assert "not a text: 7" in listed["docs[0] (T).extracted_entities[0]"]
    assert "not a list" in listed["docs[1] (no list).extracted_entities"]
    assert listed["docs[2] (many).extracted_triples"] == "1 more than 5,000"
    assert facts_of(corpus.results[0].additions) == {("Ann Li", "is", "x")}
    assert len(corpus.results[0].rejected) == len(wrong) + 2 and all(each.status == "done" for each in corpus.results)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"docs": 3}',
        '{"docs": [3]}',
        '{"docs": [{"title": "a"}]}',
        '{"docs": [',
        "\xff",
        "\x1f\x8b\x08broken",
        '{"docs": []} x',
        '{"docs": [' + "[" * 5000,
    ],
)
def test_other_files_are_errors(tmp_path, content):
    file = tmp_path / "a.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(DocumentError, match=r"a\.json"):
        read_openie(file)
    with pytest.raises(DocumentError, match="cannot be read"):
        read_openie(tmp_path / "missing")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda each: st.lists(each, max_size=4)
)


@given(triples=st.lists(JSON, max_size=6), entities=JSON, text=st.text(max_size=60))
def test_any_values_are_read_or_listed(tmp_path_factory, triples, entities, text):
    file = write(
        tmp_path_factory.mktemp("any"), {"passage": text, "extracted_entities": entities, "extracted_triples": triples}
    )
    corpus = read_openie(file)
    (document,), (result,) = corpus.documents, corpus.results
    assert all(0 <= each.begin <= each.end <= len(document.text) for each in result.additions)
    assert len(result.rejected) == len(corpus.malformed)


@pytest.mark.skipif(not DATA.is_file(), reason="KGQA_DATA has no MuSiQue extractions")
def test_the_extractions_of_musique():
    begin = time.process_time()
    corpus = read_openie(DATA)
    assert time.process_time() - begin < 10
    assert (len(corpus.documents), len(corpus.malformed)) == (1890, 185)
    facts = [each for result in corpus.results for each in result.additions if each.item.kind == "statement"]
    assert len(facts) == 17_204 and sum(each.end > 0 for each in facts) > 17_150  # 17,234 without what is said twice
