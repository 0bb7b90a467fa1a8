"""Reading model replies: accepted forms, ambiguous forms, recorded replies, and that no text raises."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgqa.llm.replies.answers import read_answers, read_numbered_answers
from kgqa.llm.replies.choices import read_choice
from kgqa.llm.replies.indices import read_indices
from kgqa.llm.replies.json_values import read_json
from kgqa.llm.replies.path_verdicts import path_verdict
from kgqa.llm.replies.scores import read_scores

from ...conftest import SOAK

A_OR_B = ("A", "B")
RELEVANCE = ("RELEVANT", "NOT RELEVANT")
YES_NO = ("YES", "NO")
SIZE, K = 5, 3

READERS: dict[str, Callable[[str], Any]] = {
    "indices": lambda text: read_indices(text, size=SIZE, k=K).value,
    "compare": lambda text: read_choice(text, options=A_OR_B).value,
    "relevance": lambda text: read_choice(text, options=RELEVANCE).value,
    "yes or no": lambda text: read_choice(text, options=YES_NO).value,
    "scores": lambda text: read_scores(text, size=SIZE).value,
    "answers": lambda text: read_answers(text).value,
    "json": lambda text: read_json(text)[0],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[3, 1, 2]", (2, 0, 1)),
        ("3 > 1 > 2", (2, 0, 1)),
        ("[Path 3, Path 1]", (2, 0)),
        ("\uff13\uff0c\uff11", (2, 0)),
        ("[3] > [1] > [2]", (2, 0, 1)),
        ("2\n1", (1, 0)),
        ("Answer: [3,1]", (2, 0)),
        ("Answer: 3 (people.person.born 1990), 1 (x)", (2, 0)),
        ("Selected: [4, 2], because 3 is far.", (3, 1)),
        ("The best paths are 3 and 1.", (2, 0)),
        ('{"selected": [3, 1]}', (2, 0)),
        ('{"selected": [3, 1], "rejected": [2]}', (2, 0)),
        ('{"reasoning": "[1, 2] no", "selected": [3]}', (2,)),
        ('[{"index": 3}, {"index": 1}]', (2, 0)),
        ("Answer: [3, 1", (2, 0)),
        ("- 3\n- 1", (2, 0)),
        # nothing selected
        ("[]", ()),
        ("none", ()),
        ("None of the paths are relevant.", ()),
        # the last list counts, not the lists in the explanation
        ("I first thought [1, 2] but the final is [3, 1].", (2, 0)),
        ("I considered 12 paths.\nAnswer: [3]", (2,)),
        ("Selected: [4, 2]\nNote that [1] is weak.", (3, 1)),
        ("Selected: [2, 1]\n\nExplanation:\n1. [2] asks\n2. [1] helps", (1, 0)),
        # not a number of the prompt
        ("[2.5, 3]", (2,)),
        ("[1-3, 2]", (1,)),
        ("[99999999999999999999999, 1]", (0,)),
        ('{"selected": [3.0, true, "1"]}', (0,)),
        # no list
        ("", None),
        ("I considered 12 paths.", None),
        ("[E1] leads to 5 paths", None),
        ("[9]", None),
        ("Answer: 1-3", None),
        ("[three]", None),
        ("I do not select [2].", None),
        ("[3] is irrelevant", None),
        ("1. people.person\n2. location", None),  # its own numbering, or the prompt's
        ("[1] x\n[2] y\n[3] z\n[4] w", None),  # walks through all
        # items in prose: the prompt is sent again
        ("1. [3]\n2. [1]", None),
    ],
)
def test_read_indices(text, expected):
    reading = read_indices(text, size=SIZE, k=K)
    assert reading.value == (None if expected is None else [*expected])
    assert bool(reading.problem) == (expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[A]", "A"),
        ("A", "A"),
        ("$\\boxed{A}$", "A"),
        ("**Answer:** B", "B"),
        ("**Final Answer:**\n\n[B]", "B"),
        ("The better candidate is B.", "B"),
        ("I prefer B.", None),
        ("I choose [A] over [B].", None),
        ("Between [A] and [B], I choose [B].", None),
        ("[A] is better than [B].", None),
        ("B because it asks for it", "B"),
        ('{"choice": "A"}', "A"),
        ('```json\n{"answer": "B",}\n```', "B"),
        ('{"reason": "[A] is worse", "choice": "B"}', "B"),
        # reasons before or after the choice
        ("[A] is about the anthem, [B] is about the capital. Answer: [B]", "B"),
        ("Candidate A: leads to the capital.\nCandidate B: leads to the anthem.\n\nBetter: B", "B"),
        ("[B]\n\nReason: [B] asks for the anthem; [A] ends at the capital.", "B"),
        ("Answer: B. A ends too early.", None),
        ("Choice: [A]\nConfidence: high", "A"),
        ("[A]\nAnswer: B", "B"),
        ("A asks for the anthem, B does not. [A]", "A"),
        ("Is it [A]? [B]", "B"),
        # no decision
        ("", None),
        ("[A] or [B]", None),
        ("A\nB", None),
        ("both", None),
        ("Answer: A or B", None),
        ("[A] leads there. Answer: neither of them", None),
        ("Neither [A] nor [B].", None),
        ("Which is better: A or B? I think B is.", None),
        ("[A] leads to X. [B] leads to Y.", None),
        ("[A]: about the capital\n[B]: about the anthem", None),
        ("Candidate A leads to the anthem.", None),
        ("Answer: A. R. Rahman", None),
        ("I would not choose [A].", None),
        ("[A]?", None),
        ("A" + " " * 400 + "or B", None),
        ('{"choice": "A", "B"}', None),
        ('{"choice": "A", "choice": "B"}', None),
        ('{"reason": "[A] is worse"}', None),
    ],
)
def test_read_choice_of_two(text, expected):
    reading = read_choice(text, options=A_OR_B)
    assert reading.value == expected
    assert bool(reading.problem) == (expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RELEVANT", "RELEVANT"),
        ("[RELEVANT]", "RELEVANT"),
        ("Relevant. It adds the capital.", "RELEVANT"),
        ("NOT RELEVANT", "NOT RELEVANT"),
        ("[NOT_RELEVANT]", "NOT RELEVANT"),
        ("not\nrelevant", "NOT RELEVANT"),
        ("Conclusion: the candidate is [NOT RELEVANT]", "NOT RELEVANT"),
        ("irrelevant", None),
        ("Answer: not at all relevant", None),
        ("NOT [RELEVANT]", None),
        ("NOT **RELEVANT**", None),
        ("It is NOT very RELEVANT", None),
        ("RELEVANT or NOT RELEVANT", None),
        ("The candidate is not relevant.", None),
    ],
)
def test_read_relevance(text, expected):
    assert read_choice(text, options=RELEVANCE).value == expected


DOUBTFUL = [
    "",
    "not sure",
    "yes and no",
    "Yes/No",
    "YES\nNO",
    "Yes? No.",
    "No idea",
    "No doubt it is sufficient.",
    "No. 1 is the capital.",
    "I would say yes.",
    "Yes. However, the date is missing.",
    "Yes, if the anthem is meant.",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, None) for text in DOUBTFUL),
        ("Yes.", "YES"),
        ("[Yes]", "YES"),
        ("The path asks it. [YES]", "YES"),
        ("The answer is yes.", "YES"),
        ("Answer found: YES", "YES"),
        ("Whether the path asks it or not\n[YES]", "YES"),
        ("{Yes}. The answer is {Tokyo}.", "YES"),
        ("No, the triples do not say so.", "NO"),
        ("[NO] The triples do not contain it.", "NO"),
        ("Answer found: no", "NO"),
    ],
)
def test_read_yes_or_no(text, expected):
    assert read_choice(text, options=YES_NO).value == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1: 0.8\n2: 0.1", (0.8, 0.1)),
        ("1. relation (Score: 0.4)\n2. other (Score: 0.6): it was in 1990", (0.4, 0.6)),
        ("[1] [E1] -> a: 0.8\n[2] [E1] -> b: 0.3", (0.8, 0.3)),
        ("**1.** 0.8\n**2.** 0.3", (0.8, 0.3)),
        ("1. 1990 census: 0.4", (0.4, None)),
        ("1: 0.8, 2: 0.1", (0.8, 0.1)),
        ("1: 8/10\n2: 50%", (0.8, 0.5)),
        ("3: 0.8\n1: 0.2", (0.2, None)),
        ("0.8, 0.1", (0.8, 0.1)),
        ("Scores: [0.8, 0.1]", (0.8, 0.1)),
        ('{"index":1,"score":0.8}\n{"index":2,"score":0.3}', (0.8, 0.3)),
        ('{"scores": {"1": 0.8, "2": "0.3"}}', (0.8, 0.3)),
        ("{'scores': [0.8, 0.1", (0.8, 0.1)),
        # scales
        ('{"scores":[8,1]}', (0.8, 0.1)),
        ('{"scores":[80,5]}', (0.8, 0.05)),
        ('{"scores":[800,0.5]}', (None, 0.5)),
        ('{"scores":[-1,0.5]}', (None, 0.5)),
        ('{"scores":[-1,5]}', None),
        # no numbers
        ("1: nan\n2: 0.3", (None, 0.3)),
        ('{"scores":[NaN,0.5]}', (None, 0.5)),
        ("1. born in 1990", None),
        ("", None),
        # scores that cannot be assigned
        ("[0.8]", None),
        ('{"scores":[0.8,0.1,0.2]}', None),
        ("0: 0.8\n1: 0.2", None),
    ],
)
def test_read_scores(text, expected):
    reading = read_scores(text, size=2)
    assert reading.value == (None if expected is None else pytest.approx(expected))
    assert bool(reading.problem) == (expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('```json\n{"answers": ["Tokyo",]}\n```', ("Tokyo",)),
        ('Lisbon is the capital.\n{"answers": ["Atlantic Ocean"]}', ("Atlantic Ocean",)),
        ('{"answers": [2, 2.5, true]}', ("2", "2.5", "true")),
        ('{"answers": [{"name": "Tokyo"}]}', ("Tokyo",)),
        ('{"answers": "Tokyo; Kyoto"}', ("Tokyo", "Kyoto")),
        ('{"A": {"Sufficient":"Yes","Answer":"Tokyo"},"R":"x"}', ("Tokyo",)),
        ('["Tokyo"]', ("Tokyo",)),
        ('{"answers": ["To\u202ekyo\\u0007\\ud800", "", "Tokyo"]}', ("Tokyo",)),
        ('**Answer:** "Tokyo"', ("Tokyo",)),
        ("Answers:\n- Tokyo\n- Kyoto", ("Tokyo", "Kyoto")),
        ("So the answer is {Washington, D.C.}.", ("Washington, D.C.",)),
        ('{"answers": ["Paris", "N/A"]}', ("Paris",)),
        ('{"answers": []}', ()),
        ("[NaN]", ()),
        ("Answer: none of the above", ()),
        ("Tokyo", None),
        ("The answer is 42.", None),
        ("I picked [1] and [2]", None),
        ("", None),
    ],
)
def test_read_answers(text, expected):
    reading = read_answers(text)
    assert reading.value == expected
    assert bool(reading.problem) == (expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', ({"a": 1}, False)),
        ('x [1, 2] y {"a": [1]} z', ({"a": [1]}, False)),
        ('```json\n{"a": 1,}\n```', ({"a": 1}, True)),
        ("{'a': True, 'b': None}", ({"a": True, "b": None}, True)),
        ('{"a": {"b": 1}, "c": 2', ({"a": {"b": 1}, "c": 2}, True)),
        ('I write {"x": as asked. {"answers": ["x"]}', ({"answers": ["x"]}, False)),
        ('{"a": 1, "a": 2}', ({"a": [1, 2]}, False)),
        ('{"a": 1, "a": 1}', ({"a": 1}, False)),
        ('{"a"\uff1a "b\uff0c c"\uff0c "d"\uff1a [1\uff0c 2]}', ({"a": "b\uff0c c", "d": [1, 2]}, True)),
        ("{\u201ca\u201d: \u201cb\u201d}", ({"a": "b"}, True)),
        ('{"a": "\u201cb\u201d\uff1ac 1\uff0c2"}', ({"a": "\u201cb\u201d\uff1ac 1\uff0c2"}, False)),
        ("not {a} json, see [b]", (None, False)),
        ("", (None, False)),
        ("[" * 50_000, (None, False)),
        ('{"a":' * 20_000, (None, False)),
        ("[-" + "9" * 6000 + "]", (None, False)),  # more digits than Python reads
    ],
)
def test_read_json(text, expected):
    assert read_json(text) == expected


@pytest.mark.parametrize(
    "piece",
    ["[", "*", " ", '{"a"{"a"', '["a" b ', '[ "', "[3] ", "[A] ", "Answer: ", '{"a": 1} ', "1: 0.8\n", "\ud800", "\\"],
)
def test_repetitive_junk_is_read_quickly(piece):
    """Slow regular expressions would delay a run; half a second per reader is the worst measured."""
    text = piece * (60_000 // len(piece))
    start = time.process_time()
    for read in READERS.values():
        read(text)
    assert time.process_time() - start < 10


_FRAGMENTS = """[A]|[B]|A|b.|**A**|[RELEVANT]|NOT RELEVANT|not |irrelevant|[YES]|No|yes, |{Yes}|[3, 1, 2]|[1]|[]|3, 1
[9, -1, 2.5]|1-3|[3] > [1]|1. |2) |- |99999999999999999999|Answer: |Final answer is |Choice:|Selected: |I choose
 is better than |both|or |not sure|<think>|</think>|```json\n|```| |. |? |, |Score: 0.4|0.8|80%|8/10|nan|1:
{"choice": "A"}|{"selected": [3, 1]}|{"answers": ["a", "b"]}|{"sufficient": true}|{"scores": [0.8, 7]}|{|}|[|]|"|'|:
{'a': |{"1": 0.8,|"index": 1|null|NaN|\\u|\\|$\\boxed{|{{|\x00|\x01|\x1b[31m|\u202e|\u3010A\u3011|\uff11|\u0663
\u2028|\U0001f600|\u0130"""
FRAGMENTS = [*"\ud800\n", *_FRAGMENTS.replace("\n", "|").split("|")]
reply_texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=25).map("".join)


# a model's own answers: numbers without quotes are positions in the list it was shown
@pytest.mark.parametrize(
    ("reply", "of_five", "of_none"),
    [
        ("[1]", (0,), None),
        ('{"answer": 1}', (0,), None),
        ('{"answers": [{"id": 2}]}', (1,), None),
        ("{answer: 1}", (0,), None),
        ("Answer: 1", (0,), None),
        ("Answer: 2, 5", (1, 4), None),
        ("Answer: [1] and [3]", None, None),
        ("Answers:\n- 3\n- 1", (2, 0), None),
        ('{"answers": [1, 999]}', (0,), None),
        ("Answer: 1984", None, None),
        ("Answer: 1-3", None, None),
        ("Answer: [2] Paris", None, None),
        ('{"answers": [1e400]}', None, None),
        ('{"answers": [{"x": "Paris"}]}', None, None),
        ('{"answers": [1, "Paris"]}', (0, "Paris"), None),
        ('{"answers": ["1"]}', ("1",), ("1",)),
        ('Answer: "1984"', ("1984",), ("1984",)),
        ("Answer: 1984-05-12", ("1984-05-12",), ("1984-05-12",)),
        ("Answers:\n1. Paris\n2. Rome", ("Paris", "Rome"), ("Paris", "Rome")),
        ('{"answers": ["unknown"]}', (), ()),
        ("Who knows?", None, None),
    ],
)
def test_read_numbered_answers(reply, of_five, of_none):
    for size, expected in ((5, of_five), (0, of_none)):
        reading = read_numbered_answers(reply, size=size)
        assert reading.value == expected
        assert bool(reading.problem) == (expected is None)


@pytest.mark.soak
@settings(max_examples=5_000 if SOAK else 400)
@given(text=reply_texts, size=st.integers(0, 12), k=st.integers(0, 5))
@example("Answer: 0\x1b", 0, 0)
def test_any_text_is_read_without_exception(text, size, k):
    reading = read_indices(text, size=size, k=k)
    if reading.value is not None:
        assert len(reading.value) == len(set(reading.value)) <= k
        assert all(0 <= index < size for index in reading.value)
    for options in (A_OR_B, RELEVANCE, YES_NO):
        choice = read_choice(text, options=options)
        assert choice.value is None or choice.value in options
        assert bool(choice.problem) == (choice.value is None)
    scores = read_scores(text, size=size).value
    assert scores is None or (len(scores) == size and all(score is None or 0 <= score <= 1 for score in scores))
    answers = read_answers(text).value
    assert answers is None or (len(answers) <= 200 and all(answer and answer.isprintable() for answer in answers))
    own = read_numbered_answers(text, size=size).value or ()
    texts = [each for each in own if isinstance(each, str)]
    assert set(own) <= {*texts, *range(size)} and all(each and each.isprintable() for each in texts)
    quotes = "\"'`\u201c\u201d\u2018\u2019\uff02\uff07"
    assert not any(each.isdecimal() for each in texts) or any(mark in text for mark in quotes)
    verdict = path_verdict(size).read(text)
    assert bool(verdict.problem) == (verdict.value is None)
    assert verdict.value is None or 0 <= verdict.value.path < size
    value, repaired = read_json(text)
    assert value is None or isinstance(value, dict | list)
    assert isinstance(repaired, bool)


def _recorded(data_folder, name: str) -> list[dict[str, Any]]:
    file = data_folder / "recorded_llm" / name
    if not file.is_file():
        pytest.skip(f"{file.name} is not here")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _fields(row: dict[str, Any]) -> str:
    """Return the fields kept of a recorded reply as JSON."""
    return json.dumps({name: row[name] for name in ("Sufficient", "Answer", "R")})


@pytest.mark.parametrize(
    ("name", "reply", "unparsed"),
    [
        ("pog_grailqa_gpt35.jsonl.gz", lambda row: row["results"], {"answers": 1}),
        ("aog_simpleqa_qwen3max.jsonl.gz", _fields, {"answers": 0}),
        # names on lines of their own, which look like prose
        ("gnnrag_webqsp_llama2_predictions.jsonl.gz", lambda row: row["prediction"], {}),
        (
            "rog_webqsp_relation_paths_llama2.jsonl.gz",
            lambda row: "\n".join(row["raw_output"]["paths"]),
            {},
        ),
        ("grasp_wqsp_gpt41.jsonl.gz", lambda row: row["content"] or "", {"indices": 99, "compare": 99}),
        ("grasp_wqsp_qwen25-7b.jsonl.gz", lambda row: row["content"] or "", {"indices": 99, "compare": 99}),
    ],
)
def test_recorded_replies(data_folder, record_property, name, reply, unparsed):
    """Every reader reads recorded replies, and the number of unparsed ones is as expected."""
    texts = [reply(row) for row in _recorded(data_folder, name)]
    assert texts
    found = {}
    for reader, read in READERS.items():
        found[reader] = sum(read(text) is None for text in texts)
        record_property(f"unparsed {reader}", f"{found[reader]} of {len(texts)}")
    print(name, len(texts), "unparsed:", found)
    assert {reader: found[reader] for reader in unparsed} == unparsed
