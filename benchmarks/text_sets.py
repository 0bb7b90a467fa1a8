"""The questions and passages of MuSiQue and HotpotQA in the data folder, and corpora built from them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from common import data_file

from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem, digest
from kgqa.corpus.records import CommunityRecord
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.corpus.snapshot import Snapshot, snapshot_of
from kgqa.graph.opening import open_graph
from kgqa.methods.text.path_pieces import PathChunkRetriever, PathRetriever
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.storage.cache import Cache
from kgqa.testing.agents.text_agents import GoldStep, TextGold


@dataclass(frozen=True)
class TextQuestion:
    """A question, its gold sub-questions (none in HotpotQA), and the texts of the passages that support it."""

    id: str
    text: str
    gold: TextGold
    passages: tuple[str, ...]

    @property
    def grounded(self) -> tuple[str, ...]:
        """The gold sub-questions, with the gold answers of earlier ones filled in."""
        return tuple(self.gold.grounded(number + 1) for number in range(len(self.gold.steps)))

    @property
    def templates(self) -> tuple[str, ...]:
        """The gold sub-questions as they stand, with references such as #1."""
        return tuple(step.question for step in self.gold.steps)


class SnapshotReader:
    """A `CorpusReader` of records in memory."""

    seq = 1

    def __init__(self, records: Snapshot) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Callable[[], Iterator[Any]]:
        return lambda: iter(getattr(self._records, name))

    def communities(self) -> Iterator[CommunityRecord]:
        return iter(())


def read_lines(*parts: str) -> list[dict[str, Any]]:
    with gzip.open(data_file(*parts), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_passages(name: str) -> list[str]:
    """Return the texts of the passages of a data set as its corpus contains them: the title is the first line."""
    return [f"{each['title']}\n{each['text']}" for each in read_lines(name, "passages.jsonl.gz")]


def read_text_questions(name: str) -> list[TextQuestion]:
    """Read the questions of a data set."""
    texts = read_passages(name)
    questions = []
    for each in read_lines(name, "questions.dev.jsonl.gz"):
        passages = [texts[number] for number in each["supporting_passages"]]
        steps = _steps(each.get("decomposition") or (), passages)
        # the other names in the data are aliases
        answers = (steps[-1].answer if steps else each["answers"][0]["name"],)
        questions.append(TextQuestion(each["id"], each["question"], TextGold(steps, answers), tuple(passages)))
    return questions


def _steps(decomposition: Sequence[dict[str, Any]], passages: Sequence[str]) -> tuple[GoldStep, ...]:
    """Assign to each sub-question the supporting passage that contains its answer.

    The data names the passages without their order; where answers do not decide, it is that of the paragraphs.
    """
    if not decomposition:
        return ()
    places = sorted(range(len(decomposition)), key=lambda step: decomposition[step]["paragraph_support_idx"])
    usual = [passages[places.index(step)] for step in range(len(decomposition))]
    steps = [(step["question"], step["answer"]) for step in decomposition]
    orders = [usual, *(list(order) for order in permutations(passages))]
    best = max(orders, key=lambda order: sum(_words(answer) in _words(text) for (_, answer), text in zip(steps, order)))
    return tuple(GoldStep(question, answer, (text,)) for (question, answer), text in zip(steps, best))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def musique_corpus(work: Path, *, triples: int | None = None) -> Path:
    """Build the corpus of MuSiQue's passages with the triples of GPT-3.5, if it is not there yet.

    Args:
        work: The folder of corpora.
        triples: How many triples of each passage the corpus has; None for all.
    """
    file = data_file("musique", "openie_gpt35.json.gz")
    if triples is None:
        build_corpus(work / "musique", triples=file)
        return work / "musique"
    folder, few = work / f"musique-{triples}", work / f"openie-{triples}.json"
    if not few.is_file():
        with gzip.open(file, "rt", encoding="utf-8") as text:
            documents = json.load(text)["docs"]
        for each in documents:
            each["extracted_triples"] = each["extracted_triples"][:triples]
        few.write_text(json.dumps({"docs": documents}))
    build_corpus(folder, triples=few)
    return folder


@contextmanager
def opened(name: str, work: Path, encoder: CachedEncoder) -> Iterator[tuple[CorpusIndex, Retriever | None]]:
    """Open the index of a data set, built if it is not there yet, and the retriever by paths if there are facts."""
    if name == "musique":
        folder = musique_corpus(work)
        cache = Cache.default()
        with Corpus.open(folder, encoder=encoder) as corpus, open_graph(folder, cache=cache) as graph:
            paths = PathRetriever(graph, corpus.index, encoder)
            yield corpus.index, PathChunkRetriever(paths, corpus.index)
        return
    additions: list[Addition] = []
    for each in read_lines(name, "passages.jsonl.gz"):
        text = f"{each['title']}\n{each['text']}"
        document = DocumentItem(f"{name}#{digest(text)}", each["title"], "text/plain", digest(text))
        chunk = ChunkItem(document.document, 0, len(text), text)
        additions += [Addition(document, document.document), Addition(chunk, chunk.document, chunk.chunk, 0, len(text))]
    yield CorpusIndex.open(work / name, SnapshotReader(snapshot_of(additions)), encoder), None  # type: ignore[arg-type]


def chunk_iris(index: CorpusIndex) -> dict[str, str]:
    """Map the text of each chunk to its IRI."""
    table = index.pieces("chunk")
    return {piece.text: piece.iri for piece in map(table.piece, range(len(table)))}


def interleaved(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Take the first of each ranking, then the second of each, and so on, without repetitions."""
    longest = max(map(len, rankings), default=0)
    return list(dict.fromkeys(each[at] for at in range(longest) for each in rankings if at < len(each)))


def chain(support: Sequence[frozenset[str]], rankings: Sequence[Sequence[str]], k: int | None = None) -> float:
    """Return the full chain in percent: questions all of whose supporting chunks are among the first k."""
    whole = [wanted <= set(ranking[:k]) for wanted, ranking in zip(support, rankings, strict=True)]
    return 100 * sum(whole) / len(whole)


def recall(support: Sequence[frozenset[str]], rankings: Sequence[Sequence[str]], k: int | None = None) -> float:
    """Return the recall in percent: the mean share of a question's supporting chunks among the first k."""
    shares = [len(wanted & set(ranking[:k])) / len(wanted) for wanted, ranking in zip(support, rankings, strict=True)]
    return 100 * sum(shares) / len(shares)
