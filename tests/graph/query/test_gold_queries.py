"""Published gold queries return the gold answers on real data. Skipped without the data.

What is checked of a store is in `check_freebase` and `check_wikidata`, which take any store that has the data loaded.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Collection
from pathlib import Path

import pytest

from kgqa.errors import StoreError
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.store import Store
from kgqa.model import Entity

DATA = Path(os.environ.get("KGQA_DATA") or Path(__file__).parents[4] / "shared" / "data")
FAST = DATA / "freebase_fast"
FAST_FILES = [FAST / "kg.nt.gz"]
WIKIDATA = DATA / "wikidata"
WIKIDATA_FILES = [WIKIDATA / "kg.nt.gz", WIKIDATA / "names.nt.gz"]
NS = "http://rdf.freebase.com/ns/"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FAST / "kg.nt.gz").is_file(), reason=f"no data: {FAST} does not exist; set KGQA_DATA"),
]


def questions(file: Path = FAST / "questions.jsonl.gz") -> list[dict]:
    if not file.is_file():
        return []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def wikidata_questions() -> list[dict]:
    """Questions whose gold query returns exactly the gold answers on this slice, according to the data."""
    found = [question for file in sorted(WIKIDATA.glob("questions_*.jsonl.gz")) for question in questions(file)]
    return [question for question in found if "exact" in (question.get("support"), question.get("path_check"))]


@pytest.fixture(scope="session")
def fast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("freebase_fast") / "g"
    report = load_graph(folder, [FAST / "kg.nt.gz"])
    assert report.malformed == 0 and report.triples == 214_593
    with EmbeddedStore(folder) as store:
        yield store


def answers_of(rows) -> set[str]:
    """Return ids of entities and texts of literals."""
    values = (row[0] for row in rows if row[0] is not None)
    return {value.iri.removeprefix(NS) if isinstance(value, Entity) else value.value for value in values}


def wrong_answers(store: Store, which: list[dict], form: str) -> dict[str, str]:
    """Return the questions whose query does not return exactly the gold answers, with the reason."""
    wrong = {}
    for question in which:
        gold = {answer.get("id") or answer["name"] for answer in question["answers"]}
        try:
            got = answers_of(store.select(question[form], timeout=60))
        except StoreError as error:
            wrong[question["id"]] = f"{type(error).__name__}: {error}"[:300]
            continue
        if got != gold:
            wrong[question["id"]] = f"missing {sorted(gold - got)[:5]}, besides {sorted(got - gold)[:5]}"
    return wrong


def report(wrong: dict[str, str], count: int) -> str:
    return f"{len(wrong)} of {count}: {json.dumps(dict(list(wrong.items())[:10]), indent=1)}"


def check_freebase(store: Store, found: list[dict], form: str) -> None:
    """Check that the gold queries return exactly the gold answers.

    Args:
        store: one that has `FAST_FILES` loaded.
        form: `sparql` as published, or `sparql_portable`.
    """
    wrong = wrong_answers(store, found, form)
    assert not wrong, report(wrong, len(found))


NOT_ON_VIRTUOSO = {
    "qald10_test_test_164": "YEAR of a text fails the whole query, where the standard leaves it unbound",
    "qald10_test_test_212": "the same",
    "qald10_test_test_203": "SUM of nothing is unbound, not 0",
    "qald10_test_test_375": "a text compared with a date is false, where the standard has an error",
}
"""Wikidata questions whose query Virtuoso 7 evaluates differently; the data has typed and plain dates."""


def check_wikidata(store: Store, *, exceptions: Collection[str] = ()) -> None:
    """Check that all gold queries on Wikidata, in each of their forms, return exactly the gold answers.

    Args:
        store: one that has `WIKIDATA_FILES` loaded, and nothing else of Wikidata: the queries name no graph.
        exceptions: ids of questions that must fail, so that a list of them stays true.
    """
    found = wikidata_questions()
    assert len(found) == 208
    for form in ("sparql", "sparql_portable"):
        there = [question for question in found if question.get(form)]
        assert there or form != "sparql"
        wrong = wrong_answers(store, there, form)
        assert set(wrong) == {question["id"] for question in there if question["id"] in exceptions}, report(
            wrong, len(there)
        )


def test_wikidata(tmp_path):
    load_graph(tmp_path / "g", WIKIDATA_FILES)
    with EmbeddedStore(tmp_path / "g") as store:
        check_wikidata(store)


@pytest.mark.parametrize("form", ["sparql", "sparql_portable"])
def test_freebase(fast, form):
    """Published queries have prefixed names with many dots, and extensions of Virtuoso."""
    found = questions()
    assert len(found) == 243
    check_freebase(fast, found, form)
