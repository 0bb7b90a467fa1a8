"""Questions about Wikidata: QALD and LC-QuAD 2.0.

QALD (QALD-10: Usbeck et al. 2023): an object with the list `questions`, in several languages. The answers are given as
SPARQL JSON results of the gold query.

LC-QuAD 2.0 (Dubey et al. 2019): one JSON array with a query for Wikidata and one for DBpedia, and no answers. In copies
with a list `answer`, this list gives the gold answers; otherwise the gold query must be run on the graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import XSD, Record
from kgqa.evaluation.datasets.query_topics import WIKIDATA, wikidata_topics
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_NOTHING = ("", "n/a", "na", "none")
_MARKS = str.maketrans("", "", "{}<>")


def qald(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question; without an English wording, the first language in the file is used.

    Entities are full IRIs. The topic entities are the entities in the gold query; `kind` is `ask` for yes-no questions,
    and `aggregation` for questions that the file marks as aggregation.
    """
    query = record.get("query") or {}
    if not isinstance(query, dict):
        raise ValueError('"query" must be an object')
    sparql = fields.text_of(query, "sparql")
    results = fields.objects_of(record, "answers")
    answers = fields.answers_of([answer for result in results for answer in result_answers(result)])
    topics = wikidata_topics(sparql)
    asks = any("boolean" in result for result in results)
    return GoldQuestion(
        text=_qald_wording(record),
        id=fields.ident(record, "id"),
        dataset=dataset,
        number=number,
        topics=topics,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind="ask" if asks else "aggregation" if record.get("aggregation") in (True, "true") else "",
        row=fields.row_with(record, sparql, topics),
    )


def _qald_wording(record: Record) -> str:
    wordings = fields.objects_of(record, "question")
    wordings.sort(key=lambda wording: fields.text_of(wording, "language") != "en")
    if not wordings:
        raise ValueError('"question" must contain the question in some language')
    return fields.needed(wordings[0], "string")


def result_answers(result: Record) -> Iterator[GoldAnswer]:
    """Yield the answers in a SPARQL JSON result (SPARQL 1.1, section 3): all values of the first variable.

    Raises:
        ValueError: the object is not a SPARQL JSON result.
    """
    if "boolean" in result:
        if not isinstance(result["boolean"], bool):
            raise ValueError('"boolean" must be true or false')
        yield GoldAnswer("", str(result["boolean"]).lower(), XSD + "boolean")
        return
    head, body = result.get("head") or {}, result.get("results") or {}
    if not isinstance(head, dict) or not isinstance(body, dict):
        raise ValueError('"answers" must be a SPARQL JSON result')
    names = fields.texts_of(head, "vars")
    for binding in fields.objects_of(body, "bindings"):
        name = next((name for name in names if name in binding), next(iter(binding), ""))
        term = binding.get(name)
        if not isinstance(term, dict):
            raise ValueError('"bindings" must contain terms')
        value = fields.text_of(term, "value")
        if fields.text_of(term, "type") == "uri":
            yield GoldAnswer(value, "")
        else:
            yield GoldAnswer("", value, fields.text_of(term, "datatype"))


def lcquad(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question.

    `kind` is the shape of the query (`subgraph`), which some records give as a list. A missing question is replaced by
    its paraphrase, or if that is missing, by its template text.
    """
    sparql = fields.text_of(record, "sparql_wikidata")
    topics = wikidata_topics(sparql)
    several = isinstance(record.get("subgraph"), list)
    answers = fields.answers_of([_lcquad_answer(text) for text in fields.texts_of(record, "answer")])
    return GoldQuestion(
        text=_lcquad_wording(record),
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


def _lcquad_wording(record: Record) -> str:
    for key in ("question", "paraphrased_question"):
        # a list, usually empty, stands for a missing paraphrase
        text = "" if isinstance(record.get(key), list) else fields.text_of(record, key)
        if text.lower() not in _NOTHING:
            return text
    return " ".join(fields.needed(record, "NNQT_question").translate(_MARKS).split())


def _lcquad_answer(text: str) -> GoldAnswer:
    if text.startswith(WIKIDATA):
        return GoldAnswer(text, "")
    return GoldAnswer(WIKIDATA + text, "") if text[:1] == "Q" and text[1:].isdecimal() else GoldAnswer("", text)
