"""A verdict is read whole or not at all: a verdict without one of its conditions has a different meaning."""

from __future__ import annotations

import json

import pytest

from kgqa.llm.replies.path_verdicts import PathVerdict, RepliedCondition, RepliedOperation, path_verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"path": 2, "verdict": "complete"}', PathVerdict("complete", 1)),
        ('{"path": null, "verdict": "wrong"}', PathVerdict("wrong")),
        ('Reasons. ```json\n{"verdict": "Missing", "path": "[1]", "conditions": []}\n```', PathVerdict("missing", 0)),
        (
            '{"path": 1, "verdict": "complete", "conditions": [{"field": "from", "is": "<=", "value": 1998},'
            ' {"field": "to", "is": "absent"}], "operation": null}',
            PathVerdict("complete", 0, (RepliedCondition("from", "<=", "1998"), RepliedCondition("to", "absent"))),
        ),
        (
            '{"path": 1, "verdict": "complete", "operation": {"do": "most", "field": "height", "rank": 2}}',
            PathVerdict("complete", 0, (), (RepliedOperation("most", "height", 2),)),
        ),
        (
            '{"path": 1, "verdict": "complete", "operation": {"do": "difference"}}',
            PathVerdict("complete", 0, (), (RepliedOperation("difference", compared=True),)),
        ),
        (
            '{"path": 1, "verdict": "complete", "conditions": {"field": "character", "value": "Cara"}}',
            PathVerdict("complete", 0, (RepliedCondition("character", "=", "Cara"),)),
        ),
        (
            '{"path": [1], "verdict": "complete", "conditions": [{"field": "spouse", "is": "absent", "value": ""},'
            ' {"field": "child", "is": "present", "value": true}]}',
            PathVerdict("complete", 0, (RepliedCondition("spouse", "absent"), RepliedCondition("child", "present"))),
        ),
        ('{"path": 1, "verdict": "complete", "conditions": {}, "operation": {}}', PathVerdict("complete", 0)),
        ('{"path": 1, "verdict": "complete", "operation": false}', PathVerdict("complete", 0)),
        ('{"path": "none", "verdict": "wrong"}', PathVerdict("wrong")),
        ('{"path": [], "verdict": "wrong"}', PathVerdict("wrong")),
    ],
)
def test_verdict_is_read(reply: str, verdict: PathVerdict) -> None:
    assert path_verdict(3).read(reply).value == verdict


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"path": 4}, "from 1 to 3"),
        ({"path": None}, "from 1 to 3"),
        ({"path": "none"}, "from 1 to 3"),
        ({"verdict": "perhaps"}, "the form"),
        ({"conditions": [{"field": "from", "is": "near", "value": 1998}]}, "the form"),
        ({"conditions": [{"field": "from", "is": "<", "value": ""}]}, "the form"),
        ({"conditions": [{"field": "from", "is": "<"}]}, "condition"),
        ({"conditions": [{"field": "from", "is": "=", "value": ""}]}, "the form"),
        ({"conditions": ["from = 1998"]}, "the form"),
        ({"conditions": [{"field": f"f{n}", "is": "present"} for n in range(7)]}, "condition"),
        ({"operation": {"do": "median", "field": "height"}}, "the form"),
        ({"operation": [{"do": "count"}, {"do": "exists"}]}, "operation"),
    ],
)
def test_part_of_unknown_form_makes_the_reply_unusable(changes: dict[str, object], problem: str) -> None:
    reading = path_verdict(3).read(json.dumps({"path": 1, "verdict": "complete"} | changes))
    assert reading.value is None
    assert problem in reading.problem


def test_draft_does_not_count_if_the_last_verdict_is_unusable() -> None:
    draft, last = '{"path": 1, "verdict": "complete"}', '{"path": 2, "verdict": "complete", "operation": "median"}'
    assert path_verdict(3).read(f"{draft} On reflection: {last}").value is None


def test_only_path_needs_no_number() -> None:
    assert path_verdict(1).read('{"verdict": "complete"}').value == PathVerdict("complete", 0)
    assert path_verdict(2).read('{"verdict": "complete"}').value is None
