"""A language model as chooser: what it is shown, what its replies mean, and that none without use is ever taken for one."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.llm.client import Completion, Prompt
from kgqa.llm.model_chooser import ModelChooser
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.model import Candidate, Entity, RelationPath, StageUsage, Step
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.chooser import EntityGroup
from kgqa.rank.tournaments.registry import TOURNAMENTS
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.settings import resolve
from kgqa.testing import faults
from kgqa.testing.faults import ModelReply
from kgqa.testing.server import ScriptedServer
from kgqa.trace import Trace

QUESTION = "Who founded the club that [E1] plays for?"
PROMPTS = Prompts()


def path(text: str) -> Candidate:
    """A candidate by its elements: `[E1] | -> team | -> founders`."""
    topic, *hops = text.split(" | ")
    return Candidate(RelationPath(Entity(topic), tuple(Step(hop) for hop in hops)), text)


def elements(candidate: Candidate) -> tuple[str, ...]:
    return tuple(candidate.words.split(" | "))


def ends(candidate: Candidate) -> str:
    return f"the ends of {candidate.words.split(' ')[-1]}"


TEAM = path("[E1] | -> athlete team")
FOUNDERS = path("[E1] | -> athlete team | -> organization founders")
COLOURS = path("[E1] | -> athlete team | -> team colours")
GENDER = path("[E1] | -> person gender")
OTHER = path("[E2] | -> person spouse")


class Asked:
    """A chooser in front of a server that says what it is told to."""

    def __init__(self, reply, *, constrains="none", **options) -> None:
        self.server = ScriptedServer(reply, constrains=constrains)
        settings = {"llm.model": f"{self.server.url}#m", "llm.retries": 0, "llm.concurrency": 1}
        self.models = open_models(resolve(settings, environment={}))
        assert self.models is not None
        self.trace = Trace()
        options = {"elements": elements, "ends": ends, "compare": "mark"} | options
        self.chooser = ModelChooser(self.models.for_question(self.trace), PROMPTS, **options)

    def users(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1]["content"] for request in self.server.requests]

    def stage(self) -> StageUsage:
        (only,) = self.trace.usage().stages
        return only

    def close(self) -> None:
        assert self.models is not None
        self.models.close()
        self.server.close()


@pytest.fixture
def asked():
    found: list[Asked] = []

    def make(reply, **options) -> Asked:
        found.append(Asked(reply, **options))
        return found[-1]

    yield make
    for each in found:
        each.close()


def lines(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z][A-Za-z ]*): ?(.*)$", text, re.MULTILINE))


# ---- pairs ----


def test_a_pair_is_shown_by_what_differs(asked):
    made = asked(["[A]", "[B]"])
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (FOUNDERS, COLOURS)]) == [1, -1]
    first = made.users()[0]
    assert first == (
        f"Question: {QUESTION}\nKnown: [E1] -> athlete team\nCandidate A: -> organization founders\n"
        "Candidate B: -> team colours\nBetter:"
    )
    assert (made.stage().stage, made.stage().calls, made.stage().rounds) == ("tournament", 2, 1)


def test_the_other_order_is_the_other_preference(asked):
    made = asked(lambda messages: "A" if re.search("Candidate A: .*founders", messages[-1]["content"]) else "B")
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (COLOURS, FOUNDERS)]) == [1, -1]
    assert made.chooser.prefer(QUESTION, [(GENDER, FOUNDERS), (FOUNDERS, GENDER)]) == [-1, 1]


@pytest.mark.parametrize(
    ("pair", "reply", "preferred"),
    [
        ((TEAM, FOUNDERS), "RELEVANT", FOUNDERS),
        ((FOUNDERS, TEAM), "RELEVANT", FOUNDERS),
        ((TEAM, FOUNDERS), "NOT RELEVANT", TEAM),
        ((FOUNDERS, TEAM), "NOT RELEVANT", TEAM),
        ((FOUNDERS, TEAM), "[NOT RELEVANT]", TEAM),
        ((path("[E1]"), TEAM), "[RELEVANT]", TEAM),
    ],
)
def test_where_one_begins_the_other_the_rest_is_relevant_or_not(asked, pair, reply, preferred):
    made = asked([reply])
    (result,) = made.chooser.prefer(QUESTION, [pair])
    assert pair[0 if result == 1 else 1] is preferred and result != 0
    shown = lines(made.users()[0])
    shorter, longer = sorted(pair, key=lambda each: len(elements(each)))
    assert shown["Known"] == " ".join(elements(shorter))
    assert shown["Known"] + " " + shown["Candidate"] == " ".join(elements(longer))
    assert "Relevant" in shown and "Candidate A" not in shown


def test_a_reply_without_use_to_either_kind_is_a_tie(asked):
    made = asked(lambda _: "I cannot say.", reask=0)
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (TEAM, FOUNDERS), (FOUNDERS, TEAM)]) == [0, 0, 0]


def test_paths_from_different_topics_have_nothing_in_common(asked):
    made = asked(["B"])
    assert made.chooser.prefer(QUESTION, [(TEAM, OTHER)]) == [-1]
    shown = lines(made.users()[0])
    assert shown["Known"] == "(nothing)"
    assert (shown["Candidate A"], shown["Candidate B"]) == ("[E1] -> athlete team", "[E2] -> person spouse")


def test_what_is_in_common_is_a_beginning_and_not_a_part_of_a_hop(asked):
    made = asked(["A", "A"])
    made.chooser.prefer(
        QUESTION,
        [
            (path("[E1] | -> athlete team"), path("[E1] | -> athlete teammates")),
            (path("[E1] | -> a | -> b | -> c"), path("[E1] | -> x | -> b | -> c")),
        ],
    )
    first, second = map(lines, made.users())
    assert (first["Known"], first["Candidate B"]) == ("[E1]", "-> athlete teammates")
    assert (second["Known"], second["Candidate A"]) == ("[E1]", "-> a -> b -> c")


def test_two_that_read_alike_are_told_apart_by_what_they_lead_to(asked):
    made = asked(["A"], show_ends=True, ends=lambda candidate: f"ends {candidate.leads_to}")
    twins = [Candidate(FOUNDERS.path, FOUNDERS.words, leads_to=name) for name in ("one", "two")]
    assert made.chooser.prefer(QUESTION, [(twins[0], twins[1])]) == [1]
    assert lines(made.users()[0]) == {
        "Question": QUESTION,
        "Known": "[E1] -> athlete team -> organization founders",
        "Candidate A": "(the same)",
        "A leads to": "ends one",
        "Candidate B": "(the same)",
        "B leads to": "ends two",
        "Better": "",
    }


def test_ends_are_shown_where_they_are_wanted(asked):
    made = asked(["A", "RELEVANT", "NOT RELEVANT"], show_ends=True)
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (TEAM, FOUNDERS), (FOUNDERS, TEAM)]) == [1, -1, -1]
    pair, longer, turned = map(lines, made.users())
    assert (pair["A leads to"], pair["B leads to"]) == ("the ends of founders", "the ends of colours")
    assert longer == turned
    assert longer["This leads to"] == "the ends of team"
    assert longer["With the candidate it leads to"] == "the ends of founders"


def test_ends_are_not_looked_up_where_they_are_not_shown(asked):
    def no_ends(candidate: Candidate) -> str:
        raise AssertionError("a query that nobody needs")

    made = asked(["A", "RELEVANT"], ends=no_ends)
    made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (TEAM, FOUNDERS)])
    assert not any("leads to" in text for text in made.users())


# ---- how it is asked ----


def everything(chooser: ModelChooser) -> None:
    chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)])
    chooser.prefer(QUESTION, [(FOUNDERS, TEAM)])
    chooser.accept(QUESTION, [[FOUNDERS]])
    chooser.pick(QUESTION, [[FOUNDERS, COLOURS]], 1)
    chooser.pick_grouped(QUESTION, [[EntityGroup("a path", ("x", "y"))]], 1)
    chooser.score(QUESTION, [FOUNDERS, COLOURS])


def test_the_server_is_held_to_the_choices_where_there_are_some(asked):
    made = asked(lambda _: "[1]", constrains="structured_outputs", compare="choice", reask=0)
    everything(made.chooser)
    choices = [request.body.get("structured_outputs", {}).get("choice") for request in made.server.requests]
    assert choices == [["A", "B"], ["RELEVANT", "NOT RELEVANT"], ["YES", "NO"], None, None, None]
    assert not any("response_format" in request.body for request in made.server.requests)


@pytest.mark.parametrize("compare", ["mark", "reasons"])
def test_otherwise_no_choices_are_sent(asked, compare):
    made = asked(lambda _: "[1]", constrains="structured_outputs", compare=compare, reask=0)
    everything(made.chooser)
    assert {key for request in made.server.requests for key in request.body} == {"model", "messages", "temperature"}


@pytest.mark.parametrize("compare", ["choice", "mark", "reasons"])
def test_reasons_are_asked_for_as_published(asked, compare):
    made = asked(lambda _: "[1]", compare=compare, reask=0)
    everything(made.chooser)
    systems = [request.messages[0]["content"] for request in made.server.requests]
    # a server that does not hold the model to choices is asked once more without them
    decisions = [text for text in systems if "numbers" not in text and "numbered" not in text]
    assert len({*decisions}) == 3
    assert all(("sentence of reasons" in text) == (compare == "reasons") for text in decisions)
    assert all(("and nothing else" in text) == (compare != "reasons") for text in decisions)


def test_reasons_come_before_the_mark(asked):
    replies = ["A names colours only.\nB is who founded it.\n[B]", "It is needed.\n\n[RELEVANT]", "It is not.\n[NO]"]
    made = asked(replies, compare="reasons")
    assert made.chooser.prefer(QUESTION, [(COLOURS, FOUNDERS)]) == [-1]
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, TEAM)]) == [1]
    assert made.chooser.accept(QUESTION, [[COLOURS]]) == ["no"]
    assert made.server.calls == 3


def test_the_name_is_the_models(asked):
    assert asked([]).chooser.name == "m"


# ---- lists ----


def test_numbers_from_one_are_places_from_zero(asked):
    made = asked(["[3, 1]", "[2]"])
    assert made.chooser.pick(QUESTION, [[GENDER, TEAM, FOUNDERS], [COLOURS, OTHER]], 2) == [[2, 0], [1]]
    assert made.users()[0] == (
        f"Question: {QUESTION}\nCandidates:\n[1] [E1] -> person gender\n[2] [E1] -> athlete team\n"
        "[3] [E1] -> athlete team -> organization founders\nSelect at most 2.\nSelected:"
    )
    assert (made.stage().stage, made.stage().calls, made.stage().rounds) == ("tournament", 2, 1)


@pytest.mark.parametrize(
    ("reply", "picked"),
    [
        ("[1, 2, 3]", [0, 1]),
        ("[3, 3, 9, 1]", [2, 0]),
        ("Selected: [2]", [1]),
        ('{"selected": [2, 3]}', [1, 2]),
        ("[]", []),
        ("[0, 9]", []),
        ("none of them", []),
        ("no idea", []),
    ],
)
def test_what_a_list_means(asked, reply, picked):
    made = asked([reply], reask=0)
    assert made.chooser.pick(QUESTION, [[GENDER, TEAM, FOUNDERS]], 2) == [picked]


def test_an_empty_selection_is_an_answer(asked):
    made = asked(["[]"], reask=1)
    assert made.chooser.pick(QUESTION, [[GENDER, TEAM]], 1) == [[]]
    assert made.server.calls == 1 and made.stage().unparsed == 0


def test_entities_are_numbered_through_their_groups(asked):
    groups = [EntityGroup("Ann -> sibling", ("Bo", "Cara")), EntityGroup("Ann -> spouse", ("Dan",))]
    made = asked(["[3, 1]", "[2, 1]"])
    assert made.chooser.pick_grouped("Who?", [groups, groups[:1]], 2) == [[2, 0], [1, 0]]
    assert made.users()[0] == (
        "Question: Who?\n---\nPath: Ann -> sibling\n[1] Bo\n[2] Cara\n---\nPath: Ann -> spouse\n[3] Dan\n---\n"
        "Select at most 2.\nSelected:"
    )
    assert (made.stage().stage, made.stage().calls) == ("entity", 2)


def test_scores_come_in_batches_of_five(asked):
    pool = [path(f"[E1] | -> relation {number}") for number in range(7)]
    made = asked(['{"scores": [0.1, 0.2, 0.3, 0.4, 0.5]}', "[0.9, 1]"])
    scores = made.chooser.score(QUESTION, pool)
    assert scores.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 1.0]
    assert [len(re.findall(r"^\[\d\]", text, re.MULTILINE)) for text in made.users()] == [5, 2]
    assert "[1] [E1] -> relation 5\n[2] [E1] -> relation 6\nScores:" in made.users()[1]
    assert (made.stage().calls, made.stage().rounds) == (2, 1)


def test_what_has_no_score_is_not_a_number(asked):
    pool = [path(f"[E1] | -> relation {number}") for number in range(7)]
    made = asked(["no idea", '{"scores": [0.9, 0.1]}', "1: 0.5"], reask=0)
    scores = made.chooser.score(QUESTION, pool, batch_size=3)
    assert np.array_equal(np.isnan(scores), [True] * 3 + [True] * 3 + [False])
    assert scores[6] == 0.5 and scores.dtype == np.float64 and made.server.calls == 3


def test_nothing_to_decide_is_not_asked(asked):
    made = asked([])
    assert made.chooser.prefer(QUESTION, []) == made.chooser.accept(QUESTION, []) == []
    assert made.chooser.pick(QUESTION, [], 2) == made.chooser.pick_grouped(QUESTION, [], 2) == []
    assert made.chooser.score(QUESTION, []).shape == (0,)
    assert made.server.calls == 0 and made.trace.usage().stages == ()


# ---- the last word ----


def test_a_path_and_its_ends_are_accepted_or_not(asked):
    made = asked(["YES", "[NO]", "perhaps"], reask=0)
    assert made.chooser.accept(QUESTION, [[FOUNDERS], [COLOURS, FOUNDERS], [GENDER]]) == ["yes", "no", "unparsed"]
    assert made.users()[0] == (
        f"Question: {QUESTION}\nPath: [E1] -> athlete team -> organization founders\n"
        "Leads to: the ends of founders\nAnswer found:"
    )
    assert (made.stage().stage, made.stage().calls) == ("decide", 3)


def test_a_path_that_leads_nowhere_says_so(asked):
    made = asked(["NO"], ends=lambda _: "")
    made.chooser.accept(QUESTION, [[FOUNDERS]])
    assert lines(made.users()[0])["Leads to"] == "nothing"


@pytest.mark.parametrize(
    "reply",
    [
        "YES and NO",
        "yes? no?",
        "It depends.",
        "Not sure, maybe yes.",
        "yesterday",
        "",
        "[YES] or [NO]",
        "<think>YES",
        "{}",
    ],
)
def test_what_is_not_clearly_yes_is_not_yes(asked, reply):
    assert asked(lambda _: reply, reask=0).chooser.accept(QUESTION, [[FOUNDERS]]) == ["unparsed"]


# ---- replies without use ----


def test_what_cannot_be_read_is_asked_for_once_more(asked):
    made = asked(["Both are fine.", "[B]"])
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)]) == [-1]
    first, again = (request.messages for request in made.server.requests)
    assert again[: len(first)] == first
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == "Both are fine."
    assert re.fullmatch(r"Your reply cannot be used\. .*\bA\b.*\bB\b.* Reply again, .*", again[3]["content"])
    usage = made.stage()
    assert (usage.calls, usage.rounds, usage.reasked, usage.unparsed, usage.failed) == (2, 2, 1, 0, 0)


def test_then_it_counts_as_unparsed(asked):
    made = asked(lambda _: "Both are fine.")
    assert made.chooser.accept(QUESTION, [[FOUNDERS], [COLOURS]]) == ["unparsed", "unparsed"]
    assert made.server.calls == 4
    usage = made.stage()
    assert (usage.calls, usage.rounds, usage.reasked, usage.unparsed) == (4, 2, 2, 2)
    assert [e.detail for e in made.trace.events() if e.kind == "unparsed"] == [{"stage": "decide", "count": 2}]


def test_only_what_could_not_be_read_is_asked_again(asked):
    made = asked(["A", "eh", "B", "[A]"], compare="mark")
    pairs = [(FOUNDERS, COLOURS), (GENDER, FOUNDERS), (GENDER, COLOURS)]
    assert made.chooser.prefer(QUESTION, pairs) == [1, 1, -1]
    assert len(made.server.requests[3].messages) == 4
    assert made.server.requests[3].messages[:2] == made.server.requests[1].messages
    assert (made.stage().reasked, made.stage().unparsed) == (1, 0)


def test_nothing_is_asked_again_where_that_is_not_wanted(asked):
    made = asked(lambda _: "eh", reask=0)
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)]) == [0]
    assert (made.server.calls, made.stage().reasked, made.stage().unparsed) == (1, 0, 1)


def test_the_conversation_grows_with_each_time(asked):
    made = asked(["one", "two", "[1]"], reask=2)
    assert made.chooser.pick(QUESTION, [[FOUNDERS, COLOURS]], 1) == [[0]]
    said = [message["content"] for message in made.server.requests[2].messages if message["role"] == "assistant"]
    assert said == ["one", "two"] and made.stage().reasked == 2


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        (ModelReply("YES", finish_reason="length"), 2),
        (ModelReply("YES", finish_reason="content_filter"), 2),
        (ModelReply("YES", refusal="I cannot say YES to that."), 2),
        (faults.refusal("YES"), 2),
        (faults.empty(), 2),
        (faults.thinks("", "YES"), 2),
        (faults.failing(400, "YES"), 1),
        (faults.too_long(), 1),
    ],
    ids=["length", "filter", "refused and said", "refused", "empty", "only thought", "rejected", "too long"],
)
def test_failures_are_never_yes(asked, reply, calls):
    made = asked(lambda _: reply)
    assert made.chooser.accept(QUESTION, [[FOUNDERS]]) == ["unparsed"]
    assert made.server.calls == calls, "what the server refuses it would refuse again"
    assert (made.stage().failed, made.stage().unparsed, made.stage().reasked) == (calls, 1, calls - 1)


def test_a_failure_is_asked_again_with_what_there_was_of_a_reply(asked):
    made = asked([ModelReply("Well, let me", finish_reason="length"), faults.empty(), "[A]"], reask=2)
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)]) == [1]
    conversation = [message["content"] for message in made.server.requests[2].messages[2:]]
    assert conversation[0] == "Well, let me" and conversation[2] == "(nothing)"
    assert "It has no answer." in conversation[1]


def test_one_failure_leaves_the_others_of_its_batch(asked):
    made = asked(["A", faults.failing(400, "flagged"), faults.refusal(), "B", faults.refusal()])
    pairs = [(FOUNDERS, COLOURS), (GENDER, FOUNDERS), (GENDER, COLOURS), (FOUNDERS, GENDER)]
    assert made.chooser.prefer(QUESTION, pairs) == [1, 0, 0, -1]
    assert (made.stage().failed, made.stage().unparsed, made.stage().reasked) == (3, 2, 1)


def test_what_was_mended_is_counted(asked):
    made = asked(["[A]", "A", "The better one is B, I choose B."])
    assert made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (GENDER, COLOURS), (GENDER, FOUNDERS)]) == [1, 1, -1]
    assert (made.stage().repaired, made.stage().unparsed) == (1, 0)


def test_tokens_of_every_time_count(asked):
    made = asked(lambda _: ModelReply("eh", prompt_tokens=100, completion_tokens=10))
    made.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)])
    assert (made.stage().prompt_tokens, made.stage().completion_tokens) == (200, 20)


# ---- within what is around it ----


def test_votes_are_one_round_and_a_model_that_favours_a_place_decides_nothing(asked):
    made = asked(lambda _: "A", compare="mark")
    assert VotingChooser(made.chooser, 3).prefer(QUESTION, [(FOUNDERS, COLOURS)])[0] in (1, -1)
    assert (made.stage().calls, made.stage().rounds) == (3, 1)
    shown = [lines(text)["Candidate A"] for text in made.users()]
    assert shown[0] == shown[2] != shown[1]


@pytest.mark.parametrize("name", sorted(TOURNAMENTS))
def test_a_tournament_with_a_model_that_knows(asked, name):
    pool = [path(f"[E1] | -> relation {number:02}") for number in range(12)]

    def reply(messages: list[dict]) -> str:
        asked_text = messages[-1]["content"]
        numbers = [int(number) for number in re.findall(r"relation (\d\d)", asked_text)]
        if "Candidate A" in asked_text:
            return "A" if numbers[0] > numbers[1] else "B"
        if "Scores:" in asked_text:
            return str([number / 100 for number in numbers])
        best = sorted(range(len(numbers)), key=lambda i: -numbers[i])
        return str([i + 1 for i in best][: int(re.search(r"at most (\d+)", asked_text)[1])])  # type: ignore[index]

    made = asked(reply)
    winners = TOURNAMENTS[name](QUESTION, pool, CachingChooser(made.chooser), k=2)
    # a knockout finds the best only
    assert winners[0] is pool[11] and (name == "knockout" or winners == [pool[11], pool[10]])
    assert made.stage().unparsed == 0


@pytest.mark.parametrize("name", sorted(TOURNAMENTS))
def test_a_tournament_with_a_model_that_says_nothing_of_use_keeps_the_order(asked, name):
    pool = [path(f"[E1] | -> relation {number:02}") for number in range(6)]
    made = asked(lambda _: "I would rather not.", reask=0)
    winners = TOURNAMENTS[name](QUESTION, pool, CachingChooser(made.chooser), k=3)
    assert winners[0] is pool[0] and len(winners) == 3


# ---- whatever it says ----

FRAGMENTS = st.sampled_from(
    [
        "YES",
        "NO",
        "yes",
        "[A]",
        "[B]",
        "A",
        "B",
        "RELEVANT",
        "NOT RELEVANT",
        "[RELEVANT]",
        "not ",
        "[1]",
        "[2, 1]",
        "3",
        "0",
        "99999999999999999999",
        "-1",
        "0.5",
        "1e9",
        "nan",
        "[",
        "]",
        "{",
        "}",
        '"answer": ',
        '{"scores": [',
        "scores",
        ",",
        ": ",
        "\n",
        " ",
        "Answer: ",
        "I choose ",
        " is better",
        "because ",
        "<think>",
        "</think>",
        "```",
        "true",
        "null",
        "ＹＥＳ",
        "１",
        "path 2",
        "- ",
        "1. ",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(FRAGMENTS, max_size=10).map("".join))
FAILURES = st.sampled_from(["", "", "", "", "refused", "empty", "length", "rejected", "unreachable", "not_recorded"])
COMPLETIONS = st.lists(st.builds(Completion, text=TEXTS, failure=FAILURES), min_size=1, max_size=5)


class Says:
    """What a chooser needs of `QuestionModels`, with replies that go round."""

    name = "says"

    def __init__(self, completions: Sequence[Completion]) -> None:
        self.trace = Trace()
        self._completions = completions
        self.given: list[Completion] = []

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        start = len(self.given)
        self.given += [self._completions[(start + i) % len(self._completions)] for i in range(len(prompts))]
        return self.given[start:]


def saying(completions: Sequence[Completion], reask: int = 1) -> tuple[Says, ModelChooser]:
    models = Says(completions)
    return models, ModelChooser(models, PROMPTS, elements=elements, ends=ends, reask=reask)  # type: ignore[arg-type]


@given(COMPLETIONS, st.integers(0, 2))
def test_preferences_are_one_of_three_whatever_is_said(completions, reask):
    pairs = [(FOUNDERS, COLOURS), (FOUNDERS, TEAM), (TEAM, FOUNDERS), (TEAM, OTHER)]
    _, chooser = saying(completions, reask)
    result = chooser.prefer(QUESTION, pairs)
    assert len(result) == len(pairs) and all(type(each) is int and each in (-1, 0, 1) for each in result)


@given(COMPLETIONS, st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 4))
def test_picks_are_places_of_the_chunk_whatever_is_said(completions, sizes, k):
    chunks = [[path(f"[E1] | -> relation {number}") for number in range(size)] for size in sizes]
    groups = [
        [EntityGroup("p", tuple("abcdef"[: size - size // 2])), EntityGroup("q", tuple("uvwxyz"[: size // 2]))]
        for size in sizes
    ]
    for picked in (saying(completions)[1].pick("q", chunks, k), saying(completions)[1].pick_grouped("q", groups, k)):
        assert len(picked) == len(sizes)
        for indices, size in zip(picked, sizes):
            assert len(indices) == len(set(indices)) <= k and all(0 <= index < size for index in indices)


@given(COMPLETIONS, st.integers(0, 8), st.sampled_from([None, 1, 3]))
def test_scores_are_from_0_to_1_or_missing_whatever_is_said(completions, size, batch_size):
    pool = [path(f"[E1] | -> relation {number}") for number in range(size)]
    scores = saying(completions)[1].score("q", pool, batch_size=batch_size)
    assert scores.shape == (size,) and scores.dtype == np.float64
    assert all(math.isnan(score) or 0 <= score <= 1 for score in scores)


@given(COMPLETIONS, st.integers(0, 1))
def test_nothing_is_accepted_that_does_not_say_yes(completions, reask):
    models, chooser = saying(completions, reask)
    verdicts = chooser.accept(QUESTION, [[FOUNDERS], [COLOURS]])
    assert len(verdicts) == 2 and set(verdicts) <= {"yes", "no", "unparsed"}
    said = [_plain(completion.text) for completion in models.given if not completion.failure]
    if "yes" in verdicts:
        assert any("yes" in text for text in said)
    if "no" in verdicts:
        assert any("no" in text for text in said)
    usage = models.trace.usage().stages
    assert sum(each.unparsed for each in usage) == verdicts.count("unparsed")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@pytest.mark.parametrize("act", [lambda c: c.prefer(QUESTION, [(FOUNDERS, COLOURS)]), lambda c: c.accept("q", [[TEAM]]),
                                 lambda c: c.pick("q", [[TEAM, OTHER]], 1)])  # fmt: skip
def test_a_model_that_cannot_be_reached_is_not_asked_again(act: Callable[[ModelChooser], list]):
    for failure in ("rejected", "unreachable", "not_recorded"):
        models, chooser = saying([Completion("YES [1] [A]", failure=failure)], reask=3)  # type: ignore[arg-type]
        assert act(chooser) in ([0], ["unparsed"], [[]])
        assert len(models.given) == 1
