"""Results of chunks as JSON, requests for chunks, and estimates."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.documents.document import Document, Figure
from kgqa.corpus.extraction.estimates import estimate
from kgqa.corpus.extraction.opening import open_extractor
from kgqa.corpus.extraction.requests import extraction_requests, with_placeholder
from kgqa.corpus.extraction.results import ChunkResult, failed, result_from, result_text
from kgqa.corpus.items import Addition, ChunkItem, EntityItem, HyperedgeItem, Party, SameItem, StatementItem
from kgqa.errors import SettingsError
from kgqa.llm.prompts import Prompts
from kgqa.model.terms import Literal
from kgqa.settings.values import resolve
from tests.corpus.extraction.samples import GOOD, PNG, Extraction, figure_request, request_for

TEXT = st.text(max_size=12)
PARTY = st.builds(Party, TEXT, TEXT)
LITERAL = st.builds(Literal, TEXT) | st.builds(lambda value: Literal(value, language="en"), TEXT)
ITEM = (
    st.builds(EntityItem, PARTY, TEXT)
    | st.builds(StatementItem, PARTY, TEXT, PARTY | LITERAL)
    | st.builds(
        HyperedgeItem, TEXT, st.lists(st.tuples(TEXT, PARTY), max_size=3).map(tuple), st.none() | st.floats(0, 1)
    )
    | st.builds(SameItem, TEXT, TEXT)
)
ADDITION = st.builds(
    Addition, ITEM, TEXT, TEXT, st.integers(0, 9), st.integers(0, 9), st.none() | st.floats(0, 1), TEXT, TEXT, TEXT
)
RESULT = st.builds(
    ChunkResult,
    TEXT,
    st.lists(ADDITION, max_size=4).map(tuple),
    st.sampled_from(["done", "failed"]),
    TEXT,
    st.lists(TEXT).map(tuple),
)


@given(RESULT)
def test_a_result_survives_json(result):
    assert result_from(result_text(result)) == result


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: [],
        lambda data: {},
        lambda data: data | {"format": 9},
        lambda data: data | {"status": "perhaps"},
        lambda data: data | {"additions": [3]},
        lambda data: data | {"additions": [{**data["additions"][0], "begin": "0"}]},
        lambda data: data | {"additions": [{**data["additions"][0], "kind": "x"}]},
        lambda data: data | {"additions": [{**data["additions"][0], "more": 1}]},
    ],
)
def test_damaged_results_are_value_errors(damage):
    text = result_text(ChunkResult("c", (Addition(EntityItem(Party("a"))),)))
    with pytest.raises(ValueError):
        result_from(json.dumps(damage(json.loads(text))))
    with pytest.raises(ValueError):
        result_from(text[:-5])
    assert result_from(result_text(failed("c", "why"))).reason == "why"


def test_each_figure_goes_to_one_chunk():
    figures = tuple(Figure(PNG, "image/png", begin) for begin in (0, 5, 12, 30))
    document = Document("a", "a", "text/plain", "d", "0123456789 123456789", figures=figures)
    spans = [(0, 8), (4, 10), (13, 20)]
    requests = extraction_requests(
        document, [ChunkItem(document.iri, *span, document.text[slice(*span)]) for span in spans]
    )
    assert [[each.begin for each in request.images] for request in requests] == [[0, 5], [12], [30]]
    assert extraction_requests(document, []) == []


def test_a_document_of_images_only_gets_a_text():
    figures = (Figure(PNG, "image/png"),)
    assert with_placeholder(Document("a.png", "a.png", "image/png", "d", "", figures=figures)).text == "[image]"
    document = Document("a", "a", "text/plain", "d", "text", figures=figures)
    assert with_placeholder(document) is document
    empty = Document("a", "a", "text/plain", "d", "")
    assert with_placeholder(empty) is empty


def test_an_estimate_is_close_to_what_is_spent():
    requests = [request_for(source=str(i)) for i in range(8)]
    with Extraction(lambda messages: json.dumps(GOOD)) as extraction:
        extraction(*requests)
        spent = extraction.extractor.spent
    guess = estimate(requests, mode="triples", prompts=Prompts(), limit=20, price=(1.0, 2.0))
    assert guess.calls == 8 == spent.calls
    assert guess.prompt_tokens == pytest.approx(spent.prompt_tokens, rel=0.1)
    assert spent.completion_tokens / 2 < guess.completion_tokens < 2 * spent.completion_tokens
    assert guess.cost == pytest.approx((guess.prompt_tokens + 2 * guess.completion_tokens) / 1e6)
    figure = estimate([figure_request()], mode="triples", prompts=Prompts(), limit=20)
    assert figure.calls == 1 and figure.prompt_tokens > 1_000
    counted = estimate(
        requests, mode="openie", prompts=Prompts(), limit=20, count_tokens=lambda texts: [100] * len(texts)
    )
    assert counted.calls == 16 and counted.cost is None


def test_the_settings_choose_the_extractor():
    def opened(models=None, **given):
        return open_extractor(resolve(given, environment={}), models, Prompts())

    assert opened(extract="none") is None
    assert opened().name == opened(extract="rules").name == "rules" and not opened().needs_model
    with pytest.raises(SettingsError, match="needs a language model"):
        opened(extract="triples")
    with Extraction([]) as extraction:
        assert opened(extraction.models, extract="rules").name == "rules"
        assert opened(extraction.models).name == "triples by m"
        assert opened(extraction.models, extract="hyperedges").needs_model
