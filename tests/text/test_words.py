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
    split_words,
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
        ("location.country.capital", "country capital", "country capital"),
        ("film.film.directed_by", "film directed by", "film directed by"),
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
        (EX + "placeOfBirth", "place of birth"),
        (EX + "place_of_birth", "place of birth"),
        (EX + "place-of-birth", "place of birth"),
        (EX + "hasISBN", "has ISBN"),
        (EX + "ISBNNumber", "ISBN number"),
        ("http://ex.org/relations/Capital", "capital"),
        ("http://ex.org/relations/capital/", "capital"),
        ("urn:ex:capitalOf", "capital of"),
        ("http://ex.org/gr%C3%B6%C3%9Fe", "größe"),
        ("http://ex.org/首都", "首都"),
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


@pytest.mark.parametrize("relation", ["http://ex.org/", "urn:x:", "http://ex.org/#", "http://ex.org/%00"])
def test_relation_without_a_name_has_words(relation):
    for schema in (FREEBASE, RDFS):
        assert relation_words(relation, schema)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("team_mascot", "team mascot"),
        ("teamMascot", "team mascot"),
        ("TeamMascot", "team mascot"),
        ("team-mascot", "team mascot"),
        ("US_state", "US state"),
        ("parseHTMLPage", "parse HTML page"),
        ("area2Code", "area2 code"),
        ("", ""),
        ("___", ""),
    ],
)
def test_split_words(name, words):
    assert split_words(name) == words


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


@given(st.lists(st.sampled_from([MASCOT, ROSTER, PLAYER, BACK]), max_size=6), st.sets(st.sampled_from([ROSTER, BACK])))
def test_grouping_keeps_every_step_in_order(steps, mediators):
    groups = grouped_steps(RelationPath(PATH.topic, tuple(steps)), mediators.__contains__)
    assert [step for group in groups for step in group] == steps
    assert all(groups)
    assert all(step in mediators for group in groups for step in group[:-1])


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
        ("Tokyo\nJapan", "Tokyo Japan"),
        ("  Tokyo \t Japan ", "Tokyo Japan"),
        ("a\u2028b", "a b"),
        ("evil\u202etxt.exe", "eviltxt.exe"),
        ("nul\x00l", "null"),
        ("東京 – Zürich’s “old” town €5", "東京 – Zürich’s “old” town €5"),
        ("", ""),
        ("\x1b\x07", ""),
    ],
)
def test_clean(text, short):
    assert clean(text) == short


@pytest.mark.parametrize("text", ["a\x1b[31mred\x1b[0m", "a\x1b]0;title\x07b", "a\x9b31mb"])
def test_clean_removes_terminal_escapes(text):
    assert not set(clean(text)) & set("\x1b\x07\x9b")


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
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Charlton_Athletic", "charlton athletic"),
        ("O'Neill", "oneill"),
        ("  Rock & Roll!  ", "rock roll"),
        ("ﬁlm № 5", "film no 5"),
        ("Ⅳ", "iv"),
        ("東京", "東京"),
        ("***", ""),
    ],
)
def test_normalise(text, compared):
    assert normalise(text) == compared


@pytest.mark.parametrize(("first", "second"), [("O’Neill", "O'Neill"), ("Zu\u0308rich", "Zürich"), ("İzmir", "izmir")])
def test_spellings_with_equal_normal_form(first, second):
    assert normalise(first) == normalise(second)


@given(st.text(max_size=30))
@example("ẞ")
@example("İ")
@example("ΐ")
@example("№")
@example("𝐀")
@example("ᾳ")
def test_normalise_is_idempotent(text):
    once = normalise(text)
    assert normalise(once) == once
    assert "_" not in once and once == " ".join(once.split())


@given(st.text(st.characters(whitelist_categories=("Lu", "Ll"), max_codepoint=0x17F), min_size=1, max_size=20))
def test_normalise_ignores_case_and_underscores(text):
    assert normalise(text.replace(" ", "_")) == normalise(text)
    assert normalise(text.upper()) == normalise(text.upper().lower())
