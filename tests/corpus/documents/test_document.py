from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.documents.document import Document, check_quote, safe_text


def test_a_quote_must_be_what_stands_there():
    text = "Ada 👩‍🔬 born 1815."
    begin = text.index("born")
    check_quote(text, begin, begin + 4, "born")
    for wrong in ((begin, begin + 5, "born"), (begin - 1, begin + 3, "born"), (-5, -1, "1815"), (0, 99, text)):
        with pytest.raises(ValueError, match="is not in the text"):
            check_quote(text, *wrong)


@given(st.text(st.characters(codec=None)))
def test_safe_text_keeps_offsets_and_can_be_stored(text):
    safe = safe_text(text)
    assert len(safe) == len(text)
    assert safe.encode("utf-8").decode("utf-8") == safe  # no lone surrogates
    assert not any(character < " " and character not in "\t\n\r" for character in safe)
    assert safe_text(safe) == safe
    assert all(old == new for old, new in zip(text, safe) if old.isprintable())


def test_line_separators_become_line_breaks_and_other_control_characters_a_mark():
    assert safe_text("a\x0cb\x0bc\x85d\x00e\ud800f\r\n\tg") == "a\nb\nc\nd\ufffde\ufffdf\r\n\tg"


def test_pages():
    paged = Document("a.pdf", "a", "application/pdf", "0", "one two three", pages=(0, 4, 4, 8))
    assert [paged.page(at) for at in (0, 3, 4, 7, 8, 12)] == [1, 1, 3, 3, 4, 4]
    assert Document("a.txt", "a", "text/plain", "0", "one").page(0) is None
    assert paged.iri == Document("a.pdf", "b", "x", "1", "other").iri
