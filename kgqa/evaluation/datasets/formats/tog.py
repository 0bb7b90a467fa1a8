"""Think-on-Graph's copies of six data sets (Sun et al. 2024), with topic entities added by its authors.

Each file is one JSON array. `topic_entity` maps the ids of topic entities to names; the ids are from Freebase, or for
QALD-10 from Wikidata. `qid_topic_entity` maps Wikidata ids to names and is read only for QALD-10. Answers are names in
CWQ, SimpleQuestions and WebQuestions, and a map from ids to names in QALD-10. In WebQSP and GrailQA, answers have the
format of the original data set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.formats import grailqa, webqsp
from kgqa.evaluation.datasets.formats.webquestions import page_name
from kgqa.evaluation.datasets.query_topics import WIKIDATA
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

Make = Callable[[Record, int], GoldQuestion]
WIKIDATA_COPY = "tog-qald"
_QID = re.compile(r"Q[1-9]\d*\Z")


def read_webqsp(file: Path, dataset: str = "tog-webqsp") -> Iterator[GoldQuestion]:
    """Read ToG's WebQSP.json: the records of WebQuestionsSP with topic entities."""
    return _read(file, dataset, lambda record, number: webqsp.question_of(record, number, dataset), ("Questions",))


def read_grailqa(file: Path, dataset: str = "tog-grailqa") -> Iterator[GoldQuestion]:
    """Read ToG's grailqa.json: 1,000 records of GrailQA with topic entities."""
    return _read(file, dataset, lambda record, number: grailqa.question_of(record, number, dataset))


def read_cwq(file: Path, dataset: str = "tog-cwq") -> Iterator[GoldQuestion]:
    """Read ToG's cwq.json: the test questions of ComplexWebQuestions, each with one name as its answer."""
    return _read(file, dataset, partial(_plain, dataset=dataset))


def read_webquestions(file: Path, dataset: str = "tog-webquestions") -> Iterator[GoldQuestion]:
    """Read ToG's WebQuestions.json: the test questions of WebQuestions, each with a list of names as answers."""
    return _read(file, dataset, partial(_plain, dataset=dataset))


def read_simplequestions(file: Path, dataset: str = "tog-simpleqa") -> Iterator[GoldQuestion]:
    """Read ToG's SimpleQA.json: 1,000 test questions of SimpleQuestions, each with one name as its answer."""
    return _read(file, dataset, partial(_plain, dataset=dataset, hops=1))


def read_qald(file: Path, dataset: str = "tog-qald") -> Iterator[GoldQuestion]:
    """Read ToG's qald_10-en.json: 333 questions of QALD-10; entities are full IRIs."""
    return _read(file, dataset, partial(_plain, dataset=dataset))


def _read(file: Path, dataset: str, make: Make, within: Sequence[str] = ()) -> Iterator[GoldQuestion]:
    return record_stream.questions_in(
        file, dataset, lambda record, number: _with_topics(make(record, number), record), within=within
    )


def _with_topics(question: GoldQuestion, record: Record) -> GoldQuestion:
    """Replace the topic entities of the data set by the topic entities that ToG's authors added."""
    given = _mapping(record, "topic_entity")
    if not given and question.dataset == WIKIDATA_COPY:
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


def _plain(record: Record, number: int, *, dataset: str, hops: int | None = None) -> GoldQuestion:
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
        hops=hops,
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
