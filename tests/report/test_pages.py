"""Pages from hostile texts: data adds no element and no attribute."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import cycle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from kgqa.evaluation.runs.records import Record
from kgqa.model import (
    Answer,
    Citation,
    Entity,
    HyperedgeEvidence,
    Literal,
    Named,
    Participant,
    Question,
    QuoteEvidence,
    Span,
    StatementEvidence,
    Triple,
)
from kgqa.report.comparison import compare
from kgqa.report.pages import amount, data_block, exact, read, render, shown
from kgqa.report.site.index_page import index_page
from kgqa.report.site.index_rows import index_rows
from kgqa.report.site.question_page import PageContext, question_page
from kgqa.storage.answer_json import answer_object
from tests.report.conftest import hostile_record
from tests.report.site.test_bracket import json_values
from tests.report.test_comparison import FakeRun

ATTACKS = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "</title></style></textarea><img src=x onerror=window.hacked=1>",
    "\" onmouseover=\"window.hacked=1\" x=\"",
    "' onfocus='window.hacked=1' autofocus='",
    "javascript:window.hacked=1",
    "<!--", "-->", "]]>", "<svg onload=window.hacked=1>", "&lt;script&gt;", "{{ 7 * 7 }}{% raw %}",
    "../../etc/passwd", "=HYPERLINK(\"http://x\")", "a\x00b\x1b[31m\u202egnp.exe\u2028\u2066x", "\ud800",
]  # fmt: skip
CONTEXT = PageContext("run", 1, 2, "../index.html", after="../run-1/00002-0123456789ab.html")
LINK = re.compile(r"\.\./(index\.html|run-\d+/\d{5}-[0-9a-f]{12}\.html)")
DATA_ATTRIBUTES = {"title"}
"""Attributes whose value may come from data."""


class ParsedPage(HTMLParser):
    """The elements, attributes, values and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: Counter[tuple[str, ...]] = Counter()
        self.values: set[tuple[str, str | None]] = set()
        self.comments = 0
        self.text = ""
        self.scripts: list[str] = []
        self._in: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements[(tag, *(name for name, _ in attrs))] += 1
        self.values |= {(name, value) for name, value in attrs if name not in DATA_ATTRIBUTES}
        self._in.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self._in and self._in.pop() != tag:
            pass

    def handle_comment(self, data):
        self.comments += 1

    def handle_data(self, data):
        if self._in[-1:] == ["script"]:
            self.scripts[-1] += data
        elif self._in[-1:] != ["style"]:
            self.text += data


def page_of(record: Record) -> ParsedPage:
    return ParsedPage("".join(question_page(record, CONTEXT)))


def index_of(*runs: FakeRun) -> str:
    return "".join(index_page(compare(runs), [list(index_rows(run, number)) for number, run in enumerate(runs, 1)]))


@pytest.fixture(scope="module")
def answered_record(by_model) -> Record:
    """A record with a tournament, a path, walks, triples, a query, model calls, and all other kinds of evidence."""
    record = next(by_model.records())
    span = Span("urn:doc:1", "urn:chunk:1", 5, 10)
    node = Named(Entity("urn:e:1"), "e:1", "Ada")
    answer = Answer(
        Question("x"),
        "answered",
        evidence=(
            StatementEvidence("urn:s:1", Triple(Entity("urn:e:1"), "urn:r", Literal("x")), "the stated", (span,)),
            HyperedgeEvidence("urn:h:1", "a segment", (Participant("urn:role", node),), (span, span)),
            QuoteEvidence(span, "the quoted", True),
            QuoteEvidence(span, "the invented", False),
        ),
        response="A long\nresponse.",
        citations=(Citation("a claim", "urn:chunk:1", span, "cited words", True), Citation("bare", "urn:chunk:2")),
        evidence_sparql="SELECT ?s",
        evidence_class="exact",
    )
    keys = ("evidence", "response", "citations", "evidence_sparql", "evidence_class")
    found = {key: answer_object(answer)[key] for key in keys}
    return replace(record, answer={**record.answer, **found, "paths": [with_conditions(record.answer["paths"][0])]})


def with_conditions(path: dict) -> dict:
    """Return a path of an answer object with a condition on its first node, and an operation."""
    condition = {"at": 1, "steps": [], "negated": False, "words": "“held from” of ?e1 is in or before 1962"}
    operation = {"kind": "count", "at": None, "words": "Count every different ?answer."}
    return {**path, "conditions": [condition], "operation": operation}


def test_page_shows_response_citations_and_evidence(answered_record):
    text = page_of(answered_record).text
    for part in ("A long\nresponse.", "a claim", "cited words", "the stated", "a segment", "the quoted", "SELECT ?s",
                 "urn:chunk:1, 5–10", "role", "Ada", "checked: returns"):  # fmt: skip
        assert part in text
    assert text.count("not found in the text") == 2


def test_page_shows_conditions_and_the_operation(answered_record):
    parsed = page_of(answered_record)
    for words in ("“held from” of ?e1 is in or before 1962", "Count every different ?answer."):
        assert parsed.text.count(words) == 4  # under the path, in the drawing, as its tooltip, and stacked
    kinds = {value for name, value in parsed.values if name == "class" and value.startswith("branch")}
    assert kinds == {"branch condition", "branch operation"}


def test_page_without_them_has_no_empty_sections(by_model):
    text = page_of(next(by_model.records())).text
    assert "Response" not in text and "Statements" not in text and "Query of the evidence" not in text


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_changes_no_element_or_attribute(answered_record, attack):
    # a page with harmless texts of the same length, so both are shortened equally
    harmless = page_of(hostile_record(answered_record, lambda: "x" * len(attack)))
    attacked = page_of(hostile_record(answered_record, lambda: attack))
    assert attacked.elements == harmless.elements
    positions = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "viewbox", "viewBox"}
    assert {v for v in attacked.values if v[0] not in positions} == {
        v for v in harmless.values if v[0] not in positions
    }
    assert attacked.comments == 0
    assert shown(attack) in attacked.text or shown(attack) in attacked.text.replace("\n", " ")


@given(st.data())
def test_text_adds_no_element_or_attribute(answered_record, data):
    texts = data.draw(st.lists(st.text(max_size=30) | st.sampled_from(ATTACKS), min_size=1, max_size=6))
    source = cycle(texts)
    parsed = page_of(hostile_record(answered_record, lambda: next(source)))
    unmodified = page_of(answered_record)
    optional = {("span", "class"), ("details",), ("summary",)}
    allowed = (
        set(unmodified.elements)
        | optional
        | {
            ("p", "class"),
            ("p", "dir"),
            ("p", "class", "dir"),
            ("code", "dir"),
            ("li", "class"),
            ("button", "class", "type", "data-of"),
        }
    )
    assert set(parsed.elements) <= allowed, set(parsed.elements) - allowed
    assert all(LINK.fullmatch(value) for name, value in parsed.values if name == "href")
    assert not any(name.startswith("on") or name in ("src", "style", "srcdoc") for name, _ in parsed.values)


def test_content_security_policy_names_all_scripts(answered_record):
    for page, scripts in (
        ("".join(question_page(hostile_record(answered_record, lambda: ATTACKS[1]), CONTEXT)), ["question"]),
        (index_of(FakeRun(ATTACKS[1], [hostile_record(answered_record, lambda: ATTACKS[1])])), ["list", "index"]),
    ):
        parsed = ParsedPage(page)
        (policy,) = [value for name, value in parsed.values if name == "content" and "default-src" in value]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        script = "".join(read(f"{name}.js") for name in scripts)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy
        run = [each for each in parsed.scripts if not each.startswith("{")]
        assert run == [script]
        # nothing is loaded: all addresses are namespaces or data
        assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)


def test_control_and_direction_characters_are_removed(answered_record):
    page = "".join(question_page(hostile_record(answered_record, lambda: "a\x00\x1b\u202e\u2066\u200bb"), CONTEXT))
    assert not set("\x00\x1b\u202e\u2066\u200b") & set(page)
    assert "\\u202E" in page  # escaped in the query


@given(st.lists(st.text(max_size=20) | st.sampled_from(ATTACKS), min_size=1, max_size=5))
def test_index_data_cannot_end_its_element(answered_record, texts):
    source = cycle(texts)
    run = FakeRun("run", [hostile_record(answered_record, lambda: next(source)) for _ in texts])
    page = index_of(run)
    parsed = ParsedPage(page)
    (block,) = [each for each in parsed.scripts if each.startswith("{")]
    found = json.loads(block)
    assert len(found["rows"]) == len(texts)
    assert not set("<>&") & set(block)
    harmless = [replace(answered_record, id=f"{n}", kind=f"{n}", dataset=f"{n}", level=f"{n}") for n in range(2)]
    assert parsed.elements.keys() <= ParsedPage(index_of(FakeRun("run", harmless))).elements.keys()


def test_run_and_group_names_are_escaped(answered_record):
    runs = [
        FakeRun(attack, [replace(answered_record, kind=attack), replace(answered_record, kind="b", id="2")])
        for attack in ATTACKS[:4]
    ]
    parsed = ParsedPage(index_of(*runs))
    harmless = [
        FakeRun(f"{n}", [replace(answered_record, kind=f"{n}"), replace(answered_record, kind="b", id="2")])
        for n in range(4)
    ]
    assert parsed.elements == ParsedPage(index_of(*harmless)).elements
    assert ATTACKS[0] in parsed.text


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3) | st.fixed_dictionaries({}, optional=dict.fromkeys(("answers", "paths", "trace", "topics", "usage", "sparql", "notes", "status", "query_class"), json_values)))  # fmt: skip
@example({"usage": 1.0})
def test_page_of_any_answer_object(answer):
    record = Record("i", "d", "t", answer, ())
    assert "</html>" in "".join(question_page(record, CONTEXT))
    empty = compare([FakeRun("run", [])])
    assert "</html>" in "".join(index_page(empty, [list(index_rows(FakeRun("run", [record]), 1))]))


# ---- what pages are made of ----


def test_exact_escapes_control_characters():
    query = 'SELECT * {\n\t?s ?p "a\u202eb\u200c \U000e0041" . # x\r\n}'
    assert exact(query) == 'SELECT * {\n\t?s ?p "a\\u202Eb\\u200C \\U000E0041" . # x\n}'
    assert exact("abc", 2) == "ab"


@given(st.text())
def test_exact_is_reversible(text):
    if "\\" in text or "\r" in text:
        return
    back = re.sub(r"\\u([0-9A-F]{4})|\\U([0-9A-F]{8})", lambda m: chr(int(m[1] or m[2], 16)), exact(text))
    assert back == text


@given(st.text() | st.sampled_from(ATTACKS))
def test_data_block_round_trip(text):
    block = data_block({"x": text})
    assert json.loads(block) == {"x": text} and not set("<>&\u2028") & set(block)


def test_long_texts_are_shortened():
    assert len(shown("x" * 10_000)) == 2000 and shown("x" * 10_000).endswith("…")


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0, "0"), (1234567, "1,234,567"), (0.123456, "0.123"), (1234.5, "1,234.5")]
)
def test_amount(value, text):
    assert amount(value) == text


def test_templates_are_sandboxed_and_strict():
    from jinja2 import UndefinedError
    from jinja2.exceptions import SecurityError

    from kgqa.report.pages import _environment

    with pytest.raises(UndefinedError):
        "".join(render("question", "question"))
    with pytest.raises((SecurityError, UndefinedError)):
        _environment().from_string("{{ ''.__class__.__mro__ }}").render()
    assert _environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    assert _environment().from_string("{{ x }}").render(x=Markup("<b>")) == "<b>"
    with pytest.raises(ValueError):
        read("../pages.py")


@pytest.mark.parametrize(
    ("trace", "question", "note"),
    [
        ([], "who?", "Nothing was masked"),
        (
            [{"kind": "masked", "question": "who is ?", "unmasked": 0, "leaks": 0}],
            "who is ?",
            "As compared by similarity",
        ),
        (
            [
                {"kind": "masked", "question": "who is ?", "unmasked": 2, "leaks": 0, "shown": "who is [E1]?"},
                {"kind": "leaks", "texts": 9, "leaks": 3},
            ],
            "who is [E1]?",
            "As the language model read it",
        ),
    ],
)
def test_question_as_shown_to_the_model(trace, question, note):
    page = "".join(question_page(Record("i", "d", "who?", {"trace": trace}, ()), CONTEXT))
    assert f'<blockquote id="seen" dir="auto">{question}</blockquote>' in page and note in page
    assert (
        ("2 topics could not be masked" in page)
        == ("3 texts shown to the model still contained" in page)
        == (len(trace) == 2)
    )


def test_event_of_another_package_is_shown_with_its_keys():
    trace = [{"kind": "chunks_read", "at": 0.5, "chunks": ["<b>one</b>"]}, {"kind": "kept", "paths": 7}]
    page = "".join(question_page(Record("i", "d", "who?", {"trace": trace}, ()), CONTEXT))
    assert ">chunks_read</th>" in page and "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one" not in page
    assert ">kept</th>" in page  # damaged, so shown like an event of another package


def test_nearest_paths_and_hints():
    answer = {
        "nearest": [{"words": "film <i>country</i>", "score": 0.08}, {"words": "two"}],
        "hints": ["Lower it & see"],
    }
    page = "".join(question_page(Record("i", "d", "who?", answer, ()), CONTEXT))
    assert "film &lt;i&gt;country&lt;/i&gt;" in page and "0.08" in page and "Lower it &amp; see" in page
