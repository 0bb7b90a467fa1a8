"""Reads the names of a graph, page by page if the graph is on a server, and spells names in other ways."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from kgqa.errors import PartialResult, StoreError
from kgqa.graph.query.text import render
from kgqa.graph.store import Row, Rows, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.text.words import is_anonymous, local_words, normalise

Name = tuple[str, str, str]
"""The IRI of an entity, one of its names, and the kind of name: `label`, `alias`, or `iri` for words from the IRI."""
PAGE_ROWS = 200_000
MIN_PAGE_ROWS = 500
DEFAULT_SECONDS = 600.0
MAX_ROWS = 50_000_000
Limit = Callable[[], float | None]
"""Function that returns the seconds that the next query may take; None for the store's default limit.

The function raises BudgetExhausted when the question has no time left.
"""


def background_limit() -> float:
    """Return the time limit, in seconds, of a query that is not part of answering a question."""
    return DEFAULT_SECONDS


@dataclass(frozen=True)
class NameShare:
    """How many subjects of a graph have a label, out of how many, and the number of labels by predicate."""

    labelled: int
    subjects: int
    predicates: dict[str, int]

    def text(self, schema: Schema) -> str:
        """Return the share in words: `44 of 51 subjects have a name (86%), by schema:name (44)`."""
        percent = 100 * self.labelled // max(1, self.subjects)
        by = ", ".join(f"{schema.short_id(iri)} ({count:,})" for iri, count in self.predicates.items())
        return f"{self.labelled:,} of {self.subjects:,} subjects have a name ({percent}%){by and ', by '}{by}"


@dataclass(frozen=True)
class NameReader:
    """Reads names from a graph. Thread-safe. All methods raise the same errors as `Store.select`.

    Attributes:
        limit: time limit of each query.
    """

    store: Store
    schema: Schema
    view: Sequence[Entity]
    limit: Limit = background_limit

    @cached_property
    def kinds(self) -> dict[str, list[str]]:
        """For each predicate of names, the kinds of its names; a predicate may be listed as label and as alias."""
        kinds = {"label": self.schema.label, "alias": self.schema.alias}
        predicates = dict.fromkeys((*self.schema.label, *self.schema.alias))
        return {each: [kind for kind, listed in kinds.items() if each in listed] for each in predicates}

    def within(self, limit: Limit) -> Self:
        """Return a reader with another limit."""
        return replace(self, limit=limit)

    def select(self, template: str, *, fresh: bool = True, max_rows: int | None = None, **values: object) -> Rows:
        """Run the query queries/TEMPLATE.rq over the view and return the rows of its result."""
        predicates = [Entity(predicate) for predicate in self.kinds]
        query = render(template, view=self.view, **{"predicates": predicates, **values})
        return self.store.select(query, timeout=self.limit(), fresh=fresh, max_rows=max_rows)

    def names(self, rows: Sequence[Row] | Rows) -> list[Name]:
        """Return the names in rows of entity, predicate and name; those of blank nodes are left out.

        A name that an entity has in two languages is there twice, as in `all`.
        """
        return [
            (entity.iri, name.value, kind)
            for entity, predicate, name in rows
            if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal)
            for kind in self.kinds[predicate.iri]
            if not entity.iri.startswith("_:")
        ]

    def all(self) -> Iterator[Name]:
        """Read all names, labels before aliases, in the order of the schema's predicates.

        If the graph has no names, the words at the end of each IRI are used as a name of kind `iri`. Blank nodes and
        IRIs that stand for them are left out.

        Raises:
            PartialResult: a server truncates even small pages, or all pages together have fewer names than the graph.
        """
        found = False
        for predicate, kinds in self.kinds.items():
            for subject, name in self._pairs(Entity(predicate)):
                if isinstance(subject, Entity) and isinstance(name, Literal) and not subject.iri.startswith("_:"):
                    found = True
                    yield from ((subject.iri, name.value, kind) for kind in kinds)
        for (node,) in () if found else self.select("all_nodes", max_rows=MAX_ROWS):
            if isinstance(node, Entity) and not is_anonymous(node.iri):
                yield node.iri, local_words(node.iri), "iri"

    def count(self, *wanted: str) -> int:
        """Count the triples that give names of the wanted kinds, or any names, to entities."""
        kept = {iri: [kind for kind in kinds if kind in wanted or not wanted] for iri, kinds in self.kinds.items()}
        return sum(len(kinds) * self._count(iri, fresh=False) for iri, kinds in kept.items() if kinds)

    def share(self) -> NameShare | None:
        """Count the subjects of the graph and those with a label; None if it is too large, or the store fails."""
        try:
            if not self.store.may_scan([graph.iri for graph in self.view]):
                return None
            counts = {iri: self._count(iri) for iri in self.schema.label}
            labelled = self.select("names_labelled", predicates=[Entity(iri) for iri in self.schema.label])
            subjects = self.select("subject_count")
        except StoreError:
            return None
        found = {iri: count for iri, count in counts.items() if count}
        return NameShare(single_count(labelled), single_count(subjects), found)

    def _count(self, predicate: str, *, fresh: bool = True) -> int:
        return single_count(self.select("names_count", fresh=fresh, predicate=Entity(predicate)))

    def _pairs(self, predicate: Entity) -> Iterator[Row]:
        """Read all subjects and objects of a predicate; on a server in pages, unsorted, because it cannot sort so many.

        A server may order the rows differently for each page. The pages are therefore complete only if all of them
        together have as many distinct rows as the server counts.
        """
        if not self.store.capabilities.remote:
            yield from self.select("predicate_pairs", fresh=False, max_rows=MAX_ROWS, predicate=predicate)
            return
        total, size, offset = self._count(predicate.iri), PAGE_ROWS, 0
        seen = array("q")
        while offset < total:
            try:
                rows = self.select("names_page", predicate=predicate, limit=size, offset=offset)
            except PartialResult:
                if size <= MIN_PAGE_ROWS:
                    raise
                size = max(size // 2, MIN_PAGE_ROWS)
                continue
            if not len(rows):
                break
            offset += len(rows)
            seen.extend(map(hash, rows))
            yield from rows
        if (distinct := len(set(seen))) != total:
            raise PartialResult(
                f"The server sent only {distinct:,} of {total:,} names.",
                "If somebody is changing the graph, try again when the change is complete.",
            )


MIN_SQUEEZED = 5
"""Names of more than this many characters are looked up without their spaces too."""
LAST_SPACED = "\u2e7f"
"""Characters above this one belong to scripts without spaces: their names are always looked up without spaces too."""
MAX_INITIALS = 5
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_SMALL_WORDS = frozenset(
    "a an and at by de del der des di du for from in la le of on or the to van von with".split()  # noqa: SIM905 - shorter
)


def spellings(name: str) -> dict[str, str]:
    """Return the other normalised spellings of a name, each with its kind, see `LooseMatch.how`."""
    norm = normalise(name)
    found: dict[str, str] = {}
    without_article = re.sub(r"^(?:the|an?) (?=.)", "", norm)
    without_bracket = normalise(_BRACKETS.sub("", name))
    for spelling, how in (
        (without_article, "article"),
        (without_bracket, "bracket"),
        (normalise(name.split(",")[0]) if "," in name else "", "comma"),
        (norm.replace(" ", "") if len(norm) > MIN_SQUEEZED or norm[:1] > LAST_SPACED else "", "squeezed"),
        (initials_of(norm), "initials"),
    ):
        if spelling and spelling != norm:
            found.setdefault(spelling, how)
    return found


def initials_of(norm: str) -> str:
    """Return the initials of a normalised name, leaving out small words such as `of`.

    The result is empty if only one word remains, or more than MAX_INITIALS words.
    """
    words = [word for word in norm.split() if word not in _SMALL_WORDS]
    return "".join(word[0] for word in words) if 2 <= len(words) <= MAX_INITIALS else ""
