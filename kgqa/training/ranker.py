"""Training of a ranker: excludes evaluated questions, builds pools, fits, and tests on a tenth of the questions."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.errors import SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.schema import Schema
from kgqa.text.hints import Option
from kgqa.text.words import counted, relation_words
from kgqa.training.fitting import (
    TESTED,
    Hits,
    TrainingSettings,
    embed_examples,
    fit_ranker,
    hits,
    split_examples,
)
from kgqa.training.pools import PoolBuilder, Template, templates
from kgqa.training.questions import Row, gold_path_reader, training_questions, without_evaluated
from kgqa.training.sources import GraphSource, Ontology, Source

HELD_OUT = 0.1
FEWEST = 300
"""How many template questions are used at least; otherwise, as many as there are examples."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Figures of a training: the questions used and how well the ranker ranks.

    Attributes:
        questions: Number of all questions.
        dropped: Number of questions excluded because they are in the evaluation.
        unused: Number of questions without a readable gold path, and of gold paths without a pool.
        examples: Number of gold paths used for training.
        templates: Number of template questions used for training.
        own: The test on a tenth of the questions.
        transfer: The test on template questions over what is not trained on.
        held_out: What the transfer is tested on, in words.
    """

    questions: int
    dropped: int
    unused: int
    examples: int
    templates: int
    own: Hits
    transfer: Hits
    held_out: str


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
    drawn = [
        each for source in sources for each in templates(source, max(len(part), FEWEST) // len(sources), settings.seed)
    ]
    draw, asked_for = random.Random(settings.seed), {example.question for example in part}
    drawn += [longer for each in gold if each.asked in asked_for and (longer := builder.lengthened(each, draw))]
    apart_drawn = [each for graph in unseen for each in templates(GraphSource(graph), TESTED, settings.seed)]
    held_out = counted(len(unseen), "other graph")
    if not unseen:
        golds = [number for example in examples for number in example.pool[example.gold] if number >= 0]
        drawn, apart_drawn, relations = without_relations(
            drawn, {builder.steps[each].relation for each in golds}, settings.seed
        )
        held_out = f"{counted(relations, 'relation')} in no question"
    worded = [builder.template_example(each, near=True) for each in drawn]
    others = [builder.template_example(each, near=False) for each in apart_drawn]
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
        unused=sum(not paths_of(row) for row in kept) + len(gold) - len(examples),
        examples=len(part),
        templates=len(worded),
        own=own,
        transfer=transfer,
        held_out=held_out,
    )
    return ranker, report


def without_relations(
    drawn: Sequence[Template], asked: Collection[str], seed: int
) -> tuple[list[Template], list[Template], int]:
    """Split template questions by whether their path has a held-out relation.

    Held out is a tenth of their relations, but none of those `asked` for by other questions.

    Returns:
        The template questions without a held-out relation, those with one, and the number of held-out relations.
    """

    def relations(template: Template) -> set[str]:
        return {step.relation for step in template[1][0]}

    unasked = sorted(set().union(*map(relations, drawn)).difference(asked))
    chosen = set(np.random.default_rng(seed).permutation(unasked)[: 1 + int(HELD_OUT * len(unasked))])
    apart = [template for template in drawn if not chosen.isdisjoint(relations(template))]
    return [template for template in drawn if chosen.isdisjoint(relations(template))], apart, len(chosen)


def relation_texts(graphs: Sequence[KnowledgeGraph], schema: Schema) -> Callable[[str], str]:
    """Return a function that gives a relation's words, from a graph with this relation or else from `schema`."""

    def text(relation: str) -> str:
        for graph in graphs:
            if relation in graph.tables.relations:
                return relation_words(relation, graph.schema, graph.tables.relation_labels)
        return relation_words(relation, schema)

    return text
