"""The data classes: equality of paths, immutability, JSON and HTML."""

from __future__ import annotations

import json
from dataclasses import replace

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
    GraphId,
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
from kgqa.storage.answer_json import answer_data, answer_from
from kgqa.storage.loading import convert
from kgqa.trace import MatchPlayed, Retrieved, StepAnswered, SufficiencyJudged, UnknownEvent

TOPIC = Entity("http://ex.org/japan")
CAPITAL = Step("http://ex.org/capital")
BORN_IN = Step("http://ex.org/born_in", "in")

# ---- strategies: one for every dataclass, so that an Answer holds all of them ----

text = st.text(max_size=12)
entities = st.builds(Entity, text)
literals = st.one_of(
    st.builds(Literal, text),
    st.builds(Literal, text, st.just("http://www.w3.org/2001/XMLSchema#date")),
    st.builds(Literal, text, language=st.sampled_from(["en", "zh-Hant", "ja"])),
)
values = st.one_of(entities, literals)
steps = st.builds(Step, text, st.sampled_from(["out", "in"]))
paths = st.builds(RelationPath, entities, st.lists(steps, max_size=3).map(tuple))
candidates = st.builds(Candidate, paths, text, st.booleans())
topics = st.lists(entities, max_size=2).map(tuple)
questions = st.builds(Question, text, topics, text)
triples = st.builds(Triple, entities, text, values)
named = st.builds(Named, values, text, text)
walks = st.lists(st.lists(named, max_size=3).map(tuple), max_size=2).map(tuple)
numbers = st.floats(allow_nan=False, allow_infinity=False)
path_evidence = st.builds(
    PathEvidence,
    paths,
    text,
    walks=walks,
    mediators=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    triples=st.lists(triples, max_size=2).map(tuple),
    score=st.none() | numbers,
    approximate=st.booleans(),
)
counts = st.integers(0, 10**9)
spans = st.builds(Span, text, text, counts, counts)
span_lists = st.lists(spans, max_size=2).map(tuple)
participants = st.lists(st.builds(Participant, text, named), max_size=3).map(tuple)
statements = st.builds(StatementEvidence, text, triples, text, span_lists, st.none() | st.floats(0, 1), text)
hyperedges = st.builds(HyperedgeEvidence, text, text, participants, span_lists)
quotes = st.builds(QuoteEvidence, spans, text, st.booleans())
evidence = st.one_of(path_evidence, statements, hyperedges, quotes)
pieces = st.builds(
    Piece,
    text,
    st.sampled_from(["chunk", "statement", "entity", "community", "hyperedge", "path"]),
    text,
    numbers,
    span_lists,
    st.lists(triples, max_size=2).map(tuple),
)
citations = st.builds(Citation, text, text, st.none() | spans, text, st.booleans())
usages = st.builds(Usage, counts, counts, counts, counts, st.floats(0, 1e6))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
events = st.builds(UnknownEvent, text, st.dictionaries(text, plain, max_size=3), at=st.floats(0, 1e6))
texts = st.lists(text, max_size=2).map(tuple)
answers = st.builds(
    Answer,
    questions,
    st.sampled_from(["answered", "no_answer", "budget_exhausted", "unsupported", "failed"]),
    answers=st.lists(named, max_size=2).map(tuple),
    evidence=st.lists(evidence, max_size=2).map(tuple),
    sparql=text,
    query_class=st.sampled_from(["exact", "restricted", "superset", "none"]),
    grounding=st.sampled_from(["graph", "text", "model", "none"]),
    method=text,
    reason=text,
    notes=texts,
    defects=texts,
    topics=st.lists(named, max_size=2).map(tuple),
    usage=usages,
    trace=st.lists(events, max_size=2).map(tuple),
    approximate=st.booleans(),
    response=text,
    citations=st.lists(citations, max_size=2).map(tuple),
    evidence_sparql=text,
    evidence_class=st.sampled_from(["exact", "none"]),
)
ALL_STRATEGIES = (
    entities,
    literals,
    steps,
    paths,
    candidates,
    questions,
    triples,
    named,
    evidence,
    pieces,
    citations,
    usages,
)


# ---- path equivalence (ToP, section 3.2) ----


def test_paths_with_equal_topic_and_steps_are_equal():
    first = RelationPath(TOPIC, (CAPITAL, BORN_IN))
    equal_path = RelationPath(Entity("http://ex.org/japan")).then(Step("http://ex.org/capital"), BORN_IN)
    assert first == equal_path
    assert hash(first) == hash(equal_path)
    assert len({first, equal_path}) == 1


@pytest.mark.parametrize(
    "other",
    [
        RelationPath(Entity("http://ex.org/korea"), (CAPITAL, BORN_IN)),
        RelationPath(TOPIC, (BORN_IN, CAPITAL)),
        RelationPath(TOPIC, (CAPITAL,)),
        RelationPath(TOPIC, (CAPITAL, BORN_IN.reversed())),
        RelationPath(TOPIC, (CAPITAL, BORN_IN, CAPITAL)),
        RelationPath(TOPIC),
    ],
    ids=["topic", "order", "prefix", "direction", "longer", "empty"],
)
def test_paths_with_other_topic_or_steps_differ(other):
    assert RelationPath(TOPIC, (CAPITAL, BORN_IN)) != other


@given(paths, paths)
def test_equality_of_paths_is_equality_of_topic_and_steps(first, second):
    same = first.topic.iri == second.topic.iri and [(s.relation, s.direction) for s in first.steps] == [
        (s.relation, s.direction) for s in second.steps
    ]
    assert (first == second) is same


def test_then_does_not_change_the_path():
    path = RelationPath(TOPIC, (CAPITAL,))
    assert len(path.then(BORN_IN)) == 2
    assert path.steps == (CAPITAL,)


def test_reversed_twice_is_the_step_itself():
    assert CAPITAL.reversed() == Step(CAPITAL.relation, "in")
    assert CAPITAL.reversed().reversed() == CAPITAL


def test_language_implies_its_datatype():
    assert Literal("Tokyo").datatype == XSD_STRING
    assert Literal("Tokyo", language="en").datatype == RDF_LANG_STRING
    assert Literal("Tokyo", language="en") != Literal("Tokyo")
    assert Entity("x") != Literal("x")


@settings(max_examples=20)
@given(st.one_of(*ALL_STRATEGIES))
def test_every_object_is_frozen(item):
    name = next(iter(type(item).__annotations__.keys() - {"kind"}))
    with pytest.raises(AttributeError):
        setattr(item, name, getattr(item, name))


# ---- JSON ----


NAMES = "entity literal step path candidate question triple named evidence piece citation usage".split()


@pytest.mark.parametrize("strategy", ALL_STRATEGIES, ids=NAMES)
def test_json_round_trip(strategy):
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def round_trip(item):
        data = json.loads(json.dumps(to_builtins(item)))
        assert convert(data, type(item)) == item

    round_trip()


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(answers)
def test_answers_are_restored_from_json(answer):
    assert answer_from(json.loads(json.dumps(answer_data(answer)))) == answer


def test_json_round_trip_of_a_full_answer():
    tokyo = Named(Entity("http://ex.org/tokyo"), "tokyo", "Tokyo")
    date = Named(Literal("1868-09-03", "http://www.w3.org/2001/XMLSchema#date"), "", "1868-09-03")
    label = Literal("東京", language="ja")
    answer = Answer(
        Question("capital of Japan?", (TOPIC,), "q1"),
        "answered",
        answers=(tokyo, date),
        evidence=(
            PathEvidence(
                RelationPath(TOPIC, (CAPITAL, BORN_IN)),
                "capital",
                walks=((tokyo, date),),
                mediators=(1,),
                triples=(Triple(TOPIC, CAPITAL.relation, tokyo.value), Triple(TOPIC, "http://ex.org/name", label)),
                score=0.5,
            ),
        ),
        usage=Usage(2, 30, 4, 5, 0.25),
        trace=(
            MatchPlayed(candidates=("capital",), picked=("capital",), at=0.1),
            UnknownEvent("deep", {"n": [1, None, True, 0.5]}, at=0.2),
        ),
        graph=GraphId("http://ex.org/sparql", ("http://ex.org/g",), "remote-1", None, "wikidata"),
    )
    equal_path = answer_from(json.loads(json.dumps(answer_data(answer))))
    assert equal_path == answer
    assert equal_path.paths[0].triples[1].object == label
    assert isinstance(equal_path.answers, tuple)


WALK = PathEvidence(RelationPath(TOPIC, (CAPITAL,)), "its capital")
SPAN = Span("urn:doc:1", "urn:chunk:1", 5, 10)
OTHER_EVIDENCE = (
    StatementEvidence("urn:st:1", Triple(TOPIC, CAPITAL.relation, TOPIC), "stated words", (SPAN,), 0.5, "a-model"),
    HyperedgeEvidence("urn:he:1", "a segment", (Participant("who", Named(TOPIC, "japan", "Japan")),), (SPAN,)),
    QuoteEvidence(SPAN, "quoted words", True),
    QuoteEvidence(SPAN, "invented words", False),
)


def test_kind_distinguishes_evidence():
    kinds = [to_builtins(each)["kind"] for each in (WALK, *OTHER_EVIDENCE)]
    assert kinds == ["path", "statement", "hyperedge", "quote", "quote"]
    for each in (WALK, *OTHER_EVIDENCE):
        assert convert(to_builtins(each), Evidence) == each


def test_paths_are_the_paths_of_the_evidence():
    answer = Answer(Question("q"), "answered", evidence=(*OTHER_EVIDENCE[:2], WALK, *OTHER_EVIDENCE[2:]))
    assert answer.paths == (WALK,)


def test_fields_with_defaults_may_be_missing():
    assert convert({"text": "who?"}, Question) == Question("who?")


STEP = {"relation": "r", "direction": "out"}
NAMED = {"value": {"kind": "entity", "iri": "x"}, "id": "x", "name": "x"}
ANSWER = {"question": {"text": "q"}, "status": "answered"}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Entity, {}),
        (Entity, None),
        (Entity, []),
        (Entity, "http://ex.org/x"),
        (Entity, {"iri": 3}),
        (Step, {**STEP, "direction": "sideways"}),
        (Step, {**STEP, "direction": ["out"]}),
        (RelationPath, {"topic": {"iri": "x"}, "steps": 3}),
        (RelationPath, {"topic": {"iri": "x"}, "steps": [3]}),
        (RelationPath, {"topic": {"iri": "x"}, "steps": "rs"}),
        (Named, {**NAMED, "value": None}),
        (Named, {**NAMED, "value": {"iri": "x"}}),
        (Named, {**NAMED, "value": {"kind": "literal"}}),
        (Named, {**NAMED, "value": {"kind": "neither", "value": "x"}}),
        (Usage, []),
        (Usage, "hops"),
        (Usage, {"hops": "2"}),
        (Usage, {"hops": 2.5}),
        (Usage, {"hops": True}),
        (Usage, {"seconds": "1"}),
        (Evidence, {"kind": "gossip", "words": "x"}),
        (Answer, {"status": "answered"}),
        (Answer, {**ANSWER, "status": "maybe"}),
        (Answer, {**ANSWER, "notes": "one text, not a list"}),
        (Answer, {**ANSWER, "notes": {"a": 1}}),
        (Answer, {**ANSWER, "notes": [1]}),
        (Answer, {**ANSWER, "approximate": 1}),
        (Answer, {**ANSWER, "sparql": None}),
    ],
)
def test_wrong_shapes_are_refused(kind, data):
    with pytest.raises(ValueError):
        convert(data, kind)


# ---- HTML ----

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def test_html_escapes_every_text_field():
    evil = Named(Literal(EVIL), EVIL, EVIL)
    span = Span(EVIL, EVIL, 0, 1)
    path = RelationPath(Entity(EVIL), (Step(EVIL),))
    answer = Answer(
        Question(EVIL, (Entity(EVIL),), EVIL),
        "answered",
        answers=(evil,),
        evidence=(
            PathEvidence(path, EVIL, walks=((evil,),), triples=(Triple(Entity(EVIL), EVIL, Literal(EVIL)),)),
            StatementEvidence(EVIL, Triple(Entity(EVIL), EVIL, Literal(EVIL)), EVIL, (span,), model=EVIL),
            HyperedgeEvidence(EVIL, EVIL, (Participant(EVIL, evil),), (span,)),
            QuoteEvidence(span, EVIL, True),
        ),
        response=EVIL,
        citations=(Citation(EVIL, EVIL, span, EVIL),),
        evidence_sparql=EVIL,
        sparql=EVIL,
        method=EVIL,
        reason=EVIL,
        notes=(EVIL,),
        defects=(EVIL,),
        topics=(evil,),
        trace=(UnknownEvent(EVIL, {EVIL: EVIL}),),
    )
    for variant in (answer, replace(answer, status="failed", answers=())):
        html = variant._repr_html_()
        assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
        assert "&lt;script&gt;" in html


def test_html_shows_answer_path_and_query():
    tokyo = Named(Entity("http://ex.org/tokyo"), "Q1490", "Tokyo")
    html = Answer(
        Question("capital?"),
        "answered",
        answers=(tokyo,),
        evidence=(PathEvidence(RelationPath(TOPIC, (CAPITAL,)), "its capital"),),
        sparql="SELECT ?x",
    )._repr_html_()
    for part in ("capital?", "Tokyo", "Q1490", "its capital", "SELECT ?x"):
        assert part in html


def test_html_shows_the_steps_of_an_answer_from_text():
    trace = (
        Retrieved(query=EVIL, pieces=(EVIL,)),
        StepAnswered(question=f"who? {EVIL}", answers=("Ada",), quotes=1, verified=1, step=1),
        SufficiencyJudged(round=1, verdict="no", missing=EVIL),
    )
    html = Answer(Question("?"), "answered", trace=trace)._repr_html_()
    assert '<summary>Steps</summary><ul>\n<li dir="auto">1. who?' in html and "Ada (1 of 1 quote verified)" in html
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
    assert "Steps" not in Answer(Question("?"), "answered", trace=trace[:1])._repr_html_()


def test_html_says_what_would_help():
    answer = Answer(Question("?"), "no_answer", nearest=(NearPath("<near>", 0.1),), hints=("Try more: depth=3",))
    html = answer._repr_html_()
    assert '<li dir="auto">&lt;near&gt; <span' in html and '<li dir="auto">Try more: depth=3</li>' in html


def test_html_shows_response_citations_and_all_evidence():
    html = Answer(
        Question("capital?"),
        "answered",
        answers=(Named(Literal("Tokyo"), "", "Tokyo"),),
        evidence=OTHER_EVIDENCE,
        response="A long\nresponse.",
        citations=(Citation("the claim", "urn:chunk:1", SPAN, "cited words", True), Citation("bare claim", "urn:x")),
        evidence_sparql="SELECT ?s",
    )._repr_html_()
    for part in ("A long\nresponse.", "stated words", "a segment", "quoted words", "the claim", "cited words",
                 "SELECT ?s"):  # fmt: skip
        assert part in html
    assert html.count("not found in the text") == 2  # the invented quote and the claim without a quote
