"""WebQuestionsSP (Yih et al. 2016): an object with the list `Questions`, each with one or more semantic parses.

As in the official scorer (eval.py), every parse is an interpretation of the question, and the parse with the best score
counts. The official scorer leaves out questions without a good and complete parse; these have `support` = `not_scored`.
Questions without a gold answer have `support` = `no_gold`; the official scorer gives 1 to an empty answer, else 0.
"""

from __future__ import annotations

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of the data set, or of a copy with the same keys, to a question.

    `parses`: if there are several parses, the gold answers of each (empty for a parse without answers), starting with
    the best annotated parse; `sparql`: the queries of the parses in the same order; `answers`, `topics`: gold answers
    and topic entities of the first parse.
    """
    parses = sorted(fields.objects_of(record, "Parses"), key=lambda parse: (not _complete(parse), not _answers(parse)))
    best: Record = parses[0] if parses else {}
    topic = fields.freebase_id(fields.text_of(best, "TopicEntityMid"))
    readings = tuple(map(_answers, parses))
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


def _answers(parse: Record) -> tuple[GoldAnswer, ...]:
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
