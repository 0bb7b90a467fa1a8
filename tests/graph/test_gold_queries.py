"""Gold queries as they were published, on real data, give the gold answers. Skipped without the data."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from kgqa.errors import StoreError
from kgqa.graph.bulk import load_files
from kgqa.graph.embedded import EmbeddedStore
from kgqa.model import Entity

DATA = Path(os.environ.get("KGQA_DATA") or Path(__file__).parents[3] / "shared" / "data")
FAST = DATA / "freebase_fast"
NS = "http://rdf.freebase.com/ns/"

pytestmark = pytest.mark.skipif(
    not (FAST / "kg.nt.gz").is_file(), reason=f"no data: {FAST} is not there; name the folder with data by KGQA_DATA"
)


def questions() -> list[dict]:
    if not (FAST / "questions.jsonl.gz").is_file():
        return []
    with gzip.open(FAST / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="session")
def fast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("freebase_fast") / "g"
    report = load_files(folder, [FAST / "kg.nt.gz"])
    assert report.malformed == 0 and report.triples == 214_593
    with EmbeddedStore(folder) as store:
        yield store


def answers_of(rows) -> set[str]:
    """Ids of entities, texts of literals."""
    values = (row[0] for row in rows if row[0] is not None)
    return {value.iri.removeprefix(NS) if isinstance(value, Entity) else value.value for value in values}


def wrong_answers(store: EmbeddedStore, which: list[dict], form: str) -> dict[str, str]:
    """Questions whose query does not give exactly the gold answers, and why."""
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


def test_in_standard_sparql(fast):
    found = questions()
    assert len(found) == 243
    wrong = wrong_answers(fast, found, "sparql_portable")
    assert not wrong, report(wrong, len(found))


def of_virtuoso(sparql: str) -> bool:
    """Written for Virtuoso in ways the standard does not know: OR for ||, a function xsd:datetime."""
    return bool(re.search(r"\)\s+(OR|AND)\s|\sOR\s|xsd:datetime\b", sparql))


def test_as_published(fast):
    """Prefixed names with many dots and all."""
    found = [question for question in questions() if not of_virtuoso(question["sparql"])]
    assert len(found) == 185
    wrong = wrong_answers(fast, found, "sparql")
    assert not wrong, report(wrong, len(found))


def test_as_published_in_the_dialect_of_virtuoso(fast):
    found = [question for question in questions() if of_virtuoso(question["sparql"])]
    assert len(found) == 58
    wrong = wrong_answers(fast, found, "sparql")
    assert not wrong, report(wrong, len(found))


def test_the_store_has_every_triple_of_the_file(fast):
    assert int(fast.select("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").rows[0][0].value) == fast.meta.triples
