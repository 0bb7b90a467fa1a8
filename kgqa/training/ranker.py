"""Training of a ranker: excludes evaluated questions, builds pools, fits, and tests on a tenth of the questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgqa.errors import SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.schema import Schema
from kgqa.text.hints import Option
from kgqa.text.words import counted, relation_words
from kgqa.training.fitting import TrainingSettings, embed_examples, fit_ranker, hit_rate, split_examples
from kgqa.training.ontology import Ontology
from kgqa.training.pools import PoolBuilder
from kgqa.training.questions import Row, gold_path_reader, training_questions, without_evaluated

HELD_OUT = 0.1


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Figures of a training: the questions used and how well the ranker ranks.

    Attributes:
        questions: Number of all questions.
        dropped: Number of questions excluded because they are in the evaluation.
        unread: Number of questions without a readable gold path.
        without_pool: Number of gold paths for which neither a graph nor the ontology gives a pool.
        examples: Number of gold paths used for training.
        from_graph: Number of gold paths with a pool from a graph.
        from_ontology: Number of gold paths with a pool from the ontology.
        held_out: Number of gold paths kept for the test.
        before: Share of the test's gold paths, 0 to 1, ranked first without training, by the cosine between the
            question and the sum of the path's relations.
        after: Share of the test's gold paths, 0 to 1, ranked first by the trained ranker.
        training_seconds: Seconds taken by the fit.
        seconds: Total seconds.
    """

    questions: int
    dropped: int
    unread: int
    without_pool: int
    examples: int
    from_graph: int
    from_ontology: int
    held_out: int
    before: float
    after: float
    training_seconds: float
    seconds: float


def train_ranker(
    questions: Sequence[Row],
    encoder: CachedEncoder,
    *,
    schema: Schema,
    graphs: Sequence[KnowledgeGraph] = (),
    ontology: Ontology | None = None,
    evaluated: Sequence[Row] = (),
    settings: TrainingSettings | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[TrainedRanker, TrainingReport]:
    """Train a ranker on lines of question files.

    Args:
        questions: The questions.
        encoder: The embedding model.
        schema: Schema of the ontology, and of questions whose topics are in no graph.
        graphs: Graphs that contain topics of the questions.
        ontology: Provides pools for topics that are in no graph.
        evaluated: Questions of a later evaluation; these questions are excluded from training.
        settings: Settings of the fit; None for the defaults.
        progress: Called with the stage (`pools` or `training`), the number of finished items and of all items.

    Raises:
        SettingsError: No question can be used for training.
        ModelUnavailable: Torch is not installed.
        StoreError: A graph cannot be read.
    """
    settings = settings or TrainingSettings()
    started = time.monotonic()
    paths_of = gold_path_reader([*(graph.schema for graph in graphs), schema], graphs)
    inverses = dict(ontology.inverses) if ontology else {}
    for graph in graphs:
        inverses |= graph.tables.inverses
    kept = without_evaluated(questions, evaluated, paths_of, inverses)
    gold = training_questions(kept, paths_of, [graph.labels for graph in graphs])
    builder = PoolBuilder(graphs=graphs, ontology=ontology)
    examples = []
    for number, question in enumerate(gold, start=1):
        if example := builder.example(question):
            examples.append(example)
        progress("pools", number, len(gold))
    if not examples:
        raise SettingsError(
            f"There is nothing to train on. Of {counted(len(questions), 'question')}, {len(questions) - len(kept)} are "
            f"excluded, because they are evaluated; the others have {len(gold)} readable gold paths, none "
            "with a pool of paths.",
            "Add ",
            Option("graph"),
            " with a graph that contains the questions' topics, or ",
            Option("ontology"),
            ".",
        )
    vectors = embed_examples(examples, builder.steps, encoder, relation_texts(graphs, schema))
    part, apart = split_examples(examples, HELD_OUT, settings.seed)
    fitting = time.monotonic()
    ranker = fit_ranker(part, vectors, settings, progress=lambda done, total, loss: progress("training", done, total))
    fitted = time.monotonic()
    untrained = TrainedRanker.identity(ranker.size, encoder.name)
    report = TrainingReport(
        questions=len(questions),
        dropped=len(questions) - len(kept),
        unread=sum(not paths_of(row) for row in kept),
        without_pool=len(gold) - len(examples),
        examples=len(part),
        from_graph=builder.from_graph,
        from_ontology=builder.from_ontology,
        held_out=len(apart),
        before=hit_rate(untrained, apart, vectors),
        after=hit_rate(ranker, apart, vectors),
        training_seconds=fitted - fitting,
        seconds=time.monotonic() - started,
    )
    return ranker, report


def relation_texts(graphs: Sequence[KnowledgeGraph], schema: Schema) -> Callable[[str], str]:
    """Return a function that gives a relation's words, from a graph with this relation or else from `schema`."""

    def text(relation: str) -> str:
        for graph in graphs:
            if relation in graph.tables.relations:
                return relation_words(relation, graph.schema, graph.tables.relation_labels)
        return relation_words(relation, schema)

    return text
