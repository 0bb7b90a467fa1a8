"""Finds the entities that have several names or spellings.

Every pair found is an addition of a `SameItem` with its reason and confidence, so it is recorded and can be undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kgqa.corpus.items import Addition, SameItem
from kgqa.corpus.records import EntityRecord
from kgqa.corpus.resolution.normal_forms import comparison_form, without_article
from kgqa.corpus.resolution.types import types_agree

RULES = "resolution rules"


@dataclass(frozen=True, slots=True)
class Undecided:
    """Two entities that may be the same, by the IRIs of their names, and why nothing was decided."""

    left: str
    right: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What resolution found. `merges`: additions of `SameItem`s. `asked`: number of pairs shown to a model."""

    merges: tuple[Addition, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    asked: int = 0


def resolve(
    entities: Sequence[EntityRecord],
    *,
    encoder: Any = None,
    models: Any = None,
    prompts: Any = None,
    known: Collection[tuple[str, str]] = (),
    only: Collection[str] | None = None,
) -> Resolution:
    """Find the names that mean the same entity.

    Args:
        entities: Entities before resolution: one per `Party.iri`.
        encoder: Embedding model, to propose pairs with similar names.
        models: Language models, for pairs that nothing else decides.
        prompts: The prompt files.
        known: Pairs of IRIs that have been found or undone earlier; they are not found again.
        only: IRIs of new entities; each pair contains at least one of them. None: all pairs.
    """
    groups: dict[str, list[EntityRecord]] = defaultdict(list)
    for entity in sorted(entities, key=lambda entity: entity.iri):
        groups[without_article(comparison_form(entity.name))].append(entity)
    merges: list[Addition] = []
    for group in groups.values():
        if len(group) > 1:
            merges += _of_group(group)
    fresh = None if only is None else frozenset(only)
    past = {tuple(sorted(pair)) for pair in known}
    return Resolution(tuple(sorted(_new(merges, past, fresh), key=_key)))


def _of_group(group: Sequence[EntityRecord]) -> Iterable[Addition]:
    """Chain the entities of one form whose types agree; those without a type belong to the only kind there is."""
    kinds: list[list[EntityRecord]] = []
    for entity in group:
        for kind in kinds if entity.types else ():
            if all(types_agree(entity.types[0], other.types[0]) for other in kind):
                kind.append(entity)
                break
        else:
            if entity.types:
                kinds.append([entity])
    untyped = [entity for entity in group if not entity.types]
    if len(kinds) == 1:
        kinds[0] += untyped
    elif untyped:
        kinds.append(untyped)
    for kind in kinds:
        for one, other in pairwise(kind):
            left, right = sorted((one.iri, other.iri))
            yield Addition(SameItem(left, right), confidence=1.0, model=RULES, reason="same normal form")


def _new(
    merges: Iterable[Addition], known: Collection[tuple[str, ...]], only: Collection[str] | None
) -> Iterable[Addition]:
    for merge in merges:
        pair = _key(merge)
        if pair not in known and (only is None or pair[0] in only or pair[1] in only):
            yield merge


def _key(merge: Addition) -> tuple[str, str]:
    assert isinstance(merge.item, SameItem)
    return merge.item.left, merge.item.right
