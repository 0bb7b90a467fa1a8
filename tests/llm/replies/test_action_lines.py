"""The reader of lines of calls."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.replies.action_lines import Call, call_text, read_action_line


def read(text, **options):
    return read_action_line(text, **options).value


NAMED = Call("Neighbour", (Call("Retrieve", ("Tom, Dick [sic] & Co",)), "film"))


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("Retrieve[Alice (artist) [live], 2nd]", (Call("Retrieve", ("Alice (artist) [live], 2nd",)),)),
        ("Action 3: neighbor[RETRIEVE [Tom, Dick [sic] & Co], 'film'], Degree[m.1, film]",
         (NAMED, Call("Degree", ("m.1", "film")))),
        ("Neighbour[Washington, D.C., mayor]", (Call("Neighbour", ("Washington, D.C.", "mayor")),)),
        ('Neighbour["Washington, D.C."]', (Call("Neighbour", ("Washington, D.C.",)),)),
        ('Finish["A", "B"]', (Call("Finish", ('"A", "B"',)),)),
        ("Finish[Neighbour[a, b]]", (Call("Finish", ("Neighbour[a, b]",)),)),
        ("Intersect[Count[a], Count[b], Count[c]]",
         (Call("Intersect", tuple(Call("Count", (each,)) for each in "abc")),)),
        ("Feature[a, name", (Call("Feature", ("a", "name")),)),
        ("Retrieve[a\nRetrieve[b]", (Call("Retrieve", ("a",)),)),
        ("Retrieve[a] Seen 1: m.7. Finish[m.7]", (Call("Retrieve", ("a",)),)),
        ("Retrieve[a, Observation: it is m.7]", (Call("Retrieve", ("a, Observation: it is m.7",)),)),
        ("<think>Finish[x]?</think>\n**Action:**\n`Count[a]`", (Call("Count", ("a",)),)),
        ("Retrieve[]", (Call("Retrieve"),)),
    ],
)  # fmt: skip
def test_a_line_of_calls(line, calls):
    assert read(line) == calls


@pytest.mark.parametrize(
    "text", ["", "I do not know", "Search[x]", "eval(x)", "Seen: Retrieve[a]", "<think>Retrieve[a]", None, 5]
)
def test_a_reply_without_a_call_has_no_value(text):
    found = read_action_line(text)
    assert found.value is None and "Retrieve[text]" in found.problem


def test_calls_are_limited_in_depth_and_number():
    deep = "Neighbour[Neighbour[Neighbour[Retrieve[x], a], b], c]"
    assert read(deep) == (Call("Neighbour", (read("Neighbour[Neighbour[Retrieve[x], a], b]")[0], "c")),)
    assert "3 deep" in read_action_line(deep, depth=3).problem
    many = read_action_line(", ".join(["Count[Retrieve[x]]"] * 100))
    assert many.repaired and len(many.value) == 32


def test_published_reading_is_two_deep_and_drops_calls_beside_nested_ones():
    line = "Degree[m.1, film], Feature[Retrieve[x], name], Retrieve[a [b] c]"
    assert read(line, published=True) == (Call("Feature", (Call("Retrieve", ("x",)), "name")),)
    assert read("Degree[m.1, film], Retrieve[a [b] c]", published=True) == (
        Call("Degree", ("m.1", "film")),
        Call("Retrieve", ("a [b",)),
    )
    assert read("Retrieve[x", published=True) is None


_TEXTS = st.text(st.characters(blacklist_categories=("C", "Z"), blacklist_characters="[]\"'`"), min_size=1)
_TEXTS = _TEXTS.filter(lambda text: text[0] not in "\u201c\u2018")


def _calls(inner):
    two = st.tuples(st.sampled_from(["Neighbour", "Feature", "Degree", "Most"]), inner, _TEXTS)
    sets = st.tuples(st.sampled_from(["Intersect", "Without"]), inner, inner)
    return two.map(lambda each: Call(each[0], each[1:])) | sets.map(lambda each: Call(each[0], each[1:]))


@given(st.recursive(_TEXTS | _TEXTS.map(lambda text: Call("Retrieve", (text,))), _calls, max_leaves=4))
def test_the_text_of_a_call_is_read_as_the_same_call(call):
    if isinstance(call, Call):
        assert read(call_text(call), depth=9) == (call,)


@pytest.mark.parametrize(
    "unit", ["[", "]", "Feature[", "Feature[a,", "Feature[Feature[]", "Intersect[a]", ",", '"', "action ", "1", "Seen "]
)
@pytest.mark.parametrize("end", ["", "]", "Retrieve[x]"])
def test_long_repetitions_are_read_in_time(unit, end):
    text = unit * (20_000 // len(unit)) + end
    for published in (False, True):
        started = time.thread_time()
        read_action_line(text, published=published)
        assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Finish[\n1. Alpha, Inc\n2. Beta [Live]\n]", ["Finish[Alpha, Inc; Beta [Live]]"]),
        ("Finish[Alpha\nBeta]\nSeen 3: x", ["Finish[Alpha; Beta]"]),
        ("Finish[Alpha\nThat is all.", ["Finish[Alpha]"]),
        ("Finish[a] b]", ["Finish[a] b]"]),
        ("Finish[Mara Holt] follows [see Seen 2]", ["Finish[Mara Holt]"]),
        ("When all is seen I write Finish[answer]. Neighbour[a, b]", ["Neighbour[a, b]"]),
        ("Finish[the answer]", None),
        ("Intersect[Neighbour[a, b], Smith, John]", ['Intersect[Neighbour[a, b], "Smith, John"]']),
    ],
)
def test_lines_of_calls(text, calls):
    value = read_action_line(text).value
    assert (list(map(call_text, value)) if value else None) == calls
