"""Gold programs of the generated GRBench, played on the converted graphs in every kind of store."""

from __future__ import annotations

import json
import os

import pytest

from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.testing.grbench.mini import DOMAINS, write_mini_grbench
from tests.graph.conftest import graphs, make  # noqa: F401 - fixtures
from tests.methods.counselor.conftest import played

SOAK = bool(os.environ.get("KGQA_SOAK"))


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """For each domain, the questions and the N-Triples of its graph."""
    folder = tmp_path_factory.mktemp("gold")
    found = {}
    for place in write_mini_grbench(folder, seed=1, per_template=10 if SOAK else 1):
        out = folder / f"{place.name}.nt"
        convert(place, out)
        rows = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
        found[place.name] = rows, out
    return found


@pytest.mark.soak
@pytest.mark.parametrize("domain", DOMAINS if SOAK else ["healthcare", "legal"])
def test_every_program_gives_the_gold_answers_by_an_exact_query(make, converted, domain):  # noqa: F811
    rows, file = converted[domain]
    graph = make(file.read_text("utf-8").splitlines(), "grbench")
    for row in rows:
        done = played(graph, *row["program"], question=row["question"])
        gold = row["answer"] if isinstance(row["answer"], list) else [str(row["answer"])]
        assert not done.problems and done.answer is not None, row
        assert [each.name for each in done.answer.answers] == gold, row
        assert (done.answer.grounding, done.answer.query_class) == ("graph", "exact"), row
