"""Trains the ranker of `trained.py`: softmax cross-entropy of the gold path against paths sampled from its pool.

Relations and questions are embedded once; what is learned are three maps, pulled to the identity they began as,
so that what the embeddings know of relations never seen in training is kept. Torch is imported when training starts.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.model import Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker, in_half_precision

SCALE = 20.0  # cosines become logits


@dataclass(frozen=True, slots=True)
class Example:
    """A question without its topic's mention, the paths it could have meant, and the one it did.

    `pool`: int32 of shape (paths, longest), numbers of steps, padded with -1; `gold`: its row of the gold path.
    """

    question: str
    pool: np.ndarray
    gold: int


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """`negatives`: sampled from the pool for each example, anew in every epoch; `pull`: to the identity."""

    epochs: int = 5
    negatives: int = 160
    batch: int = 64
    rate: float = 5e-4
    pull: float = 1e-3
    seed: int = 0


@dataclass(frozen=True)
class Vectors:
    """What examples refer to by number, embedded: `relations` of shape (steps, d), `directions` (steps,) 0 out, 1 in;
    `questions` by text.
    """

    relations: np.ndarray
    directions: np.ndarray
    questions: dict[str, np.ndarray]
    embeddings: str


def embed_examples(
    examples: Sequence[Example], steps: Sequence[Step], encoder: CachedEncoder, relation_text: Callable[[str], str]
) -> Vectors:
    """Embed the relations of all steps and the questions of all examples, each once."""
    texts = [relation_text(step.relation) for step in steps]
    questions = list(dict.fromkeys(example.question for example in examples))
    return Vectors(
        encoder.encode(texts),
        np.array([step.direction == "in" for step in steps], dtype=np.intp),
        dict(zip(questions, encoder.encode_questions(questions))),
        encoder.name,
    )


def hit_rates(
    ranker: TrainedRanker, examples: Sequence[Example], vectors: Vectors, ks: Sequence[int] = (1,)
) -> list[float]:
    """The share of examples, 0 to 1, whose gold path is among the best k of its pool, for each k.

    Paths that tie with the gold one count as better, so that a ranker that tells nothing apart gains nothing.
    """
    ranks = np.array([rank_of_gold(ranker, example, vectors) for example in examples])
    return [float((ranks <= k).mean()) if len(ranks) else 0.0 for k in ks]


def rank_of_gold(ranker: TrainedRanker, example: Example, vectors: Vectors) -> int:
    """The place of the gold path in its pool, from 1."""
    used, rows = _renumbered(example.pool)
    scores = ranker.score_rows(
        vectors.questions[example.question], vectors.relations[used], vectors.directions[used], rows
    )
    return int((scores >= scores[example.gold]).sum())


def split_examples(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Examples to train on and, `share` of them, to measure on; those of one question stay together."""
    groups = list(dict.fromkeys(example.question for example in examples))
    chosen = np.random.default_rng(seed).permutation(len(groups))[: round(share * len(groups))]
    apart = {groups[number] for number in chosen}
    return [e for e in examples if e.question not in apart], [e for e in examples if e.question in apart]


def fit_ranker(
    examples: Sequence[Example],
    vectors: Vectors,
    settings: TrainingSettings = TrainingSettings(),
    *,
    progress: Callable[[int, int, float], None] = lambda done, total, loss: None,
) -> TrainedRanker:
    """Fit a ranker.

    Args:
        progress: told after every batch: batches done, batches in all, the batch's loss.

    Raises:
        SettingsError: there is nothing to train on.
        ModelUnavailable: torch is not installed.
    """
    examples = [example for example in examples if len(example.pool) > 1]
    if not examples:
        raise SettingsError("There is nothing to train on: no question has a gold path beside other paths.")
    if importlib.util.find_spec("torch") is None:
        raise ModelUnavailable("Training needs torch: pip install 'kgqa[minilm]'. Using a trained ranker does not.")
    import torch

    threads = torch.get_num_threads()
    # more would gain little at this size, lose much on a busy machine, and change the last digits
    torch.set_num_threads(1)
    try:
        return _fit(examples, vectors, settings, progress)
    finally:
        torch.set_num_threads(threads)


def _fit(
    examples: Sequence[Example],
    vectors: Vectors,
    settings: TrainingSettings,
    progress: Callable[[int, int, float], None],
) -> TrainedRanker:
    import torch
    from torch.nn.functional import cross_entropy, embedding_bag

    size = vectors.relations.shape[1]
    relations = torch.from_numpy(np.ascontiguousarray(vectors.relations, dtype=np.float32))
    questions = {text: torch.from_numpy(np.array(vector, np.float32)) for text, vector in vectors.questions.items()}
    eye, nowhere = torch.eye(size), torch.zeros((1, size))
    question_map, first_map, further_map = maps = [torch.eye(size, requires_grad=True) for _ in range(3)]
    directions = torch.zeros((2, size), requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    # pulled to where they began, not to zero: so no weight decay, but a term of the loss
    optimiser = torch.optim.AdamW([*maps, directions, bias], lr=settings.rate, weight_decay=0.0)
    total = settings.epochs * -(-len(examples) // settings.batch)
    for done, batch in enumerate(_batches(examples, settings), start=1):
        packed = _packed(batch)
        used = torch.from_numpy(packed.used)
        moved = relations[used] + directions[torch.from_numpy(vectors.directions[packed.used])]
        moves = torch.cat([moved @ first_map.T, moved @ further_map.T, nowhere])
        paths = embedding_bag(
            torch.from_numpy(packed.moves), moves, mode="sum", per_sample_weights=torch.from_numpy(packed.weights)
        ).view(*packed.single.shape, size)
        asked = torch.stack([questions[example.question] for example, _ in batch]) @ question_map.T
        lengths = ((paths * paths).sum(dim=2) + 1e-12).sqrt() * asked.norm(dim=1, keepdim=True)
        cosines = torch.bmm(paths, asked[:, :, None])[:, :, 0] / lengths
        logits = SCALE * (cosines + bias * torch.from_numpy(packed.single))
        logits = logits.masked_fill(torch.from_numpy(packed.padding), -torch.inf)
        # the gold path stands first in every row
        loss = cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))
        pulled = loss + settings.pull * sum(((each - eye) ** 2).sum() for each in maps)
        optimiser.zero_grad()
        pulled.backward()
        optimiser.step()
        progress(done, total, float(loss.detach()))
    arrays = [each.detach().numpy().astype(np.float32) for each in (*maps, directions)]
    return in_half_precision(TrainedRanker(*arrays, one_step_bias=float(bias.detach()), embeddings=vectors.embeddings))


_Sampled = tuple[Example, np.ndarray]


def _batches(examples: Sequence[Example], settings: TrainingSettings) -> Iterator[list[_Sampled]]:
    """Examples in another order every epoch, each with the rows of its gold path and of negatives drawn anew."""
    random = np.random.default_rng(settings.seed)
    for _ in range(settings.epochs):
        order = random.permutation(len(examples))
        for start in range(0, len(order), settings.batch):
            yield [
                (examples[n], _sampled(examples[n], settings.negatives, random))
                for n in order[start : start + settings.batch]
            ]


def _sampled(example: Example, negatives: int, random: np.random.Generator) -> np.ndarray:
    """The rows of the gold path and of at most so many others, the gold one first."""
    others = len(example.pool) - 1
    drawn = np.arange(others) if others <= negatives else random.choice(others, negatives, replace=False)
    return example.pool[np.concatenate([[example.gold], drawn + (drawn >= example.gold)])]


@dataclass(frozen=True, slots=True)
class _Packed:
    """The paths of a batch as weighted sums of moves.

    With n steps `used`, move i is step i as a first one, move n + i the same step as a further one, and move 2n none.
    `moves` and `weights`: shape (examples * paths, longest); `single` is 1.0 where a path has one step, `padding`
    True where there is no path, both of shape (examples, paths).
    """

    used: np.ndarray
    moves: np.ndarray
    weights: np.ndarray
    single: np.ndarray
    padding: np.ndarray


def _packed(batch: Sequence[_Sampled]) -> _Packed:
    widest, longest = (max(rows.shape[axis] for _, rows in batch) for axis in (0, 1))
    table = np.full((len(batch), widest, longest), -1, dtype=np.int64)
    for number, (_, rows) in enumerate(batch):
        table[number, : len(rows), : rows.shape[1]] = rows
    used, table = _renumbered(table)
    lengths = (table >= 0).sum(axis=2)
    moves = np.where(table < 0, 2 * len(used), table + len(used) * (np.arange(longest) > 0))
    weights = np.ones(table.shape, dtype=np.float32)
    weights[..., 1:] /= np.maximum(lengths - 1, 1)[..., None]
    return _Packed(
        used,
        moves.reshape(-1, longest),
        weights.reshape(-1, longest),
        (lengths == 1).astype(np.float32),
        lengths == 0,
    )


def _renumbered(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers a table uses, and the table with their places among them; -1 stays."""
    used, places = np.unique(table, return_inverse=True)
    places = places.reshape(table.shape)
    return (used[1:], places - 1) if used.size and used[0] < 0 else (used, places)
