"""The passages of question sets as documents, to build a corpus from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgqa.corpus.documents.document import Document, Element, safe_text
from kgqa.corpus.items import digest
from kgqa.evaluation.datasets.questions import GoldQuestion, QuestionFileError
from kgqa.evaluation.datasets.registry import iter_dataset
from kgqa.evaluation.datasets.sampling import sample
from kgqa.words import clean


def passage_documents(source: str, *, sample_size: int | None = None, seed: int = 0) -> list[Document]:
    """Return the passages of the questions of a data set, each once.

    Args:
        source: The data set, as for `kgqa.evaluation.datasets.registry.dataset_questions`.
        sample_size: How many questions to draw; None for all. The same questions as in an evaluation with this sample.
        seed: The seed of the sample.

    Raises:
        QuestionFileError: The questions cannot be read, or have no passages.
        SettingsError: There is no such data set.
    """
    questions: Iterable[GoldQuestion] = iter_dataset(source)
    if sample_size is not None:
        questions = sample(questions, sample_size, seed)
    found = {each.source: each for question in questions for each in _passages(question, source)}
    if not found:
        raise QuestionFileError(
            f"The questions of {source} have no passages.", "Give the files of the passages: kgqa corpus build FILE"
        )
    return [found[name] for name in sorted(found)]


def _passages(question: GoldQuestion, name: str) -> Iterator[Document]:
    for title, text in question.passages:
        yield passage_document(title, text, name)


def passage_document(title: str, text: str, name: str) -> Document:
    """Return a passage as a document called `NAME#HASH`; the first line of its text is the title."""
    title, text = clean(title), safe_text(text)
    whole = f"{title}\n{text}" if title else text
    heading = (Element("heading", 0, len(title), 1, ((0, len(title)),)),) if title else ()
    content = digest(whole, length=32)
    return Document(f"{name}#{content[:16]}", title or text[:60], "text/plain", content, whole, (), heading)
