"""What a question refers to, by rules on the demo graph, and by a language model with the rules as a fallback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa import open_resources
from kgqa.methods.conversation.references import Reference, find_references
from kgqa.methods.conversation.referents import Referents
from kgqa.methods.conversation.resolving import resolve
from kgqa.methods.conversation.rewriting import read_rewritten
from kgqa.methods.conversation.turns import Resolved, Turn, turn_of_object
from kgqa.model import Entity, Named
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Trace
from tests.memory_graph import memory_graph

WD = "http://www.wikidata.org/entity/"
FB = "http://rdf.freebase.com/ns/"
NAMES = ("Ada Quill", "Ulm", "Thing")
NS = "http://rdf.freebase.com/ns/m.demo_"


def named(name: str, end: str = "") -> Named:
    end = end or name.lower().replace(" ", "_").replace("-", "_")
    return Named(Entity(NS + end), f"m.demo_{end}", name)


BONG, PARASITE, JAPAN, TOKYO, MARIE, PIERRE = map(
    named, ("Bong Joon-ho", "Parasite", "Japan", "Tokyo", "Marie Curie", "Pierre Curie")
)
ENGLISH, FRENCH, CANADA = named("English"), named("French"), named("Canada")
DIRECTED = Turn("Who directed Parasite?", (BONG,), (PARASITE,))
CAPITAL = Turn("What is the capital of Japan?", (TOKYO,), (JAPAN,))
LANGUAGES = Turn("What are the official languages of Canada?", (ENGLISH, FRENCH), (CANADA,))
WIFE = Turn("Who is the wife of Pierre Curie?", (MARIE,), (PIERRE,))
MARRIED = Turn("Who is the spouse of Marie Curie?", (PIERRE,), (MARIE,))


@pytest.fixture(scope="module")
def resources(session_cache):
    with open_resources(cache_folder=str(session_cache), embeddings="off") as opened:
        yield opened


@pytest.mark.parametrize(
    ("turns", "question", "asked", "topics"),
    [
        ([DIRECTED], "Where was he born?", "Where was Bong Joon-ho born?", [BONG]),
        ([DIRECTED], "What did she direct?", "What did Bong Joon-ho direct?", [BONG]),
        ([DIRECTED], "Who is his wife?", "Who is Bong Joon-ho's wife?", [BONG]),
        ([DIRECTED], "When was it released?", "When was Parasite released?", [PARASITE]),
        ([DIRECTED], "Who starred in that film?", "Who starred in Parasite?", [PARASITE]),
        ([DIRECTED], "Who starred in this movie?", "Who starred in Parasite?", [PARASITE]),
        ([DIRECTED], "Which award that he won is known?", "Which award that Bong Joon-ho won is known?", [BONG]),
        ([DIRECTED, CAPITAL], "Who is he married to?", "Who is Bong Joon-ho married to?", [BONG]),
        ([DIRECTED], "Was he born in Tokyo?", "Was Bong Joon-ho born in Tokyo?", [BONG, TOKYO]),
        (
            [DIRECTED],
            "Which films other than Parasite did he direct?",
            "Which films other than Parasite did Bong Joon-ho direct?",
            [BONG],
        ),
        ([CAPITAL], "Who was born there?", "Who was born in Tokyo?", [TOKYO]),
        ([CAPITAL], "Who comes from there?", "Who comes from Tokyo?", [TOKYO]),
        ([CAPITAL], "What is the anthem of that country?", "What is the anthem of Japan?", [JAPAN]),
        ([CAPITAL], "What is the population of that?", "What is the population of Tokyo?", [TOKYO]),
        ([CAPITAL], "and of Norway?", "What is the capital of Norway?", [named("Norway")]),
        ([CAPITAL], "What about Brazil?", "What is the capital of Brazil?", [named("Brazil")]),
        ([CAPITAL], "and the country Brazil?", "What is the capital of Brazil?", [named("Brazil")]),
        ([WIFE], "Where was he born?", "Where was Pierre Curie born?", [PIERRE]),
        ([WIFE], "When was her husband born?", "When was Marie Curie's husband born?", [MARIE]),
        (
            [MARRIED],
            "Which prize did they share?",
            "Which prize did Pierre Curie and Marie Curie share?",
            [PIERRE, MARIE],
        ),
        ([DIRECTED], "Who wrote that?", "Who wrote Parasite?", [PARASITE]),
        ([Turn("Where was Marie Curie born?", (), (MARIE,))], "and when?", "When was Marie Curie born?", [MARIE]),
        ([LANGUAGES], "Where do people speak the second one?", "Where do people speak French?", [FRENCH]),
        ([LANGUAGES], "Where do they both occur?", "Where do English and French both occur?", [ENGLISH, FRENCH]),
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
        "How many cities are there?",
        "Is it true that Parasite won?",
        "Did Marie Curie love her husband?",
        "and who directed Roma?",
        "Which of the two is larger?",
        "What year was that?",
        "Is it raining in Tokyo?",
        "What about the currency?",
    ],
)
def test_a_question_without_a_reference_stays_as_it_is(resources, question):
    assert resolve(question, [MARRIED, DIRECTED], resources) == Resolved(question)


def test_ambiguity_is_said_and_what_fits_nothing_is_not_guessed(resources):
    one_of_two = resolve("Where are they spoken?", [LANGUAGES], resources)
    assert (one_of_two.question, one_of_two.topics) == ("Where is English spoken?", (ENGLISH,))
    assert one_of_two.notes == (
        "Asked about English (m.demo_english) only; “they” may also mean French (m.demo_french).",
    )
    whole = resolve("Which of them is spoken in France?", [LANGUAGES], resources)
    assert (whole.question, whole.topics) == ("Which of them is spoken in France?", ())
    assert whole.notes == (
        "“them” means English (m.demo_english), French (m.demo_french): ask about one of them by its name.",
    )
    # the demo graph does not say who is a woman
    for question, asked in (
        ("Where was she born?", "Asked about Pierre Curie (m.demo_pierre_curie) only; “she” may also mean Marie Curie"),
        ("When was her husband born?", "Asked about Marie Curie (m.demo_marie_curie) only; “her” may also mean Pierre"),
    ):
        (note,) = resolve(question, [MARRIED], resources).notes
        assert note.startswith(asked)
    assert resolve("Who speaks it?", [LANGUAGES], resources).topics == (ENGLISH,)
    nobody = resolve("Where was he born?", [CAPITAL], resources)
    assert nobody == Resolved("Where was he born?", notes=("Nothing before this question fits “he”.",))
    assert resolve("Where was he born?", [], resources) == Resolved("Where was he born?")


def test_a_plural_means_the_last_several_although_a_later_turn_is_about_one(resources):
    stars = named("Song Kang-ho"), named("Lee Sun-kyun"), named("Cho Yeo-jeong")
    turns = [Turn("Who starred in Parasite?", stars, (PARASITE,)), Turn("When was Song Kang-ho born?", (), stars[:1])]
    for question, asked in (
        ("Where were they born?", "Where was Song Kang-ho born?"),
        ("Weren't they in Okja?", "Wasn't Song Kang-ho in Okja?"),
        ("Which prizes have they won?", "Which prizes has Song Kang-ho won?"),
        ("Whom do they know?", "Whom does Song Kang-ho know?"),
        ("Which year is it that they were born in?", "Which year is it that Song Kang-ho was born in?"),
        ("Who are their children?", "Who are Song Kang-ho's children?"),
    ):
        found = resolve(question, turns, resources)
        assert found.question == asked
        assert all("may also mean Lee Sun-kyun" in note and "Cho Yeo-jeong" in note for note in found.notes)
        assert found.notes
    both = resolve("What do they share?", [*turns, MARRIED], resources)
    assert both.question == "What do Pierre Curie and Marie Curie share?"
    assert resolve("When was he born?", turns, resources).topics == stars[:1]
    assert resolve("Where were they born?", [LANGUAGES, DIRECTED], resources).topics == (BONG,)


@pytest.mark.parametrize(
    ("schema", "type_", "person", "city"),
    [
        ("rdfs", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "urn:t:Person", "urn:t:City"),
        ("wikidata", "http://www.wikidata.org/prop/direct/P31", f"{WD}Q5", f"{WD}Q515"),
    ],
)
def test_types_of_other_graphs_tell_persons_from_places(session_cache, schema, type_, person, city):
    """The types of plain RDF have readable names; those of Wikidata have labels."""
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [
        f"<{WD}Q1> <{type_}> <{person}> .", f"<{WD}Q2> <{type_}> <{city}> .", f'<{WD}Q3> {label} "Thing"@en .',
        f'<{person}> {label} "human"@en .', f'<{city}> {label} "city"@en .',
        f'<{WD}Q1> {label} "Ada Quill"@en .', f'<{WD}Q2> {label} "Ulm"@en .',
    ]  # fmt: skip
    ada, ulm, thing = (Named(Entity(f"{WD}Q{number}"), "", name) for number, name in enumerate(NAMES, 1))
    with open_resources(memory_graph(lines, schema=schema), embeddings="off") as resources:

        def meant(question: str, *answers: Named) -> tuple[Named, ...]:
            return resolve(question, [Turn("?", answers)], resources).topics

        assert meant("Where does she live?", ulm, ada) == (ada,)
        assert meant("Who lives there?", ada, ulm) == (ulm,)
        assert meant("How old is it?", ada, ulm) == (ulm,)
        assert meant("Who rules that city?", ada, ulm) == (ulm,)
        # without a type, anything is possible
        assert meant("Where does she live?", ulm, thing) == (thing,)


@pytest.mark.parametrize(
    ("schema", "type_", "person", "gender"),
    [
        ("freebase", f"{FB}type.object.type", f"{FB}people.person", f"{FB}people.person.gender"),
        ("wikidata", "http://www.wikidata.org/prop/direct/P31", f"{WD}Q5", "http://www.wikidata.org/prop/direct/P21"),
        ("rdfs", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "urn:t:Person", "http://schema.org/gender"),
    ],
)
def test_the_gender_in_a_graph_tells_he_from_she(session_cache, schema, type_, person, gender):
    label = f"{FB}type.object.name" if schema == "freebase" else "http://www.w3.org/2000/01/rdf-schema#label"
    lines = [f"<urn:e:{name}> <{type_}> <{person}> ." for name in ("Ada", "Bo")]
    lines += [f"<urn:e:Ada> <{gender}> <urn:g:1> .", f"<urn:e:Bo> <{gender}> <urn:g:2> ."]
    names = {"urn:g:1": "female", "urn:g:2": "male", person: "human"}
    lines += [f'<{iri}> <{label}> "{name}"@en .' for iri, name in names.items()]
    ada, bo = (Named(Entity(f"urn:e:{name}"), "", name) for name in ("Ada", "Bo"))
    with open_resources(memory_graph(lines, schema=schema), embeddings="off") as resources:
        married = [Turn("Who is the spouse of Ada?", (bo,), (ada,))]
        for question, asked in (
            ("Where was she born?", "Where was Ada born?"),
            ("When was her husband born?", "When was Ada's husband born?"),
            ("When was his wife born?", "When was Bo's wife born?"),
        ):
            found = resolve(question, married, resources)
            assert (found.question, found.notes) == (asked, ())


@pytest.mark.parametrize(("type_", "kind"), [("human settlement", "place"), ("human language", "thing")])
def test_the_main_word_of_a_type_tells_what_it_is(type_, kind):
    ulm, ada = (Named(Entity(f"urn:e:{name}"), "", name) for name in ("Ulm", "Ada"))
    referents = Referents([Turn("?", (ulm,), (ada,))], {ulm.value: [type_], ada.value: ["person or being in fiction"]})
    assert referents.choose(Reference(0, 2, "it", kind)) == (ulm,)
    assert referents.choose(Reference(0, 2, "he", "person")) == (ada,)


def test_a_pronoun_in_a_name_refers_to_nothing(session_cache):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [f'<urn:e:{number}> {label} "{name}" .' for number, name in enumerate(("Let It Be", "It", "Her", "Ulm"))]
    before = [Turn("?", (Named(Entity("urn:e:3"), "", "Ulm"),))]
    with open_resources(memory_graph(lines, schema="rdfs"), embeddings="off") as resources:
        for question in ("Who sang Let It Be?", "Who directed It?", "Who directed Her in 2013?"):
            assert resolve(question, before, resources) == Resolved(question)
        assert resolve("Who directed it?", before, resources).question == "Who directed Ulm?"


@given(
    question=st.text(min_size=1, max_size=60).filter(lambda text: any(map(str.isalnum, text))),
    names=st.lists(st.text(max_size=20), max_size=3),
)
def test_no_text_makes_it_fail(resources, question, names):
    history = [turn_of_object({"question": "q", "answers": [{"iri": NS + "tokyo", "name": name} for name in names]})]
    found = resolve(question, [*history, DIRECTED], resources)
    assert found.question.isprintable()
    assert found.topics or found.by == ""
    if not find_references(found.question):
        assert not found.notes or found.topics


@given(st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)))
def test_a_reply_without_a_question_and_known_numbers_is_never_used(text):
    reading = read_rewritten(text, size=2)
    assert reading.value is None and reading.problem


@pytest.mark.parametrize(
    "reply",
    [
        "Where was Bong Joon-ho born?",
        '{"question": "", "refers_to": [1]}',
        '{"question": "Where was he born?", "refers_to": [9]}',
        '{"question": "Where was he born?", "refers_to": ["Bong Joon-ho"]}',
        '{"question": ["a"], "refers_to": []}',
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


def test_a_stopped_question_and_a_first_question_ask_no_model(session_cache):
    with ScriptedServer() as server, opened(session_cache, server) as resources:
        assert resolve("Where was he born?", [], resources, trace=Trace()) == Resolved("Where was he born?")
        trace = Trace()
        trace.stop()
        assert resolve("Where was he born?", [DIRECTED], resources, trace=trace).by == "rules"
        assert server.requests == []


def opened(session_cache, server: ScriptedServer):
    return open_resources(cache_folder=str(session_cache), embeddings="off", llm=f"{server.url}#scripted")


def test_a_reference_after_turns_without_entities_is_told(resources):
    found = resolve("what is its capital?", [Turn("What is the most common language?")], resources)
    assert found == Resolved("what is its capital?", notes=("Nothing before this question fits “its”.",))
