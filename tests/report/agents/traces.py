"""Traces of methods that act in turns, built from events."""

from __future__ import annotations

import json

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.runs.records import Record
from kgqa.model import Answer, Entity, Literal, Named, PathEvidence, Question, RelationPath, Step
from kgqa.storage.answer_json import answer_object
from kgqa.trace import (
    ActionRead,
    AnswerVerified,
    Called,
    EditDecided,
    EditProposed,
    Event,
    Finished,
    ProposedSource,
    Reflected,
    Seen,
    StepPlanned,
)

QUESTION = "Where was the architect of the Skerry Light born?"
LIGHT = "Skerry Light → architect"
BORN = f"{LIGHT} → place of birth"
WORKS = "\n".join(f"w{number}, Work {number}, lighthouse" for number in range(1, 41))

GRAPH_TURNS: tuple[Event, ...] = (
    StepPlanned(text="The question asks for a birthplace. First find the light, then its architect."),
    StepPlanned(text="The architect of the Skerry Light.", need=True),
    ActionRead(
        reply="Neighbour[Retrieve[Skerry Light], architect]",
        actions=("Neighbour[Retrieve[Skerry Light], architect]",),
    ),
    Called(name="Retrieve", arguments=("Skerry Light",), paths=("Skerry Light",), names=("Skerry Light",), total=1),
    Called(name="Neighbour", arguments=("Retrieve[Skerry Light]", "architect"), paths=(LIGHT,), names=("Ines Marr",),
           total=1),
    Seen(text="Neighbour: 1 value\np1, Ines Marr, person", count=1),
    StepPlanned(text="Look at what else she built.", step=2),
    StepPlanned(text="Her works.", need=True, step=2),
    ActionRead(reply="Neighbour[p1, work], Feature[p1, birthplace]",
               actions=("Neighbour[p1, work]", "Feature[p1, birthplace]"), step=2),
    Called(name="Neighbour", arguments=("p1", "work"), paths=(f"{LIGHT} → work",),
           names=tuple(f"Work {number}" for number in range(1, 21)), total=40, step=2),
    Called(name="Feature", arguments=("p1", "birthplace"), failed=True, step=2),
    Seen(text=f"Neighbour: 40 values\n{WORKS}\nFeature: there is no “birthplace”. Nearest: place of birth", count=40,
         approximate=True, step=2),
    Finished(text="Oban", answers=("Oban",), why="“Oban” is in no observation", step=3),
    AnswerVerified(verdict="no", text="Oban was not seen.", asked=False),
    Reflected(text="Recap: the birthplace was asked.\nAnalysis: the works did not help.\nStrategy: use place of birth."),
    StepPlanned(text="Use the relation that was named: place of birth.", trial=1),
    StepPlanned(text="Where Ines Marr was born.", need=True, trial=1),
    ActionRead(reply="Neighbour[p1, place of birth]", actions=("Neighbour[p1, place of birth]",), trial=1),
    Called(name="Neighbour", arguments=("p1", "place of birth"), paths=(BORN,), names=("Kirkwick",), total=1, trial=1),
    Seen(text="Neighbour: 1 value\nc1, Kirkwick, town", count=1, trial=1),
    ActionRead(reply="Finish[Kirkwick]", actions=("Finish[Kirkwick]",), trial=1, step=2),
    Finished(text="Kirkwick", answers=("Kirkwick",), grounded=True, trial=1, step=2),
    AnswerVerified(verdict="yes", text="Kirkwick was seen and is a town.", trial=1),
)  # fmt: skip
"""Two trials: the first answer is rejected, the second follows from the graph."""


def result(number: int, text: str, trust: str = "corpus") -> str:
    """Return a result of a search as the language model is shown it."""
    more = {"from": "a page", "contradicts": [1]} if trust == "web" else {}
    return json.dumps({"number": number, "text": text, "kind": "hyperedge", "trust": trust, "score": 0.5, **more})


def tool(name: str, **arguments: object) -> str:
    """Return a call of a tool as the trace has it."""
    return json.dumps({"name": name, "arguments": arguments})


OLD = "Ines Marr was born in Oban in 1832."
NEW = "Ines Marr was born in Kirkwick in 1832."
_WEB = ProposedSource(3, "https://example.org/marr", "web")
_CORPUS = ProposedSource(1, "urn:kgqa:chunk:1", "corpus")
TOOL_TURNS: tuple[Event, ...] = (
    Seen(text=result(1, OLD), count=1, step=0),
    ActionRead(reply="...", actions=(tool("graph_search", query="Ines Marr"),), thought="The graph comes first."),
    Called(name="graph_search", arguments=('{"query": "Ines Marr"}',), names=(OLD,), total=2),
    Seen(text="\n".join([result(1, OLD), result(2, "The Skerry Light was built by Ines Marr.")]), count=2),
    ActionRead(reply="...", actions=(tool("web_search", query="birthplace of Ines Marr"),), step=2,
               thought="Is that right?"),
    Called(name="web_search", arguments=('{"query": "birthplace of Ines Marr"}',), total=1, step=2),
    Seen(text=result(3, "She was born in Kirkwick on 3 May 1832.", "web"), count=1, step=2),
    ActionRead(reply="...", actions=(tool("update", target=1, new_content=NEW),), step=3,
               thought="The graph is wrong."),
    EditProposed(proposal=1, edit="update", content=NEW, target="urn:kgqa:hyperedge:1", target_text=OLD,
                 reason="The web contradicts it.", sources=(_WEB, _CORPUS), step=3),
    EditDecided(proposal=1, edit="urn:kgqa:edit:7", state="overlay", step=3),
    Called(name="update", arguments=(json.dumps({"target": 1, "new_content": NEW}),), names=(NEW,), total=1, step=3),
    Seen(text=f"Done.\n```\n{result(4, NEW, 'web')}\n```\n2 replies are left.", count=1, step=3),
    EditProposed(proposal=2, edit="delete", target="urn:kgqa:hyperedge:2",
                 target_text="The Skerry Light was built by Ines Marr.", reason="Not needed.", step=4),
    EditDecided(proposal=2, state="rejected", rule="sources", why="A deletion needs a source that contradicts the text.", step=4),
    EditProposed(proposal=3, edit="insert", content="Kirkwick is a town.", reason="New.", sources=(_WEB,), step=5),
    Called(name="delete", arguments=("{}",), failed=True, step=4),
    ActionRead(reply="<answer>Kirkwick</answer", problem="The answer is not closed.", step=5),
    ActionRead(reply="<think>Done.</think><answer>Kirkwick</answer>", thought="Done.", step=6),
    Finished(text="Kirkwick", answers=("Kirkwick",), grounded=True, step=6),
    EditDecided(proposal=1, edit="urn:kgqa:edit:7", state="proposed", step=6),
)  # fmt: skip
"""Searches, an edit that waits for review, one that a gate rejected, and one without a decision."""

_AT = "http://example.org/"
_LIGHT, _MARR, _TOWN = (
    Named(Entity(_AT + name), name, label)
    for name, label in (("l1", "Skerry Light"), ("p1", "Ines Marr"), ("c1", "Kirkwick"))
)
_STEPS = (Step(_AT + "architect", "out"), Step(_AT + "birthplace", "out"))
PATH = PathEvidence(RelationPath(Entity(_AT + "l1"), _STEPS), BORN, walks=((_LIGHT, _MARR, _TOWN),))


def acting_answer(trace: tuple[Event, ...] = GRAPH_TURNS) -> Answer:
    """Return an answer with a trace; that of a graph has its path."""
    if trace is TOOL_TURNS:
        named = Named(Literal("Kirkwick"), "", "Kirkwick")
        return Answer(Question(QUESTION, id="light"), "answered", (named,), grounding="model", trace=trace)
    return Answer(
        Question(QUESTION, id="light"), "answered", (_TOWN,), evidence=(PATH,), grounding="graph", trace=trace
    )


def acting_record(trace: tuple[Event, ...] = GRAPH_TURNS) -> Record:
    """Return the record of `acting_answer`."""
    answer = answer_object(acting_answer(trace), trace=True)
    scores = {"hit@1": 1.0, "f1": 1.0, "em": 1.0}
    return Record("light", "towns", QUESTION, answer, (GoldAnswer("", "Kirkwick"),), scores=scores)
