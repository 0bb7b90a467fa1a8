"""Sources of paths for training: a graph, whose entities have paths, or an ontology, whose types could have them.

Both have the same methods. An ontology provides pools for topics that are in no available graph. Its files have the
format of GrailQA's Freebase. The main file has lines of `domain relation range`. The same folder may contain the files
`fb_types` (lines of a type, a word and a type that includes the first type), `reverse_properties` (lines of two
relations) and `cvt_types` (lines of one type). All may be gzipped.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from kgqa.errors import SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.labels import is_blank_node
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.schema import Schema
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import local_name, property_words, type_words

MAX_EDGES = 2
MAX_POOL = 60_000
SAMPLED = 40
"""How many edges of a relation are read to find entities."""

Steps = tuple[Step, ...]


def plain_words(relation: str) -> str:
    """Return the last part of a relation's name as words: `place of birth` for `people.person.place_of_birth`."""
    return property_words(local_name(relation).rsplit(".", 1)[-1])


class GraphSource:
    """The paths of a graph; a gold path that the graph lacks is not used.

    All methods raise `StoreError`; a path that takes too long has no extension.
    """

    complete = True

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    def start(self, path: RelationPath) -> Entity | None:
        """Return the topic of a gold path; None if it is not in the graph."""
        return path.topic if self._graph.paths.present([path.topic]) else None

    def starts(self, draw: random.Random, tries: int) -> Iterator[Any]:
        """Yield at most `tries` random entities: each relation is equally likely to be at one of them."""
        pairs = cache(lambda relation: self._graph.paths.pairs(Entity(relation), limit=SAMPLED))
        relations = [relation for relation in self._graph.tables.relations if not self._graph.tables.is_noise(relation)]
        steps = [step for relation in relations for step in (Step(relation), Step(relation, "in"))]
        steps = [step for step in steps if not self._graph.tables.leads_to_mediator(step)]
        for step in draw.choices(steps, k=tries) if steps else ():
            nodes = [pair[step.direction == "out"] for pair in pairs(step.relation)]
            if named := [node for node in nodes if isinstance(node, Entity) and not is_blank_node(node)]:
                yield draw.choice(named)

    def paths(self, start: Entity) -> list[Steps]:
        """Return the paths of at most `MAX_EDGES` edges, except paths whose end nodes are all mediators."""
        found: list[Steps] = []
        frontier = [RelationPath(start)]
        for _ in range(MAX_EDGES):
            onward = [p.then(step) for p in frontier for step in self._graph.paths.steps([Candidate(p)])[0].steps]
            found += [path.steps for path in onward if not self._graph.paths.ends_on_mediators(path)]
            frontier = onward
        return found[:MAX_POOL]

    def onward(self, start: Entity, steps: Steps) -> list[Step]:
        """Return the steps that extend a path, except steps to mediators."""
        (found,) = self._graph.paths.steps([Candidate(RelationPath(start, steps))], tolerated=TOLERATED)
        further = () if isinstance(found, TOLERATED) else found.steps
        return [step for step in further if not self._graph.tables.leads_to_mediator(step)]

    def folded(self, steps: Steps, paths: Iterable[Steps]) -> Steps:
        """Return a path, with each relation replaced by its inverse if the paths contain only the inverse."""
        here = {step for path in paths for step in path}

        def either(step: Step) -> Step:
            twins = [inverse] if (inverse := self._graph.tables.inverses.get(step.relation)) else []
            twins += self._graph.tables.declarations.inverse_of.get(step.relation, ())
            every = [step, *(Step(twin, step.reversed().direction) for twin in twins)]
            return next((each for each in every if each in here), step)

        return tuple(either(step) for step in steps)

    def words(self, relation: str) -> str:
        """Return a relation as a question names it."""
        return self._graph.tables.relation_labels.get(relation) or plain_words(relation)

    def type_words(self, step: Step) -> str:
        """Return the type of the nodes to which a step leads in words; "" if it is not declared."""
        type_ = self._graph.tables.target_type(step)
        return type_words(type_, self._graph.schema) if type_ else ""


@dataclass(frozen=True, eq=False)
class Ontology:
    """Relations with the types that they lead from and to, as a source of paths; all names are full IRIs.

    A path starts at a type. A gold path that the ontology lacks is added to a pool, because ontologies are incomplete.

    Attributes:
        schema: The schema of the names.
        ends: Map from a relation to its domain and range.
        inverses: Map from a relation to its inverse, if it has an inverse.
        mediators: Types of mediators.
        wider: Map from a type to the types that include it (the type location includes the type country).
    """

    schema: Schema
    ends: Mapping[str, tuple[str, str]]
    inverses: Mapping[str, str] = field(default_factory=dict)
    mediators: frozenset[str] = frozenset()
    wider: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: ClassVar[bool] = False

    @cached_property
    def _leaving(self) -> dict[str, tuple[str, ...]]:
        return _grouped((domain, relation) for relation, (domain, _) in self.ends.items())

    @cached_property
    def _entering(self) -> dict[str, tuple[str, ...]]:
        return _grouped((range_, relation) for relation, (_, range_) in self.ends.items())

    def start(self, path: RelationPath) -> str | None:
        """Return the type at which a gold path starts; None if its first relation is unknown."""
        return self._end(self.folded(path.steps[:1])[0].reversed())

    def starts(self, draw: random.Random, tries: int) -> Iterator[Any]:
        """Yield `tries` random types."""
        yield from draw.choices(sorted(self._leaving), k=tries)

    def paths(self, start: str) -> list[Steps]:
        """Return the paths of one or two edges that an entity of a type could have, except to mediators."""
        found: list[Steps] = []
        for first in self._steps_from(start, *self.wider.get(start, ())):
            found += [(first,)] if self._end(first) not in self.mediators else []
            found += [(first, second) for second in self.onward(start, (first,))]
        return found[:MAX_POOL]

    def onward(self, start: str, steps: Steps) -> list[Step]:
        """Return the steps that extend a path, except steps to mediators."""
        further = self._steps_from(self._end(steps[-1]) or "")
        return [step for step in further if self._end(step) not in self.mediators]

    def folded(self, steps: Steps, paths: Iterable[Steps] = ()) -> Steps:
        """Return a path as `paths` has it: a backward step becomes a forward step of the inverse."""
        twins = [self.inverses.get(step.relation) if step.direction == "in" else None for step in steps]
        return tuple(Step(twin) if twin in self.ends else step for twin, step in zip(twins, steps))  # type: ignore[arg-type]

    words = staticmethod(plain_words)

    def type_words(self, step: Step) -> str:
        """Return the type to which a step leads in words; "" if it is unknown."""
        type_ = self._end(step)
        return type_words(type_, self.schema) if type_ else ""

    def _end(self, step: Step) -> str | None:
        """Return the type of the nodes that a step leads to; None for an unknown relation."""
        ends = self.ends.get(step.relation)
        return ends and ends[1 if step.direction == "out" else 0]

    def _steps_from(self, type_: str, *wider: str) -> list[Step]:
        """Return the steps that start from nodes of a type, with only one relation of each pair of inverses.

        Types that are not the domain of any relation, such as dates and numbers, have no steps.
        """
        if type_ not in self._leaving:
            return []
        out = dict.fromkeys(relation for each in (type_, *wider) for relation in self._leaving.get(each, ()))
        twins = {self.inverses[relation] for relation in out if relation in self.inverses}
        into = dict.fromkeys(r for each in (type_, *wider) for r in self._entering.get(each, ()) if r not in twins)
        return [*(Step(relation) for relation in out), *(Step(relation, "in") for relation in into)]


Source = GraphSource | Ontology


def read_ontology(path: Path, schema: Schema) -> Ontology:
    """Read an ontology from its file of `domain relation range`, or from a folder with `fb_roles` or `fb_roles.gz`.

    Lines with a wrong number of names are skipped, and so are the schema's noise relations.

    Raises:
        SettingsError: A file cannot be read, or has no line of three names.
    """
    roles = path if not path.is_dir() else _beside(path / "fb_roles", "fb_roles") or path / "fb_roles.gz"
    ends: dict[str, tuple[str, str]] = {}
    for domain, relation, range_ in _names(roles, 3, schema):
        if not schema.is_noise(relation):
            ends.setdefault(relation, (domain, range_))
    if not ends:
        raise SettingsError(f"{roles} is not an ontology: the file has no lines of `domain relation range`.")
    inverses: dict[str, str] = {}
    for one, other in _names(_beside(roles, "reverse_properties"), 2, schema):
        inverses.setdefault(one, other)
        inverses.setdefault(other, one)
    return Ontology(
        schema,
        ends,
        inverses,
        frozenset(type_ for (type_,) in _names(_beside(roles, "cvt_types"), 1, schema)),
        _grouped((type_, including) for type_, _, including in _names(_beside(roles, "fb_types"), 3, schema)),
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return a map from the first text of each pair to the second ones."""
    found: dict[str, tuple[str, ...]] = {}
    for key, name in sorted(pairs):
        found[key] = (*found.get(key, ()), name)
    return found


def _beside(file: Path, name: str) -> Path | None:
    return next((path for path in (file.with_name(name), file.with_name(f"{name}.gz")) if path.is_file()), None)


def _names(file: Path | None, count: int, schema: Schema) -> Iterator[list[str]]:
    """Yield the names in each line that has `count` names, as IRIs."""
    if file is None:
        return
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
            for names in map(str.split, lines):
                if len(names) == count:
                    yield [schema.id_base + name for name in names]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SettingsError(f"Cannot read the ontology file {file}: {error}") from error
