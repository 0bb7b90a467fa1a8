"""Times and exclusions in questions: which answers remain, and what the reader is told of a time that has no effect."""

from __future__ import annotations

from datetime import date

import pytest

from kgqa.methods.ask import ask, open_resources
from tests.memory_graph import memory_graph

F, E, XSD = "http://rdf.freebase.com/ns/", "http://e/", "http://www.w3.org/2001/XMLSchema#"
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OFFICE, HELD = "government.government_office_or_title.office_holders", "government.government_position_held."
TERMS = {"Ann Alpha": ("1990", "1998"), "Bob Beta": ("1998", "2022"), "Cy Gamma": ("2022", str(date.today().year + 1))}
STARTS = {"Ann Alpha": ("1990", ""), "Bob Beta": ("1998", ""), "Cy Gamma": ("2005", "")}
NOT_APPLIED = "The time in the question was not applied"


def triple(subject, predicate, value):
    value = value if value[0] == '"' else f"<{F}{value}>"
    return f"<{F}{subject}> <{F}{predicate}> {value} ."


def named(entity, name, type_):
    return [triple(entity, "type.object.name", f'"{name}"@en'), triple(entity, "type.object.type", type_)]


def office(terms):
    lines = named("m.o", "Chancellor of Arland", "government.government_office_or_title")
    for number, (name, (start, end)) in enumerate(terms.items()):
        person, term = f"m.p{number}", f"m.t{number}"
        lines += [*named(person, name, "people.person"), triple("m.o", OFFICE, term)]
        lines += [triple(term, HELD + "office_holder", person), triple(term, HELD + "office_position_or_title", "m.o")]
        lines.append(triple(term, "type.object.type", "government.government_position_held"))
        lines += [triple(term, HELD + what, f'"{year}"') for what, year in (("from", start), ("to", end)) if year]
    return lines


def studio(films):
    lines = named("m.s", "Big Studio", "film.production_company")
    for film in (f"m.f{number:03d}" for number in range(films)):
        lines += named(film, f"Movie Number {film[3:]}", "film.film")
        lines.append(triple("m.s", "film.production_company.films", film))
    return lines


def things(kind, place, relation, date_relation, dates):
    """Return the triples of a place and of things with a type, the place and a date (its RDF term)."""
    lines = [f'<{E}{place}> <{RDFS}label> "{place}" .', f'<{E}{kind}> <{RDFS}label> "{kind}" .']
    lines += [f'<{E}{name}> <{RDFS}label> "{name.replace("_", " ")}" .' for name in (relation, date_relation, *dates)]
    for name, value in dates.items():
        lines += [f"<{E}{name}> <{RDF}type> <{E}{kind}> .", f"<{E}{name}> <{E}{relation}> <{E}{place}> ."]
        lines += [f"<{E}{name}> <{E}{date_relation}> {value} ."] if value else []
    return lines


def day(text):
    return f'"{text}"^^<{XSD}date>'


def answered(lines, question):
    schema = "freebase" if F in lines[0] else "rdfs"
    return ask(question, resources=open_resources(memory_graph(lines, schema=schema)))


def names(answer):
    return [each.name for each in answer.answers]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who was Chancellor of Arland no later than 1992?", ["Ann Alpha"]),
        ("Who was Chancellor of Arland from 2000 onwards?", ["Bob Beta", "Cy Gamma"]),
        ("Who is the current Chancellor of Arland?", ["Cy Gamma"]),  # the end of the term is known in advance
    ],
)
def test_time_in_terms(question, expected):
    found = answered(office(TERMS), question)
    assert names(found) == expected and not any(NOT_APPLIED in note for note in found.notes)


def test_unread_time_is_noted():
    found = answered(office(TERMS), "Who was Chancellor of Arland in 1992 or 2001?")
    assert any(NOT_APPLIED in note for note in found.notes) and len(found.answers) == 3
    found = answered(office(TERMS), "How many office holders of Chancellor of Arland were there in 1995 or 2001?")
    assert found.status == "unsupported"


@pytest.mark.parametrize(
    ("question", "expected", "noted"),
    [
        ("Who was Chancellor of Arland in 2001?", ["Ann Alpha", "Bob Beta"], True),
        ("Who was Chancellor of Arland before 2001?", ["Ann Alpha", "Bob Beta"], False),
        ("Who became Chancellor of Arland in 1998?", ["Bob Beta"], False),
    ],
)
def test_terms_without_ends(question, expected, noted):
    found = answered(office(STARTS), question)
    assert names(found) == expected and any("ended before 2001" in note for note in found.notes) == noted


def test_each_excluded_entity_needs_a_condition():
    lines = [*studio(4), *named("m.x", "Zanzibar Nights", "film.film"), triple("m.x", "film.film.country", "m.c")]
    question = "{} films did Big Studio make other than Movie Number 003 and Zanzibar Nights?"
    assert answered(lines, question.format("How many")).status == "unsupported"
    found = answered(lines, question.format("Which"))
    assert len(found.answers) == 3 and any("Zanzibar Nights" in note for note in found.notes)


def test_exclusion_beyond_the_walks_that_are_read():
    lines = [*studio(260), *(triple(f"m.f{each:03d}", "film.film.sequel", "m.f255") for each in range(100))]
    found = names(answered(lines, "Which films did Big Studio make other than Movie Number 255?"))
    assert len(found) == 259 and "Movie Number 255" not in found
    assert names(answered(lines, "How many films did Big Studio make other than Movie Number 255?")) == ["259"]


CITIES = {"Colonia": "-0150-05-04", "Marrow": "0700-03-03", "Newton": "1950-10-10", "Oldton": "1820-01-09"}


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("before 100 BC", ["Colonia"]),
        ("in the year 700", ["Marrow"]),
        ("after 2100", []),
    ],
)
def test_things_with_a_date_in_any_year(time, expected):
    lines = things("city", "Landia", "country", "founded", {name: day(text) for name, text in CITIES.items()})
    assert sorted(names(answered(lines, f"Which cities in Landia were founded {time}?"))) == expected


@pytest.mark.parametrize("unknown", [f"<{E}.well-known/genid/0123>", "_:unknown", day("-13798000000-01-01")])
@pytest.mark.parametrize("question", ["Who was born in Halvik in 1950?", "Who is the oldest person born in Halvik?"])
def test_unknown_dates_are_not_compared(unknown, question):
    people = {"Selma": day("1950-05-04"), "Tormund": unknown, "Momoko": None}
    lines = things("human", "Halvik", "place_of_birth", "date_of_birth", people)
    assert names(answered(lines, question)) == ["Selma"]


def test_year_after_a_name_is_no_date_of_the_answer():
    lines = things("person", "Alien", "directed", "date_of_birth", {"Ridley": day("1937-11-30")})
    for time in ("(1979)", "in 1979"):
        found = answered(lines, f"Who directed Alien {time}?")
        assert names(found) == ["Ridley"] and any(f"“{time.strip('()')}”" in note for note in found.notes)


def test_year_in_a_name_is_no_time():
    lines = things(
        "fair", "Landia", "country", "opened", {"Expo 1998": day("1997-05-01"), "Expo 2002": day("2002-05-01")}
    )
    lines = [line.replace("Expo 1998>", "expo1>").replace("Expo 2002>", "expo2>") for line in lines]
    found = answered(lines, "When was Expo 1998 opened?")
    assert names(found) == ["1997-05-01"] and not any(NOT_APPLIED in note for note in found.notes)


def test_numbers_of_years_are_times():
    """The medal has the year as a number; the year in which the winner was launched is another."""
    lines = things("ship", "Regatta", "prize_of", "launched", {"Olga": day("2022-01-01"), "Petra": day("1990-01-01")})
    lines = [line for line in lines if "prize_of" not in line]
    for number, (ship, year) in enumerate((("Olga", 2019), ("Petra", 2022))):
        medal = f"<{E}medal{number}>"
        lines += [f"{medal} <{RDF}type> <{E}Medal> .", f"{medal} <{E}at_regatta> <{E}Regatta> ."]
        lines += [f"{medal} <{E}medal_for> <{E}{ship}> .", f'{medal} <{E}year> "{year}"^^<{XSD}integer> .']
    found = answered(lines, "Which ships won a medal at the Regatta in 2022?")
    assert names(found) == ["Petra"] and found.query_class == "exact"


def number(year):
    return f'"{year}"^^<{XSD}integer>'


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which theatres in Landia opened before 1900?", ["Globe"]),
        ("Which theatre in Landia opened in 1920?", ["Lyric"]),
        ("Which is the oldest theatre in Landia?", ["Globe"]),
        ("Which is older, Globe or Lyric?", ["Globe"]),
        ("Is Lyric older than Globe?", ["false"]),
        ("Which theatre in Landia never opened?", []),
        ("Which theatre in Landia has no roof?", []),
    ],
)
def test_years_of_opening_that_are_numbers(question, expected):
    lines = things("theatre", "Landia", "country", "opened", {"Globe": number(1850), "Lyric": number(1920)})
    assert names(answered(lines, question)) == expected


def test_what_opened_earlier_is_not_meant_by_a_year():
    dates = {"Ann": day("1920-05-01"), "Bob": day("1930-05-01")}
    lines = things("production", "Glass Play", "play", "opening_date", dates)
    lines = [line.replace("Glass Play>", "glass>") for line in lines]
    for name, director in (("Ann", "Cora"), ("Bob", "Dan")):
        lines += [f"<{E}{name}> <{E}directed_by> <{E}{director}> .", f'<{E}{director}> <{RDFS}label> "{director}" .']
    assert names(answered(lines, "Who directed the production of Glass Play in 1930?")) == ["Dan"]


def test_a_text_in_a_condition_is_no_unknown_name():
    roles = {"Ann": '"Countess Amarel"', "Bob": '"Old Gardener"'}
    found = answered(things("actor", "Glass", "plays_in", "role", roles), "Who plays in Glass as Countess Amarel?")
    assert names(found) == ["Ann"] and not any("nothing is called" in note for note in found.notes)


def test_during_an_event():
    event = [*named("m.e", "Long Strike", "time.event"), triple("m.e", "time.event.start_date", '"1993"')]
    event.append(triple("m.e", "time.event.end_date", '"1995-03-01"'))
    found = answered([*office(TERMS), *event], "Who was Chancellor of Arland during the Long Strike?")
    assert names(found) == ["Ann Alpha"] and [topic.name for topic in found.topics] == ["Chancellor of Arland"]


def test_a_date_of_something_else_is_weak():
    """The graph has dates of birth, but not that of Ann."""
    lines = things("person", "Arland", "country", "date_of_birth", {"Bob": day("1950-01-01"), "Ann": None})
    lines += [f"<{E}Ann> <{E}term> {day('1990-01-01')} .", f'<{E}term> <{RDFS}label> "start date" .']
    found = answered(lines, "When was Ann born?")
    assert names(found) == ["1990-01-01"] and found.weak
    assert not answered(lines, "When was Bob born?").weak
