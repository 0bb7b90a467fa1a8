"""Records of predictions: round trip and validation."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.runs.records import Record, read_record

ANN = GoldAnswer("m.1", "Ann", "", ("A.",))
WHOLE = Record(
    id="q", dataset="d", text="Who?", answer={"status": "answered"}, answers=(ANN,), parses=((ANN,), ()), topics=("m.2",),
    hops=2, kind="path", level="easy", scores={"hit@1": 1, "f1": 0.5}, loss="right", leaks=1, seconds=0.5, at="2026",
)  # fmt: skip


def test_round_trip():
    for record in (WHOLE, Record("q", "d", "Who?", {}, ())):
        assert read_record(json.loads(json.dumps(asdict(record)))) == record


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": 3}, "id: Expected `str`, got `int`"),
        ({"dataset": None}, "dataset: Expected `str`, got `null`"),
        ({"hops": "2"}, "hops: Expected `int"),
        ({"hops": True}, "hops"),
        ({"leaks": "x"}, "leaks"),
        ({"seconds": "x"}, "seconds"),
        ({"scores": {"hit@1": "x"}}, "scores[...]: Expected `float`"),
        ({"scores": [1]}, "scores"),
        ({"topics": [[1]]}, "topics[0]: Expected `str`"),
        ({"answer": []}, "answer"),
        ({"answers": {}}, "answers"),
        ({"answers": [3]}, "answers[0]: Expected `object`"),
        ({"answers": [{"id": 3, "name": 4}]}, "answers[0].id: Expected `str`"),
        ({"answers": [{"id": "m.1", "name": "A", "datatype": 3}]}, "datatype"),
        ({"answers": [{"id": "m.1", "name": "A", "aliases": [1]}]}, "aliases"),
        ({"answers": [{"id": "m.1"}]}, "answers[0]: Object missing required field `name`"),
        ({"parses": [3]}, "parses"),
        ({"parses": [[3]]}, "parses[0][0]: Expected `object`"),
        ({"text": 10**60}, "text: Expected `str`"),
    ],
)
def test_field_of_a_wrong_type_is_named(fields, message):
    with pytest.raises(ValueError, match="this is not a record of a run") as raised:
        read_record({**json.loads(json.dumps(asdict(WHOLE))), **fields})
    assert message in str(raised.value)


@pytest.mark.parametrize("data", [None, [], {"id": "q"}])
def test_invalid_records(data):
    with pytest.raises(ValueError, match="this is not a record of a run"):
        read_record(data)
