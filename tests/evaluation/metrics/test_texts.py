"""Metrics on texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.metrics.text_metrics import (
    rouge_l,
    sub_em,
    sub_em_raw,
    substring_em,
    tog_match,
    tog_suspect,
    token_f1,
    token_overlap,
    tokens,
)

GOLD = ["Barack Obama", "Michelle Obama"]
TOG = [
    # prediction, passes, suspect
    ("Barack Obama", True, False),
    ("barackobama ", True, False),
    ("It was Barack Obama, I think", True, False),
    ("Obama", True, False),
    ("", True, True),
    ("   ", True, True),
    ("e", True, True),
    ("am", True, True),
    ("oba", True, True),  # a piece of a word
    ("rack obam", True, True),
    ("Bush", False, False),
    ("Baráck Obama", False, False),  # accents are not normalised
]


@pytest.mark.parametrize(("prediction", "passes", "suspect"), TOG)
def test_tog_match_and_tog_suspect(prediction, passes, suspect):
    assert (tog_match(prediction, GOLD), tog_suspect(prediction, GOLD)) == (passes, suspect)


def test_short_answer_equal_to_gold_is_not_suspect():
    assert tog_match("E", ["e"]) and not tog_suspect("E", ["e"])
    assert not tog_suspect("It is C", ["C"])
    assert tog_match("北京", ["北京市"]) and not tog_suspect("北京", ["北京市"])
    assert tog_suspect("北", ["北京市"])
    assert tog_suspect("a", ["A Beautiful Mind"])  # a whole word, but without meaning
    assert tog_suspect("of", ["Bank of England"])


def test_article_alone_is_suspect():
    for gold in (["The Band"], ["Bank of the West"], ["Theodore"]):
        assert tog_match("the", gold) and tog_suspect("The", gold)
    assert not tog_suspect("The", ["The"]) and not tog_suspect("the Band", ["The Band"])
    assert not tog_suspect("band", ["The Band"]) and not tog_suspect("The Band", ["Band"])


@pytest.mark.parametrize(
    ("prediction", "gold", "suspect"),
    [
        ("Jesus Christ", ["US"], True),
        ("It is the US.", ["US"], False),
        ("Christ", ["Jesus Christ"], False),
        ("Germany", ["German"], True),
        ("Germany", ["Germany West", "German"], False),
        ("New York", ["newyork"], False),  # equal except for the space
        ("首都是北京。", ["北京"], False),
    ],
)
def test_gold_answer_within_a_word_is_suspect(prediction, gold, suspect):
    assert tog_match(prediction, gold) and tog_suspect(prediction, gold) == suspect


def test_empty_texts_never_match():
    assert not tog_match("", []) and not tog_suspect("", [])
    assert not substring_em("", GOLD) and not substring_em("anything", ["", " "])
    assert not sub_em("", GOLD) and not sub_em("anything", ["", "?"])
    assert token_f1("", GOLD) == token_f1("x", [""]) == token_f1("x", []) == 0
    assert rouge_l("", GOLD) == rouge_l("x", [""]) == rouge_l("x", []) == (0, 0)


def test_substring_em_and_sub_em():
    assert substring_em("She lives in Germany.", ["german"]) and not sub_em("She lives in Germany.", ["german"])
    assert substring_em("e", ["e"]) and not substring_em("e", ["Obama e"])  # one way only
    assert sub_em("It was Barack  OBAMA.", GOLD)
    assert sub_em("首都是北京。", ["北京"]) and not sub_em("首都是南京。", ["北京"])


def test_containment_of_characters():
    """GraphSearch, equation 6: nothing is normalised, and nothing must be a whole word."""
    assert sub_em_raw("She lives in Germany.", ["German"]) and not sub_em_raw("She lives in Germany.", ["german"])
    assert not sub_em_raw("", GOLD) and not sub_em_raw("anything", ["", " "])


def test_token_overlap():
    found = token_overlap("the president Barack Obama", ["Barack Obama", "x"])
    assert (found.precision, found.recall, found.em) == (pytest.approx(2 / 3), 1, 0)
    assert token_overlap("The Barack obama.", GOLD).em == 1
    assert token_overlap("Obama Barack", GOLD).em == 0 and token_overlap("Obama Barack", GOLD).f1 == 1  # other order
    assert token_overlap("b b", ["b b b c"]).recall == 0.5
    # precision and recall belong to the gold text with the best F1
    assert token_overlap("b", ["b c d e", "b c"]).recall == 0.5


def test_token_f1():
    assert token_f1("the president Barack Obama", ["Barack Obama"]) == pytest.approx(2 * 2 / (3 + 2))
    assert token_f1("a b b", ["b b b"]) == pytest.approx(2 * 2 / (2 + 3))  # `a` is an article
    assert token_f1("The", ["the"]) == 1  # articles stay if there is nothing else
    assert token_f1("Obama", GOLD) == pytest.approx(2 / 3)
    assert token_f1("北京市", ["北京"]) == pytest.approx(2 * 2 / (3 + 2))


def test_rouge_l():
    # Lin 2004, section 3.1: "police killed the gunman" with "police kill the gunman" and "the gunman kill police"
    assert rouge_l("police kill the gunman", ["police killed the gunman"]) == (0.75, 0.75)
    assert rouge_l("the gunman kill police", ["police killed the gunman"]) == (0.5, 0.5)
    assert rouge_l("x a y b z", ["a b"]) == (pytest.approx(2 * 2 / 7), 1.0)


def test_chinese_texts():
    text = "北京是中华人民共和国的首都"
    assert rouge_l(text, [text]) == (1.0, 1.0)
    assert rouge_l("北京是首都", ["首都是北京"])[1] == pytest.approx(2 / 5)
    assert tokens("日本 the 2020 東京オリンピック")[:6] == ["日", "本", "the", "2020", "東", "京"]


def slow_lcs(first, second) -> int:
    row = [0] * (len(second) + 1)
    for a in first:
        before = 0
        for index, b in enumerate(second, 1):
            before, row[index] = row[index], before + 1 if a == b else max(row[index], row[index - 1])
    return row[-1]


words = st.lists(st.sampled_from("abcd"), max_size=70)


@given(words, words)
def test_rouge_l_equals_reference(first, second):
    f1, recall = rouge_l(" ".join(first), [" ".join(second)])
    common = slow_lcs(first, second)
    assert recall == (common / len(second) if second else 0)
    assert f1 == (2 * common / (len(first) + len(second)) if common else 0)


@given(st.text(max_size=30), st.lists(st.text(max_size=15), max_size=4))
def test_bounds_of_text_metrics(prediction, gold):
    for value in (token_f1(prediction, gold), *rouge_l(prediction, gold)):
        assert 0 <= value <= 1
    if tog_suspect(prediction, gold):
        assert tog_match(prediction, gold)
    if sub_em(prediction, gold):
        assert token_f1(prediction, gold) > 0
    assert tog_match("", gold) == bool(gold)


def test_long_texts():
    names = [f"name {number}" for number in range(3000)]
    assert rouge_l(", ".join(names), names)[1] == 1.0
    assert token_f1(", ".join(names), [", ".join(names)]) == 1.0
