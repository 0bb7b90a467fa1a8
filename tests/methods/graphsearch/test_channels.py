"""The two channels: what their queries are, what they find, and what prompts show of it."""

from __future__ import annotations

import pytest

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem, HyperedgeItem, Party, StatementItem, digest
from kgqa.methods.graphsearch.channels import RELATIONAL, SEMANTIC

PLAN = [("Where was Mara Holt born?", "Mara Holt", "Birthplace"), ("On which island is the town #1?", "#1", "Island")]
FACTS = {
    "巴黎": ("巴黎是法国的首都。", Party("巴黎"), "首都", Party("法国")),
    "Wheat": ("Wheat had a gross income of $1,363.00 per acre.", Party("wheat"), "gross income", Party("$1,363.00")),
    "Oats": ("Oats had a gross income of $658.00 per acre.", Party("oats"), "gross income", Party("$658.00")),
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A corpus with facts in Chinese, with digits and with signs, and a hyperedge."""
    path = tmp_path_factory.mktemp("corpus") / "texts"
    folder = CorpusFolder(path)
    folder.create()
    with Editor(folder) as editor:
        for title, (text, subject, relation, object_) in FACTS.items():
            document = DocumentItem(f"{title}.txt", title, "text/plain", digest(text))
            chunk = ChunkItem(document.document, 0, len(text), text)
            place = (document.document, chunk.chunk, 0, len(text))
            edge = HyperedgeItem(text, (("subject", subject), ("object", object_)), 1.0)
            items = [Addition(StatementItem(subject, relation, object_), *place), Addition(edge, *place)]
            additions = [Addition(document, document.document), Addition(chunk, *place), *items]
            editor.apply("insert", additions, agent="reader", texts={document.document: text})
        editor.publish()
    return path


def planned(*steps):
    found = [
        {"question": text, "triples": [[subject, relation, f"#{number}"]]}
        for number, (text, subject, relation) in enumerate(steps, 1)
    ]
    return {"sub_questions": found}


def test_queries_of_both_channels(run):
    asked = run(replies={"decompose": planned(*PLAN)})
    queries = [(event.step, event.channel, event.query) for event in asked.events("retrieved")]
    semantic = [each for each in queries if each[1] == SEMANTIC]
    assert semantic == [(1, SEMANTIC, PLAN[0][0]), (2, SEMANTIC, "On which island is the town Tarn Harbour?")]
    relational = [each for each in queries if each[1] == RELATIONAL]
    assert (1, RELATIONAL, "Mara Holt Birthplace") in relational and (
        2,
        RELATIONAL,
        "Tarn Harbour Island",
    ) in relational
    found = [iri for event in asked.events("retrieved") if event.channel == RELATIONAL for iri in event.pieces]
    assert any(iri.startswith("urn:kgqa:path:") for iri in found)


def test_facts_lead_to_a_query(run):
    third = ("Which is the highest hill of #2?", "#2", "Highest hill")
    answer = run(replies={"decompose": planned(*PLAN, third)}).answer
    assert answer.grounding == "graph" and answer.sparql and answer.query_class in ("exact", "restricted")
    assert str(answer) == "Ben Aske" and {each.kind for each in answer.evidence} >= {"path", "quote", "statement"}


@pytest.mark.parametrize(
    ("name", "relation", "words"),
    [("巴黎", "首都", "巴黎 首都 法国"), ("$1,363.00", "gross income", "wheat gross income")],
)
def test_all_scripts_and_digits_reach_the_index(run, scripts, name, relation, words):
    plan = {"sub_questions": [{"question": f"{name}?", "triples": [["#1", relation, name]]}]}
    asked = run(f"{name}?", replies={"decompose": plan, "step": {"answers": [], "support": []}}, folder=scripts)
    (prompt,) = asked.shown("step")
    assert words in prompt.user.partition("Facts of a graph")[2].splitlines()[2]
    relational = next(event for event in asked.events("retrieved") if event.channel == RELATIONAL)
    assert name in relational.query


def test_facts_name_their_passage_or_their_sentence(run, scripts):
    plan = {"sub_questions": [{"question": "wheat?", "triples": [["oats", "gross income", "#1"]]}]}
    asked = run("wheat?", replies={"decompose": plan}, folder=scripts, graphsearch__top_k=1)
    user = asked.shown("step")[0].user
    assert "Passage 1" in user and "Passage 2" not in user
    assert "Fact 2: oats gross income $658.00 (stated as: Oats had a gross income of $658.00 per acre.)" in user
    quote = "Oats had a gross income of $658.00"
    step = {"answers": ["$658.00"], "support": [{"piece": 2, "quote": quote}]}
    draft = {"claims": [{"claim": "Oats.", "piece": 2, "quote": quote}], "answers": ["$658.00"], "response": ""}
    replies = {"decompose": plan, "step": step, "draft": draft, "verify": {"failed": [], "verdict": "yes"}}
    asked = run("wheat?", replies=replies, folder=scripts, graphsearch__top_k=1)
    assert [passage.text for passage in asked.shown("verify")[0].passages] == [FACTS["Oats"][0]]
    answer = asked.answer
    assert answer.accepted and answer.citations[0].verified and answer.grounding in ("text", "graph")


@pytest.mark.parametrize(
    ("settings", "passages", "facts"),
    [
        ({"graphsearch__channels": "semantic"}, True, False),
        ({"graphsearch__channels": "relational"}, False, True),
        ({"graphsearch__channels": "relational", "graphsearch__relational_from": "all"}, True, True),
        ({"graphsearch__channels": "semantic", "graphsearch__semantic_from": "graph"}, False, True),
        ({"graphsearch__relational_from": "text"}, True, False),
    ],
)
def test_sources_of_the_channels(run, settings, passages, facts):
    asked = run(replies={"decompose": planned(*PLAN)}, **settings)
    shown = asked.shown("step")[0].user
    assert ("Passage 1" in shown, "\nFact " in shown) == (passages, facts)
    published = run(ask__preset="as-published", **settings)
    assert ("refine_text" in published.kinds, "refine_graph" in published.kinds) == (passages, facts and not passages)


def test_hyperedges_are_asked_for_where_there_are_some(run, scripts):
    given = {"ask__preset": "as-published", "graphsearch__retriever": "hyper"}
    answer = run(**given).answer
    assert answer.status == "failed" and "needs hyperedges, and the corpus has none" in answer.reason
    assert "decompose_graph" in run("wheat?", folder=scripts, replies={"published_verify": "Yes"}, **given).kinds


def test_as_published_the_relational_channel_finds_entities_and_tells_no_fact_twice(run):
    asked = run(ask__preset="as-published")
    (refined, *_) = (each.user for each in asked.shown("refine_graph"))
    listed = [line.partition(". ")[2] for line in refined.splitlines() if line[:1].isdigit()]
    assert "Mara Holt" in listed and listed.count("Mara Holt Birthplace Tarn Harbour") == 1
    found = [event.pieces for event in asked.events("retrieved") if event.channel == RELATIONAL]
    assert not any(iri.startswith("urn:kgqa:path:") for pieces in found for iri in pieces)  # each has one step
