"""All metrics of one answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.measures import reciprocal_rank
from kgqa.evaluation.metrics.scores import METRIC_NAMES, SET_METRICS, score_record
from kgqa.model import Answer, Entity, Literal, Named, Question
from kgqa.storage.answer_json import answer_object

ANN, BOB = GoldAnswer("m.1", "Ann Li", aliases=("A. Li",)), GoldAnswer("m.2", "Bob")


def entities(*pairs: str, **more) -> dict:
    """Return an answer found in the graph: `entities("m.1 Ann Li")`."""
    found = []
    for pair in pairs:
        ident, _, name = pair.partition(" ")
        found.append({"id": ident, "name": name, "iri": f"http://e/{ident}"})
    return {"status": "answered", "grounding": "graph", "answers": found} | more


def model_answer(*texts: str, **more) -> dict:
    """Return an answer from the model: names without ids."""
    found = [{"id": None, "name": text, "value": text, "datatype": ""} for text in texts]
    return {"status": "answered", "grounding": "model", "answers": found} | more


def test_every_metric_has_a_value():
    for answer in (entities("m.1 Ann"), model_answer("x"), model_answer(), {"status": "failed", "answers": []}):
        assert tuple(score_record(answer, [[ANN]])) == METRIC_NAMES


def test_metric_values():
    found = score_record(entities("m.1 Ann Li", "m.3 Cy"), [[ANN, BOB]])
    wanted = {"hit@1": 0.5, "hit@any": 1, "precision": 0.5, "recall": 0.5, "f1": 0.5, "em": 0, "mrr": 0.75}
    assert {name: found[name] for name in SET_METRICS} == wanted
    # "Ann Li, Cy" and "Ann Li, Bob": two of three words, in order
    assert found["token_f1"] == pytest.approx(4 / 5)  # with "Ann Li" alone: 2 * 2 / (3 + 2)
    assert found["rouge_l"] == pytest.approx(4 / 5)
    assert (found["tog_em"], found["tog_em_suspect"], found["substring_em"], found["sub_em"]) == (1, 0, 1, 1)


def test_containment_is_measured_on_the_response():
    said = model_answer("Li", response="It was Ann Li, of the harbour works.", grounding="text")
    found = score_record(said, [[GoldAnswer("", "Ann Li")]])
    assert (found["substring_em"], found["sub_em"], found["sub_em_raw"]) == (1, 1, 1)
    # everything else is measured on the short answers
    assert (found["em"], found["token_em"], found["token_precision"], found["token_recall"]) == (0, 0, 1, 0.5)
    assert (found["tog_em_sound"], found["rouge_l_recall"]) == (0, 0.5)
    without = score_record(model_answer("Ann Li", response=" "), [[ANN]])
    assert without["substring_em"] == without["token_em"] == 1


def test_response_without_an_answer_scores_nothing():
    said = model_answer(status="no_answer", response="The passages mention Ann Li, but not who leads the works.")
    found = score_record(said, [[ANN]])
    assert not any(found[name] for name in ("substring_em", "sub_em", "sub_em_raw", "token_f1"))


def test_ids_before_names():
    assert score_record(entities("m.9 Ann Li"), [[ANN]])["em"] == 0  # another Ann Li
    assert score_record(entities("m.1 "), [[ANN]])["em"] == 1
    assert score_record(entities("m.9 ann li"), [[GoldAnswer("", "Ann Li")]])["em"] == 1
    assert score_record(model_answer("ann  li"), [[ANN]])["em"] == 1
    assert score_record(model_answer("ann li", grounding="graph"), [[ANN]])["em"] == 0
    # gold given as an IRI
    assert score_record(entities("m.1 x"), [[GoldAnswer("http://e/m.1", "Ann")]])["em"] == 1


def test_metrics_need_equality_not_containment():
    assert score_record(model_answer("Ann"), [[ANN]])["hit@any"] == 0
    assert score_record(model_answer("Ann Li and others"), [[ANN]])["hit@any"] == 0
    assert score_record(model_answer("Ann Li", "Bob"), [[ANN, BOB]])["em"] == 1
    assert score_record(model_answer("1996.0"), [[GoldAnswer("", "1996")]])["em"] == 1


@pytest.mark.parametrize("text", ["", " ", "e", "?", "\u200b"])
def test_trivial_texts_are_suspect(text):
    for gold in ([ANN], [GoldAnswer("m.7", "")], [GoldAnswer("", "Venice")]):
        found = score_record(model_answer(text), [gold])
        assert not any(found[name] for name in SET_METRICS)
        assert not found["tog_em"] or found["tog_em_suspect"] == 1
        assert found["tog_em_sound"] == 0


def test_missing_answer_is_suspect():
    found = score_record(model_answer(status="no_answer"), [[ANN]])
    assert (found["tog_em"], found["tog_em_suspect"], found["tog_em_sound"]) == (1, 1, 0)
    assert not any(score_record({"status": "failed", "answers": []}, [[ANN]]).values())


def test_no_scores_without_gold():
    assert score_record(model_answer("x"), []) == score_record(model_answer("x"), [[]]) == {}
    assert score_record(model_answer(""), [[GoldAnswer("", " ")]]) == {}


def test_aliases_count_only_with_the_flag():
    assert score_record(model_answer("a li"), [[ANN]])["em"] == 0
    assert score_record(model_answer("a li"), [[ANN]], aliases=True)["em"] == 1
    # both names are one answer
    assert score_record(model_answer("a li", "Ann Li"), [[ANN]], aliases=True)["em"] == 1
    # the name of another gold answer is not used as an alias
    two = [GoldAnswer("", "Ann", aliases=("Bob",)), GoldAnswer("", "Bob")]
    assert score_record(model_answer("Bob"), [two], aliases=True)["recall"] == 0.5
    assert score_record(model_answer("x A. Li y"), [[ANN]])["substring_em"] == 0
    assert score_record(model_answer("x A. Li y"), [[ANN]], aliases=True)["substring_em"] == 1
    assert score_record(model_answer("x A. Li y"), [[ANN]])["tog_em"] == 1  # as in the original metric
    # aliases do not count if gold has an id
    assert score_record(entities("m.9 A. Li"), [[ANN]], aliases=True)["em"] == 0
    assert score_record(entities("m.9 A. Li"), [[GoldAnswer("", "x", aliases=("A. Li",))]], aliases=True)["em"] == 1


def test_gold_answer_with_aliases_only():
    """In ComplexWebQuestions some answers have an id and aliases, but no name."""
    nameless = GoldAnswer("m.6", "", aliases=("Old Harbour", "Harbour"))
    assert score_record(model_answer("Old Harbour"), [[nameless]])["em"] == 0
    for text in ("Old Harbour", "harbour"):
        assert score_record(model_answer(text), [[nameless]], aliases=True)["em"] == 1
    assert score_record(model_answer("Old Harbour", "Harbour"), [[nameless]], aliases=True)["em"] == 1
    assert score_record(entities("m.6 "), [[nameless]], aliases=True)["em"] == 1
    for text in ("", " ", "x"):
        for gold in (nameless, GoldAnswer("m.6", " ", aliases=(" ",)), GoldAnswer("m.6", "", aliases=("",))):
            assert score_record(model_answer(text), [[gold]], aliases=True)["em"] == 0


def test_best_reading_counts():
    found = score_record(entities("m.1 Ann"), [[ANN, BOB], [BOB], [ANN]])
    assert (found["f1"], found["em"], found["recall"]) == (1, 1, 1)
    found = score_record(entities("m.1 Ann"), [[BOB], [ANN, BOB, GoldAnswer("m.3", "")], [ANN, BOB]])
    assert found["recall"] == 0.5


def test_ordered_answers():
    texts = model_answer("x", "Bob", "Ann Li")
    assert score_record(texts, [[ANN, BOB]])["hit@1"] == pytest.approx(2 / 3)
    assert score_record(texts, [[ANN, BOB]], ordered=True)["hit@1"] == 0
    assert score_record(texts, [[ANN, BOB]], ordered=True)["mrr"] == 0.5
    assert score_record(model_answer("Bob", "x"), [[ANN, BOB]], ordered=True)["hit@1"] == 1


@pytest.mark.parametrize(("answers", "right"), [(1, 1), (4, 1), (5, 2), (6, 6), (6, 3), (3, 0)])
def test_reciprocal_rank_averages_all_orders(answers, right):
    ranks = []
    for order in permutations([1] * right + [0] * (answers - right)):
        ranks.append(1 / (order.index(1) + 1) if right else 0.0)
    assert reciprocal_rank(answers, right) == pytest.approx(sum(ranks) / len(ranks))


def test_literals_compare_by_value():
    year = {"id": None, "name": "1996", "value": "1996", "datatype": "http://www.w3.org/2001/XMLSchema#gYear"}
    named = {"id": None, "name": "Wien", "value": "Wien", "datatype": "", "language": "de"}
    assert score_record({"answers": [year]}, [[GoldAnswer("", "1996")]])["em"] == 1
    assert score_record({"answers": [named]}, [[GoldAnswer("", "wien")]])["em"] == 1


names = st.sampled_from(["", "Ann Li", "Bob", "b", "1996", "北京", "A. Li"])
golds = st.lists(st.builds(GoldAnswer, st.sampled_from(["", "m.1", "m.2"]), names), min_size=1, max_size=4)


@given(st.lists(names, max_size=4), st.lists(golds, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_bounds_and_order_of_metrics(texts, readings, aliases, ordered):
    found = score_record(model_answer(*texts), readings, aliases=aliases, ordered=ordered)
    for value in found.values():
        assert 0 <= value <= 1
    if found:
        assert found["em"] <= found["hit@any"] and found["hit@1"] <= found["hit@any"]
        assert found["hit@1"] - 1e-9 <= found["mrr"] <= found["hit@any"] + 1e-9
        assert found["tog_em_sound"] == found["tog_em"] - found["tog_em_suspect"] >= 0


values = st.one_of(
    st.builds(lambda n: Named(Entity(f"http://e/m.{n}"), f"m.{n}", f"N{n}"), st.integers(1, 5)),
    st.builds(lambda n: Named(Literal(str(n)), "", str(n)), st.integers(1, 5)),
)
some_gold = st.one_of(
    st.builds(lambda n: GoldAnswer(f"m.{n}", f"N{n}"), st.integers(1, 5)),
    st.builds(lambda n: GoldAnswer("", str(n)), st.integers(1, 5)),
)


def test_model_answers_are_compared_by_name():
    gold = [GoldAnswer("m.1", "Bong Joon-ho"), GoldAnswer("m.2", "")]
    answers = (Named(Literal("bong joon ho"), "", "bong joon ho"),)
    by_model = Answer(Question("who?"), "answered", answers=answers, grounding="model")
    assert score_record(answer_object(by_model), [gold])["hit@1"] == 1
    assert score_record(answer_object(replace(by_model, grounding="graph")), [gold])["hit@1"] == 0


@pytest.mark.parametrize(
    ("texts", "hit", "f1", "rouge"),
    [
        (("Ada Tollo", "Bo Arlo", "Orrin, Inc"), 1.0, 1.0, 1.0),
        (("Ada Tollo, Bo Arlo, Orrin, Inc",), 1.0, 1.0, 1.0),
        (("Bo Arlo",), 1.0, 0.4, 0.5),
        (("Cid",), 0.0, 0.0, 0.0),
    ],
)
def test_a_gold_text_that_joins_answers_is_read_as_a_list_too(texts, hit, f1, rouge):
    """Rouge-L compares the whole text, as published."""
    found = score_record(model_answer(*texts), [[GoldAnswer("", "Ada Tollo, Bo Arlo, Orrin, Inc", joined=True)]])
    assert (found["hit@1"], round(found["f1"], 3), round(found["rouge_l"], 1)) == (hit, f1, rouge)
    one = score_record(model_answer("Ada Tollo", "Bo Arlo"), [[GoldAnswer("", "Ada Tollo, Bo Arlo")]])
    assert one["f1"] == 0.0, "the comma of a name separates nothing"
