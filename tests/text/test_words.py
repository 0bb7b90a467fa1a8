"""Wording of relations, paths and names, and cleaning of texts before they are shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgqa.model import Entity, Literal, Named, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.text.words import (
    ambiguous_relations,
    arrow_words,
    clean,
    display_name,
    grouped_steps,
    local_name,
    local_words,
    normalise,
    prompt_words,
    published_words,
    relation_words,
    safe_text,
    short_words,
)

FREEBASE = bundled_schema("freebase")
WIKIDATA = bundled_schema("wikidata")
RDFS = bundled_schema("rdfs")
NS = "http://rdf.freebase.com/ns/"
WDT = "http://www.wikidata.org/prop/direct/"
EX = "http://ex.org/onto#"


# ---- relations ----


@pytest.mark.parametrize(
    ("relation", "ranked", "short"),
    [
        ("sports.sports_team.team_mascot", "sports team team mascot", "sports team mascot"),
        ("people.person.place_of_birth", "person place of birth", "person place of birth"),
        ("book.book.book", "book book", "book book"),
        ("base.locations.continents.countries_within", *("continents countries within",) * 2),
    ],
)
def test_dotted_names(relation, ranked, short):
    assert relation_words(NS + relation, FREEBASE) == ranked
    assert short_words(NS + relation, FREEBASE) == short


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (EX + "place_of_birth", "place of birth"),
        (EX + "parseHTMLPage", "parse HTML page"),
        (EX + "place-of-birth", "place of birth"),
        (EX + "hasISBN", "has ISBN"),
        ("http://ex.org/relations/capital/", "capital"),
        ("urn:ex:capitalOf", "capital of"),
        ("http://ex.org/gr%C3%B6%C3%9Fe", "größe"),
        (WDT + "P36", "P36"),
    ],
)
def test_words_from_the_end_of_an_iri(relation, words):
    for words_of in (relation_words, short_words):
        assert words_of(relation, RDFS).casefold() == words.casefold()


@pytest.mark.parametrize("schema", [FREEBASE, WIKIDATA, RDFS], ids=lambda schema: schema.name)
def test_label_replaces_the_name(schema):
    relation = NS + "location.country.capital"
    labels = {relation: "has\ncapital\x1b[31m city"}
    for words_of in (relation_words, short_words):
        assert words_of(relation, schema, labels).startswith("has capital")
        assert "\x1b" not in words_of(relation, schema, labels)


def test_local_words_of_an_entity_iri():
    assert local_words("http://ex.org/e/Charlton_Athletic_FC") == "Charlton Athletic FC"
    assert local_words("http://ex.org/e/Z%C3%BCrich") == "Zürich"
    assert local_name("http://ex.org/a#b") == "b"


# ---- paths ----

MASCOT = Step(NS + "sports.sports_team.team_mascot")
ROSTER = Step(NS + "sports.sports_team.roster")
PLAYER = Step(NS + "sports.sports_team_roster.player")
BACK = Step(NS + "location.country.national_anthem", "in")
PATH = RelationPath(Entity(NS + "m.0x"), (BACK, ROSTER, PLAYER))


FILM = NS + "film.actor.film"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((MASCOT,), ("team mascot",)),
        ((ROSTER, PLAYER), ("roster: player",)),
        ((BACK, MASCOT), ('country whose "national anthem" is it', "team mascot")),
        ((Step(NS + "film.performance.actor", "in"),), ("film (as actor)",)),
        ((Step(NS + "people.person.spouse_s"), Step(NS + "people.marriage.spouse")), ("spouses",)),
        ((Step(NS + "madeBy", "in"),), ('those whose "made by" is it',)),
    ],
)
def test_steps_in_prompts_are_worded_by_what_they_reach(steps, words):
    found = prompt_words(
        RelationPath(PATH.topic, steps),
        FREEBASE,
        {},
        is_mediator=lambda step: step == ROSTER or step.relation.endswith("spouse_s"),
        inverse={NS + "film.performance.actor": FILM}.get,
        target_type=lambda step: None,
        ambiguous={FILM},
    )
    assert found == words


def test_ambiguous_relations_share_their_property():
    counts = {
        FILM: 50,
        NS + "film.director.film": 40,
        NS + "people.person.gender": 90,
        NS + "fictional.character.gender": 5,
        NS + "film.performance.film": 500,
    }
    found = ambiguous_relations(counts, FREEBASE, of_mediators=lambda relation: "performance" in relation)
    assert found == {NS + "film.director.film", NS + "fictional.character.gender"}
    assert ambiguous_relations(counts, RDFS, of_mediators=lambda relation: False) == frozenset()


def _roster(step: Step) -> bool:
    return step == ROSTER


def test_mediator_and_exit_are_one_hop():
    assert grouped_steps(PATH, _roster) == [(BACK,), (ROSTER, PLAYER)]
    assert grouped_steps(PATH, lambda step: False) == [(BACK,), (ROSTER,), (PLAYER,)]
    assert grouped_steps(RelationPath(PATH.topic, (BACK, ROSTER)), _roster) == [(BACK,), (ROSTER,)]
    assert grouped_steps(RelationPath(PATH.topic), _roster) == []


def test_published_words():
    assert published_words(PATH, FREEBASE) == (
        "<- location.country.national_anthem -> sports.sports_team.roster -> sports.sports_team_roster.player"
    )
    capital = RelationPath(PATH.topic, (Step(WDT + "P36"), Step(WDT + "P17", "in")))
    assert published_words(capital, WIKIDATA) == "-> wdt:P36 <- wdt:P17"
    assert published_words(capital, WIKIDATA, {WDT + "P36": "capital\x1b of"}) == "-> capital of <- wdt:P17"


def test_arrow_words():
    words = arrow_words("Kimi\ngayo", PATH, FREEBASE, is_mediator=_roster)
    assert words.startswith("Kimi gayo ← country national anthem → sports team roster · ")
    assert "\n" not in words


# ---- cleaning ----

UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


@given(st.text(max_size=60))
@example("a\x1b[2Jb")
@example("a\u202eb\u2066c\u2069")
@example("a\r\nb\x85c\u2028d\u2029e")
@example("\ud800")
@example("\x00\x07\x9b31m")
@example("\ufeffa\u200bb")
def test_clean_returns_one_line_without_control_characters(text):
    cleaned = clean(text)
    assert not any(unicodedata.category(c) in UNSAFE for c in cleaned)
    assert len(cleaned.splitlines()) <= 1
    assert cleaned == cleaned.strip() and "  " not in cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Tokyo", "Tokyo"),
        ("  Tokyo \t Japan\u2028b", "Tokyo Japan b"),
        ("evil\u202etxt.exe", "eviltxt.exe"),
        ("nul\x00l", "null"),
        ("東京 – Zürich’s “old” town €5", "東京 – Zürich’s “old” town €5"),
        ("", ""),
    ],
)
def test_clean(text, short):
    assert clean(text) == short


@given(st.text(max_size=60))
@example("SELECT ?x\n  WHERE\x1b[2J {\r\n\t?x }\u202e")
def test_safe_text_keeps_only_line_breaks(text):
    safe = safe_text(text)
    assert safe.count("\n") == text.count("\n")
    assert not any(unicodedata.category(c) in UNSAFE for c in safe.replace("\n", ""))


def test_safe_text_keeps_indentation():
    assert safe_text("SELECT ?x {\n    ?x  ?p\x1b ?o\n}") == "SELECT ?x {\n    ?x  ?p  ?o\n}"


# ---- names ----


@pytest.mark.parametrize(
    ("name", "ident", "short"),
    [
        ("Tokyo", "m.07dfk", "Tokyo (m.07dfk)"),
        ("Tokyo", "", "Tokyo"),
        ("m.07dfk", "m.07dfk", "m.07dfk"),
        ("", "m.07dfk", "m.07dfk"),
        ("Tokyo", "http://ex.org/tokyo", "Tokyo"),
        ("To\nkyo\x1b[31m", "m.\u202e1", "To kyo[31m (m.1)"),
    ],
)
def test_display_name(name, ident, short):
    assert display_name(Named(Literal(name), ident, name)) == short


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        ("São Tomé", "sao tome"),
        ("Zu\u0308rich", "zurich"),
        ("İzmir", "izmir"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Charlton_Athletic", "charlton athletic"),
        ("O’Neill", "oneill"),
        ("O'Neill", "oneill"),
        ("ﬁlm № 5", "film no 5"),
        ("東京", "東京"),
        ("***", ""),
    ],
)
def test_normalise(text, compared):
    assert normalise(text) == compared
