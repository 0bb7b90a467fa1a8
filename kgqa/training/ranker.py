"""From questions to a trained ranker: drop what is measured, build pools, hold a tenth back, train, measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.schema import Schema
from kgqa.training.fitting import TrainingSettings, embed_examples, fit_ranker, hit_rates, split_examples
from kgqa.training.ontology import Ontology
from kgqa.training.pools import PoolBuilder
from kgqa.training.questions import LeakGuard, gold_path_reader, labels_in, relations_by_local_name, training_questions
from kgqa.words import relation_words

HELD_OUT = 0.1
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What a training was made of and what came of it.

    `dropped`: questions that are among those to be measured; `unread`: without a readable gold path; `without_pool`:
    gold paths that neither a graph nor the ontology gives a pool. An example is one gold path. `before` and `after`:
    the share of `held_out` examples, not trained on, whose gold path is ranked first; before training the score is
    the cosine with the sum of a path's relations. `seconds` is all of it, `training_seconds` the fitting alone.
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
    questions: Rows,
    encoder: CachedEncoder,
    *,
    schema: Schema,
    graphs: Sequence[KnowledgeGraph] = (),
    ontology: Ontology | None = None,
    evaluated: Rows = (),
    settings: TrainingSettings = TrainingSettings(),
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[TrainedRanker, TrainingReport]:
    """Train a ranker on questions in the project's format.

    Args:
        schema: of the ontology, and of questions whose topics are in no graph.
        evaluated: questions that are going to be measured; nothing like them is trained on.
        progress: told the stage (`pools`, `training`), what is done of it, and what there is to do.

    Raises:
        SettingsError: there is nothing to train on. ModelUnavailable: torch is not installed. StoreError.
    """
    began = time.monotonic()
    schemas = list(dict.fromkeys([*(graph.schema.name for graph in graphs), schema.name]))
    by_name = {each.name: each for each in (schema, *(graph.schema for graph in graphs))}
    paths_of = gold_path_reader([by_name[name] for name in schemas], relations_by_local_name(graphs))
    inverses = dict(ontology.inverses) if ontology else {}
    for graph in graphs:
        inverses |= graph.inverses
    guard = LeakGuard(paths_of, inverses)
    guard.add(evaluated)
    kept = guard.keep(questions)
    gold = training_questions(kept, paths_of, names=labels_in(graphs))
    builder = PoolBuilder(graphs=graphs, ontology=ontology)
    examples = []
    for number, question in enumerate(gold, start=1):
        if example := builder.example(question):
            examples.append(example)
        progress("pools", number, len(gold))
    if not examples:
        raise SettingsError(
            f"There is nothing to train on: of {len(questions)} questions {len(questions) - len(kept)} are among those "
            f"to be measured, {len(gold)} gold paths could be read, and none of them has a pool. Give --graph a graph "
            "that has their topics, or --ontology."
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
        before=hit_rates(untrained, apart, vectors)[0],
        after=hit_rates(ranker, apart, vectors)[0],
        training_seconds=fitted - fitting,
        seconds=time.monotonic() - began,
    )
    return ranker, report


def relation_texts(graphs: Sequence[KnowledgeGraph], schema: Schema) -> Callable[[str], str]:
    """The words of a relation as its graph words it; of one that is in no graph by the schema."""

    def text(relation: str) -> str:
        for graph in graphs:
            if relation in graph.relations:
                return relation_words(relation, graph.schema, graph.relation_labels)
        return relation_words(relation, schema)

    return text
