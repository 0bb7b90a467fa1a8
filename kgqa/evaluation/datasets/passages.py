"""The passages of question sets as documents, to build a corpus from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kgqa.corpus.documents.document import Document, Element, safe_text
from kgqa.corpus.items import digest
from kgqa.evaluation.datasets.formats.shared_corpora import corpus_passages
from kgqa.evaluation.datasets.questions import QuestionFileError
from kgqa.evaluation.datasets.registry import iter_dataset, located
from kgqa.evaluation.datasets.sampling import distinct_sample
from kgqa.text.hints import Command
from kgqa.text.words import clean


def passage_documents(source: str, *, sample_size: int | None = None, seed: int = 0) -> list[Document]:
    """Return the passages of the questions of a data set, each once.

    If the questions share a corpus and all of them are read, these are the passages of the corpus.

    Args:
        source: The data set, as for `kgqa.evaluation.datasets.registry.dataset_questions`.
        sample_size: How many questions to draw; None for all. The same questions as in an evaluation with this sample.
        seed: The seed of the sample.

    Raises:
        QuestionFileError: The questions cannot be read, or have no passages.
        SettingsError: There is no such data set.
    """
    passages = _shared(source) if sample_size is None else None
    if passages is None:
        read = partial(iter_dataset, source)
        questions = read() if sample_size is None else distinct_sample(read, sample_size, seed)
        passages = (passage for question in questions for passage in question.passages)
    found = {each.source: each for each in (passage_document(*passage, source) for passage in passages)}
    if not found:
        raise QuestionFileError(
            f"The questions of {source} have no passages.",
            "Give the files of the passages: ",
            Command("corpus build", "FILE"),
        )
    return [found[name] for name in sorted(found)]


def _shared(source: str) -> Iterator[tuple[str, str]] | None:
    """Return the passages of the corpus that the questions of a source share; None if there is none."""
    name, file = located(source)
    return corpus_passages(name, file) if file is not None else None


def passage_document(title: str, text: str, name: str) -> Document:
    """Return a passage as a document called `NAME#HASH`; the first line of its text is the title."""
    title, text = clean(title), safe_text(text)
    whole = f"{title}\n{text}" if title else text
    heading = (Element("heading", 0, len(title), 1, ((0, len(title)),)),) if title else ()
    content = digest(whole, length=32)
    return Document(f"{name}#{content[:16]}", title or text[:60], "text/plain", content, whole, (), heading)
