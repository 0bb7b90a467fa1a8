"""A small corpus, and traces of methods over text that are built from events."""

from __future__ import annotations

from pathlib import Path

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem, digest
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.runs.records import Record
from kgqa.model import Answer, Citation, Literal, Named, Question, QuoteEvidence, Span
from kgqa.storage.answer_json import answer_object
from kgqa.trace import (
    DraftClaim,
    Drafted,
    DraftVerified,
    Event,
    EvidenceEdited,
    Grounded,
    LocalFact,
    PiecesKept,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SubQuestion,
    SufficiencyJudged,
)

TEXTS = {
    "Skerry Light": "The Skerry Light was built in 1871.\nIts architect was Ines Marr, who also drew the harbour of Oban.",
    "Ines Marr": "Ines Marr was an architect. She was born in Kirkwick on 3 May 1832, and died in Leith.",
    "Kirkwick": "Kirkwick is a fishing town. Its mayor is called the provost.",
}
QUESTION = "Where was the architect of the Skerry Light born?"
DOCUMENTS = {
    title: DocumentItem(f"docs/{title}.txt", title, "text/plain", digest(text)) for title, text in TEXTS.items()
}
CHUNKS = {title: ChunkItem(DOCUMENTS[title].document, 0, len(text), text) for title, text in TEXTS.items()}
LIGHT, MARR, TOWN = (CHUNKS[title].chunk for title in TEXTS)
ARCHITECT, BORN = "Its architect was Ines Marr", "She was born in Kirkwick on 3 May 1832"


def write_corpus(path: Path) -> Path:
    """Write a corpus of the three texts."""
    corpus = CorpusFolder(path)
    corpus.create()
    with Editor(corpus) as editor:
        for title, text in TEXTS.items():
            document, chunk = DOCUMENTS[title], CHUNKS[title]
            place = (document.document, chunk.chunk, 0, len(text))
            additions = [Addition(document, document.document), Addition(chunk, *place)]
            editor.apply("insert", additions, agent="reader", texts={document.document: text})
        editor.publish()
    return path


RAG: tuple[Event, ...] = (
    Retrieved(query=QUESTION, pieces=(LIGHT, MARR, TOWN)),
    PiecesKept(pieces=(LIGHT, MARR)),
)
ROUNDS: tuple[Event, ...] = (
    Retrieved(query=QUESTION, pieces=(LIGHT, TOWN)),
    PiecesKept(pieces=(LIGHT,)),
    StepAnswered(question=QUESTION, answers=(), round=1),
    SufficiencyJudged(round=1, verdict="no", missing="the birthplace of Ines Marr"),
    Planned(round=1, sub_questions=(SubQuestion(1, "Where was Ines Marr born?"), SubQuestion(2, "Who was Ines Marr?"))),
    Retrieved(query="Where was Ines Marr born?", pieces=(MARR, LIGHT), step=1),
    PiecesKept(pieces=(MARR, LIGHT), step=1),
    Retrieved(query="Who was Ines Marr?", pieces=(MARR,), step=2),
    PiecesKept(pieces=(MARR,), step=2),
    EvidenceEdited(
        step=1,
        added=(
            LocalFact("Skerry Light", "architect", "Ines Marr", LIGHT, ARCHITECT),
            LocalFact("Marr", "born in", "Kirkwick", MARR, BORN),
        ),
        refused=1,
    ),
    EvidenceEdited(
        step=2,
        added=(LocalFact("Ines Marr", "died in", "Leith", MARR, "and died in Leith"),),
        merged=(("Ines Marr", "Marr"),),
    ),
    EvidenceEdited(step=0, removed=(TOWN, "Ines Marr died in Leith")),
    StepAnswered(question=QUESTION, answers=("Kirkwick",), quotes=2, verified=2, round=2),
    SufficiencyJudged(round=2, verdict="yes", accepted=True),
    Stopped(round=2, why="The answer was accepted."),
)
"""Rounds of answer, verdict, sub-questions and evidence, as ToG-3 records them."""
STEPS: tuple[Event, ...] = (
    Planned(
        sub_questions=(
            SubQuestion(1, "Who was the architect of the Skerry Light?"),
            SubQuestion(2, "Where was #1 born?", (1,)),
            SubQuestion(3, "Who leads the town #2?", (2,)),
        )
    ),
    Retrieved(query="Who was the architect of the Skerry Light?", pieces=(LIGHT,), step=1, channel="semantic"),
    Retrieved(query="Who was the architect of the Skerry Light?", pieces=("urn:kgqa:statement:x",), step=1,
              channel="relational"),
    PiecesKept(pieces=(LIGHT,), step=1),
    StepAnswered(question="Who was the architect of the Skerry Light?", answers=("Ines Marr",), quotes=1, verified=1,
                 step=1),
    Grounded(step=2, text="Where was Ines Marr born?"),
    Retrieved(query="Where was Ines Marr born?", pieces=(TOWN,), step=2, channel="semantic"),
    PiecesKept(pieces=(TOWN,), step=2),
    StepAnswered(question="Where was Ines Marr born?", answers=(), step=2),
    Grounded(step=3, text="Who leads the town born Ines Marr?", filled=False),
    StepAnswered(question="Who leads the town born Ines Marr?", answers=(), read=False, step=3),
    Drafted(
        text="The architect is Ines Marr; she was born in Oban.",
        claims=(DraftClaim("Ines Marr was the architect.", True), DraftClaim("She was born in Oban.", False)),
    ),
    DraftVerified(verdict="no", failed=(2,)),
    Planned(
        round=1,
        sub_questions=(
            SubQuestion(4, "In which town did Ines Marr grow up?", (2,)),
            SubQuestion(5, "What is the birthplace of the architect?"),
        ),
    ),
    Retrieved(query="In which town did Ines Marr grow up?", pieces=(MARR,), step=4),
    PiecesKept(pieces=(MARR,), step=4),
    StepAnswered(question="In which town did Ines Marr grow up?", answers=("Kirkwick",), quotes=1, verified=1, step=4,
                 round=1),
    Drafted(text="She was born in Kirkwick.", claims=(DraftClaim("She was born in Kirkwick.", True),), round=1),
    DraftVerified(verdict="yes", round=1),
    Stopped(round=1, why="The draft was accepted."),
)  # fmt: skip
"""A plan with dependent sub-questions, drafts and expansions, as GraphSearch records them."""


def text_answer(method: str = "tog3", trace: tuple[Event, ...] = ROUNDS) -> Answer:
    """Return an answer with two verified citations, an invented one, and a trace."""
    begin = TEXTS["Ines Marr"].index(BORN)
    born = Span(DOCUMENTS["Ines Marr"].document, MARR, begin, begin + len(BORN), "docs/Ines Marr.txt")
    begin = TEXTS["Skerry Light"].index(ARCHITECT)
    architect = Span(DOCUMENTS["Skerry Light"].document, LIGHT, begin, begin + len(ARCHITECT), "docs/Skerry Light.txt")
    return Answer(
        Question(QUESTION, id="light"),
        "answered",
        (Named(Literal("Kirkwick"), "", "Kirkwick"),),
        evidence=(QuoteEvidence(born, BORN, True),),
        grounding="text",
        method=method,
        response="The architect of the Skerry Light, Ines Marr, was born in Kirkwick.",
        citations=(
            Citation("Ines Marr was the architect.", LIGHT, architect, ARCHITECT, True),
            Citation("She was born in Kirkwick.", MARR, born, BORN, True),
            Citation("She lived in Oban.", MARR, None, "She lived in Oban", False),
        ),
        trace=trace,
    )


def text_record(method: str = "tog3", trace: tuple[Event, ...] = ROUNDS) -> Record:
    """Return the record of `text_answer`."""
    answer = answer_object(text_answer(method, trace), trace=True)
    scores = {"hit@1": 1.0, "f1": 1.0, "em": 1.0}
    return Record("light", "towns", QUESTION, answer, (GoldAnswer("", "Kirkwick"),), scores=scores)
