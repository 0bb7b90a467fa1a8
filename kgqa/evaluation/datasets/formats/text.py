"""Questions whose answers are strings: HotpotQA, 2WikiMultiHopQA, MuSiQue, Natural Questions and GRBench.

HotpotQA (Yang et al. 2018), 2WikiMultiHopQA (Ho et al. 2020) and MuSiQue (Trivedi et al. 2022) are over texts: answers
are strings, and there are no topic entities. `GoldQuestion.row` has the keys `passages` (title and text of
every paragraph) and `supporting` (indices of the passages that support the answer).

Natural Questions (Kwiatkowski et al. 2019) is read in its open form (Lee et al. 2019), which has no passages.

GRBench (Jin et al. 2024, Graph Chain-of-Thought): lines with `qid`, `question`, `answer` and maybe `level`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

ALIASES_FILE = "id_aliases.json"
_PER_TEMPLATE = 10
_NUMBER = re.compile(r"[0-9]{1,9}")
_HOPS = re.compile(r"([1-9])hop")
_KEPT = ("_id", "id", "type", "level", "entity_ids", "answer_id", "evidences", "question_decomposition", "answerable")


def read_2wiki(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a 2WikiMultiHopQA file, with aliases if id_aliases.json is in the same folder.

    Raises:
        QuestionFileError: a file cannot be read, or a record does not have this format.
    """
    aliases: Mapping[str, tuple[str, ...]] = {}
    if (beside := file.with_name(ALIASES_FILE)).is_file():
        aliases = _aliases(beside)
    return record_stream.questions_in(file, dataset, partial(hotpotqa, dataset=dataset, aliases=aliases))


def hotpotqa(record: Record, number: int, dataset: str, aliases: Mapping[str, tuple[str, ...]] = {}) -> GoldQuestion:
    """Convert a record of HotpotQA; `kind` is bridge or comparison, and `level` is easy, medium or hard."""
    passages = [_passage(item) for item in _pairs(record, "context")]
    titles = {title for title, _ in _pairs(record, "supporting_facts")}
    supporting = [place for place, passage in enumerate(passages) if passage["title"] in titles]
    names = aliases.get(fields.text_of(record, "answer_id"), ())
    return _question(
        record,
        number,
        dataset,
        id=fields.ident(record, "_id", "id"),
        aliases=names,
        row=_row(record, passages, supporting) | {"supporting_titles": sorted(titles)},
        kind=fields.text_of(record, "type"),
        level=fields.text_of(record, "level"),
    )


def musique(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of MuSiQue; `hops` and `kind` (3hop1, 4hop2, ...) come from the id.

    A question that cannot be answered from its passages (MuSiQue-Full) has no gold answer.
    """
    paragraphs = fields.objects_of(record, "paragraphs")
    passages = [
        {"title": fields.text_of(item, "title"), "text": fields.text_of(item, "paragraph_text")} for item in paragraphs
    ]
    supporting = [place for place, item in enumerate(paragraphs) if item.get("is_supporting") is True]
    ident = fields.ident(record, "id")
    match = _HOPS.match(ident)
    steps = fields.objects_of(record, "question_decomposition")
    return _question(
        record,
        number,
        dataset,
        id=ident,
        aliases=fields.texts_of(record, "answer_aliases"),
        row=_row(record, passages, supporting),
        kind=ident.partition("__")[0] if match else "",
        hops=int(match[1]) if match else len(steps) or None,
        unanswerable=record.get("answerable") is False,
    )


def nq(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of NQ-open: any of its answers is right."""
    names = fields.distinct([name for each in fields.texts_of(record, "answer") if (name := each.strip())])
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=str(number),
        dataset=dataset,
        number=number,
        answers=(GoldAnswer("", names[0], "", names[1:]),) if names else (),
        support="" if names else fields.NO_GOLD,
        row=record,
    )


def _question(
    record: Record, number: int, dataset: str, *, aliases: Sequence[str], unanswerable: bool = False, **known: Any
) -> GoldQuestion:
    answer = "" if unanswerable else fields.text_of(record, "answer")
    answers = (GoldAnswer("", answer, "", fields.distinct(aliases)),) if answer else ()
    support = "" if answers else fields.NO_GOLD
    text = fields.needed(record, "question")
    return GoldQuestion(text=text, dataset=dataset, number=number, answers=answers, support=support, **known)


def _row(record: Record, passages: list[dict[str, str]], supporting: list[int]) -> dict[str, Any]:
    kept = {key: record[key] for key in _KEPT if key in record}
    return {**kept, "passages": passages, "supporting": supporting}


def _pairs(record: Record, key: str) -> list[tuple[str, Any]]:
    """Return the list of pairs (title, content) under a key of a record."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(
        isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value
    ):
        raise ValueError(f'"{key}" must be a list of pairs that start with a title')
    return [(item[0], item[1]) for item in value]


def _passage(pair: tuple[str, Any]) -> dict[str, str]:
    title, sentences = pair
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise ValueError('"context" must contain titles with lists of sentences')
    return {"title": title, "text": "".join(sentences)}


def _aliases(file: Path) -> dict[str, tuple[str, ...]]:
    """Read the aliases of each Wikidata id from JSON lines with `Q_id`, `aliases` and `demonyms`."""
    found = {}
    for number, record in enumerate(record_stream.json_records(file)):
        try:
            if not isinstance(record, dict):
                raise ValueError("a JSON object was expected")
            names = [*fields.texts_of(record, "aliases"), *fields.texts_of(record, "demonyms")]
            found[fields.needed(record, "Q_id")] = fields.distinct(names)
        except ValueError as error:
            raise record_stream.broken(file, number + 1, str(error)) from None
    return found


def grbench(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question; `kind` is the number of its template: there are ten questions of each.

    A string with commas may be one name or several answers; set metrics compare it with both. In a list, each item is
    an answer.
    """
    value = record.get("answer")
    items = value if isinstance(value, list) else [] if value is None else [value]
    texts = list(map(_answer_text, items))
    joined = isinstance(value, str) and "," in value
    answers = fields.answers_of([GoldAnswer("", text, joined=joined) for text in texts])
    ident = fields.text_of(record, "qid") or str(number)
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=ident,
        dataset=dataset,
        number=number,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        kind=str(int(ident) // _PER_TEMPLATE) if _NUMBER.fullmatch(ident) else "",
        level=fields.text_of(record, "level"),
        row=record,
    )


def _answer_text(item: object) -> str:
    """Convert an answer (string, number or boolean) to text."""
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, (bool, int, float)):
        return json.dumps(item)
    raise ValueError('"answer" must be a text, a number or a list of these')
