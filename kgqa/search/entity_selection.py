"""Entity selection (thesis, sections 3.3.1 and 4.1): the search continues only from some end entities of the paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from kgqa.errors import ResultCapped
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.tournaments.chooser import AnsweringPick, Chooser, EntityGroup
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import is_unnamed
from kgqa.trace import Entities
from kgqa.trace.trace import Trace

Offer = tuple[Candidate, Entity, str]
"""A path, one of its ends, and the text by which it is shown."""


def select_entities(
    graph: KnowledgeGraph,
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    *,
    k: int,
    pool: int,
    chunk: int,
    prefilter: Callable[[Sequence[Candidate]], list[Candidate]],
    shown: Callable[[Entity, str], str],
    worded: Callable[[Candidate], str],
    named_only: bool,
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
        pool: Most entities that are offered.
        chunk: Most entities in one prompt.
        prefilter: Takes the best of more than `pool` entities.
        shown: Maps an entity and its name to the text shown to the chooser; topics are masked in this text.
        worded: Maps a path to the text shown to the chooser.
        named_only: Whether to offer only entities with a name. Paths that end only at others stay as they are.
        trace: Records the selection.
    """
    tolerated = (*TOLERATED, ResultCapped)
    ends_of = graph.paths.ends(candidates, tolerated=tolerated)
    every = without_failures(candidates, ends_of, trace, worded=lambda each: each.words, tolerated=tolerated)
    reached = [
        (candidate, end)
        for candidate, ends in every
        for end in ends.values
        if isinstance(end, Entity) and not end.iri.startswith("_:")
    ]
    offers = [
        (candidate, entity, shown(entity, named.name))
        for (candidate, entity), named in zip(reached, graph.named(entity for _, entity in reached))
        if not (named_only and is_unnamed(named, graph.schema))
    ]
    if not offers:
        return list(candidates)
    offered = offers
    if len(offers) > pool:
        # the prefilter takes candidates, so each entity becomes a candidate described by its path and its name
        stand_ins = [Candidate(RelationPath(entity), f"{path.words} {text}") for path, entity, text in offers]
        offer_of = dict(zip(map(id, stand_ins), offers))
        offered = [offer_of[id(each)] for each in prefilter(stand_ins)][:pool]
    chosen, answered = _choose(question, offered, chooser, k, chunk, worded)
    selected = tuple(text for *_, text in chosen)
    trace.record(Entities(selected=selected, reached=len(offers), offered=len(offered), answered=answered))
    if answered:
        return []
    silent = {id(candidate) for candidate, _ in reached}.difference(id(candidate) for candidate, _, _ in offers)
    result = []
    for candidate in candidates:
        entities = tuple(entity for path, entity, _ in chosen if path is candidate)
        if entities:
            restricted = {**dict(candidate.restricted), len(candidate.path): entities}
            result.append(replace(candidate, restricted=tuple(restricted.items())))
        elif id(candidate) in silent:
            result.append(candidate)
    return result


def _choose(
    question: str, offered: Sequence[Offer], chooser: Chooser, k: int, size: int, worded: Callable[[Candidate], str]
) -> tuple[list[Offer], bool]:
    """Let the chooser pick entities from chunks, grouped by path; repeat with the winners until one chunk is left.

    Returns:
        The chosen entities, and whether they answer the question.
    """
    left = list(offered)
    while True:
        chunks = [list(chain(*_by_path(left[start : start + size]))) for start in range(0, len(left), size)]
        groups = [
            [EntityGroup(worded(offers[0][0]), tuple(text for *_, text in offers)) for offers in _by_path(chunk)]
            for chunk in chunks
        ]
        picked = chooser.pick_grouped(question, groups, k)
        answers = [chunk[i] for chunk, pick in zip(chunks, picked) if isinstance(pick, AnsweringPick) for i in pick]
        if answers:
            return answers, True
        # after an unusable reply the first
        survivors = [
            chunk[i] for chunk, pick in zip(chunks, picked) for i in (range(len(chunk))[:k] if pick is None else pick)
        ]
        if len(chunks) <= 1 or len(survivors) >= len(left):
            return survivors[:k], False
        left = survivors


def _by_path(chunk: Sequence[Offer]) -> list[list[Offer]]:
    paths = {id(path): path for path, *_ in chunk}.values()
    return [[offer for offer in chunk if offer[0] is path] for path in paths]
