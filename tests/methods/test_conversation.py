"""What a question refers to, by rules on the demo graph, and by a language model with the rules as a fallback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa import open_resources
from kgqa.methods.conversation import ChatTurn, Resolved, resolve, turn_of_object
from kgqa.model import Entity, Named
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Trace
from tests.memory_graph import memory_graph

WD = "http://www.wikidata.org/entity/"
NAMES = ("Ada Quill", "Ulm", "Thing")
NS = "http://rdf.freebase.com/ns/m.demo_"


def named(name: str, end: str = "") -> Named:
    end = end or name.lower().replace(" ", "_").replace("-", "_")
    return Named(Entity(NS + end), f"m.demo_{end}", name)


BONG, PARASITE, JAPAN, TOKYO, MARIE, PIERRE = map(
    named, ("Bong Joon-ho", "Parasite", "Japan", "Tokyo", "Marie Curie", "Pierre Curie")
)
ENGLISH, FRENCH, CANADA = named("English"), named("French"), named("Canada")
DIRECTED = ChatTurn("Who directed Parasite?", (BONG,), (PARASITE,))
CAPITAL = ChatTurn("What is the capital of Japan?", (TOKYO,), (JAPAN,))
LANGUAGES = ChatTurn("What are the official languages of Canada?", (ENGLISH, FRENCH), (CANADA,))
WIFE = ChatTurn("Who is the wife of Pierre Curie?", (MARIE,), (PIERRE,))
MARRIED = ChatTurn("Who is the spouse of Marie Curie?", (PIERRE,), (MARIE,))


@pytest.fixture(scope="module")
def resources(session_cache):
    with open_resources(cache_folder=str(session_cache), embeddings="off") as opened:
        yield opened


@pytest.mark.parametrize(
    ("turns", "question", "asked", "topics"),
    [
        ([DIRECTED], "Where was he born?", "Where was Bong Joon-ho born?", [BONG]),
        ([WIFE], "When was her husband born?", "When was Marie Curie's husband born?", [MARIE]),
        ([DIRECTED], "When was it released?", "When was Parasite released?", [PARASITE]),
        ([DIRECTED], "Was he born in Tokyo?", "Was Bong Joon-ho born in Tokyo?", [BONG, TOKYO]),
        ([CAPITAL], "Who was born there?", "Who was born in Tokyo?", [TOKYO]),
        ([CAPITAL], "and of Norway?", "What is the capital of Norway?", [named("Norway")]),
    ],
)
def test_a_reference_leads_to_what_its_words_allow(resources, turns, question, asked, topics):
    found = resolve(question, turns, resources)
    assert (found.question, [each.value for each in found.topics]) == (asked, [each.value for each in topics])
    assert found.by == "rules" and not found.notes


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Norway?",
        "Who directed the film that won the award?",
        "Is it true that Parasite won?",
        "and who directed Roma?",
        "What about the currency?",
    ],
)
def test_a_question_without_a_reference_stays_as_it_is(resources, question):
    assert resolve(question, [MARRIED, DIRECTED], resources) == Resolved(question)


def test_ambiguity_is_said_and_what_fits_nothing_is_not_guessed(resources):
    one_of_two = resolve("Where do people speak it?", [LANGUAGES], resources)
    assert (one_of_two.question, one_of_two.topics) == ("Where do people speak English?", (ENGLISH,))
    assert one_of_two.notes == (
        "Asked about English (m.demo_english) only; “it” may also mean French (m.demo_french).",
    )
    nobody = Resolved("Where was he born?", notes=("Nothing before this question fits “he”.",))
    assert resolve("Where was he born?", [CAPITAL], resources) == nobody
    assert resolve("Where was he born?", [ChatTurn("What is the most common language?")], resources) == nobody
    assert resolve("Where was he born?", [], resources) == Resolved("Where was he born?")


def test_types_of_other_graphs_tell_persons_from_things(session_cache):
    """The types of Wikidata have labels."""
    label, type_ = "<http://www.w3.org/2000/01/rdf-schema#label>", "<http://www.wikidata.org/prop/direct/P31>"
    lines = [f"<{WD}Q1> {type_} <{WD}Q5> .", f"<{WD}Q2> {type_} <{WD}Q515> .", f'<{WD}Q3> {label} "Thing"@en .']
    lines += [f'<{WD}Q5> {label} "human"@en .', f'<{WD}Q515> {label} "human settlement"@en .']
    ada, ulm, thing = (Named(Entity(f"{WD}Q{number}"), "", name) for number, name in enumerate(NAMES, 1))
    with open_resources(memory_graph(lines, schema="wikidata"), embeddings="off") as resources:

        def meant(question: str, *answers: Named) -> tuple[Named, ...]:
            return resolve(question, [ChatTurn("?", answers)], resources).topics

        assert meant("Where does she live?", ulm, ada) == (ada,)
        assert meant("Who lives there?", ada, ulm) == meant("How old is it?", ada, ulm) == (ulm,)
        # without a type, anything is possible
        assert meant("Where does she live?", ulm, thing) == (thing,)


@given(
    question=st.text(min_size=1, max_size=60).filter(lambda text: any(map(str.isalnum, text))),
    names=st.lists(st.text(max_size=20), max_size=3),
)
def test_no_text_makes_it_fail(resources, question, names):
    history = [turn_of_object({"question": "q", "answers": [{"iri": NS + "tokyo", "name": name} for name in names]})]
    found = resolve(question, [*history, DIRECTED], resources)
    assert found.question.isprintable()
    assert found.topics or found.by == ""


@pytest.mark.parametrize(
    "reply",
    [
        '{"question": "Where was he born?", "refers_to": [9]}',
        '{"question": "Where was he born?", "refers_to": ["Bong Joon-ho"]}',
    ],
)
def test_the_rules_decide_after_an_unreadable_reply(session_cache, reply):
    with ScriptedServer(lambda messages: reply) as server, opened(session_cache, server) as resources:
        trace = Trace()
        found = resolve("Where was he born?", [DIRECTED], resources, trace=trace)
        assert (found.question, found.topics, found.by) == ("Where was Bong Joon-ho born?", (BONG,), "rules")
        assert len(server.requests) == 2  # asked once more
        assert trace.usage().calls == 2


def test_a_model_rewrites_the_question_and_says_what_it_is_about(session_cache):
    reply = {"question": "When was the director of Parasite born in Tokyo?", "refers_to": [1]}
    with ScriptedServer(lambda messages: json.dumps(reply)) as server, opened(session_cache, server) as resources:
        found = resolve("and when was he born in Tokyo?", [CAPITAL, DIRECTED], resources, trace=Trace())
        shown = server.requests[0].messages[-1]["content"]
    assert (found.question, found.by) == (reply["question"], "model")
    assert [each.value for each in found.topics] == [BONG.value, PARASITE.value, TOKYO.value]
    assert "1. Bong Joon-ho (" in shown and "Answer: Tokyo" in shown
    assert shown.endswith("Last question: and when was he born in Tokyo?")


def opened(session_cache, server: ScriptedServer):
    return open_resources(cache_folder=str(session_cache), embeddings="off", llm=f"{server.url}#scripted")


def test_a_pronoun_in_a_name_refers_to_nothing(session_cache):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [f'<urn:e:{number}> {label} "{name}" .' for number, name in enumerate(("Let It Be", "It", "Her", "Ulm"))]
    before = [ChatTurn("?", (Named(Entity("urn:e:3"), "", "Ulm"),))]
    with open_resources(memory_graph(lines, schema="rdfs"), embeddings="off") as resources:
        for question in ("Who sang Let It Be?", "Who directed It?", "Who directed Her in 2013?"):
            assert resolve(question, before, resources) == Resolved(question)
        assert resolve("Who directed it?", before, resources).question == "Who directed Ulm?"
