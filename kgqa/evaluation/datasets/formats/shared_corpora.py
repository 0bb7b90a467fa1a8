"""Questions over a corpus that all of them share: HippoRAG, HyperGraphRAG and UltraDomain.

HippoRAG (Gutierrez et al. 2025): a file of 1,000 questions of MuSiQue, HotpotQA or 2WikiMultiHopQA in the format of
that data set, or of others with `paragraphs` or `contexts`; and `NAME_corpus.json`, a list of passages with title and
text.

HyperGraphRAG (Luo et al. 2025): records with `question`, `golden_answers` and `context`, the texts from which the
question was made; and `contexts/DOMAIN_contexts.json`, a list of texts.

UltraDomain (Qian et al. 2025): lines with `input`, `answers`, `context` (a whole book or contract) and `meta`.

`GoldQuestion.row` has the keys `passages` and `supporting`, as in the other formats over texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.formats import text
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.datasets.record_stream import broken, json_records

Passage = tuple[str, str]
"""The title and the text of a passage; the title may be empty."""


def hipporag(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of HippoRAG; several answers are names of one answer."""
    if "supporting_facts" in record:
        return text.hotpotqa(record, number, dataset)
    paragraphs = fields.objects_of(record, "paragraphs") or fields.objects_of(record, "contexts")
    if any("paragraph_text" in each for each in paragraphs) and isinstance(record.get("answer"), str):
        return text.musique(record, number, dataset)
    passages = [{"title": fields.text_of(each, "title"), "text": fields.text_of(each, "text")} for each in paragraphs]
    supporting = [place for place, each in enumerate(paragraphs) if each.get("is_supporting", True) is True]
    given = (_names(record, key) for key in ("answer", "gold_ans", "reference", "obj", "possible_answers", "o_aliases"))
    return _question(
        record,
        number,
        dataset,
        fields.text_of(record, "id") or fields.text_of(record, "_id"),
        [name for names in given for name in names],
        passages,
        supporting,
    )


def hypergraphrag(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of HyperGraphRAG; all texts of its context support the answer. `kind` is the number of hops."""
    passages = [{"title": "", "text": each} for each in _names(record, "context")]
    return _question(
        record,
        number,
        dataset,
        fields.text_of(record, "id"),
        _names(record, "golden_answers"),
        passages,
        list(range(len(passages))),
        kind=fields.text_of(record, "nhop"),
    )


def ultradomain(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of UltraDomain; which part of its context supports the answer is unknown."""
    meta = record.get("meta")
    title = fields.text_of(meta, "title") if isinstance(meta, dict) else ""
    context = fields.text_of(record, "context")
    return _question(
        record,
        number,
        dataset,
        fields.text_of(record, "_id"),
        _names(record, "answers"),
        [{"title": title, "text": context}] if context else [],
        [],
        question="input",
        kind=fields.text_of(record, "label"),
    )


def _question(
    record: Record,
    number: int,
    dataset: str,
    ident: str,
    names: list[str],
    passages: list[dict[str, str]],
    supporting: list[int],
    *,
    question: str = "question",
    kind: str = "",
) -> GoldQuestion:
    """Build a question whose answer has one or several names."""
    first, *others = fields.distinct([name for name in names if name]) or ("",)
    answers = (GoldAnswer("", first, "", tuple(others)),) if first else ()
    return GoldQuestion(
        text=fields.needed(record, question),
        id=ident or str(number),
        dataset=dataset,
        number=number,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        kind=kind,
        row={"passages": passages, "supporting": supporting},
    )


def _names(record: Record, key: str) -> list[str]:
    """Return the texts under a key, which may hold one text or a list of texts."""
    value = record.get(key)
    if isinstance(value, list):
        return [each.strip() for each in fields.texts_of(record, key)]
    name = fields.text_of(record, key)
    return [name] if name else []


# ---- the corpus beside a file of questions ----


def corpus_passages(name: str, file: Path) -> Iterator[Passage] | None:
    """Return the passages of the corpus that the questions of a file share; None if there is no such corpus.

    Args:
        name: the format of the questions.
        file: their file.

    Raises:
        QuestionFileError: the corpus cannot be read; during iteration.
    """
    reader = _CORPORA.get(name)
    if reader is None:
        return None
    candidates, convert = reader
    stem = file.name.removesuffix(".gz").partition(".")[0]
    places = [Path(f"{each}{ending}") for each in candidates(file.parent, stem) for ending in ("", ".gz")]
    found = next((place for place in places if place.is_file()), None)
    return None if found is None else _passages(found, convert)


def _passages(file: Path, convert: Callable[[Any], Passage]) -> Iterator[Passage]:
    for number, record in enumerate(json_records(file), 1):
        try:
            yield convert(record)
        except ValueError as error:
            raise broken(file, number, str(error)) from None


def _titled(record: Any) -> Passage:
    if not isinstance(record, dict):
        raise ValueError("a passage must be an object with title and text")
    return fields.text_of(record, "title"), fields.needed(record, "text", "paragraph_text")


def _untitled(record: Any) -> Passage:
    if not isinstance(record, str) or not record.strip():
        raise ValueError("a context must be a text")
    return "", record


def _hipporag_files(folder: Path, stem: str) -> list[Path]:
    return [folder / f"{stem}_corpus.json"]


def _hypergraphrag_files(folder: Path, stem: str) -> list[Path]:
    """List where the contexts of a domain may be; its questions are in a file or in a folder of its name."""
    names = [(place, f"{domain}_contexts.json") for place, domain in ((folder, stem), (folder.parent, folder.name))]
    return [above / name for place, name in names for above in (place, place / "contexts", place.parent / "contexts")]


_CORPORA: Mapping[str, tuple[Callable[[Path, str], list[Path]], Callable[[Any], Passage]]] = {
    "hipporag": (_hipporag_files, _titled),
    "hypergraphrag": (_hypergraphrag_files, _untitled),
}
"""For each format with a corpus: where its file may be, and what converts a record of it."""
