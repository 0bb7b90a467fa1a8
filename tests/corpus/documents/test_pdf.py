from __future__ import annotations

import pytest

from kgqa.corpus.documents.chunks import ChunkSize, split_chunks
from kgqa.corpus.documents.document import Document, check_quote
from kgqa.corpus.documents.formats.pdf import read_pdf
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError
from tests.corpus.documents.samples import pdf, words


def test_pages_offsets_headings_and_figures():
    content = read_pdf(pdf(), Limits())
    first = "1 The garden\nMara Quill founded the garden in 1931. It lies\nnear"
    second = "the Zürich Straße – naïve Ω.\n马拉出生于桤木湾。"
    assert content.text == f"{first}\n{second}\n\nFigure 1: A fern"
    assert content.pages == (0, len(first) + 1, content.text.index("Figure"))
    assert content.title == "The garden of Alder Bay"
    assert words(content, content.elements)[0] == ("heading", ("The garden",))
    assert [(each.media_type, each.page, each.caption, each.begin) for each in content.figures] == [
        ("image/png", 3, "Figure 1: A fern", content.pages[2])
    ]
    document = Document("a.pdf", "a", "application/pdf", "0", content.text, content.pages)
    chunks = split_chunks(document, ChunkSize(40, 0, "characters"))
    for chunk in chunks:
        check_quote(content.text, chunk.begin, chunk.end, chunk.text)
    assert [chunk.page for chunk in chunks] == sorted(chunk.page for chunk in chunks)
    assert {chunk.page for chunk in chunks} == {1, 2, 3}


def test_limits_of_pages_and_figures():
    with pytest.raises(DocumentError, match="more than 2 pages"):
        read_pdf(pdf(), Limits(pages=2))
    with pytest.raises(DocumentError, match="more than 20 characters"):
        read_pdf(pdf(), Limits(characters=20))
    assert read_pdf(pdf(), Limits(figure_bytes=10)).figures == ()
    assert read_pdf(pdf(), Limits(figures=0)).figures == ()
