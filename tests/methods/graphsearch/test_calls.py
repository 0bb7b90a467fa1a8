"""The number of prompts and of waits in every branch, against the formulas in docs/text-methods.md."""

from __future__ import annotations

import pytest

from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent
from tests.small_corpus import QUESTIONS, SINGLE

YES, NO, GARBAGE = "yes", "no", "I cannot tell."
VERDICTS = {YES: {"failed": [], "verdict": "yes"}, NO: {"failed": [1], "verdict": "no"}, GARBAGE: GARBAGE}
READ = {YES: "yes", NO: "no"}
NEW = [
    ["Where do seals rest?", "When does the ferry sail?"],
    ["How many islands has the Grey Sea?", "Who painted ships?"],
]
"""Two rounds of new sub-questions; each round finds passages of its own."""
FACTS = ["When does the ferry sail?", "Where is the island Vell?"]
"""New sub-questions for which both channels find something."""
FEW = {"graphsearch__top_k": 2, "llm__reask": 0}


def listed(texts):
    return {"sub_questions": [{"question": text, "triples": []} for text in texts]}


def step(prompt):
    """Answer new sub-questions, too."""
    agent = GraphSearchAgent(QUESTIONS)
    asked = next(iter(prompt.sub_questions.values()))
    if any(asked in texts for texts in NEW):
        return {"answers": ["an answer"], "support": []}
    return agent.reply(prompt, agent.gold(prompt))


EXPAND = {"expand": [listed(texts) for texts in NEW], "step": step}


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("gate", ["reject", "accept"])
def test_calls_of_every_gate_and_verdict(run, gate, verdict):
    asked = run(replies={"verify": VERDICTS[verdict], **EXPAND}, graphsearch__gate=gate, **FEW)
    m, e = 3, 2
    more = {"reject": verdict != YES, "accept": verdict == YES}[gate]
    assert len(asked.requests) == asked.answer.usage.calls == m + 3 + (2 * (3 + e) if more else 0)
    assert asked.answer.usage.rounds == 3 + m + (2 * 4 if more else 0)
    assert asked.answer.accepted == (verdict == YES) and str(asked.answer) == "Ben Aske"
    assert {each.verdict for each in asked.events("draft_verified")} == {READ.get(verdict, "unparsed")}


def test_worst_case_is_21_calls_in_17_waits(run):
    plan = listed(["Where was Mara Holt born?", *(f"Where was #{n} born?" for n in range(1, 6))])
    quote = "Mara Holt was born in Tarn Harbour in 1871."

    def draft(prompt):
        passage = prompt.passage_with(quote)
        return {
            "claims": [{"claim": "A claim.", "piece": passage.number, "quote": quote}],
            "answers": ["Tarn Harbour"],
            "response": "",
        }

    def step(prompt):
        passage = prompt.passage_with(quote)
        support = [{"piece": passage.number, "quote": quote}] if passage else []
        return {"answers": ["Tarn Harbour"], "support": support}

    expand = [listed([*NEW[0], "Where is the island Vell?"]), listed([*NEW[1], "What was counted in 1998?"])]
    replies = {"decompose": plan, "step": step, "draft": draft, "verify": VERDICTS[NO], "expand": expand}
    asked = run(replies=replies, **FEW)
    assert (asked.answer.usage.calls, asked.answer.usage.rounds) == (21, 17)
    assert str(asked.answer) == "Tarn Harbour" and not asked.answer.accepted


@pytest.mark.parametrize(
    ("modules", "names", "waits"),
    [
        ("qd,cr", ["decompose", *["step"] * 4], 3),
        ("qd,cr,qg", ["decompose", *["step"] * 4], 5),
        ("qd,cr,qg,ld", ["decompose", *["step"] * 3, "draft"], 5),
        ("all", ["decompose", *["step"] * 3, "draft", "verify"], 6),
    ],
)
def test_modules(run, modules, names, waits):
    asked = run(graphsearch__modules=modules)
    assert asked.kinds == names and asked.answer.usage.rounds == waits
    texts = [next(iter(each.sub_questions.values())) for each in asked.shown("step")]
    assert ("On which island is the town #1?" in texts) == (modules == "qd,cr")
    assert str(asked.answer) == "Ben Aske"


def test_round_without_new_passages_ends_the_search(run):
    # all passages were shown for the first sub-questions
    asked = run(replies={"verify": VERDICTS[NO], "expand": listed(["Where was Mara Holt born, and when?"])})
    assert asked.kinds[-1] == "expand" and len(asked.kinds) == 7
    # a second round follows only if the first one found an answer
    asked = run(replies={"verify": VERDICTS[NO], "expand": [listed(texts) for texts in NEW]}, **FEW)
    assert len(asked.kinds) == 6 + 5 and asked.kinds[-1] == "verify"
    # repeated sub-questions are not asked again
    asked = run(replies={"verify": VERDICTS[NO], "expand": listed(["where was MARA HOLT born?"])})
    assert asked.kinds[-1] == "expand" and asked.events("stopped")[-1].why == "no new sub-question"


# ---- as published ----

PUBLISHED = {"ask__preset": "as-published", **FEW}
PUBLISHED_VERDICTS = {YES: "All is supported.\nYes", NO: "A step is missing.\nNo", GARBAGE: GARBAGE}


@pytest.mark.parametrize("verdict", PUBLISHED_VERDICTS)
@pytest.mark.parametrize("gate", ["reject", "accept"])
def test_published_calls_of_every_gate_and_verdict(run, gate, verdict):
    replies = {"published_verify": PUBLISHED_VERDICTS[verdict], "published_expand": [FACTS]}
    asked = run(replies=replies, graphsearch__gate=gate, **PUBLISHED)
    m = n = 3
    g, e = 2, 2
    more = {"reject": verdict != YES, "accept": verdict == YES}[gate]
    calls = 2 * m + g + 3 * n + 8 + (2 * (1 + e) if more else 0)
    assert len(asked.requests) == asked.answer.usage.calls == calls
    assert str(asked.answer) == "Ben Aske"
    assert {each.verdict for each in asked.events("draft_verified")} == {READ.get(verdict, "unparsed")}
    assert asked.answer.accepted == (verdict == YES)


def test_published_with_one_rejected_channel(run):
    def verdict(prompt):
        return PUBLISHED_VERDICTS[NO if "Where was Mara Holt born?, is, Entity#1" in prompt.user else YES]

    asked = run(replies={"published_verify": verdict, "published_expand": [FACTS]}, **PUBLISHED)
    assert len(asked.kinds) == 25 + 1 + 2 and asked.kinds.count("published_expand") == 1 and asked.answer.accepted
    new = [event for event in asked.events("retrieved") if event.query in FACTS]
    assert {event.channel for event in new} == {"relational"}


def test_one_round_is_one_call(run):
    asked = run(SINGLE, graphsearch__modules="none", **{**PUBLISHED, "graphsearch__top_k": 30})
    assert asked.kinds == ["published_answer"] and str(asked.answer) == "museum of Oster Quay"
    assert {event.channel for event in asked.events("retrieved")} == {"semantic", "relational"}
    assert run(SINGLE, graphsearch__modules="none").kinds == ["step", "step"]
