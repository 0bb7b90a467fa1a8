"""Questions about a time, asked about graphs whose dates are old, unknown or out of range."""

from __future__ import annotations

import pytest

from kgqa.methods.ask import ask, open_resources
from tests.memory_graph import memory_graph

E, XSD = "http://e/", "http://www.w3.org/2001/XMLSchema#"
TYPE, LABEL = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#label"


def things(kind, place, relation, date_relation, dates):
    """Return the triples of a place and of things with a type, the place and a date (its RDF term)."""
    lines = [f'<{E}{place}> <{LABEL}> "{place}" .', f'<{E}{kind}> <{LABEL}> "{kind}" .']
    lines += [f'<{E}{name}> <{LABEL}> "{name.replace("_", " ")}" .' for name in (relation, date_relation, *dates)]
    for name, date in dates.items():
        lines += [f"<{E}{name}> <{TYPE}> <{E}{kind}> .", f"<{E}{name}> <{E}{relation}> <{E}{place}> ."]
        lines += [f"<{E}{name}> <{E}{date_relation}> {date} ."] if date else []
    return lines


def day(text):
    return f'"{text}"^^<{XSD}date>'


def names(lines, question):
    answer = ask(question, resources=open_resources(memory_graph(lines, schema="rdfs")))
    return sorted(each.name for each in answer.answers), " ".join(answer.notes)


CITIES = {"Colonia": "-0150-05-04", "Marrow": "0700-03-03", "Newton": "1950-10-10", "Oldton": "1820-01-09"}


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("before 100 BC", ["Colonia"]),
        ("in the year 700", ["Marrow"]),
        ("after 1800", ["Newton", "Oldton"]),
        ("after 2100", []),
    ],
)
def test_things_with_a_date_in_any_year(time, expected):
    lines = things("city", "Landia", "country", "founded", {name: day(date) for name, date in CITIES.items()})
    assert names(lines, f"Which cities in Landia were founded {time}?")[0] == expected


@pytest.mark.parametrize("unknown", [f"<{E}.well-known/genid/0123>", "_:unknown", day("-13798000000-01-01")])
@pytest.mark.parametrize("question", ["Who was born in Halvik in 1950?", "Who is the oldest person born in Halvik?"])
def test_unknown_dates_are_not_compared(unknown, question):
    people = {"Selma": day("1950-05-04"), "Tormund": unknown, "Momoko": None}
    assert names(things("human", "Halvik", "place_of_birth", "date_of_birth", people), question)[0] == ["Selma"]


def test_year_after_a_name_is_no_date_of_the_answer():
    lines = things("person", "Alien", "directed", "date_of_birth", {"Ridley": day("1937-11-30")})
    for time in ("(1979)", "in 1979"):
        found, notes = names(lines, f"Who directed Alien {time}?")
        assert found == ["Ridley"] and f"“{time.strip('()')}”" in notes
