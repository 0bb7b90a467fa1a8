"""Exclusions in questions."""

from __future__ import annotations

import pytest

from kgqa.model import Entity
from kgqa.search.conditions.applying import is_negated, without_excluded
from kgqa.search.masking import topic_spans


@pytest.mark.parametrize(
    ("question", "text", "excluded"),
    [
        ("Which countries other than Germany speak German?", "Which countries speak German?", ["Germany"]),
        ("Which countries besides Austria and Germany use it?", "Which countries use it?", ["Austria", "Germany"]),
        ("Which films by Ann are not in the genre Drama?", "Which films by Ann?", ["Drama"]),
        ("Which films by Ann are in the genre Drama?", "Which films by Ann are in the genre Drama?", []),
    ],
)
def test_excluded_entities(question, text, excluded):
    names = {Entity(f"urn:{name}"): [name] for name in ("Germany", "Austria", "Ann", "Drama")}
    found, entities = without_excluded(question, topic_spans(question, names))
    assert found.replace(" ?", "?") == text
    assert [entity.iri for entity in entities] == [f"urn:{name}" for name in excluded]


@pytest.mark.parametrize("text", ["Which films did Ann not direct?", "who didn't vote"])
def test_other_negations_are_noticed(text):
    assert is_negated(text)
