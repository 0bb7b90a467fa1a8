"""LC-QuAD 2.0 (Dubey et al. 2019): one JSON array with a query for Wikidata and one for DBpedia, and no answers.

In copies with a list `answer`, this list gives the gold answers; otherwise the gold query must be run on the graph.
"""

from __future__ import annotations

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.query_topics import WIKIDATA, wikidata_topics
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_NOTHING = ("", "n/a", "na", "none")
_MARKS = str.maketrans("", "", "{}<>")


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question.

    `kind` is the shape of the query (`subgraph`), which some records give as a list. A missing question is replaced by
    its paraphrase, or if that is missing, by its template text.
    """
    sparql = fields.text_of(record, "sparql_wikidata")
    topics = wikidata_topics(sparql)
    several = isinstance(record.get("subgraph"), list)
    answers = fields.answers_of([_answer(text) for text in fields.texts_of(record, "answer")])
    return GoldQuestion(
        text=_wording(record),
        id=fields.ident(record, "uid"),
        dataset=dataset,
        number=number,
        topics=topics,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=", ".join(fields.texts_of(record, "subgraph")) if several else fields.text_of(record, "subgraph"),
        row=fields.row_with(record, sparql, topics),
    )


def _wording(record: Record) -> str:
    for key in ("question", "paraphrased_question"):
        # a list, usually empty, stands for a missing paraphrase
        text = "" if isinstance(record.get(key), list) else fields.text_of(record, key)
        if text.lower() not in _NOTHING:
            return text
    return " ".join(fields.needed(record, "NNQT_question").translate(_MARKS).split())


def _answer(text: str) -> GoldAnswer:
    if text.startswith(WIKIDATA):
        return GoldAnswer(text, "")
    return GoldAnswer(WIKIDATA + text, "") if text[:1] == "Q" and text[1:].isdecimal() else GoldAnswer("", text)
