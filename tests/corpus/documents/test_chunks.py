"""Chunks: coverage, offsets, sizes, overlap, and stability after changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.documents.chunks import PRESETS, ChunkSize, split_chunks, split_documents
from kgqa.corpus.documents.document import Element, check_quote
from kgqa.corpus.documents.sentences import is_grapheme_start
from kgqa.errors import SettingsError
from tests.corpus.documents.samples import ARABIC, CHINESE, ENGLISH, TEXTS, document


def words(texts):
    """Count words, and characters of words that are longer than 10."""
    return [sum(1 + len(word) // 10 for word in text.split()) for text in texts]


def utf8(texts):
    return [len(text.encode()) for text in texts]


def superadditive(texts):
    """Count more for a text than for its parts together."""
    return [len(text) // 2 + len(text) // 14 for text in texts]


PIECES = st.sampled_from(
    [
        *TEXTS,
        "Word ",
        "a",
        "\n\n",
        "\r\n",
        "\n",
        " ",
        "\t",
        "x" * 70,
        "\u3000",
        "\xa0",
        "e\u0301",
        "👨‍👩‍👧‍👦",
        "。",
        "B\u2028.",
    ]
)
TEXT = st.lists(PIECES, max_size=25).map("".join)


@given(TEXT, st.integers(20, 200), st.data(), st.sampled_from(["characters", words, utf8, superadditive]))
def test_chunks_cover_the_text_and_keep_the_size(text, size, data, unit):
    overlap = data.draw(st.integers(0, size // 2))
    measure = None if unit == "characters" else unit
    chunk_size = ChunkSize(size, overlap, "characters" if measure is None else "tokens")
    length = measure or (lambda texts: [len(each) for each in texts])
    chunks = split_chunks(document(text), chunk_size, count_tokens=measure)
    covered = set()
    for chunk in chunks:
        check_quote(text, chunk.begin, chunk.end, chunk.text)
        assert chunk.text and chunk.text == chunk.text.strip()
        assert length([chunk.text])[0] <= size
        covered.update(range(chunk.begin, chunk.end))
    assert all(text[at].isspace() for at in set(range(len(text))) - covered)
    for before, after in pairwise(chunks):
        assert before.begin < after.begin and before.end < after.end
        if after.begin < before.end and unit in ("characters", utf8):  # sums of the others are not exact
            assert length([text[after.begin : before.end]])[0] <= overlap
    if text.strip() and length([text.strip()])[0] <= size and len(text) < 6 * size:
        assert [chunk.text for chunk in chunks] == [text.strip()]
    assert chunks == split_chunks(document(text), chunk_size, count_tokens=measure)


def test_a_part_of_a_chunk_within_the_overlap_is_not_a_chunk_too():
    chunks = split_chunks(document(ENGLISH), ChunkSize(21, 10), count_tokens=superadditive)
    assert [chunk.text for chunk in chunks[:3]] == [
        "Dr. Mara Quill was born",
        "in Alder Bay in 1902. She studied at",
        "1902. She studied at the University of",
    ]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_offsets_count_code_points(text, line_end):
    whole = (text + line_end * 2) * 5
    for chunk in split_chunks(document(whole), ChunkSize(60, 0, "characters")):
        check_quote(whole, chunk.begin, chunk.end, chunk.text)
        assert is_grapheme_start(whole, chunk.begin)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENGLISH, ["1902.", "botany.", "asked.", "Olm."]),
        (CHINESE, ["桤木湾。", "植物学家！", "问道。", "圣奥姆。"]),
        (ARABIC, ["ألدر.", "النبات؟", "أولم."]),
    ],
)
def test_chunks_end_at_sentences(text, expected):
    size = ChunkSize(max(map(len, text.replace("！", "。").replace("？", "。").split("。"))) + 40, 0, "characters")
    ends = tuple(expected)
    assert all(chunk.text.endswith(ends) for chunk in split_chunks(document(text * 6), size))


def test_a_long_sentence_is_split_between_words_and_a_long_word_between_graphemes():
    chunks = split_chunks(document("word " * 50), ChunkSize(23, 0, "characters"))
    assert {chunk.text for chunk in chunks} <= {" ".join(["word"] * count) for count in range(1, 6)}
    family = "👨‍👩‍👧‍👦"
    parts = split_chunks(document(family * 20), ChunkSize(24, 0, "characters"))
    assert all(set(chunk.text.split(family)) == {""} for chunk in parts)
    parts = split_chunks(document("e\u0301" * 50), ChunkSize(21, 0, "characters"))
    assert all(chunk.text.startswith("e") and chunk.text.endswith("\u0301") for chunk in parts)
    parts = split_chunks(document("🇩🇪" * 50), ChunkSize(25, 0, "characters"))
    assert all(len(chunk.text) % 2 == 0 for chunk in parts)


def test_overlap_repeats_whole_sentences_but_not_across_sections():
    sentences = [f"This is sentence number {number:02}." for number in range(30)]
    text = " ".join(sentences)
    chunks = split_chunks(document(text), ChunkSize(200, 70, "characters"))
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert text[after.begin : before.end].split(". ")[0].startswith("This is sentence")
    heading = text.index(sentences[15])
    cut = split_chunks(
        document(text, elements=[Element("heading", heading, heading + 4, 1)]), ChunkSize(600, 200, "characters")
    )
    at = next(number for number, chunk in enumerate(cut) if chunk.begin == heading)
    assert cut[at - 1].end <= heading


def test_a_heading_stays_with_its_section_and_rows_are_not_cut():
    rows = [f"| cell {number:03} of a row with several words. And a sentence. |" for number in range(20)]
    text = "Intro. " * 12 + "\n\nHeading\n\n" + "\n".join(rows)
    heading = text.index("Heading")
    elements = [Element("heading", heading, heading + 7, 1)]
    elements += [Element("table_row", text.index(row), text.index(row) + len(row)) for row in rows]
    chunks = split_chunks(document(text, elements=elements), ChunkSize(130, 0, "characters"))
    assert any(chunk.text.startswith("Heading\n\n| cell 000") for chunk in chunks)
    assert all(chunk.text.endswith("|") for chunk in chunks if "| cell" in chunk.text)


def test_chunks_far_from_a_change_keep_their_texts():
    """At most a few chunks beside the changed sentence are new."""
    sentences = [
        f"Sentence {number * 7919 % 1000} tells of {'thing ' * (number % 5)}and more." for number in range(1000)
    ]
    size = ChunkSize(800, 80, "characters")
    before = {chunk.text for chunk in split_chunks(document(" ".join(sentences)), size)}
    changed = [*sentences[:500], "Something new was put in here.", *sentences[500:]]
    after = split_chunks(document(" ".join(changed)), size)
    assert len(after) > 40
    assert sum(chunk.text not in before for chunk in after) <= 8


def test_pages_and_presets():
    text = ENGLISH * 40
    paged = document(text, pages=(0, len(ENGLISH) * 20))
    chunks = split_chunks(paged, PRESETS["400/50"], count_tokens=words)
    assert {chunk.page for chunk in chunks} == {1, 2}
    assert {(each.size, each.overlap, each.unit) for each in PRESETS.values()} == {
        (1024, 20, "tokens"),
        (400, 50, "tokens"),
    }
    assert split_chunks(document(" \n\t "), ChunkSize(20, 0, "characters")) == []


def test_many_documents_are_measured_together():
    calls = []

    def counter(texts):
        calls.append(len(texts))
        return words(texts)

    documents = [document(f"Café {number} is open. " * 6) for number in range(100)]
    found = list(split_documents(documents, ChunkSize(20, 0), count_tokens=counter))
    assert found == [split_chunks(each, ChunkSize(20, 0), count_tokens=words) for each in documents]
    assert calls[0] == 100


@pytest.mark.parametrize(
    "wrong", [(10, 0, "characters"), (100, 51, "characters"), (100, -1, "tokens"), (100, 0, "words")]
)
def test_impossible_sizes_are_refused(wrong):
    with pytest.raises(SettingsError):
        ChunkSize(*wrong)
    with pytest.raises(SettingsError, match="embedding model"):
        split_chunks(document("text"), ChunkSize(100))
