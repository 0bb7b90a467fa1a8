"""SimpleQuestions (Bordes et al. 2015): lines of subject, relation, object and question, separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion

_SPLITS = ("train", "valid", "test")
_SITES = ("http://", "https://", "www.freebase.com/", "rdf.freebase.com/ns/", "/", "fb:")


def read(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a SimpleQuestions file; each has one hop.

    The only gold answer is the object of the triple in the file; the graph may contain further right answers.

    Raises:
        QuestionFileError: the file cannot be read, or a line does not have this format.
    """
    split = next((f"{name}_" for name in _SPLITS if name in file.name.lower()), "")

    def question_of(line: str, number: int) -> GoldQuestion:
        return _question(line, number, dataset, f"{split}{number}")

    return record_stream.questions_of(file, dataset, record_stream.lines(file), question_of, kind=str, unit="line")


def _question(line: str, number: int, dataset: str, ident: str) -> GoldQuestion:
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
