"""Published gold queries return the gold answers on real data. Skipped without the data."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from kgqa.errors import StoreError
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.model import Entity

DATA = Path(os.environ.get("KGQA_DATA") or Path(__file__).parents[4] / "shared" / "data")
FAST, WIKIDATA = DATA / "freebase_fast", DATA / "wikidata"
NS = "http://rdf.freebase.com/ns/"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FAST / "kg.nt.gz").is_file(), reason=f"no data: {FAST} does not exist; set KGQA_DATA"),
]


def questions(file: Path) -> list[dict]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def answers_of(rows) -> set[str]:
    """Return ids of entities and texts of literals."""
    values = (row[0] for row in rows if row[0] is not None)
    return {value.iri.removeprefix(NS) if isinstance(value, Entity) else value.value for value in values}


def wrong_answers(folder: Path, which: list[dict]) -> dict[str, str]:
    """Return the questions one of whose queries does not return exactly the gold answers, with the reason.

    Published queries have prefixed names with many dots, and extensions of Virtuoso; others are in standard SPARQL.
    """
    wrong = {}
    with EmbeddedStore(folder) as store:
        for question in which:
            gold = {answer.get("id") or answer["name"] for answer in question["answers"]}
            for query in filter(None, (question.get("sparql"), question.get("sparql_portable"))):
                try:
                    if (got := answers_of(store.select(query, timeout=60))) != gold:
                        wrong[question["id"]] = f"missing {sorted(gold - got)[:5]}, besides {sorted(got - gold)[:5]}"
                except StoreError as error:
                    wrong[question["id"]] = f"{type(error).__name__}: {error}"[:300]
    return wrong


def test_freebase(tmp_path):
    report = load_graph(tmp_path / "g", [FAST / "kg.nt.gz"])
    assert report.malformed == 0 and report.triples == 214_593
    found = questions(FAST / "questions.jsonl.gz")
    assert len(found) == 243 and wrong_answers(tmp_path / "g", found) == {}


def test_wikidata(tmp_path):
    load_graph(tmp_path / "g", [WIKIDATA / "kg.nt.gz", WIKIDATA / "names.nt.gz"])
    found = [each for file in sorted(WIKIDATA.glob("questions_*.jsonl.gz")) for each in questions(file)]
    exact = [each for each in found if "exact" in (each.get("support"), each.get("path_check"))]
    assert len(exact) == 208 and wrong_answers(tmp_path / "g", exact) == {}
