"""The official scorers and their agreement with the metrics of the project."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.scores import reading_keys, score_record
from kgqa.evaluation.published.official_scorers import cwq_precision_at_1, grailqa_scores, webqsp_scores


def keys(text: str) -> frozenset[str]:
    return frozenset(text)


WEBQSP = [
    # answers, parses; precision, recall, F1 of the best parse
    ("ab", ["ab"], (1, 1, 1)),
    ("abc", ["a", "ab"], (2 / 3, 1, 4 / 5)),  # the second parse is better
    ("a", ["abcd", "zy"], (1, 1 / 4, 2 / 5)),
    ("", ["a"], (1, 0, 0)),  # precision of no answers is 1
    ("", ["a", ""], (1, 1, 1)),  # a parse without an answer
    ("a", [""], (0, 1, 0)),
    ("x", ["ab", "cd"], (0, 0, 0)),
]


@pytest.mark.parametrize(("answers", "parses", "wanted"), WEBQSP)
def test_webqsp_single_question(answers, parses, wanted):
    found = webqsp_scores([(keys(answers), list(map(keys, parses)))])
    assert (found.precision, found.recall, found.f1) == pytest.approx(wanted)
    assert found.accuracy == float(wanted[2] == 1)


def test_webqsp_averages():
    found = webqsp_scores(
        [(keys(answers), list(map(keys, parses))) for answers, parses, _ in WEBQSP] + [(keys("a"), [])]
    )
    assert found.n == len(WEBQSP)  # the question without parses is left out
    columns = list(zip(*(wanted for _, _, wanted in WEBQSP)))
    precision, recall, f1 = (sum(column) / len(WEBQSP) for column in columns)
    assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1))
    assert found.f1_of_averages == pytest.approx(2 * precision * recall / (precision + recall))
    assert found.accuracy == pytest.approx(2 / 7)
    assert math.isnan(webqsp_scores([]).f1)


def test_cwq_precision_at_1():
    gold = [GoldAnswer("m.1", "Barack Obama", aliases=("Obama", "Barack H. Obama")), GoldAnswer("m.2", "Ann")]
    scored = ["barack obama", "Obama", "ANN", "Barack", "", "Baráck Obama"]
    assert [cwq_precision_at_1([(answer, gold)]) for answer in scored] == [1, 1, 1, 0, 0, 1]
    assert cwq_precision_at_1([(answer, gold) for answer in scored]) == pytest.approx(4 / 6)
    assert cwq_precision_at_1([("m.3", [GoldAnswer("m.3", "")])]) == 0  # compares names only
    only_aliases = [GoldAnswer("m.6", "", aliases=("Old Harbour", "Harbour"))]
    assert [cwq_precision_at_1([(answer, only_aliases)]) for answer in ("old harbour", "Harbour", "m.6")] == [1, 1, 0]
    assert cwq_precision_at_1([("1945", [GoldAnswer("", "1945")])]) == 1
    assert math.isnan(cwq_precision_at_1([]))


def test_grailqa_scores_by_level():
    scored = [
        (keys("ab"), keys("ab"), "i.i.d."),
        (keys("a"), keys("ab"), "i.i.d."),
        (keys(""), keys("a"), "zero-shot"),
        (keys(""), keys(""), "compositional"),  # no answers and no gold
        (keys("b"), keys(""), "compositional"),
        (keys("b"), keys("b"), ""),
    ]
    found = grailqa_scores(scored)
    assert (found["i.i.d."].n, found["i.i.d."].em, found["i.i.d."].f1) == (2, 0.5, pytest.approx(5 / 6))
    assert (found["zero-shot"].em, found["zero-shot"].f1) == (0, 0)
    assert (found["compositional"].em, found["compositional"].f1) == (0.5, 0.5)
    assert (found["overall"].n, found["overall"].em) == (6, 0.5)
    assert found["overall"].f1 == pytest.approx((1 + 2 / 3 + 0 + 1 + 0 + 1) / 6)
    assert set(found) == {"overall", "i.i.d.", "zero-shot", "compositional"}


letters_strategy = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


def as_gold(letters: list[str]) -> list[GoldAnswer]:
    return [GoldAnswer(f"m.{item}", item.upper()) for item in letters]


def as_answer(letters: list[str]) -> dict:
    found = [{"id": f"m.{item}", "name": item, "iri": f"http://e/m.{item}"} for item in letters]
    return {"status": "answered", "grounding": "graph", "answers": found}


@given(
    st.lists(st.tuples(letters_strategy, st.lists(letters_strategy, min_size=1, max_size=3)), min_size=1, max_size=6)
)
def test_metrics_agree_with_official_scorers(questions):
    """F1, EM, precision and recall of the best parse are equal if something was answered."""
    ours = [score_record(as_answer(answers), list(map(as_gold, parses))) for answers, parses in questions]
    scored = []
    for answers, parses in questions:
        compared = [reading_keys(as_answer(answers), as_gold(parse)) for parse in parses]
        # ids that are not gold ids have the same key with every parse
        answer = frozenset(key for found, _ in compared for key in found)
        answer = frozenset(("id", ident.removeprefix("http://e/")) for _, ident in answer)
        scored.append((answer, [gold for _, gold in compared]))
    theirs = webqsp_scores(scored)
    count = len(ours)
    assert theirs.f1 == pytest.approx(sum(item["f1"] for item in ours) / count)
    assert theirs.accuracy == pytest.approx(sum(item["em"] for item in ours) / count)
    if all(len(parses) == 1 for _, parses in questions):
        assert theirs.precision == pytest.approx(sum(item["precision"] for item in ours) / count)
        assert theirs.recall == pytest.approx(sum(item["recall"] for item in ours) / count)
    firsts = grailqa_scores((answers, parses[0], "x") for answers, parses in scored)
    singles = [score_record(as_answer(answers), [as_gold(parses[0])]) for answers, parses in questions]
    assert firsts["x"].em == pytest.approx(sum(item["em"] for item in singles) / count)
    assert firsts["x"].f1 == pytest.approx(sum(item["f1"] for item in singles) / count)


def test_deliberate_differences_from_official_scorers():
    """Official precision without answers is 1, ours is 0; F1 differs only if a parse has no answers."""
    nothing = {"status": "no_answer", "answers": []}
    ours, theirs = score_record(nothing, [as_gold(["a"])]), webqsp_scores([(keys(""), [keys("a")])])
    assert (ours["precision"], theirs.precision) == (0, 1) and ours["f1"] == theirs.f1 == 0
    ours, theirs = score_record(nothing, [as_gold(["a"]), []]), webqsp_scores([(keys(""), [keys("a"), keys("")])])
    assert (ours["f1"], ours["em"]) == (0, 0) and theirs.f1 == theirs.accuracy == 1
