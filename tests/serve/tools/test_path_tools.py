"""Steps and ends of relation paths, as agents and the page ask for them."""

from __future__ import annotations

import pytest

from kgqa.errors import QuestionError
from kgqa.serve.tools.graph_tools import search
from kgqa.serve.tools.path_tools import ends, next_steps
from kgqa.serve.tools.query_tools import run_query

BONG = "m.demo_bong_joon_ho"


def step_called(found, words: str) -> dict:
    return next(step for step in found["steps"] if words in step["words"])


def test_from_a_name_along_listed_steps_to_the_answer(demo):
    """Search, next_steps, ends: each takes what the one before returned, forwards, backwards and through a mediator."""
    (topic,) = search(demo, "Parasite", limit=1)
    director = step_called(next_steps(demo, topic["id"]), "directed by")["step"]
    (bong,) = ends(demo, topic["iri"], [director])["ends"]
    assert (bong["id"], bong["name"]) == (BONG, "Bong Joon-ho")
    back = ends(demo, BONG, [f"<-{director}"])
    assert "Parasite" in [each["name"] for each in back["ends"]]
    starring = step_called(next_steps(demo, topic["id"]), "starring")
    assert starring["mediator"] == "all"
    actor = step_called(next_steps(demo, topic["id"], [starring["step"]]), "actor")
    actors = ends(demo, topic["id"], [starring["step"], actor["step"]])
    assert actors["words"].startswith("Parasite → film starring · ")
    assert [each["name"] for each in actors["ends"]] == ["Song Kang-ho"] and not actors["more"]


def test_the_query_returns_the_ends_and_a_limit_is_said(demo):
    step = "<-people.person.nationality"
    (country,) = search(demo, "United States of America", limit=1)
    every = ends(demo, country["id"], [step], limit=1000)
    one = ends(demo, country["id"], [step], limit=1)
    assert (len(one["ends"]), one["more"], every["more"]) == (1, True, False)
    rows = run_query(demo, one["sparql"], seconds=10, rows=1000)["rows"]
    assert {value["iri"] for (value,) in rows} == {end["iri"] for end in every["ends"]}


@pytest.mark.parametrize(
    ("topic", "steps", "said"),
    [
        ("m.nobody", ["film.film.genre"], "no entity m.nobody"),
        ("not an id", ["film.film.genre"], "no entity not an id"),
        (BONG, ["no.such.relation"], "no such relation"),
        (BONG, ["<-"], "no such relation"),
        (BONG, ["x> } SELECT"], "no such relation"),
        (BONG, ["film.director.film"] * 9, "more than 8 steps"),
        (BONG, [], "no steps"),
        ("m.demo_parasite", ["film.film.starring"], "mediators"),
    ],
)
def test_what_is_no_path_is_refused_with_a_hint(demo, topic, steps, said):
    with pytest.raises(QuestionError, match=said) as error:
        ends(demo, topic, steps)
    assert error.value.hint
