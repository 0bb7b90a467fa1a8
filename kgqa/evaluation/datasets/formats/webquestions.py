"""WebQuestions (Berant et al. 2013): one JSON array of objects with `url`, `utterance` and `targetValue`.

Answers are names; `targetValue` is a list in Lisp notation. The files have no ids and no topic entities: `topic_names`
contains the words in the address of the Freebase page, and ids are built from the position in the file, as in
WebQuestionsSP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_LISP = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))', re.DOTALL)
_PAGE = "/view/en/"


def read(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a WebQuestions file.

    Raises:
        QuestionFileError: the file cannot be read, or a record does not have this format.
    """
    start = next((s for word, s in (("test", "WebQTest-"), ("train", "WebQTrn-")) if word in file.name.lower()), "")
    return record_stream.questions_in(file, dataset, lambda record, number: _question(record, number, dataset, start))


def _question(record: Record, number: int, dataset: str, start: str) -> GoldQuestion:
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
