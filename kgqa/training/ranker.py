"""Training of a ranker: excludes evaluated questions, builds pools, fits, and tests on a tenth of the questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.errors import SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.schema import Schema
from kgqa.text.hints import Option
from kgqa.text.words import counted, relation_words
from kgqa.training.fitting import (
    TESTED,
    Example,
    Hits,
    TrainingSettings,
    embed_examples,
    fit_ranker,
    hits,
    split_examples,
)
from kgqa.training.pools import PoolBuilder
from kgqa.training.questions import Row, gold_path_reader, training_questions, without_evaluated
from kgqa.training.sources import GraphSource, Ontology, Source

HELD_OUT = 0.1
FEWEST = 1000
"""How many template questions are used at least; otherwise, as many as there are examples."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Figures of a training: the questions used and how well the ranker ranks.

    Attributes:
        questions: Number of all questions.
        dropped: Number of questions excluded because they are in the evaluation.
        unread: Number of questions without a readable gold path.
        without_pool: Number of gold paths for which neither a graph nor the ontology gives a pool.
        examples: Number of gold paths used for training.
        templates: Number of template questions used for training.
        own: The test on a tenth of the questions.
        transfer: The test on template questions over what is not trained on.
        held_out: What the transfer is tested on, in words.
        seconds: Total seconds.
    """

    questions: int
    dropped: int
    unread: int
    without_pool: int
    examples: int
    templates: int
    own: Hits
    transfer: Hits
    held_out: str
    seconds: float


def train_ranker(
    questions: Sequence[Row],
    encoder: CachedEncoder,
    *,
    schema: Schema,
    graphs: Sequence[KnowledgeGraph] = (),
    ontology: Ontology | None = None,
    further: Sequence[KnowledgeGraph] = (),
    unseen: Sequence[KnowledgeGraph] = (),
    evaluated: Sequence[Row] = (),
    settings: TrainingSettings | None = None,
    share: float = 0.5,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[TrainedRanker, TrainingReport]:
    """Train a ranker on lines of question files, and on template questions.

    Args:
        questions: The questions.
        encoder: The embedding model.
        schema: Schema of the ontology, and of questions whose topics are in no graph.
        graphs: Graphs that contain topics of the questions.
        ontology: Provides pools for topics that are in no graph.
        further: Graphs of which only template questions are made, as they are of `graphs` and `ontology`.
        unseen: Graphs that are not trained on; their template questions test the transfer. If empty, the transfer is
            tested on the template questions with some relations that are not trained on.
        evaluated: Questions of a later evaluation; these questions are excluded from training.
        settings: Settings of the fit; None for the defaults.
        share: Share of the ranker in the mixed score of the tests, 0 to 1.
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
    sources: list[Source] = [*map(GraphSource, graphs), *([ontology] if ontology else [])]
    builder = PoolBuilder(sources)
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

    part, apart = split_examples(examples, HELD_OUT, settings.seed)
    sources += map(GraphSource, further)
    count = max(len(part), FEWEST) // len(sources)
    worded = [each for source in sources for each in builder.templates(source, count, settings.seed)]
    others = [each for graph in unseen for each in builder.templates(GraphSource(graph), TESTED, settings.seed)]
    if unseen:
        held_out = counted(len(unseen), "other graph")
    else:
        worded, others, count = without_relations(worded, examples, builder.steps, settings.seed)
        held_out = f"{counted(count, 'relation')} in no question"
    text_of = relation_texts([*graphs, *further, *unseen], schema)
    vectors = embed_examples([*examples, *worded, *others], builder.steps, encoder, text_of)
    ranker = fit_ranker(
        [*part, *worded], vectors, settings, progress=lambda done, total, loss: progress("training", done, total)
    )
    words = [text_of(step.relation) for step in builder.steps]
    own, transfer = (
        hits(ranker, tested, vectors, words, encoder, share=share, seed=settings.seed) for tested in (apart, others)
    )
    report = TrainingReport(
        questions=len(questions),
        dropped=len(questions) - len(kept),
        unread=sum(not paths_of(row) for row in kept),
        without_pool=len(gold) - len(examples),
        examples=len(part),
        templates=len(worded),
        own=own,
        transfer=transfer,
        held_out=held_out,
        seconds=time.monotonic() - started,
    )
    return ranker, report


def without_relations(
    templates: Sequence[Example], examples: Sequence[Example], steps: Sequence[Step], seed: int
) -> tuple[list[Example], list[Example], int]:
    """Split template questions by whether their gold path has a held-out relation.

    Held out is a tenth of the relations that are in no gold path of the examples.

    Returns:
        The templates without a held-out relation, the templates with one, and the number of held-out relations.
    """

    def relations(example: Example) -> set[str]:
        return {steps[number].relation for number in example.pool[example.gold] if number >= 0}

    asked = set().union(*map(relations, examples))
    unasked = sorted(set().union(*map(relations, templates)) - asked)
    chosen = set(np.random.default_rng(seed).permutation(unasked)[: 1 + int(HELD_OUT * len(unasked))])
    apart = [example for example in templates if not chosen.isdisjoint(relations(example))]
    return [example for example in templates if chosen.isdisjoint(relations(example))], apart, len(chosen)


def relation_texts(graphs: Sequence[KnowledgeGraph], schema: Schema) -> Callable[[str], str]:
    """Return a function that gives a relation's words, from a graph with this relation or else from `schema`."""

    def text(relation: str) -> str:
        for graph in graphs:
            if relation in graph.tables.relations:
                return relation_words(relation, graph.schema, graph.tables.relation_labels)
        return relation_words(relation, schema)

    return text
