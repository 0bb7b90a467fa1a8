"""Plain text, Markdown, HTML and DOCX: texts, elements and their offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.documents.document import check_quote
from kgqa.corpus.documents.formats.content import media_type
from kgqa.corpus.documents.formats.docx import read_docx
from kgqa.corpus.documents.formats.html import read_html
from kgqa.corpus.documents.formats.markdown import read_markdown
from kgqa.corpus.documents.formats.plain_text import read_plain_text
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError
from tests.corpus.documents.samples import ARABIC, CHINESE, EMOJI, ENGLISH, docx, png, words

LIMITS = Limits()


def check_offsets(content):
    """Check that elements are inside the text, in order, with their cells inside them; header cells elsewhere."""
    length = len(content.text)
    assert [each.begin for each in content.elements] == sorted(each.begin for each in content.elements)
    for each in content.elements:
        assert 0 <= each.begin < each.end <= length
        check_quote(content.text, each.begin, each.end, content.text[each.begin : each.end])
        assert all(each.begin <= begin <= end <= each.end for begin, end in each.cells)
        assert all(0 <= begin <= end <= length for begin, end in each.header)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ENGLISH + CHINESE + ARABIC + EMOJI, "utf-8"),
        (CHINESE + EMOJI, "utf-8-sig"),
        (ARABIC + EMOJI, "utf-16"),
        (CHINESE + "\r\n" + ENGLISH, "utf-16-be"),
        (CHINESE * 3, "gb18030"),
        ("Die Universität in Süddeutschland wurde für Ärzte gegründet; größer als andere. " * 2, "cp1252"),
        ("Университет был основан в 1755 году и назван в честь Ломоносова. " * 2, "cp1251"),
    ],
)
def test_plain_text_keeps_its_characters(text, encoding):
    data = text.encode(encoding)
    if encoding == "utf-16-be":
        data = b"\xfe\xff" + data
    assert read_plain_text(data, LIMITS).text == text


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_the_encoding_of_a_long_text_without_blanks(before):
    text = before + CHINESE * 800
    assert read_plain_text(text.encode("gb18030"), LIMITS).text == text


def test_plain_text_keeps_line_ends_and_has_key_values_and_lists():
    text = "Name: Mara Quill\r\nBorn: 1902\r\n\r\nShe said: no.\r\n\r\n* fern\r\n* moss 🌱\r\n"
    content = read_plain_text(text.encode(), LIMITS)
    assert content.text == text
    check_offsets(content)
    assert words(content, content.elements) == [
        ("key_value", ("Name", "Mara Quill")),
        ("key_value", ("Born", "1902")),
        ("list_item", ("fern",)),
        ("list_item", ("moss 🌱",)),
    ]


@pytest.mark.parametrize("data", [b"a\0b\xff", b"\xff\xfea", b"\0\xff" * 9])
def test_what_is_not_text_is_refused(data):
    with pytest.raises(DocumentError, match="not text|not valid UTF-16"):
        read_plain_text(data, LIMITS)


MARKDOWN = """---
title: "The garden"
opened: 1931
---
# The *garden* 🌱

See [the `site`](https://garden.example/a_(b) "x"), <https://tarn.example> and [notes][1] \\*.

- fern
  - [moss](moss.md) from Tarn
1. first

| Plant | Origin \\| place |
|---|---|
| **Fern** | 日本 |
| [Moss](m) | |

Term
: what it means

**Founder**: Mara Quill

```
key: value
other: value
```

[1]: notes.html
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_markdown(line_end):
    text = MARKDOWN.replace("\n", line_end)
    content = read_markdown(text.encode(), LIMITS)
    assert content.text == text
    assert content.title == "The garden"
    check_offsets(content)
    assert words(content, content.elements) == [
        ("key_value", ("title", "The garden")),
        ("key_value", ("opened", "1931")),
        ("heading", ("The *garden* 🌱",)),
        ("link", ("the `site`",)),
        ("link", ("https://tarn.example",)),
        ("link", ("notes",)),
        ("list_item", ("fern",)),
        ("list_item", ("[moss](moss.md) from Tarn",)),
        ("link", ("moss",)),
        ("list_item", ("first",)),
        ("table_row", ("Fern", "日本")),
        ("table_row", ("Moss", "")),
        ("link", ("Moss",)),
        ("definition", ("Term", "what it means")),
        ("key_value", ("Founder", "Mara Quill")),
    ]
    by_kind = {
        kind: [each for each in content.elements if each.kind == kind] for kind in ("link", "table_row", "list_item")
    }
    assert [each.target for each in by_kind["link"]] == [
        "https://garden.example/a_(b)", "https://tarn.example", "notes.html", "moss.md", "m",
    ]  # fmt: skip
    assert [text[begin:end] for begin, end in by_kind["table_row"][0].header] == ["Plant", "Origin \\| place"]
    assert [each.level for each in by_kind["list_item"]] == [1, 2, 1]


@given(st.text(st.sampled_from("ab|[](){}<>*_`~#->:.\n\r\t \\!&;=1🌱日"), max_size=80))
def test_any_markdown_and_any_html_keep_their_offsets(text):
    markdown = read_markdown(text.encode(), LIMITS)
    assert markdown.text == text
    check_offsets(markdown)
    check_offsets(read_html(text.replace("[", "<td>").replace("(", "<li>").replace("{", "<dt>").encode(), LIMITS))


HTML = """<!doctype html><html><head><title> The
 garden </title><style>p {}</style></head><body><script>alert("script")</script>
<h1>The <em>garden</em></h1><p>See  <a href="/site?a=1&amp;b">the
site</a> &amp; more.<br>日本 🌱</p><div hidden>hidden</div><p style="color: red; DISPLAY:none">invisible</p>
<ul><li>fern<ul><li>moss</ul><li>grass</ul>
<table><caption>Plants</caption><thead><tr><th>Plant<th colspan=2>Origin</tr></thead>
<tr><td>Fern<td><p>Tarn</p><td>1931<tr><td><td>Olm<td></table>
<table><tr><th>Founder<td>Mara</table>
<dl><dt>Term<dd>first meaning<dd>second <i>meaning</i><dt>Other<dd>third</dl>
<pre>a
  b</pre><p>Opened: 1931</p><p>Closed: 1999</p><a href="javascript:run()">run</a><noscript>no script</noscript>
<img alt="A fern" src="data:image/png;base64,IMAGE"><img src="https://tracker.example/x.png"></body></html>"""


def test_html():
    import base64

    content = read_html(HTML.replace("IMAGE", base64.b64encode(png()).decode()).encode(), LIMITS)
    check_offsets(content)
    assert content.title == "The garden"
    assert content.text == (
        "The garden\n\nSee the site & more.\n日本 🌱\n\nfern\nmoss\ngrass\n\nPlants\nPlant | Origin\nFern | Tarn | 1931\n"
        " | Olm\n\nFounder | Mara\n\nTerm\nfirst meaning\nsecond meaning\nOther\nthird\n\na\n  b\n\nOpened: 1931\n\n"
        "Closed: 1999\n\nrun A fern"
    )
    assert words(content, content.elements) == [
        ("heading", ("The garden",)),
        ("link", ("the site",)),
        ("list_item", ("fern",)),
        ("list_item", ("moss",)),
        ("list_item", ("grass",)),
        ("table_row", ("Fern", "Tarn", "1931")),
        ("table_row", ("", "Olm", "")),
        ("table_row", ("Founder", "Mara")),
        ("definition", ("Term", "second meaning")),
        ("definition", ("Term", "first meaning")),
        ("definition", ("Other", "third")),
        ("key_value", ("Opened", "1931")),
        ("key_value", ("Closed", "1999")),
    ]
    row = next(each for each in content.elements if each.kind == "table_row")
    assert [content.text[begin:end] for begin, end in row.header] == ["Plant", "Origin", "Origin"]
    assert next(each.target for each in content.elements if each.kind == "link") == "/site?a=1&b"
    assert [(each.data, each.caption) for each in content.figures] == [(png(), "A fern")]
    check_quote(content.text, content.figures[0].begin, content.figures[0].begin + 6, "A fern")


@pytest.mark.parametrize(
    ("page", "encoding"),
    [
        ("<meta charset='shift_jis'><p>東京は首都です。", "shift_jis"),
        ("<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'>caf\xe9", "cp1252"),
        ("<meta charset=iso-8859-1>東京", "utf-8"),  # the declaration is wrong
        ("<?xml version='1.0' encoding='utf-16'?><html><p>東京</p></html>", "utf-16"),
    ],
)
def test_encodings_of_html(page, encoding):
    assert read_html(page.encode(encoding), LIMITS).text in ("東京は首都です。", "café", "東京")


def test_docx():
    content = read_docx(docx(), LIMITS)
    check_offsets(content)
    assert content.title == "The garden of Alder Bay"
    assert content.text == (
        "The garden\n\nMara Quill founded it in 1931 🌱. Added.\n\nFerns\nMosses\n\nFounder: Mara Quill\n\nOpened: 1931\n\n"
        "Plant | Origin | Year\nFern | Tarn | 1931\nMoss | | 1932\n\nSee the site"
    )
    assert words(content, content.elements) == [
        ("heading", ("The garden",)),
        ("list_item", ("Ferns",)),
        ("list_item", ("Mosses",)),
        ("key_value", ("Founder", "Mara Quill")),
        ("key_value", ("Opened", "1931")),
        ("table_row", ("Fern", "Tarn", "1931")),
        ("table_row", ("Moss", "", "1932")),
        ("link", ("the site",)),
    ]
    row = next(each for each in content.elements if each.kind == "table_row")
    assert [content.text[begin:end] for begin, end in row.header] == ["Plant", "Origin", "Year"]
    assert content.elements[-1].target == "https://garden.example/"
    assert [media_type(each.data) for each in content.figures] == ["image/png"]
