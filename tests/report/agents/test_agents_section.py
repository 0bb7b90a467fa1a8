"""The page of an answer of a method that acts in turns: trials, turns, observations, verdicts, edits."""

from __future__ import annotations

import json
import re
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.agents.differences import MAX_WORDS, changed_words
from kgqa.report.agents.edits import edits_of
from kgqa.report.agents.observations import observation_of
from kgqa.report.agents.section import agents_section
from kgqa.report.agents.turns import MAX_TURNS, trials_of
from kgqa.report.site.question_page import question_page
from kgqa.trace import Called, EditProposed, Retrieved, Seen
from tests.report.agents.traces import GRAPH_TURNS, NEW, OLD, TOOL_TURNS, acting_record, result
from tests.report.conftest import hostile_record
from tests.report.test_pages import ATTACKS, CONTEXT, LINK, ParsedPage
from tests.report.text.traces import ROUNDS, text_record


@pytest.fixture(scope="module")
def pages() -> list[str]:
    """The pages of turns in a graph and of turns with tools."""
    return ["".join(question_page(acting_record(trace), CONTEXT)) for trace in (GRAPH_TURNS, TOOL_TURNS)]


def test_turns_by_trial(pages):
    text = ParsedPage(pages[0]).text
    assert "2 trials, 5 turns, 5 calls, 1 of them failed" in text
    parts = [
        "Trial 1", "The architect of the Skerry Light.", "Neighbour[Retrieve[Skerry Light], architect]",
        "p1, Ines Marr, person", "40 values, not all shown", "“Oban” is in no observation",
        "Answer rejected without asking a language model.", "Reflection, read by the next trial",
        "Trial 2", "Use the relation that was named", "Follows from what was found.", "Answer accepted.",
    ]  # fmt: skip
    places = [text.index(part, text.index("Turns")) for part in parts]
    assert places == sorted(places)


def test_sections_of_other_methods_are_left_out(pages):
    for page in pages:
        text = ParsedPage(page).text
        assert "Nothing was masked" not in text and "There is no path" not in text
        assert "Other events" not in text and "Evidence graph" not in text
    assert 'id="walk"' in pages[0] and 'id="edits"' not in pages[0]
    assert 'id="walk"' not in pages[1] and 'id="edits"' in pages[1]
    assert 'id="turns"' not in "".join(question_page(text_record("tog3", ROUNDS), CONTEXT))


def test_passages_are_shown_but_no_rounds_if_the_method_retrieves():
    record = acting_record((Retrieved(query="q", pieces=("urn:kgqa:chunk:1",)), *TOOL_TURNS))
    page = "".join(question_page(record, CONTEXT))
    assert 'id="turns"' in page and 'id="rounds"' not in page


def test_edits_are_a_diff_with_gate_state_and_sources(pages):
    page, text = pages[1], ParsedPage(pages[1]).text
    assert "3 edits proposed: 1 accepted, 1 rejected, 1 not decided" in text
    assert "<del>Ines Marr was born in <b>Oban</b> in 1832.</del>" in page
    assert "<ins>Ines Marr was born in <b>Kirkwick</b> in 1832.</ins>" in page
    assert "<del>The Skerry Light was built by Ines Marr.</del>" in page
    assert "Rejected by the gate “sources”: A deletion needs a source that contradicts the text." in text
    assert "https://example.org/marr" in text and 'href="https' not in page
    assert text.count("She was born in Kirkwick on 3 May 1832.") == 1 + 2  # seen, and as a source of two edits
    assert "waits for review" in text and "urn:kgqa:edit:7" in text and "No source was given." in text
    for number in (1, 2, 3):
        assert f'href="#edit-{number}"' in page and f'id="edit-{number}"' in page
    assert 'id="turn-0-3"' in page and 'href="#turn-0-3"' in page


def test_results_of_a_search_are_numbered_with_their_trust(pages):
    text = ParsedPage(pages[1]).text
    assert "She was born in Kirkwick on 3 May 1832." in text and "trust: web" in text
    assert '<li value="3">' in pages[1]
    assert "```" not in text and "2 replies are left." in text


@pytest.mark.parametrize("trace", [GRAPH_TURNS, TOOL_TURNS], ids=["graph", "tools"])
def test_attack_changes_no_element(trace):
    record = acting_record(trace)
    for attack in ATTACKS:
        harmless = ParsedPage("".join(question_page(hostile_record(record, lambda a=attack: "x" * len(a)), CONTEXT)))
        attacked = ParsedPage("".join(question_page(hostile_record(record, lambda a=attack: a), CONTEXT)))
        assert attacked.elements == harmless.elements and attacked.comments == 0


@given(st.lists(st.text(max_size=30) | st.sampled_from(ATTACKS), min_size=1, max_size=6))
def test_texts_add_no_attribute(texts):
    source = cycle(texts)
    page = "".join(
        question_page(hostile_record(acting_record((*GRAPH_TURNS, *TOOL_TURNS)), lambda: next(source)), CONTEXT)
    )
    parsed = ParsedPage(page)
    links = {value for name, value in parsed.values if name == "href"}
    assert all(LINK.fullmatch(link) or re.fullmatch(r"#(turn-\d+|edit)-\d+", link) for link in links)
    assert not any(name.startswith("on") or name in ("src", "style", "srcdoc") for name, _ in parsed.values)
    assert len(parsed.scripts) == 1 and not set("\x00\x1b\u202e\u2066\u200b") & set(page)


def test_long_observations_fold():
    assert not observation_of(Seen(text="a\nb", count=2)).folded
    assert observation_of(Seen(text="line\n" * 9)).folded and observation_of(Seen(text="x" * 601)).folded
    found = observation_of(Seen(text="\n".join([result(4, "t", "web"), "{broken", '{"number": "x", "text": 1}'])))
    assert [(each.number, each.text, each.trust) for each in found.results] == [(4, "t", "web")]
    assert found.text == '{broken\n{"number": "x", "text": 1}'


@given(st.text() | st.lists(st.text()).map("\n".join) | st.dictionaries(st.text(), st.integers()).map(json.dumps))
def test_any_observation_is_shown_whole(text):
    found = observation_of(Seen(text=text))
    assert not found.results and "".join(found.text.split()) == "".join(text.split())


def test_words_that_changed():
    old, new = changed_words(OLD, NEW)
    assert [(each.text, each.changed) for each in old] == [
        ("Ines Marr was born in ", False), ("Oban", True), (" in 1832.", False),
    ]  # fmt: skip
    assert [each.text for each in new if each.changed] == ["Kirkwick"]
    assert changed_words("", "a b")[0] == () and not changed_words("", "a b")[1][0].changed
    long = "w " * (MAX_WORDS + 1)
    assert [len(each) for each in changed_words(long, f"{long}x")] == [1, 1]


@given(st.text(), st.text())
def test_no_word_of_a_changed_text_is_lost(old, new):
    before, after = changed_words(old, new)
    assert ("".join(each.text for each in before), "".join(each.text for each in after)) == (old, new)


def test_bounds():
    many = [Called(name="f", step=n) for n in range(1, MAX_TURNS + 4)]
    assert trials_of(many).left_out == 3 and len(trials_of(many).turns) == MAX_TURNS
    edits = edits_of([EditProposed(proposal=n, edit="insert", content="c") for n in range(100)])
    assert edits.left_out == 40 and edits.summary.startswith("100 edits proposed")
    assert agents_section((), {}) is None
    assert "and 3 turns more" in "".join(question_page(acting_record(tuple(many)), CONTEXT))


def test_an_earlier_trial_of_a_long_question_is_folded():
    many = [Called(name="f", trial=trial, step=step) for trial in range(2) for step in range(1, 8)]
    section = agents_section(many, {})
    assert [each["opened"] for each in section["trials"]] == [False, True]
