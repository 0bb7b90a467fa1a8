"""The data classes: equality of paths, immutability, JSON and HTML."""

from __future__ import annotations

import json
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from typing import Literal as OneOf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from kgqa.model import (
    RDF_LANG_STRING,
    XSD_STRING,
    Answer,
    Candidate,
    Citation,
    Entity,
    Evidence,
    HyperedgeEvidence,
    Literal,
    Named,
    NearPath,
    Participant,
    PathEvidence,
    Piece,
    Question,
    QuoteEvidence,
    RelationPath,
    Span,
    StatementEvidence,
    Step,
    Triple,
    Usage,
)
from kgqa.model.conditions import Comparison, Condition, Operation, year
from kgqa.storage.answer_json import answer_data, answer_from
from kgqa.storage.loading import convert
from kgqa.trace import Event, MatchPlayed, Retrieved, StepAnswered, SufficiencyJudged, UnknownEvent

TOPIC = Entity("http://ex.org/japan")
CAPITAL = Step("http://ex.org/capital")
BORN_IN = Step("http://ex.org/born_in", "in")
SLOW = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))

# ---- values of every class, built by the types of its fields ----

SIMPLE = {
    str: st.text(max_size=12),
    bool: st.booleans(),
    int: st.integers(0, 10**9),
    float: st.floats(0, 1e6),
    type(None): st.none(),
    Literal: st.builds(Literal, st.text(max_size=12), st.sampled_from([XSD_STRING, "urn:date"]))
    | st.builds(Literal, st.text(max_size=12), language=st.sampled_from(["en", "zh-Hant", "ja"])),
    Condition: st.just(Condition(1, (BORN_IN,), Comparison("<", year(1967)), negated=True)),
    Operation: st.just(Operation("most", (CAPITAL,), rank=2)),
    Event: st.just(MatchPlayed(candidates=("capital",), picked=("capital",), at=0.1))
    | st.just(UnknownEvent("deep", {"n": [1, None, True, 0.5]}, at=0.2)),
}


def values_of(hint: Any, simple: dict[Any, st.SearchStrategy[Any]] = SIMPLE) -> st.SearchStrategy[Any]:
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return values_of(arguments[0], simple)
    if kind in (Union, UnionType):
        return st.one_of(values_of(each, simple) for each in arguments)
    if kind is OneOf:
        return st.sampled_from(arguments)
    if kind is tuple and arguments[-1] is ...:
        return st.lists(values_of(arguments[0], simple), max_size=2).map(tuple)
    if kind is tuple:
        return st.tuples(*(values_of(each, simple) for each in arguments))
    if hint in simple:
        return simple[hint]
    fields = {name: each for name, each in get_type_hints(hint).items() if name != "kind"}
    return st.builds(hint, **{name: values_of(each, simple) for name, each in fields.items()})


CLASSES = (Entity, Literal, Step, RelationPath, Candidate, Question, Triple, Named, Evidence, Piece, Citation, Usage)


# ---- path equivalence (ToP, section 3.2) ----


@pytest.mark.parametrize(
    "other",
    [
        RelationPath(Entity("http://ex.org/korea"), (CAPITAL, BORN_IN)),
        RelationPath(TOPIC, (BORN_IN, CAPITAL)),
        RelationPath(TOPIC, (CAPITAL, BORN_IN.reversed())),
        RelationPath(TOPIC, (CAPITAL, BORN_IN, CAPITAL)),
    ],
    ids=["topic", "order", "direction", "longer"],
)
def test_paths_are_equal_by_topic_and_steps(other):
    path = RelationPath(TOPIC, (CAPITAL, BORN_IN))
    assert path != other and len({path, other, RelationPath(TOPIC, (CAPITAL,)).then(BORN_IN)}) == 2
    assert list(path.triples_along("xyz")) == [("x", CAPITAL.relation, "y"), ("z", BORN_IN.relation, "y")]


def test_language_implies_its_datatype():
    assert Literal("Tokyo").datatype == XSD_STRING
    assert Literal("Tokyo", language="en").datatype == RDF_LANG_STRING
    assert Literal("Tokyo", language="en") != Literal("Tokyo")
    assert Entity("x") != Literal("x")
    with pytest.raises(ValueError, match="not both"):
        Literal("Tokyo", "urn:date", "en")


@settings(max_examples=20)
@given(st.one_of(map(values_of, CLASSES)))
def test_every_object_is_frozen(item):
    name = next(iter(type(item).__annotations__.keys() - {"kind"}))
    with pytest.raises(AttributeError):
        setattr(item, name, getattr(item, name))


# ---- JSON ----


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: getattr(each, "__name__", "Evidence"))
def test_json_round_trip(kind):
    @SLOW
    @given(values_of(kind))
    def round_trip(item):
        assert convert(json.loads(json.dumps(to_builtins(item))), kind) == item

    round_trip()


@SLOW
@given(values_of(Answer))
def test_answers_are_restored_from_json(answer):
    found = answer_from(json.loads(json.dumps(answer_data(answer))))
    assert found == answer and found.paths == tuple(each for each in answer.evidence if isinstance(each, PathEvidence))


SPAN = Span("urn:doc:1", "urn:chunk:1", 5, 10)
OTHER_EVIDENCE = (
    StatementEvidence("urn:st:1", Triple(TOPIC, CAPITAL.relation, TOPIC), "stated words", (SPAN,), 0.5, "a-model"),
    HyperedgeEvidence("urn:he:1", "a segment", (Participant("who", Named(TOPIC, "japan", "Japan")),), (SPAN,)),
    QuoteEvidence(SPAN, "quoted words", True),
    QuoteEvidence(SPAN, "invented words", False),
)


STEP = {"relation": "r", "direction": "out"}
NAMED = {"value": {"kind": "entity", "iri": "x"}, "id": "x", "name": "x"}
ANSWER = {"question": {"text": "q"}, "status": "answered"}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Entity, {}),
        (Entity, "http://ex.org/x"),
        (Entity, {"iri": 3}),
        (Step, {**STEP, "direction": "sideways"}),
        (RelationPath, {"topic": {"iri": "x"}, "steps": [3]}),
        (RelationPath, {"topic": {"iri": "x"}, "steps": "rs"}),
        (Named, {**NAMED, "value": {"iri": "x"}}),
        (Named, {**NAMED, "value": {"kind": "neither", "value": "x"}}),
        (Usage, {"hops": "2"}),
        (Usage, {"hops": True}),
        (Usage, {"hops": -1}),
        (Evidence, {"kind": "gossip", "words": "x"}),
        (Answer, {"status": "answered"}),
        (Answer, {**ANSWER, "status": "maybe"}),
        (Answer, {**ANSWER, "notes": "one text, not a list"}),
        (Answer, {**ANSWER, "approximate": 1}),
        (Answer, {**ANSWER, "sparql": None}),
    ],
)
def test_wrong_shapes_are_refused(kind, data):
    with pytest.raises(ValueError):
        convert(data, kind)


# ---- HTML ----

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


HOSTILE = {str: st.just(EVIL), Literal: st.just(Literal(EVIL)), Event: st.just(UnknownEvent(EVIL, {EVIL: EVIL}))}


@SLOW
@given(values_of(Answer, SIMPLE | HOSTILE))
def test_html_escapes_every_text_field(answer):
    html = answer._repr_html_()
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html and "&lt;script&gt;" in html


def test_html_shows_the_steps_of_an_answer_from_text():
    trace = (
        Retrieved(query=EVIL, pieces=(EVIL,)),
        StepAnswered(question=f"who? {EVIL}", answers=("Ada",), quotes=1, verified=1, step=1),
        SufficiencyJudged(round=1, verdict="no", missing=EVIL),
    )
    html = Answer(Question("?"), "answered", trace=trace)._repr_html_()
    assert (
        '<summary>Steps</summary><ul>\n<li dir="auto">sub-question 1: who?' in html
        and "Ada (1 of 1 quote verified)" in html
    )
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
    assert "Steps" not in Answer(Question("?"), "answered", trace=trace[:1])._repr_html_()


def test_html_says_what_would_help():
    answer = Answer(Question("?"), "no_answer", nearest=(NearPath("<near>", 0.1),), hints=("Try more: depth=3",))
    html = answer._repr_html_()
    assert '<li dir="auto">&lt;near&gt; <span' in html and '<li dir="auto">Try more: depth=3</li>' in html


def test_html_shows_answer_queries_response_citations_and_all_evidence():
    html = Answer(
        Question("capital?"),
        "answered",
        answers=(Named(Entity("http://ex.org/tokyo"), "Q1490", "Tokyo"),),
        evidence=(PathEvidence(RelationPath(TOPIC, (CAPITAL,)), "its capital"), *OTHER_EVIDENCE),
        sparql="SELECT ?x",
        response="A long\nresponse.",
        citations=(Citation("the claim", "urn:chunk:1", SPAN, "cited words", True), Citation("bare claim", "urn:x")),
        evidence_sparql="SELECT ?s",
    )._repr_html_()
    for part in ("capital?", "Tokyo", "Q1490", "its capital", "SELECT ?x", "A long\nresponse.", "stated words",
                 "a segment", "quoted words", "the claim", "cited words", "SELECT ?s"):  # fmt: skip
        assert part in html
    assert html.count("not found in the text") == 2  # the invented quote and the claim without a quote
