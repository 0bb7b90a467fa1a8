"""What GraphSearch does where something is missing, unread, invented or spent."""

from __future__ import annotations

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.methods.graphsearch.answering import DISPUTED
from kgqa.methods.published.graphsearch import LAST_STEP, NOT_VERIFIED
from kgqa.methods.rounds import NOTHING_FOUND as NOTHING
from tests.small_corpus import SINGLE

QUOTE = "Mara Holt was born in Tarn Harbour in 1871."
GARBAGE = "I cannot help with that."
NONE = {"sub_questions": []}
PUBLISHED = {"ask__preset": "as-published"}


def listed(*texts):
    return {"sub_questions": [{"question": text, "triples": []} for text in texts]}


def drafting(*claims, answers=("Tarn Harbour",)):
    """Return a draft whose claims are pairs of a claim and a quote; the passage of each one is named rightly."""

    def draft(prompt):
        found = []
        for claim, quote in claims:
            passage = prompt.passage_with(quote) if quote else None
            found.append({"claim": claim, "piece": passage.number if passage else 1, "quote": quote})
        return {"claims": found, "answers": list(answers), "response": "A response."}

    return draft


# ---- sub-questions ----


@pytest.mark.parametrize("reply", [GARBAGE, "", '{"sub_questions": [7, null]}'])
def test_unread_plan_leaves_the_question_as_the_only_step(run, reply):
    asked = run(SINGLE, replies={"decompose": reply})
    assert asked.kinds[:3] == ["decompose", "decompose", "step"]  # it is asked for twice
    (plan,) = asked.events("planned")
    assert [each.text for each in plan.sub_questions] == [SINGLE] and str(asked.answer) == "museum of Oster Quay"
    published = run(SINGLE, replies={"decompose_text": reply, "decompose_graph": reply}, **PUBLISHED)
    planned = [each.text for event in published.events("planned") for each in event.sub_questions]
    assert planned == [SINGLE, SINGLE]
    assert published.kinds.count("decompose_text") == 1


def test_as_published_no_sub_question_is_cut(run):
    plans = {"decompose_text": {str(n): f"Where was person {n} born in Tarn Harbour?" for n in range(1, 9)}}
    plans["decompose_graph"] = {str(n): [[f"person {n}", "born in", "Tarn Harbour"]] for n in range(1, 9)}
    asked = run(replies={**plans, "published_verify": "Yes"}, **PUBLISHED)
    assert [len(each.sub_questions) for each in asked.events("planned")] == [8, 8] and asked.kinds.count(
        "refine_text"
    ) == 8 + 1


def test_as_published_grounding_sees_the_numbered_decomposition(run):
    asked = run(**PUBLISHED)
    text, graph = asked.shown("ground_text")[0].user, asked.shown("ground_graph")[0].user
    assert "1. Where was Mara Holt born?\n2. On which island is the town #1?\n3." in text
    assert "1. Where was Mara Holt born?, is, Entity#1\n2." in graph


def test_forward_and_circular_references_are_dropped(run):
    plan = listed("Where was #1 of #2 born?", "Where was #3 Mara Holt born?", "Where is #1 and #99?")
    asked = run(replies={"decompose": plan})
    (planned,) = asked.events("planned")
    assert [each.needs for each in planned.sub_questions] == [(), (), (1,)]
    assert planned.sub_questions[0].text == "Where was of born?"
    assert "#" not in "".join(event.query for event in asked.events("retrieved"))


def test_several_names_fan_out(run):
    names = {"answers": ["Tarn Harbour", "Oster Quay", "Vell", "Corrin"], "support": []}
    plan = listed("Which towns are there?", "On which island is #1?", "What lies in the sea?")
    step = {"decompose": plan, "step": lambda prompt: names if 1 in prompt.sub_questions else GARBAGE}
    asked = run(replies=step, llm__reask=0)
    texts = [event.text for event in asked.events("grounded")]
    assert texts == ["On which island is Tarn Harbour?", "On which island is Oster Quay?", "On which island is Vell?"]
    assert asked.kinds.count("step") == 5
    assert asked.answer.notes.count(DISPUTED.format("Which towns are there?")) == 1


# ---- retrieval ----


def test_nothing_retrieved_asks_for_nothing_more(run):
    plan = listed("Xyzzy plugh?", "Qwerty #1?")
    asked = run("Xyzzy plugh?", replies={"decompose": plan})
    assert asked.kinds == ["decompose"] and asked.answer.status == "no_answer" and asked.answer.reason == NOTHING
    plans = {"decompose_text": {"1": "Xyzzy?"}, "decompose_graph": {"1": [["Xyzzy", "plugh", "Entity#1"]]}}
    published = run("Xyzzy plugh?", replies=plans, **PUBLISHED)
    assert len(published.kinds) == 2 and published.answer.reason == NOTHING


# ---- claims and verdicts ----


@pytest.mark.parametrize(
    "claims",
    [
        [("She was born there.", QUOTE), ("Invented.", "Mara Holt was born in Rome.")],
        [("Without a quote.", "")],
        [],
    ],
)
def test_claim_without_its_quote_is_never_accepted_and_needs_no_verdict(run, claims):
    asked = run(replies={"draft": drafting(*claims), "expand": NONE})
    assert "verify" not in asked.kinds and asked.kinds[-1] == "expand"
    assert not asked.answer.accepted and NOT_VERIFIED in asked.answer.notes
    (verdict,) = asked.events("draft_verified")
    assert verdict.verdict == "no" and len(verdict.failed) == max(len(claims) - 1, len(claims) and not claims[0][1])
    shown = asked.shown("expand")[0].user
    assert all(f"(does not hold): {claim}" in shown for claim, quote in claims if quote != QUOTE)


def test_rejected_to_the_end(run):
    replies = {"verify": {"failed": [], "verdict": "no"}, "expand": NONE}
    asked = run(replies=replies)
    assert str(asked.answer) == "Ben Aske" and asked.answer.weak and NOT_VERIFIED in asked.answer.notes
    none = run(replies=replies, ask__on_exhausted="none").answer
    assert none.status == "no_answer" and none.reason == NOT_VERIFIED and not none.answers and not none.citations


@pytest.mark.parametrize(
    ("answers", "quote", "kept", "disputed"),
    [
        (["Rome", "Tarn Harbour"], QUOTE, ("Tarn Harbour",), True),
        (["Rome", "Tarn Harbour"], "Mara Holt was born in Rome.", ("Rome", "Tarn Harbour"), True),
        (["Tarn Harbour", "1871"], QUOTE, ("Tarn Harbour", "1871"), False),
    ],
)
def test_verified_quote_wins(run, answers, quote, kept, disputed):
    def step(prompt):
        passage = prompt.passage_with(QUOTE)
        return {"answers": answers, "support": [{"piece": passage.number if passage else 1, "quote": quote}]}

    asked = run(replies={"decompose": listed("Where was Mara Holt born?"), "step": step})
    assert asked.events("step_answered")[0].answers == kept
    assert any("disagree" in note for note in asked.answer.notes) == disputed
    assert "; ".join(kept) in asked.shown("draft")[0].user


# ---- unread prompts of the published reading ----


def test_unread_replies_as_published_are_never_empty_contexts(run):
    names = ["refine_graph", "ground_text", "ground_graph", "answer", "published_expand"]
    asked = run(replies={"refine_text": "", **dict.fromkeys(names, "{}")}, **PUBLISHED)
    # what could not be refined is shown as it was found; what could not be grounded stays as it is
    assert any("# Mara Holt" in prompt.user for prompt in asked.shown("published_draft"))
    assert {event.text for event in asked.events("grounded")} >= {"On which island is the town #1?"}
    assert not any(event.filled for event in asked.events("grounded"))
    assert not any(event.read for event in asked.events("step_answered"))
    unread = run(replies={"published_draft": "", "answer": {"answers": ["Corrin"]}}, **PUBLISHED)
    assert "published_verify" not in unread.kinds and not unread.answer.accepted
    assert str(unread.answer) == "Corrin" and LAST_STEP in unread.answer.notes


# ---- budgets ----


def test_spent_budget_returns_the_last_draft_or_the_last_answered_step(run):
    found = [run(budget__calls=calls).answer for calls in range(7)]
    assert [answer.status for answer in found[:6]] == ["budget_exhausted"] * 6 and found[6].status == "answered"
    assert [", ".join(each.name for each in answer.answers) for answer in found] == [
        *("", "", "Tarn Harbour", "Corrin", "Ben Aske", "Ben Aske", "Ben Aske")
    ]
    assert LAST_STEP in found[4].notes and LAST_STEP not in found[5].notes
    assert not any(answer.accepted for answer in found[2:6])
    published = [run(budget__calls=calls, **PUBLISHED).answer for calls in (1, 6, 20, 24)]
    assert {answer.status for answer in published} == {"budget_exhausted"}
    assert [str(answer) for answer in published][1:] == ["Tarn Harbour", "Ben Aske", "Ben Aske"]


@pytest.mark.parametrize("preset", ["ours", "as-published"])
def test_no_prompt_where_nothing_can_be_found(run, tmp_path, preset):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Mara Holt was born in Tarn Harbour.")
    build_corpus(tmp_path / "corpus", [tmp_path / "docs"], embeddings="off")
    asked = run(folder=tmp_path / "corpus", ask__preset=preset, graphsearch__channels="relational")
    assert not asked.kinds and asked.answer.reason == NOTHING
