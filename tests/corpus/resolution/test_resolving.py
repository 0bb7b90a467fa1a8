"""Resolution as a whole: order, repetition, undone merges, new names, embeddings, time."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.items import Party, SameItem
from kgqa.corpus.resolution.normal_forms import comparison_form, distinguishing_words, is_roman, wording_form
from kgqa.corpus.resolution.resolving import resolve
from kgqa.corpus.resolution.types import types_agree
from kgqa.corpus.resolution.variants import is_misspelled
from tests.corpus.resolution.names import are_same, entity, groups

NAMES = [
    "Halden Bridge", "Halden bridge!", "The Halden Bridge", "U.S. Congress", "US Congress", "United States Congress",
    "Central Grain Institute", "CGI", "Ann Li", "Dr. Ann Li", "Ann B. Li", "Ann Berg Li", "A. B. Li", "Gary",
    "Gary, Indiana", "Gary, Indiana, United States", "Indiana", "United States", "US", "us", "1985", "1986", "music video",
    "music videos", "Treaty of Halden", "Halden Treaty", "Barlow", "Barlow's", "Solaris",
]  # fmt: skip
TYPES = ["", "person", "writer", "place", "city", "film", "novel", "work"]
PARTIES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(TYPES), st.sets(st.sampled_from("abc"), min_size=1)),
    max_size=14,
    unique_by=lambda drawn: Party(drawn[0], drawn[1]).iri,
)


class Cosines:
    """An encoder whose vectors have the cosines of a table; all others are orthogonal."""

    def __init__(self, **cosines):
        self._near = {name.replace("_", " "): value for name, value in cosines.items()}
        self.encoded: list[str] = []

    def encode(self, texts):
        self.encoded += texts
        rows = np.zeros((len(texts), len(texts) + 1), dtype=np.float32)
        for at, text in enumerate(texts):
            cosine = self._near.get(text)
            rows[at, 0 if cosine is not None else at + 1] = 1.0 if cosine is None else cosine
            if cosine is not None and cosine < 1:
                rows[at, at + 1] = (1 - cosine**2) ** 0.5
        return rows


@given(PARTIES, st.randoms())
def test_order_does_not_matter_and_a_second_run_finds_nothing(drawn, shuffler):
    entities = [entity(*each) for each in drawn]
    found = resolve(entities)
    shuffled = list(entities)
    shuffler.shuffle(shuffled)
    assert resolve(shuffled) == found
    pairs = [(merge.item.left, merge.item.right) for merge in found.merges]
    assert not resolve(entities, known=pairs).merges
    assert len(pairs) == sum(len(group) - 1 for group in groups(entities, found)), "no pair is superfluous"
    for group in groups(entities, found):
        types = [name.partition("/")[2] for name in group if "/" in name]
        assert all(types_agree(one, other) for one in types for other in types)


@given(PARTIES, st.integers(0, 14))
def test_new_names_are_compared_with_all(drawn, count):
    entities = [entity(*each) for each in drawn]
    new = {each.iri for each in entities[count:]}
    old = [each for each in entities if each.iri not in new]
    known = [(merge.item.left, merge.item.right) for merge in resolve(old).merges]
    found = resolve(entities, known=known, only=new)
    assert all({merge.item.left, merge.item.right} & new for merge in found.merges)
    assert not resolve(entities, known=known, only=()).merges


@given(st.text(max_size=30))
def test_forms_of_any_text(text):
    for form in (comparison_form, wording_form):
        once = form(text)
        assert isinstance(once, str)
        if comparison_form(text):
            assert once
    assert comparison_form(text.upper().lower()) is not None
    assert isinstance(distinguishing_words(text), frozenset)


def test_every_merge_says_why():
    (merge,) = resolve([entity("U.S. Congress"), entity("US Congress", "", ["d2"])]).merges
    assert merge.reason and merge.confidence == 1.0 and merge.model and not merge.document


def test_what_was_taken_apart_never_comes_together_again():
    entities = [entity("Halden Bridge"), entity("Halden bridge!"), entity("The Halden Bridge")]
    one, other, third = (each.iri for each in entities)
    assert len(resolve(entities).merges) == 2
    found = resolve(entities, apart=[(one, other)])
    assert len(found.merges) == 1 and third in (found.merges[0].item.left, found.merges[0].item.right)
    assert len(found.undecided) == 1 and "taken apart" in found.undecided[0].reason
    known = [(min(one, third), max(one, third))]
    assert not resolve(entities, known=known, apart=[(one, other)]).merges


def test_conflicts_of_types_through_a_third_name_are_undecided():
    facts = [("Old Line", "railway"), ("Line", "")]
    entities = [entity("Ostmark Railway", "company"), entity("Old Line", "person")]
    text = "The Ostmark Railway, also known as the Old Line, closed."
    assert facts and not resolve(entities, text_of={"d1": text}.__getitem__).merges


def test_spelling_variants_need_a_near_embedding():
    def near(cosine):
        return Cosines(Murtala_Mohammed_Airport=1.0, Murtala_Muhammed_Airport=cosine)

    names = ("Murtala Mohammed Airport", "Murtala Muhammed Airport")
    assert not are_same(*names)
    assert are_same(*names, encoder=near(0.7)) and not are_same(*names, encoder=near(0.6))
    assert are_same(*names, encoder=near(0.91), apart=True) and not are_same(*names, encoder=near(0.89), apart=True)
    assert not are_same(*names, encoder=near(0.99), types=("person", "airport"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("North Korean", "North Korea"), ("Minister of Tourism", "Ministry of Tourism"), ("Colombia", "Columbia"),
        ("British Togoland", "French Togoland"), ("Murtala Mohammed 1", "Murtala Muhammed 2"), ("Rose Bay", "Rosa Bay"),
        ("Samuel Taylor Coleridge", "Samuel Coleridge Taylor"), ("White Horse Inn", "White House Inn 2"),
    ],
)  # fmt: skip
def test_no_nearness_merges_names_whose_words_do_not_agree(left, right):
    encoder = Cosines(**{left.replace(" ", "_"): 1.0, right.replace(" ", "_"): 1.0})
    assert not are_same(left, right, encoder=encoder)
    assert not encoder.encoded, "names that cannot be merged are not embedded"


def test_words_in_another_order_need_four_of_them():
    names = ("Monster Energy Racing Cup Series", "Racing Monster Energy Cup Series")
    assert are_same(*names, encoder=Cosines(**{name.replace(" ", "_"): 1.0 for name in names}))


def test_helpers():
    assert [word for word in ("iv", "xiv", "mix", "vi", "hello", "civil", "mcm") if is_roman(word)] == [
        "iv", "xiv", "vi", "mcm",
    ]  # fmt: skip
    assert is_misspelled("jeffery", "jeffrey") and is_misspelled("color", "colour") and is_misspelled("smith", "smyth")
    assert not is_misspelled("korea", "korean") and not is_misspelled("smith", "smita") and not is_misspelled("a", "a")
    assert distinguishing_words("Henry IV Part 2") == {"iv", "part", "2"}
    assert comparison_form("...") == "..." and comparison_form("") == ""


def test_time_grows_in_proportion():
    def seconds(count):
        words = random.Random(1)
        entities = [
            entity(f"{words.choice(NAMES)} {words.randrange(10 * count)} River", "", [f"d{at // 9}"])
            for at in range(count)
        ]
        entities = list({each.iri: each for each in entities}.values())
        start = time.process_time()
        resolve(entities)
        return time.process_time() - start

    seconds(200)
    assert seconds(8000) < 8 * seconds(2000) + 1


def test_a_merge_is_a_same_item_in_the_order_of_its_iris():
    merges = resolve([entity(name) for name in NAMES]).merges
    assert all(isinstance(merge.item, SameItem) and merge.item.left < merge.item.right for merge in merges)
