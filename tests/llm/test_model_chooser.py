"""The language model as chooser: its prompts, how its replies are read, and that a useless reply is never a yes."""

from __future__ import annotations

import re

import pytest

from kgqa.llm.model_chooser import ModelChooser
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.model import Candidate, Entity, RelationPath, StageUsage, Step
from kgqa.rank.tournaments.chooser import NEITHER, AnsweringPick, EntityGroup
from kgqa.settings.values import resolve
from kgqa.testing import faults
from kgqa.testing.faults import ModelReply
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Trace

QUESTION = "Who founded the club that [E1] plays for?"
PROMPTS = Prompts()


def path(text: str) -> Candidate:
    """Build a candidate from its elements, such as `[E1] | -> team | -> founders`."""
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


class ScriptedChooser:
    """A chooser connected to a scripted server."""

    def __init__(self, reply, *, constrains="none", **options) -> None:
        self.server = ScriptedServer(reply, constrains=constrains)
        settings = {"llm.model": f"{self.server.url}#m", "llm.retries": 0, "llm.concurrency": 1}
        self.models = open_models(resolve(settings, environment={}))
        assert self.models is not None
        self.trace = Trace()
        options = {"elements": elements, "ends": ends, "compare": "mark"} | options
        self.chooser = ModelChooser(models=self.models.for_question(self.trace), prompts=PROMPTS, **options)

    def user_messages(self) -> list[str]:
        """Return the last message of each request."""
        return [request.messages[-1]["content"] for request in self.server.requests]

    def stage(self) -> StageUsage:
        (only,) = self.trace.usage().stages
        return only

    def close(self) -> None:
        assert self.models is not None
        self.models.close()
        self.server.close()


@pytest.fixture
def make_chooser():
    found: list[ScriptedChooser] = []

    def make(reply, **options) -> ScriptedChooser:
        found.append(ScriptedChooser(reply, **options))
        return found[-1]

    yield make
    for each in found:
        each.close()


def lines(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z][A-Za-z ]*): ?(.*)$", text, re.MULTILINE))


# ---- pairs ----


def test_pair_prompt_shows_common_path_once(make_chooser):
    scripted = make_chooser(["[A]", "[B]"])
    assert scripted.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (FOUNDERS, COLOURS)]) == [1, -1]
    first = scripted.user_messages()[0]
    assert first == (
        f"Question: {QUESTION}\nKnown: [E1] -> athlete team\nCandidate A: -> organization founders\n"
        "Candidate B: -> team colours\nBetter:"
    )
    assert (scripted.stage().stage, scripted.stage().calls, scripted.stage().rounds) == ("tournament", 2, 1)


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
def test_prefix_pair_asks_whether_the_rest_is_relevant(make_chooser, pair, reply, preferred):
    scripted = make_chooser([reply])
    (result,) = scripted.chooser.prefer(QUESTION, [pair])
    assert pair[0 if result == 1 else 1] is preferred and result != 0
    shown = lines(scripted.user_messages()[0])
    shorter, longer = sorted(pair, key=lambda each: len(elements(each)))
    assert shown["Known"] == " ".join(elements(shorter))
    assert shown["Known"] + " " + shown["Candidate"] == " ".join(elements(longer))
    assert "Relevant" in shown and "Candidate A" not in shown


def test_ends_are_shown_with_show_ends(make_chooser):
    scripted = make_chooser(["A", "RELEVANT", "NOT RELEVANT"], show_ends=True)
    assert scripted.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS), (TEAM, FOUNDERS), (FOUNDERS, TEAM)]) == [1, -1, -1]
    pair, longer, turned = map(lines, scripted.user_messages())
    assert (pair["A leads to"], pair["B leads to"]) == ("the ends of founders", "the ends of colours")
    assert longer == turned
    assert longer["This leads to"] == "the ends of team"
    assert longer["With the candidate it leads to"] == "the ends of founders"


# ---- form of the requests ----


def call_every_method(chooser: ModelChooser) -> None:
    chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)])
    chooser.prefer(QUESTION, [(FOUNDERS, TEAM)])
    chooser.accept(QUESTION, [[FOUNDERS]])
    chooser.pick(QUESTION, [[FOUNDERS, COLOURS]], 1)
    chooser.pick_grouped(QUESTION, [[EntityGroup("a path", ("x", "y"))]], 1)
    chooser.score(QUESTION, [FOUNDERS, COLOURS])


def test_choices_are_sent_with_compare_choice(make_chooser):
    scripted = make_chooser(lambda _: "[1]", constrains="structured_outputs", compare="choice", reask=0)
    call_every_method(scripted.chooser)
    choices = [request.body.get("structured_outputs", {}).get("choice") for request in scripted.server.requests]
    assert choices == [["A", "B"], ["RELEVANT", "NOT RELEVANT"], ["YES", "NO"], None, None, None]
    assert not any("response_format" in request.body for request in scripted.server.requests)


def test_mark_after_reasons_is_read(make_chooser):
    replies = ["A names colours only.\nB is who founded it.\n[B]", "It is needed.\n\n[RELEVANT]", "It is not.\n[NO]"]
    scripted = make_chooser(replies, compare="reasons")
    assert scripted.chooser.prefer(QUESTION, [(COLOURS, FOUNDERS)]) == [-1]
    assert scripted.chooser.prefer(QUESTION, [(FOUNDERS, TEAM)]) == [1]
    assert scripted.chooser.accept(QUESTION, [[COLOURS]]) == ["no"]
    assert scripted.server.calls == 3


# ---- lists ----


def test_picked_numbers_become_zero_based_indices(make_chooser):
    scripted = make_chooser(["[3, 1]", "[2]"])
    assert scripted.chooser.pick(QUESTION, [[GENDER, TEAM, FOUNDERS], [COLOURS, OTHER]], 2) == [[2, 0], [1]]
    assert scripted.user_messages()[0] == (
        f"Question: {QUESTION}\nCandidates:\n[1] [E1] -> person gender\n[2] [E1] -> athlete team\n"
        "[3] [E1] -> athlete team -> organization founders\nSelect at most 2.\nSelected:"
    )
    assert (scripted.stage().stage, scripted.stage().calls, scripted.stage().rounds) == ("tournament", 2, 1)


def test_empty_selection_is_not_asked_again(make_chooser):
    for abstain, picked in ((True, []), (False, None)):
        scripted = make_chooser(["[]"], reask=1, abstain=abstain)
        assert scripted.chooser.pick(QUESTION, [[GENDER, TEAM]], 1) == [picked]
        assert scripted.server.calls == 1 and scripted.stage().unparsed == 0


@pytest.mark.parametrize(("pair", "shown"), [((FOUNDERS, COLOURS), "B or NEITHER"), ((TEAM, FOUNDERS), "or NEITHER")])
def test_neither_of_a_pair(make_chooser, pair, shown):
    for reply in ("NEITHER", "[NEITHER]", '{"answer": "neither"}', "A names no person. B neither. [NEITHER]"):
        scripted = make_chooser([reply], abstain=True)
        assert scripted.chooser.prefer(QUESTION, [pair]) == [NEITHER]
        assert shown in scripted.server.requests[0].messages[0]["content"]
    scripted = make_chooser(lambda _: "NEITHER")
    assert scripted.chooser.prefer(QUESTION, [pair]) == [0]  # as published, it is no option


@pytest.mark.parametrize(
    ("reply", "picked", "answering"),
    [
        ('{"answer": [3, 1, 2]}', [2, 0, 1], True),
        ("[3, 1, 2]", [2, 0], False),
        ("Answer: [3, 1]", [2, 0], False),
        ('{"selected": [1]}', [0], False),
        ('{"answer": []}', [], False),
        ("[]", [], False),
    ],
)
def test_entities_that_answer_the_question(make_chooser, reply, picked, answering):
    scripted = make_chooser([reply], abstain=True, answer=True)
    groups = [EntityGroup("Ann -> sibling", ("Bo", "Cara")), EntityGroup("Ann -> spouse", ("Dan",))]
    (found,) = scripted.chooser.pick_grouped("Who?", [groups], 2)
    assert found == picked and isinstance(found, AnsweringPick) == answering


def test_entities_are_numbered_across_groups(make_chooser):
    groups = [EntityGroup("Ann -> sibling", ("Bo", "Cara")), EntityGroup("Ann -> spouse", ("Dan",))]
    scripted = make_chooser(["[3, 1]", "[2, 1]"])
    assert scripted.chooser.pick_grouped("Who?", [groups, groups[:1]], 2) == [[2, 0], [1, 0]]
    assert scripted.user_messages()[0] == (
        "Question: Who?\n---\nPath: Ann -> sibling\n[1] Bo\n[2] Cara\n---\nPath: Ann -> spouse\n[3] Dan\n---\n"
        "Select at most 2.\nSelected:"
    )
    assert (scripted.stage().stage, scripted.stage().calls) == ("entity", 2)


def test_scores_are_requested_in_batches_of_five(make_chooser):
    pool = [path(f"[E1] | -> relation {number}") for number in range(7)]
    scripted = make_chooser(['{"scores": [0.1, 0.2, 0.3, 0.4, 0.5]}', "[0.9, 1]"])
    scores = scripted.chooser.score(QUESTION, pool)
    assert scores.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 1.0]
    assert [len(re.findall(r"^\[\d\]", text, re.MULTILINE)) for text in scripted.user_messages()] == [5, 2]
    assert "[1] [E1] -> relation 5\n[2] [E1] -> relation 6\nScores:" in scripted.user_messages()[1]
    assert (scripted.stage().calls, scripted.stage().rounds) == (2, 1)


# ---- acceptance ----


def test_accept_shows_path_and_ends(make_chooser):
    scripted = make_chooser(["YES", "[NO]", "perhaps"], reask=0)
    assert scripted.chooser.accept(QUESTION, [[FOUNDERS], [COLOURS, FOUNDERS], [GENDER]]) == ["yes", "no", "unparsed"]
    assert scripted.user_messages()[0] == (
        f"Question: {QUESTION}\nPath: [E1] -> athlete team -> organization founders\n"
        "Leads to: the ends of founders\nAnswer found:"
    )
    assert (scripted.stage().stage, scripted.stage().calls) == ("decide", 3)


# ---- useless replies ----


def test_unreadable_reply_is_asked_again_once(make_chooser):
    scripted = make_chooser(["Both are fine.", "[B]"])
    assert scripted.chooser.prefer(QUESTION, [(FOUNDERS, COLOURS)]) == [-1]
    first, again = (request.messages for request in scripted.server.requests)
    assert again[: len(first)] == first
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == "Both are fine."
    assert re.fullmatch(r"Your reply cannot be used\. .*\bA\b.*\bB\b.* Reply again, .*", again[3]["content"])
    usage = scripted.stage()
    assert (usage.calls, usage.rounds, usage.reasked, usage.unparsed, usage.failed) == (2, 2, 1, 0, 0)


def test_only_unreadable_replies_of_a_batch_are_asked_again(make_chooser):
    scripted = make_chooser(["A", "eh", "B", "[A]"], compare="mark")
    pairs = [(FOUNDERS, COLOURS), (GENDER, FOUNDERS), (GENDER, COLOURS)]
    assert scripted.chooser.prefer(QUESTION, pairs) == [1, 1, -1]
    assert len(scripted.server.requests[3].messages) == 4
    assert scripted.server.requests[3].messages[:2] == scripted.server.requests[1].messages
    assert (scripted.stage().reasked, scripted.stage().unparsed) == (1, 0)


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
def test_failed_replies_are_never_yes(make_chooser, reply, calls):
    scripted = make_chooser(lambda _: reply)
    assert scripted.chooser.accept(QUESTION, [[FOUNDERS]]) == ["unparsed"]
    assert scripted.server.calls == calls, "what the server refuses it would refuse again"
    assert (scripted.stage().failed, scripted.stage().unparsed, scripted.stage().reasked) == (calls, 1, calls - 1)


# ---- with voting and tournaments ----
