"""Facts that are read without a language model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.documents.document import Document
from kgqa.corpus.documents.formats.html import read_html
from kgqa.corpus.documents.formats.markdown import read_markdown
from kgqa.corpus.documents.formats.plain_text import read_plain_text
from kgqa.corpus.documents.limits import Limits
from kgqa.corpus.extraction.requests import extraction_requests
from kgqa.corpus.extraction.rules.extractor import RuleExtractor
from kgqa.corpus.extraction.rules.proper_names import read_name, read_names
from kgqa.corpus.extraction.rules.values import read_value
from kgqa.corpus.items import ChunkItem, EntityItem
from tests.corpus.extraction.samples import entities_of, facts_of

TOWN = """\
# Halden

See [Lavern](lavern.md), [here](https://halden.example/) and [below](#bridges).

**Population:** 5,012
**Founded:** 1284
**Twin towns:** Aalen; Brix

## Bridges

| Number | Bridge | Length | Opened | Architect |
|---|---|---|---|---|
| 1 | Old Bridge | 120 | 3 May 1921 | Ann Li |
| 2 | New Bridge | 240.5 | 2001-05-03 | Bo Chen |

Weir
: A low dam across a river.
"""


def read(content, title: str):
    """Return the additions of a document that is one chunk, and the document."""
    document = Document("a", title, "text/plain", "d", content.text, elements=content.elements)
    requests = extraction_requests(document, [ChunkItem(document.iri, 0, len(content.text), content.text)])
    (result,) = RuleExtractor().extract(requests)
    assert result.status == "done" and not result.rejected
    for each in result.additions:
        assert each.model.startswith("rule:") and 0.8 <= each.confidence <= 1
        assert 0 <= each.begin < each.end <= len(document.text)
    return result.additions, document


def plain(text: str, title: str) -> set[tuple]:
    additions, _ = read(read_plain_text(text.encode(), Limits()), title)
    return {fact for fact in facts_of(additions) if fact[1] not in ("is a", "is the")}


def test_layout_states_facts():
    additions, document = read(read_markdown(TOWN.encode(), Limits()), "Halden")
    facts = facts_of(additions, document)
    assert {fact[:3] for fact in facts} == {
        ("Halden", "links to", "Lavern"),
        ("Halden", "links to", ("https://halden.example/", "anyURI")),
        ("Halden", "Population", ("5012", "integer")),
        ("Halden", "Founded", ("1284", "gYear")),
        ("Halden", "Twin towns", "Aalen"),
        ("Halden", "Twin towns", "Brix"),
        ("Halden", "has section", ("Bridges", "string")),
        ("Old Bridge", "Number", ("1", "integer")),
        ("Old Bridge", "Length", ("120", "integer")),
        ("Old Bridge", "Opened", ("1921-05-03", "date")),
        ("Old Bridge", "Architect", "Ann Li"),
        ("New Bridge", "Number", ("2", "integer")),
        ("New Bridge", "Length", ("240.5", "decimal")),
        ("New Bridge", "Opened", ("2001-05-03", "date")),
        ("New Bridge", "Architect", "Bo Chen"),
        ("Weir", "definition", ("A low dam across a river.", "string")),
    }
    assert ("Halden", "Population", ("5012", "integer"), "**Population:** 5,012") in facts
    words = {
        each.item.party.name: document.text[each.begin : each.end]
        for each in additions
        if isinstance(each.item, EntityItem)
    }
    assert words["Aalen"] == "Aalen" and words["Bo Chen"] == "Bo Chen" and words["Halden"] == "# Halden"


def test_layout_in_another_language():
    html = "<title>哈尔登</title><h1>哈尔登</h1><table><tr><th>人口<td>5012<tr><th>市长<td>李安</table><dl><dt>堰<dd>低坝。</dl>"
    additions, _ = read(read_html(html.encode(), Limits()), "哈尔登")
    assert facts_of(additions) == {
        ("哈尔登", "人口", ("5012", "integer")),
        ("哈尔登", "市长", "李安"),
        ("堰", "definition", ("低坝。", "string")),
    }


def test_keys_that_several_sections_have_are_about_the_sections():
    text = "# Bridges\n\n## Old Bridge\n\n**Length:** 120\n**River:** Lavern\n\n## New Bridge\n\n**Length:** 240\n"
    additions, _ = read(read_markdown(text.encode(), Limits()), "Bridges")
    assert {fact for fact in facts_of(additions) if fact[1] != "has section"} == {
        ("Old Bridge", "Length", ("120", "integer")),
        ("New Bridge", "Length", ("240", "integer")),
        ("Bridges", "River", "Lavern"),
    }


@pytest.mark.parametrize(
    ("title", "text", "facts"),
    [
        (
            "Ann Li (architect)",
            "Ann Mary Li (5 May 1960 in Aalen, Norden – c. 2010) was a Nordic architect, painter and writer. She studied at the "
            "University of Brix. Her sister was born in Halden. She was born in 1812.",
            {
                ("date of birth", ("1960-05-05", "date")),
                ("place of birth", "Aalen"),
                ("educated at", "University of Brix"),
            },
        ),
        (
            "Bo Chen, 2nd Duke of Aalen",
            "Bo Chen, 2nd Duke of Aalen, was the eldest son of Cai Chen, 1st Duke of Aalen, and Dora of Brix. He died on "
            "3 June 1712 in Halden. He married Eva Moor.",
            {
                ("son of", "Cai Chen, 1st Duke of Aalen"),
                ("son of", "Dora of Brix"),
                ("date of death", ("1712-06-03", "date")),
                ("place of death", "Halden"),
                ("spouse", "Eva Moor"),
            },
        ),
        (
            "The Weir (film)",
            '"The Weir" is a 1971 drama film written and directed by Nordic painter J. R. Holt Jr., produced by Ann Li and Bo '
            "Chen, and starring Eva Moor, about a play written by Cai Chen. It was released on 3 May 1971. It was edited by "
            "Dora Brix. Its music was composed by Finn Oss.",
            {
                ("year of release", ("1971", "gYear")),
                ("written by", "J. R. Holt Jr."),
                ("directed by", "J. R. Holt Jr."),
                ("produced by", "Ann Li"),
                ("produced by", "Bo Chen"),
                ("starring", "Eva Moor"),
                ("date of release", ("1971-05-03", "date")),
                ("edited by", "Dora Brix"),
            },
        ),
        (
            "Halden",
            "Halden is a town in Lavern County, Norden. It is the capital of nothing. It was founded in 1284.",
            {
                ("located in", "Lavern County"),
                ("located in", "Norden"),
                ("date of founding", ("1284", "gYear")),
            },
        ),
        (
            "Aalen",
            "Aalen, also known as New Aalen, is the capital of Norden.",
            {("also known as", ("New Aalen", "string")), ("capital of", "Norden")},
        ),
        ("Aalen", "Halden is a town in Norden. It was founded in 1284.", set()),
        ("notes.txt", "The weir was opened on 3 May 1921. This is a test.", set()),
        ("Ann Li", "Ann Li (born 31 February 1960) was a daughter of a king.", set()),
    ],
)
def test_english_sentences(title, text, facts):
    assert {fact[1:] for fact in plain(text, title)} == facts


def test_a_definition_gives_the_type_and_the_description():
    additions, _ = read(
        read_plain_text(b"Ann Li is a Nordic film, television and stage actress. She sings.", Limits()), "Ann Li"
    )
    assert entities_of(additions) == {("Ann Li", "actress")}
    assert facts_of(additions) == {("Ann Li", "is a", ("Nordic film, television and stage actress", "string"))}
    assert additions[0].item.description == "Ann Li is a Nordic film, television and stage actress."


def test_facts_belong_to_the_chunk_that_states_them():
    text = "Halden is a town. It was founded in 1284."
    document = Document("a", "Halden", "text/plain", "d", text)
    chunks = [ChunkItem(document.iri, 0, 17, text[:17]), ChunkItem(document.iri, 18, len(text), text[18:])]
    first, second = RuleExtractor().extract(extraction_requests(document, chunks))
    assert {each[1] for each in facts_of(first.additions)} == {"is a"}
    assert facts_of(second.additions, document) == {
        ("Halden", "date of founding", ("1284", "gYear"), "It was founded in 1284.")
    }
    assert {each.chunk for each in second.additions} == {chunks[1].chunk}


@pytest.mark.parametrize(
    ("text", "about", "value"),
    [
        ("5 May 1960", "", ("1960-05-05", "date")),
        ("May 5th, 960", "", ("0960-05-05", "date")),
        ("Sept. 2001", "", ("2001-09", "gYearMonth")),
        ("1960年5月5日", "", ("1960-05-05", "date")),
        ("1960", "", ("1960", "integer")),
        ("1960", "Geburtsjahr", ("1960", "gYear")),
        ("1,234,567.5", "", ("1234567.5", "decimal")),
        ("https://a.example/b", "", ("https://a.example/b", "anyURI")),
        *[
            (text, "", None)
            for text in ("1.234", "05/06/1960", "31 February 1960", "007", "12 km", "", "javascript:alert(1)")
        ],
    ],
)
def test_values(text, about, value):
    found = read_value(text, about)
    assert (found and (found.value, found.datatype.rpartition("#")[2])) == value


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ann Li.", "Ann Li"),
        ("the American rock band The Weirs and", "The Weirs"),
        ("J. R. Holt Jr., who", "J. R. Holt Jr."),
        ("Al- Qeed( a", "Al-Qeed"),
        ("Ferdinand III of Castile.", "Ferdinand III of Castile"),
        ("Élodie d'Aubigné in", "Élodie d'Aubigné"),
        ("20th Century Fox and", "20th Century Fox"),
        ("American singer", None),
        ("Ann daughter of Bo Chen.", None),
        ("He was", None),
        ("lower", None),
    ],
)
def test_proper_names(text, name):
    found = read_name(text, 0, len(text))
    assert (found and found.name) == name


def test_lists_of_names():
    text = "Ann Li, Bo Chen and Cai Oss, and starring Dora Brix"
    names, end = read_names(text, 0, len(text))
    assert [each.name for each in names] == ["Ann Li", "Bo Chen", "Cai Oss"] and text[end:].startswith(", and")
    assert [each.name for each in read_names(text, 0, len(text), commas=False)[0]] == ["Ann Li"]


WORDS = st.sampled_from(
    "X|is a|was the|film|(born|5 May 1960|)|,|.|directed by|Ann Li|and|of|Duke|1st|He|son of|–|\n|located in|the|’|Él|also known "
    "as|;|starring|10|Jr.".split("|")
)


@given(st.lists(WORDS, max_size=30).map(" ".join) | st.text(max_size=80))
def test_any_text_can_be_read(text):
    read(read_plain_text(f"X {text}".encode("utf-8", "replace"), Limits()), "X")
