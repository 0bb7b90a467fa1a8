"""How far edited hyperedges are trusted, and which contradict each other; kept in the database for readers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from kgqa.corpus.editing.disputes import Disputes, Pair, candidates, disputes_among
from kgqa.corpus.editing.live_hyperedges import tags_of_segments
from kgqa.corpus.editing.trust import CORPUS, TRUSTS, highest
from kgqa.corpus.items import HyperedgeItem
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.terms import iri_term, text_term
from kgqa.corpus.storage.database import Database
from kgqa.storage.loading import Count, parse_json

_KEY = "standing of hyperedges"
"""The key under which the database keeps the standing after the edit that its graph shows."""


@dataclass(frozen=True)
class Standing:
    """What edits say about the live hyperedges of a corpus.

    Attributes:
        trusts: How far those are trusted that only edits state, by their IRIs.
        disputes: What contradicts each other.
    """

    trusts: Mapping[str, str] = field(default_factory=dict)
    disputes: Disputes = field(default_factory=Disputes)

    def trust(self, iri: str) -> str:
        """Return how far a live hyperedge is trusted."""
        return self.trusts.get(iri, CORPUS)

    @cached_property
    def conflicts(self) -> Mapping[str, frozenset[str]]:
        """The live hyperedges that contradict each one that is in conflict."""
        found: dict[str, set[str]] = defaultdict(set)
        for one, other in self.disputes.hyperedges:
            found[one].add(other)
            found[other].add(one)
        return {iri: frozenset(others) for iri, others in found.items()}

    def texts(self) -> dict[str, set[str]]:
        """Return the triples that say so as texts: of hyperedges for the view `hyper`, of edits for `edits`."""
        hyper = {f"{iri_term(iri)} <{v.TRUST}> {text_term(trust)}" for iri, trust in self.trusts.items()}
        return {
            "hyper": hyper | _conflict_texts(self.disputes.hyperedges),
            "edits": _conflict_texts(self.disputes.edits),
        }


def standing_of(database: Database, seq: int) -> Standing:
    """Return the standing of the live hyperedges after edit `seq`: as it is kept, else computed."""
    with suppress(ValueError):
        if text := database.build.state(_KEY):
            kept: _Kept = parse_json(text, _Kept)
            if kept.seq == seq and set(kept.trusts.values()) <= set(TRUSTS):
                return Standing(kept.trusts, Disputes(kept.hyperedges, kept.edits, kept.contested))
    return computed_standing(database, seq)


def computed_standing(database: Database, seq: int) -> Standing:
    """Compute the standing of the live hyperedges after edit `seq` from the log."""
    items = (addition.item for _, addition in database.live.edited(HyperedgeItem.kind, seq))
    edited = {item.segment for item in items if isinstance(item, HyperedgeItem)}
    found = candidates(database, seq)
    tags = tags_of_segments(edited | found.segments, database, seq)
    trusts = {
        iri: highest(tag.trust for tag in several)
        for iri, several in tags.items()
        if not any(tag.document for tag in several)
    }
    return Standing(trusts, disputes_among(found, tags))


def keep_standing(database: Database, seq: int, standing: Standing) -> None:
    """Keep the standing after edit `seq` for readers. The database is open for writing."""
    disputes = standing.disputes
    kept = _Kept(seq, dict(standing.trusts), disputes.hyperedges, disputes.edits, disputes.contested)
    text = json.dumps(msgspec.to_builtins(kept, order="deterministic"))
    if database.build.state(_KEY) != text:
        database.build.put_state(_KEY, text)


class _Kept(msgspec.Struct):
    seq: Count
    trusts: dict[str, str]
    hyperedges: frozenset[Pair]
    edits: frozenset[Pair]
    contested: frozenset[str]


def _conflict_texts(pairs: Iterable[Pair]) -> set[str]:
    both = (each for one, other in pairs for each in ((one, other), (other, one)))
    return {f"{iri_term(one)} <{v.CONFLICTS_WITH}> {iri_term(other)}" for one, other in both}
