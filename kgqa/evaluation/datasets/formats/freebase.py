"""Questions about Freebase: CWQ, GrailQA, WebQSP, SimpleQuestions and WebQuestions.

ComplexWebQuestions 1.1 (Talmor and Berant 2018): one JSON array, answers with Freebase ids and aliases. The published
test file has no answers; copies with answers (`..._test_wans.json`) are read in the same way. The files have no topic
entities; the entities in the gold query are used, except types.

GrailQA 1.0 (Gu et al. 2021): one JSON array with levels of generalisation and graph queries. The topic entities are the
entity nodes of the graph query. The public test file has no answers and no graph queries.

WebQuestionsSP (Yih et al. 2016): an object with the list `Questions`, each with one or more semantic parses. As in the
official scorer (eval.py), every parse is an interpretation of the question, and the parse with the best score counts.
The official scorer leaves out questions without a good and complete parse; these have `support` = `not_scored`.
Questions without a gold answer have `support` = `no_gold`; the official scorer gives 1 to an empty answer, else 0.

SimpleQuestions (Bordes et al. 2015): lines of subject, relation, object and question, separated by tabs.

WebQuestions (Berant et al. 2013): one JSON array of objects with `url`, `utterance` and `targetValue`. Answers are
names; `targetValue` is a list in Lisp notation. The files have no ids and no topic entities: `topic_names` contains the
words in the address of the Freebase page, and ids are built from the position in the file, as in WebQuestionsSP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.query_topics import freebase_topics
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_SPLITS = ("train", "valid", "test")
_SITES = ("http://", "https://", "www.freebase.com/", "rdf.freebase.com/ns/", "/", "fb:")
_LISP = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))', re.DOTALL)
_PAGE = "/view/en/"


def cwq(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question."""
    sparql = fields.text_of(record, "sparql")
    topics = freebase_topics(sparql)
    answers = fields.answers_of([_cwq_answer(item) for item in fields.objects_of(record, "answers")])
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.ident(record, "ID"),
        dataset=dataset,
        number=number,
        topics=topics,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=fields.text_of(record, "compositionality_type"),
        row=fields.row_with(record, sparql, topics),
    )


def _cwq_answer(item: Record) -> GoldAnswer:
    """Build an answer; for dates and numbers, the id in the file is the value."""
    aliases = fields.texts_of(item, "aliases")
    return fields.entity_or_value(fields.text_of(item, "answer_id"), fields.text_of(item, "answer"), aliases)


def grailqa(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of the data set, or of a copy with the same keys, to a question.

    `level` is i.i.d., compositional or zero-shot; `kind` is the function in the query (count, argmax, >=, none, ...).
    """
    query = record.get("graph_query") or {}
    if not isinstance(query, dict):
        raise ValueError('"graph_query" must be an object')
    nodes = {
        ident: fields.text_of(node, "friendly_name")
        for node in fields.objects_of(query, "nodes")
        if fields.text_of(node, "node_type") == "entity" and (ident := fields.text_of(node, "id"))
    }
    answers = fields.answers_of([_grailqa_answer(item) for item in fields.objects_of(record, "answer")])
    sparql = fields.text_of(record, "sparql_query")
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.ident(record, "qid"),
        dataset=dataset,
        number=number,
        topics=tuple(nodes),
        topic_names=fields.distinct([name for name in nodes.values() if name]),
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=fields.text_of(record, "function"),
        level=fields.text_of(record, "level"),
        row=fields.row_with(record, sparql, tuple(nodes)),
    )


def _grailqa_answer(item: Record) -> GoldAnswer:
    argument = fields.text_of(item, "answer_argument")
    if fields.text_of(item, "answer_type") == "Value":
        return fields.typed_value(argument)
    return fields.entity_or_value(argument, fields.text_of(item, "entity_name"))


def webqsp(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of the data set, or of a copy with the same keys, to a question.

    `parses`: if there are several parses, the gold answers of each (empty for a parse without answers), starting with
    the best annotated parse; `sparql`: the queries of the parses in the same order; `answers`, `topics`: gold answers
    and topic entities of the first parse.
    """
    parses = sorted(
        fields.objects_of(record, "Parses"), key=lambda parse: (not _complete(parse), not _parse_answers(parse))
    )
    best: Record = parses[0] if parses else {}
    topic = fields.freebase_id(fields.text_of(best, "TopicEntityMid"))
    readings = tuple(map(_parse_answers, parses))
    support = ""
    if not any(map(_complete, parses)):
        support = fields.NOT_SCORED
    elif not any(readings):
        support = fields.NO_GOLD
    sparql = tuple(fields.text_of(parse, "Sparql") for parse in parses)
    topics = (topic,) if topic else ()
    return GoldQuestion(
        text=fields.needed(record, "RawQuestion", "ProcessedQuestion"),
        id=fields.ident(record, "QuestionId"),
        dataset=dataset,
        number=number,
        topics=topics,
        topic_names=tuple(filter(None, [fields.text_of(best, "TopicEntityName")])) if topic else (),
        answers=readings[0] if readings else (),
        parses=readings if len(readings) > 1 else (),
        support=support,
        sparql=sparql if any(sparql) else (),
        row=fields.row_with(record, sparql[0] if sparql else "", topics),
    )


def _parse_answers(parse: Record) -> tuple[GoldAnswer, ...]:
    found = []
    for item in fields.objects_of(parse, "Answers"):
        argument, name = fields.text_of(item, "AnswerArgument"), fields.text_of(item, "EntityName")
        if fields.text_of(item, "AnswerType") == "Value":
            found.append(fields.typed_value(argument))
        else:
            found.append(fields.entity_or_value(argument, name))
    return fields.answers_of(found)


def _complete(parse: Record) -> bool:
    """Whether the official scorer accepts this parse; always True for files without annotations."""
    comment = parse.get("AnnotatorComment")
    if not isinstance(comment, dict):
        return True
    quality = fields.text_of(comment, "QuestionQuality"), fields.text_of(comment, "ParseQuality")
    return all(given in ("", wanted) for given, wanted in zip(quality, ("Good", "Complete")))


def read_simplequestions(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a SimpleQuestions file; each has one hop.

    The only gold answer is the object of the triple in the file; the graph may contain further right answers.

    Raises:
        QuestionFileError: the file cannot be read, or a line does not have this format.
    """
    split = next((f"{name}_" for name in _SPLITS if name in file.name.lower()), "")

    def question_of(line: str, number: int) -> GoldQuestion:
        return _simple_question(line, number, dataset, f"{split}{number}")

    return record_stream.questions_of(file, dataset, record_stream.lines(file), question_of, kind=str, unit="line")


def _simple_question(line: str, number: int, dataset: str, ident: str) -> GoldQuestion:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) < 4 or not cells[3]:
        raise ValueError("subject, relation, object and question must be separated by tabs")
    subject, value = fields.freebase_id(cells[0]), fields.freebase_id(cells[2])
    relation = cells[1]
    for start in _SITES:
        relation = relation.removeprefix(start)
    relation = relation.replace("/", ".")
    if not subject or not value or "." not in relation:
        raise ValueError("subject, relation and object must be Freebase names such as www.freebase.com/m/0abc")
    return GoldQuestion(
        text=cells[3],
        id=ident,
        dataset=dataset,
        number=number,
        topics=(subject,),
        answers=(GoldAnswer(value, ""),),
        hops=1,
        row={"question": cells[3], "topic_entities": [{"id": subject}], "gold_path": [relation]},
    )


def read_webquestions(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a WebQuestions file.

    Raises:
        QuestionFileError: the file cannot be read, or a record does not have this format.
    """
    start = next((s for word, s in (("test", "WebQTest-"), ("train", "WebQTrn-")) if word in file.name.lower()), "")
    return record_stream.questions_in(
        file, dataset, lambda record, number: _web_question(record, number, dataset, start)
    )


def _web_question(record: Record, number: int, dataset: str, start: str) -> GoldQuestion:
    answers = fields.answers_of([GoldAnswer("", name) for name in descriptions(fields.text_of(record, "targetValue"))])
    return GoldQuestion(
        text=fields.needed(record, "utterance"),
        id=f"{start}{number}",
        dataset=dataset,
        number=number,
        topic_names=page_name(fields.text_of(record, "url")),
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        row=record,
    )


def page_name(url: str) -> tuple[str, ...]:
    """Return the words of a page's address: `james k polk` for `http://www.freebase.com/view/en/james_k_polk`."""
    _, found, key = url.partition(_PAGE)
    return (key.replace("_", " "),) if found and key else ()


def descriptions(text: str) -> list[str]:
    """Read the names in `(list (description "São Paulo") (description Japan))`; names without quotes may have spaces.

    Raises:
        ValueError: the text is not a list of descriptions.
    """
    if not text:
        return []
    found: list[str] = []
    at, depth = 0, 0
    words: list[str] = []
    while at < len(text):
        match = _LISP.match(text, at)
        if not match:
            if text[at:].strip():
                raise ValueError(f'"targetValue" is not a list of descriptions at character {at + 1}')
            break
        at = match.end()
        bracket, quoted, bare = match.groups()
        if bracket == "(":
            depth, words = depth + 1, []
        elif bracket == ")":
            if words[:1] == ["description"]:
                found.append(" ".join(words[1:]))
            depth, words = depth - 1, []
        else:
            words.append(bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        if depth < 0 or depth > 2 or (depth == 0 and text[at:].strip()):
            raise ValueError('"targetValue" is not a list of descriptions')
    if depth:
        raise ValueError('"targetValue" is not a list of descriptions: a closing bracket is missing')
    return found
