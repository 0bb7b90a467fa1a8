"""Think-on-Graph's copies of six data sets (Sun et al. 2024), with topic entities added by its authors.

Each file is one JSON array. `topic_entity` maps the ids of topic entities to names; the ids are from Freebase, or for
QALD-10 from Wikidata. `qid_topic_entity` maps Wikidata ids to names and is read only for QALD-10. Answers are names in
CWQ, SimpleQuestions and WebQuestions, and a map from ids to names in QALD-10. In WebQSP and GrailQA, answers have the
format of the original data set.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.formats.freebase import grailqa, page_name, webqsp
from kgqa.evaluation.datasets.query_topics import WIKIDATA
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_QID = re.compile(r"Q[1-9]\d*\Z")


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question; the records of SimpleQA.json have one hop."""
    return _with_topics(_ORIGINAL.get(dataset, _plain)(record, number, dataset), record)


_ORIGINAL = {"tog-webqsp": webqsp, "tog-grailqa": grailqa}


def _with_topics(question: GoldQuestion, record: Record) -> GoldQuestion:
    """Replace the topic entities of the data set by the topic entities that ToG's authors added."""
    given = _mapping(record, "topic_entity")
    if not given and question.dataset == "tog-qald":
        given = _mapping(record, "qid_topic_entity")
    if not given:
        return question
    named = {_iri(ident): name for ident, name in given.items()}
    sparql = question.sparql[0] if question.sparql else ""
    return replace(
        question,
        topics=tuple(named),
        topic_names=fields.distinct([name for name in named.values() if name]),
        row=fields.row_with(record, sparql, tuple(named)),
    )


def _plain(record: Record, number: int, dataset: str) -> GoldQuestion:
    key = "answers" if "answers" in record else "answer"
    value = record.get(key)
    if isinstance(value, dict):
        items = [_by_id(ident, name) for ident, name in _mapping(record, key).items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = [
            fields.entity_or_value(
                fields.text_of(item, "answer_id"), fields.text_of(item, "answer"), fields.texts_of(item, "aliases")
            )
            for item in fields.objects_of(record, key)
        ]
    elif isinstance(value, list):
        items = [GoldAnswer("", name.strip()) for name in fields.texts_of(record, key)]
    else:
        items = [GoldAnswer("", fields.text_of(record, key))]
    answers = fields.answers_of(items)
    sparql = fields.text_of(record, "sparql")
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.text_of(record, "ID") or fields.text_of(record, "id") or str(number),
        dataset=dataset,
        number=number,
        topic_names=page_name(fields.text_of(record, "url")),
        answers=answers,
        hops=1 if dataset == "tog-simpleqa" else None,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=fields.text_of(record, "compositionality_type"),
        row=fields.row_with(record, sparql, ()),
    )


def _mapping(record: Record, key: str) -> dict[str, str]:
    value = record.get(key) or {}
    if not isinstance(value, dict):
        raise ValueError(f'"{key}" must map ids to names')
    return {ident: fields.text_of(value, ident) for ident in value if ident.strip()}


def _iri(ident: str) -> str:
    return WIKIDATA + ident if _QID.match(ident) else fields.freebase_id(ident) or ident


def _by_id(ident: str, name: str) -> GoldAnswer:
    """Build an answer for QALD-10; in ToG's copy, the id of a number or date is its value."""
    return GoldAnswer(WIKIDATA + ident, name) if _QID.match(ident) else GoldAnswer("", name or ident)
