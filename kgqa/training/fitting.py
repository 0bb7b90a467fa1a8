"""Fitting of a `TrainedRanker`, by softmax cross-entropy between the gold path and other paths of its pool; its test.

Relations and questions are embedded once, before the fit. The three learned matrices start as the identity, and a term
of the loss keeps them close to it. Far from the identity, the embeddings of relations not seen in training would lose
their meaning. Torch is imported only when the fit starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.errors import ModelUnavailable
from kgqa.model import Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker, directions_of
from kgqa.text.hints import Install

SCALE = 20.0  # factor from cosines to logits
COMPARED = 30
"""How many other paths the gold path of a test is compared with, at most."""
TESTED = 200
"""How many examples a test has, at most."""


@dataclass(frozen=True, slots=True)
class Example:
    """A training example: a question, its gold path, and the remaining paths of its topic.

    Attributes:
        question: The question without the topic's mention.
        pool: One row of step numbers per path, int32 of shape (paths, length of the longest path), padded with -1.
        gold: Index of the gold path's row.
    """

    question: str
    pool: np.ndarray
    gold: int


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of the fit.

    Attributes:
        epochs: How often each example is used.
        negatives: Number of wrong paths sampled for each example; each epoch samples new paths.
        batch: Number of examples per batch.
        rate: Learning rate.
        pull: Weight of the loss term that keeps the matrices close to the identity.
        seed: Seed of all random choices.
    """

    epochs: int = 5
    negatives: int = 160
    batch: int = 64
    rate: float = 5e-4
    pull: float = 1e-3
    seed: int = 0


@dataclass(frozen=True)
class Vectors:
    """The embedding vectors, of length d, for a list of examples.

    Attributes:
        relations: Vectors of the steps' relations, shape (steps, d).
        directions: Directions of the steps, 0 for out and 1 for in, shape (steps,).
        questions: Map from a question's text to the question's vector.
        embeddings: Name of the embedding model.
    """

    relations: np.ndarray
    directions: np.ndarray
    questions: dict[str, np.ndarray]
    embeddings: str


def embed_examples(
    examples: Sequence[Example], steps: Sequence[Step], encoder: CachedEncoder, relation_text: Callable[[str], str]
) -> Vectors:
    """Embed the relations of all steps and the questions of all examples."""
    questions = list(dict.fromkeys(example.question for example in examples))
    return Vectors(
        encoder.encode([relation_text(step.relation) for step in steps]),
        directions_of(steps),
        dict(zip(questions, encoder.encode_questions(questions))),
        encoder.name,
    )


def scores_of(ranker: TrainedRanker, question: str, rows: np.ndarray, vectors: Vectors) -> np.ndarray:
    """Return the ranker's scores of some rows of a pool for a question, float64 of shape (len(rows),)."""
    used = np.unique(rows[rows >= 0])
    numbers = np.where(rows < 0, -1, np.searchsorted(used, rows))
    return ranker.score_rows(vectors.questions[question], vectors.relations[used], vectors.directions[used], numbers)


def split_examples(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Split examples into a training set and a test set; the test set gets `share` of the questions."""
    groups = list(dict.fromkeys(example.question for example in examples))
    chosen = np.random.default_rng(seed).permutation(len(groups))[: round(share * len(groups))]
    apart = {groups[number] for number in chosen}
    return [e for e in examples if e.question not in apart], [e for e in examples if e.question in apart]


def fit_ranker(
    examples: Sequence[Example],
    vectors: Vectors,
    settings: TrainingSettings | None = None,
    *,
    progress: Callable[[int, int, float], None] = lambda done, total, loss: None,
) -> TrainedRanker:
    """Fit a ranker.

    Args:
        examples: The examples, each with more than one path.
        vectors: The vectors of the examples.
        settings: Settings of the fit; None for the defaults.
        progress: Called after every batch with the number of finished batches, the number of all batches and the
            batch's loss.

    Raises:
        ModelUnavailable: Torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ModelUnavailable(f"Training a ranker needs torch: {Install('sbert')}") from error

    threads = torch.get_num_threads()
    # more threads are hardly faster for such small matrices, are slow on a busy machine, and change the last digits
    torch.set_num_threads(1)
    try:
        return _fit(examples, vectors, settings or TrainingSettings(), progress)
    finally:
        torch.set_num_threads(threads)


def _fit(
    examples: Sequence[Example],
    vectors: Vectors,
    settings: TrainingSettings,
    progress: Callable[[int, int, float], None],
) -> TrainedRanker:
    import torch
    from torch.nn.functional import cross_entropy, embedding

    size = vectors.relations.shape[1]
    relations = torch.from_numpy(np.ascontiguousarray(vectors.relations, dtype=np.float32))
    questions = {text: torch.from_numpy(np.array(vector, np.float32)) for text, vector in vectors.questions.items()}
    turns, eye = torch.from_numpy(np.asarray(vectors.directions, dtype=np.int64)), torch.eye(size)
    question_map, first_map, further_map = maps = [torch.eye(size, requires_grad=True) for _ in range(3)]
    directions = torch.zeros((2, size), requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    # no weight decay, which pulls matrices towards zero: a term of the loss pulls them towards the identity
    optimiser = torch.optim.AdamW([*maps, directions, bias], lr=settings.rate, weight_decay=0.0)
    total = settings.epochs * -(-len(examples) // settings.batch)
    for done, (batch, rows) in enumerate(_batches(examples, settings), start=1):
        table = torch.from_numpy(rows)
        lengths = (table >= 0).sum(dim=2)
        used, numbers = torch.unique(table, return_inverse=True)  # -1 comes first
        steps = relations[used] + directions[turns[used]]
        first, further = steps @ first_map.T, (steps @ further_map.T) * (used >= 0)[:, None]
        rest = embedding(numbers[:, :, 1:], further).sum(dim=2) / (lengths - 1).clamp(min=1)[:, :, None]
        paths = embedding(numbers[:, :, 0], first) + rest
        queries = torch.stack([questions[example.question] for example in batch]) @ question_map.T
        norms = ((paths * paths).sum(dim=2) + 1e-12).sqrt() * queries.norm(dim=1, keepdim=True)
        cosines = torch.bmm(paths, queries[:, :, None])[:, :, 0] / norms
        logits = (SCALE * (cosines + bias * (lengths == 1))).masked_fill(lengths == 0, -torch.inf)
        # the gold path is first in every row
        loss = cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))
        total_loss = loss + settings.pull * sum(((each - eye) ** 2).sum() for each in maps)
        optimiser.zero_grad()
        total_loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        progress(done, total, float(loss.detach()))
    arrays: list[np.ndarray] = [each.detach().numpy().astype(np.float32) for each in (*maps, directions)]
    return TrainedRanker(arrays[0], arrays[1], arrays[2], arrays[3], float(bias.detach()), vectors.embeddings)


def _batches(examples: Sequence[Example], settings: TrainingSettings) -> Iterator[tuple[list[Example], np.ndarray]]:
    """Yield batches of examples, in a new order and with newly sampled paths in every epoch.

    The rows of a batch are int64 of shape (examples, paths, length of the longest path), the gold path first.
    """
    random = np.random.default_rng(settings.seed)
    width = max(example.pool.shape[1] for example in examples)
    for _ in range(settings.epochs):
        order = random.permutation(len(examples))
        for start in range(0, len(order), settings.batch):
            batch = [examples[number] for number in order[start : start + settings.batch]]
            rows = [sampled(example, settings.negatives, random) for example in batch]
            yield batch, np.stack([_padded(each, (max(map(len, rows)), width)) for each in rows])


def sampled(example: Example, negatives: int, random: np.random.Generator) -> np.ndarray:
    """Return the row of the gold path and those of at most `negatives` other paths."""
    others = len(example.pool) - 1
    drawn = np.arange(others) if others <= negatives else random.choice(others, negatives, replace=False)
    rows: np.ndarray = example.pool[np.concatenate([[example.gold], drawn + (drawn >= example.gold)])]
    return rows


def _padded(rows: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.pad(
        rows.astype(np.int64), [(0, most - size) for most, size in zip(shape, rows.shape)], constant_values=-1
    )


@dataclass(frozen=True, slots=True)
class Hits:
    """How often the gold path of a test is ranked first, as shares from 0 to 1; of n equal scores, each counts 1/n.

    Attributes:
        examples: Number of gold paths.
        cosine: By the cosine of the question and the words of the path, without training.
        head: By the trained ranker alone.
        mixed: By both, each with its share.
    """

    examples: int
    cosine: float
    head: float
    mixed: float


def hits(
    ranker: TrainedRanker,
    examples: Sequence[Example],
    vectors: Vectors,
    words: Sequence[str],
    encoder: CachedEncoder,
    *,
    share: float,
    seed: int,
) -> Hits:
    """Test a ranker on some of the examples, each with some of the paths of its pool.

    Args:
        ranker: The ranker.
        examples: The examples; none of them may be trained on.
        vectors: The vectors of the examples.
        words: The words of each step's relation.
        encoder: The embedding model.
        share: Share of the ranker in the mixed score, 0 to 1.
        seed: Seed of the choice of examples and paths.
    """
    random = np.random.default_rng(seed)
    found = []
    for number in random.permutation(len(examples))[:TESTED]:
        example = examples[number]
        rows = sampled(example, COMPARED, random)
        texts = [", ".join(words[step] for step in row if step >= 0) for row in rows]
        cosine = encoder.encode_once(texts) @ vectors.questions[example.question]
        head = scores_of(ranker, example.question, rows, vectors)
        scored = np.array([cosine, head, share * head + (1 - share) * cosine])
        best = scored >= scored.max(axis=1, keepdims=True) - 1e-6
        found.append(best[:, 0] / best.sum(axis=1))
    return Hits(len(found), *(np.mean(found, axis=0).tolist() if found else (0.0, 0.0, 0.0)))
