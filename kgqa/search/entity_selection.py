"""Entity selection (thesis, sections 3.3.1 and 4.1): the search continues only from some end entities of the paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kgqa.errors import ResultCapped
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.tournaments.chooser import AnsweringPick, Chooser, EntityGroup, usable_indices
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import is_unnamed
from kgqa.trace import Entities
from kgqa.trace.trace import Trace

FILTER_ABOVE = 30
CHUNK = 20


def select_entities(
    graph: KnowledgeGraph,
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    prefilter: Callable[[Sequence[Candidate]], list[Candidate]],
    shown: Callable[[Entity, str], str],
    worded: Callable[[Candidate], str] | None = None,
    named_only: bool = False,
    trace: Trace,
) -> list[Candidate]:
    """Restrict paths to `k` of their end entities in total, and drop paths without a selected entity.

    No path is left if the chooser says that entities answer the question, because the search need not continue.

    Args:
        graph: The graph.
        question: The question's text.
        candidates: The winning paths.
        chooser: Picks the entities.
        k: How many entities to select, over all paths.
        prefilter: Reduces a pool of more than `FILTER_ABOVE` entities.
        shown: Maps an entity and its name to the text shown to the chooser; topics are masked in this text.
        worded: Maps a path to the text shown to the chooser; None for `Candidate.words`.
        named_only: Whether to offer only entities with a name. Paths that end only at others stay as they are.
        trace: Records the selection.
    """
    reached = _reached(graph, candidates, trace)
    names = graph.named(entity for _, entity in reached)
    silent: set[int] = set()
    if named_only:
        every = {id(candidate) for candidate, _ in reached}
        offered = [(pair, named) for pair, named in zip(reached, names) if not is_unnamed(named, graph.schema)]
        reached, names = [pair for pair, _ in offered], [named for _, named in offered]
        silent = every - {id(candidate) for candidate, _ in reached}
    if not reached:
        return list(candidates)
    texts = [shown(entity, named.name) for (_, entity), named in zip(reached, names)]
    pool = list(range(len(reached)))
    if len(pool) > FILTER_ABOVE:
        # the prefilter takes candidates, so each entity becomes a candidate described by its path and its name
        stand_ins = [
            Candidate(RelationPath(entity), f"{candidate.words} {text}")
            for (candidate, entity), text in zip(reached, texts)
        ]
        index_of: dict[int, int] = {id(each): index for index, each in enumerate(stand_ins)}
        pool = [index_of[id(each)] for each in prefilter(stand_ins)][:FILTER_ABOVE]
    prefixes = {id(candidate): worded(candidate) if worded else candidate.words for candidate in candidates}
    chosen = _choose(question, reached, texts, pool, chooser, k, prefixes)
    answered = isinstance(chosen, AnsweringPick)
    selected = tuple(texts[index] for index in chosen)
    trace.record(Entities(selected=selected, reached=len(reached), offered=len(pool), answered=answered))
    if answered:
        return []
    result = []
    for candidate in candidates:
        entities = tuple(reached[index][1] for index in chosen if reached[index][0] is candidate)
        if entities:
            position = len(candidate.path)
            kept = tuple(each for each in candidate.restricted if each[0] != position)
            result.append(replace(candidate, restricted=(*kept, (position, entities))))
        elif id(candidate) in silent:
            result.append(candidate)
    return result


def _reached(graph: KnowledgeGraph, candidates: Sequence[Candidate], trace: Trace) -> list[tuple[Candidate, Entity]]:
    tolerated = (*TOLERATED, ResultCapped)
    ends_of = graph.paths.ends(candidates, tolerated=tolerated)
    every = without_failures(candidates, ends_of, trace, worded=lambda each: each.words, tolerated=tolerated)
    return [
        (candidate, end)
        for candidate, ends in every
        for end in ends.values
        if isinstance(end, Entity) and not end.iri.startswith("_:")
    ]


def _choose(
    question: str,
    reached: Sequence[tuple[Candidate, Entity]],
    texts: Sequence[str],
    pool: Sequence[int],
    chooser: Chooser,
    k: int,
    prefixes: Mapping[int, str],
) -> list[int]:
    """Let the chooser pick entities from chunks, grouped by path; repeat with the winners until one chunk is left.

    The result is an `AnsweringPick` if entities of one or more chunks answer the question.
    """
    left = list(pool)
    while True:
        chunks = [left[start : start + CHUNK] for start in range(0, len(left), CHUNK)]
        grouped = [_grouped(chunk, reached, texts, prefixes) for chunk in chunks]
        picked = chooser.pick_grouped(question, [groups for groups, _ in grouped], k)
        usable = [usable_indices(indices, len(order), k) for (_, order), indices in zip(grouped, picked)]
        answers = [
            order[i] for (_, order), pick in zip(grouped, usable) if isinstance(pick, AnsweringPick) for i in pick
        ]
        if answers:
            return AnsweringPick(answers)
        survivors: list[int] = []
        for (_, order), pick in zip(grouped, usable):
            survivors += order[:k] if pick is None else [order[i] for i in pick]  # after an unusable reply the first
        if len(chunks) <= 1 or len(survivors) >= len(left):
            return survivors[:k]
        left = survivors


def _grouped(
    chunk: Sequence[int],
    reached: Sequence[tuple[Candidate, Entity]],
    texts: Sequence[str],
    prefixes: Mapping[int, str],
) -> tuple[list[EntityGroup], list[int]]:
    """Group a chunk of entity indices by path; return the groups, and the indices in the order of the groups."""
    by_path: dict[int, list[int]] = {}
    for index in chunk:
        by_path.setdefault(id(reached[index][0]), []).append(index)
    groups = [EntityGroup(prefixes[path], tuple(texts[i] for i in of)) for path, of in by_path.items()]
    return groups, [index for of in by_path.values() for index in of]
