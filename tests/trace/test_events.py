"""The events of a trace: their JSON, their documentation, and events of other packages."""

from __future__ import annotations

import json
from collections import abc
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgqa
import kgqa.trace as events
from kgqa.model import Answer, Question
from kgqa.storage.answer_json import answer_object
from kgqa.trace import KINDS, Event, Kept, UnknownEvent, read_event
from scripts import event_docs
from tests.conftest import ROOT

numbers = st.floats(allow_nan=False, allow_infinity=False)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is UnionType:
        return st.one_of(map(values_of, get_args(hint)))
    if get_origin(hint) is abc.Mapping:
        return st.dictionaries(st.text(), numbers if get_args(hint)[1] is float else st.text())
    if get_origin(hint) is tuple and hasattr(get_args(hint)[0], "__struct_fields__"):
        return st.lists(built(get_args(hint)[0]), max_size=3).map(tuple)
    return numbers if hint is float else st.from_type(hint)


def built(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{name: values_of(hint) for name, hint in get_type_hints(kind).items()})


def as_json(event: Event) -> dict[str, Any]:
    (found,) = answer_object(Answer(Question("?"), "failed", trace=(event,)), trace=True)["trace"]
    return json.loads(json.dumps(found))


@given(st.one_of(map(built, KINDS)))
def test_events_survive_json(event):
    assert read_event(as_json(event)) == event


def test_every_class_is_listed():
    classes = {each for each in vars(events).values() if isinstance(each, type) and issubclass(each, Event)}
    assert set(KINDS) == classes - {Event, UnknownEvent, events.ActingEvent, events.TextEvent} and len(KINDS) == len(
        set(KINDS)
    )


def test_json_of_an_event():
    assert as_json(events.GaveUp(error="Late.", at=0.5)) == {"kind": "gave_up", "at": 0.5, "error": "Late."}
    match = events.MatchPlayed(candidates=("a", "b"), picked=("a",), tie=True)
    assert as_json(match) == {"kind": "match", "at": 0.0, "candidates": ["a", "b"], "picked": ["a"], "tie": True}
    assert as_json(events.NoReply(stage="decide", failure="rejected", text="no"))["detail"] == "no"


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "pool", "at": 0.1, "hop": 1, "paths": ["a", 7]},
        {"kind": "pool", "at": 0.1, "paths": []},
        {"kind": "ranked", "at": 0.1, "paths": [{"path": "a", "score": 10**400, "joins": 0}]},
        {"kind": "chunks_read", "at": 0.1, "chunks": {"a": [1]}},
        {"kind": "\ud800", "at": 0.1, "paths": []},
    ],
)
def test_foreign_and_damaged_events(data):
    event = read_event(data)
    assert isinstance(event, UnknownEvent)
    assert as_json(event) == data


def test_unknown_keys_are_ignored():
    assert read_event({"kind": "kept", "at": 0, "hop": 1, "paths": ["a"], "new": 1}) == Kept(hop=1, paths=("a",))
    assert read_event({"kind": "ranked", "paths": []}) == events.PathsRanked(paths=())


def test_documentation_is_current():
    """To renew both files: python -m scripts.event_docs."""
    assert (ROOT / "docs" / "events.md").read_text(encoding="utf-8") == event_docs.page()
    assert (ROOT / "docs" / "events.schema.json").read_text(encoding="utf-8") == event_docs.schema_text()


def test_recorded_events_fit_the_documented_schema():
    """The trace of a real question has, for each event, the keys of its kind in docs/events.schema.json."""
    definitions = json.loads((ROOT / "docs" / "events.schema.json").read_text())["$defs"]
    documented = {
        each["properties"]["kind"]["enum"][0]: each for each in definitions.values() if "kind" in each["properties"]
    }
    found = [as_json(event) for event in kgqa.ask("Which city is the capital of Japan?").trace]
    assert len(found) > 5 and all(isinstance(msgspec.convert(event, events.AnyEvent), KINDS) for event in found)
    for event in found:
        known = documented[event["kind"]]
        assert set(known["required"]) <= set(event) <= set(known["properties"])
