"""Reads published predictions in the formats of other systems and in the format of kgqa (predictions.jsonl).

tog      {question, results}: the reply as text, with the answer in braces (Think-on-Graph)
pog      {question, results}: a JSON text with the answer under A, Answer (Plan-on-Graph)
aog      {question, ground_truth, Answer, correct}
rog      {id, question, prediction, ground_truth}: an answer per line or a list, the best first (Reasoning on Graphs);
         or {prediction, ground_paths}: relation paths, which are compared like answers
gnn-rag  like rog
kgqa     a line of predictions.jsonl, or of `kgqa ask --json`
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldAnswer, file_lines
from kgqa.evaluation.runs.records import read_record
from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import read_json
from kgqa.text.hints import Option

MAX_ARRAY_BYTES = 256 << 20
MAX_LINE_BYTES = 64 << 20
_PARTS = re.compile(r"\s*(?:[;,\n]|\band\b)\s*", re.IGNORECASE)
Readings = tuple[tuple[GoldAnswer, ...], ...]


class PublishedError(KgqaError):
    """A file of predictions cannot be read or scored. The message gives the line and the expected format."""


@dataclass(frozen=True)
class Prediction:
    """A published prediction for one question.

    `raw`: the text that the official scorer reads; `texts`: the answers in `raw`, the best first if `ordered`; `parts`:
    the answers if a sentence is read as a list, such as "A, B and C"; `readings`: gold answers in the file, one list
    per interpretation; `verdict`: right or wrong according to the file; `answer`: the answer object, in the format kgqa
    only; `evidence`: passages of the data set that support the right answer.
    """

    id: str
    question: str
    raw: str
    texts: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    ordered: bool = False
    readings: Readings = ()
    verdict: bool | None = None
    answer: Mapping[str, Any] | None = None
    evidence: tuple[str, ...] = ()

    def objects(self) -> list[Mapping[str, Any]]:
        """Return the prediction as answer objects: one for `texts`, and one for `parts` if there are any."""
        if self.answer is not None:
            return [self.answer]
        return [_model_answer(texts) for texts in dict.fromkeys((self.texts, self.parts or self.texts))]


def read_published(file: Path, format: str) -> Iterator[Prediction]:
    """Yield the predictions of a file with a JSON object per line, or with one array.

    The file is gzipped if its name ends in .gz.

    Raises:
        PublishedError: a line does not have this format.
        QuestionFileError: the file cannot be read.
    """
    read = FORMATS[format]
    empty = True
    for place, data in _objects(Path(file)):
        empty = False
        if not isinstance(data, dict):
            raise PublishedError(f"{place} is not a JSON object.")
        try:
            yield read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
            raise PublishedError(
                f"{place} is not a prediction of format {format}: {reason}.",
                "Choose another ",
                Option("format"),
                "; see: kgqa score --help",
            ) from error
    if empty:
        raise PublishedError(f"{file} contains no predictions.", "Check that it is the right file.")


def _objects(file: Path) -> Iterator[tuple[str, Any]]:
    lines = file_lines(file, MAX_LINE_BYTES)
    array: list[bytes] = []
    size = 0
    for number, line in lines:
        if array or ((number == 1 or not size) and line.lstrip().startswith(b"[")):
            size += len(line)
            if size > MAX_ARRAY_BYTES:
                raise PublishedError(
                    f"{file} is an array of more than {MAX_ARRAY_BYTES:,} bytes.", "Write one object per line instead."
                )
            array.append(line)
            continue
        size += len(line)
        yield f"{file}, line {number}", _json(line, f"{file}, line {number}")
    if array:
        for number, each in enumerate(_json(b"".join(array), str(file)), 1):
            yield f"{file}, entry {number}", each


def _json(data: bytes, place: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PublishedError(f"{place} is not JSON: {error}.") from None


def _tog(data: Mapping[str, Any]) -> Prediction:
    raw = _text(data["results"])
    read = read_answers(raw).value
    texts = (raw.strip(),) if read is None else read
    return Prediction(_ident(data), _question(data), raw, texts, _as_list(texts))


def _pog(data: Mapping[str, Any]) -> Prediction:
    reply = data["results"] if isinstance(data["results"], dict) else read_json(_text(data["results"]))[0]
    inner = reply.get("A") if isinstance(reply, dict) else None
    given = inner.get("Answer") if isinstance(inner, dict) else None
    texts = tuple(str(each) for each in given) if isinstance(given, list) else () if given is None else (str(given),)
    return Prediction(_ident(data), _question(data), ", ".join(texts), texts, _as_list(texts))


def _aog(data: Mapping[str, Any]) -> Prediction:
    raw = "" if data["Answer"] is None else str(data["Answer"])
    verdict = data.get("correct")
    return Prediction(
        _ident(data),
        _question(data),
        raw,
        (raw,) if raw.strip() else (),
        _as_list((raw,)),
        readings=_gold(data.get("ground_truth")),
        verdict=verdict if isinstance(verdict, bool) else None,
    )


def _rog(data: Mapping[str, Any]) -> Prediction:
    given = data["prediction"]
    paths = isinstance(given, list) and "ground_paths" in data
    lines = (
        [_path(each) if paths else _text(each) for each in given]
        if isinstance(given, list)
        else _text(given).split("\n")
    )
    gold = [_path(each) for each in data["ground_paths"]] if paths else data.get("ground_truth")
    return Prediction(
        _ident(data),
        _question(data),
        "\n".join(lines),
        tuple(line.strip() for line in lines if line.strip()),
        ordered=True,
        readings=_gold(gold),
    )


def _kgqa(data: Mapping[str, Any]) -> Prediction:
    if "answer" in data and "answers" in data:
        record = read_record(data)
        return Prediction(record.id, record.text, "", answer=_answered(record.answer), readings=record.readings)
    if not isinstance(data.get("answers"), list) or "status" not in data:
        raise ValueError("the object is neither a line of predictions.jsonl nor an answer of kgqa ask --json")
    return Prediction(_ident(data), _question(data), "", answer=_answered(data))


def _answered(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer object; raise ValueError if its answers are malformed."""
    given = answer.get("answers") or []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError('"answers" must be a list of objects')
    return answer


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], Prediction]] = {
    "pog": _pog,
    "tog": _tog,
    "rog": _rog,
    "gnn-rag": _rog,
    "aog": _aog,
    "kgqa": _kgqa,
}


def _model_answer(texts: tuple[str, ...]) -> dict[str, Any]:
    """Build an answer object from names that a language model wrote."""
    answers = [{"id": None, "name": text, "value": text, "datatype": ""} for text in texts]
    return {"status": "answered" if texts else "no_answer", "grounding": "model", "answers": answers}


def _as_list(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Split a single text such as "A, B and C" into its parts; empty if there is only one part."""
    parts = tuple(part for part in _PARTS.split(texts[0]) if part.strip(" .")) if len(texts) == 1 else ()
    return parts if len(parts) > 1 else ()


def _gold(given: Any) -> Readings:
    if given is None:
        return ()
    names = [str(each) for each in given] if isinstance(given, list) else [str(given)]
    found = tuple(dict.fromkeys(GoldAnswer("", name) for name in names if name.strip()))
    return (found,) if found else ()


def _path(relations: Any) -> str:
    if not isinstance(relations, list) or not all(isinstance(each, str) for each in relations):
        raise ValueError("a path must be a list of relation names")
    return " -> ".join(relations)


def _ident(data: Mapping[str, Any]) -> str:
    return str(next((data[key] for key in ("id", "ID", "qid", "QuestionId") if data.get(key)), ""))


def _question(data: Mapping[str, Any]) -> str:
    return str(next((data[key] for key in ("question", "RawQuestion", "input") if data.get(key)), ""))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"a JSON string was expected, not {type(value).__name__}")
    return value
