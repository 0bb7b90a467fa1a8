"""An ontology in place of a graph: the relation paths that an entity of a type could have.

It gives pools for topics that are in no available graph. The files are those of GrailQA's Freebase: lines of `domain
relation range`, and beside them, if present, `fb_types` (lines of a type, a word and a type that includes it),
`reverse_properties` (two relations) and `cvt_types` (one type), plain or gzipped.
"""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.errors import SettingsError
from kgqa.model import Step
from kgqa.schema import Schema

MAX_LINES = 5_000_000


@dataclass(frozen=True)
class Ontology:
    """Relations with the types they lead from and to; all names are full IRIs.

    Attributes:
        leaving: Relations by domain.
        entering: Relations by range.
        ends: Domain and range by relation.
        inverses: The inverse of each relation that has one.
        mediators: Types of mediators.
        wider: The types that include a type (a country is a location).
    """

    leaving: Mapping[str, tuple[str, ...]]
    entering: Mapping[str, tuple[str, ...]]
    ends: Mapping[str, tuple[str, str]]
    inverses: Mapping[str, str]
    mediators: frozenset[str]
    wider: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def start(self, step: Step) -> str | None:
        """Return the type of the nodes that a step leaves; None for an unknown relation."""
        ends = self.ends.get(step.relation)
        return ends and ends[0 if step.direction == "out" else 1]

    def end(self, step: Step) -> str | None:
        """Return the type of the nodes that a step leads to."""
        return self.start(step.reversed())

    def steps_from(self, type_: str | None, *, widened: bool = False) -> tuple[Step, ...]:
        """Return the steps that lead on from a type; of a relation and its inverse only one.

        Nothing leads on from a type that is not the domain of a relation, such as dates and numbers.

        Args:
            type_: The type.
            widened: Include the steps of its wider types.
        """
        if not self.leaving.get(type_ or ""):
            return ()
        types = (type_ or "", *(self.wider.get(type_ or "", ()) if widened else ()))
        out = dict.fromkeys(relation for each in types for relation in self.leaving.get(each, ()))
        twins = {self.inverses[relation] for relation in out if relation in self.inverses}
        into = dict.fromkeys(r for each in types for r in self.entering.get(each, ()) if r not in twins)
        return (*(Step(relation) for relation in out), *(Step(relation, "in") for relation in into))

    def leads_to_mediator(self, step: Step) -> bool:
        """Return whether a step leads to a mediator."""
        return self.end(step) in self.mediators

    def folded(self, step: Step) -> Step:
        """Return the step in the form that `steps_from` returns: forwards, if an inverse of the relation is known."""
        twin = self.inverses.get(step.relation) if step.direction == "in" else None
        return Step(twin) if twin is not None and twin in self.ends else step


def read_ontology(place: Path, schema: Schema) -> Ontology:
    """Read an ontology: the file of roles, or the folder that has it as `fb_roles` or `fb_roles.gz`.

    Lines with the wrong number of names, and relations that the schema calls noise, are skipped.

    Raises:
        SettingsError: A file cannot be read, or has no line of three names.
    """
    roles = place if not place.is_dir() else _beside(place / "fb_roles", "fb_roles") or place / "fb_roles.gz"
    leaving: dict[str, list[str]] = defaultdict(list)
    entering: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, tuple[str, str]] = {}
    for line in _lines(roles):
        if len(line) != 3:
            continue
        domain, relation, range_ = (schema.id_base + name for name in line)
        if schema.is_noise(relation) or relation in ends:
            continue
        ends[relation] = domain, range_
        leaving[domain].append(relation)
        entering[range_].append(relation)
    if not ends:
        raise SettingsError(f"{roles} is not an ontology: it needs lines of `domain relation range`.")
    inverses: dict[str, str] = {}
    for line in _lines(_beside(roles, "reverse_properties")):
        if len(line) == 2:
            one, other = (schema.id_base + name for name in line)
            inverses.setdefault(one, other)
            inverses.setdefault(other, one)
    mediators = frozenset(schema.id_base + line[0] for line in _lines(_beside(roles, "cvt_types")) if len(line) == 1)
    wider: dict[str, list[str]] = defaultdict(list)
    for line in _lines(_beside(roles, "fb_types")):
        if len(line) == 3:
            wider[schema.id_base + line[0]].append(schema.id_base + line[2])
    return Ontology(
        {type_: tuple(sorted(relations)) for type_, relations in leaving.items()},
        {type_: tuple(sorted(relations)) for type_, relations in entering.items()},
        ends,
        inverses,
        mediators,
        {type_: tuple(sorted(types)) for type_, types in wider.items()},
    )


def _beside(file: Path, name: str) -> Path | None:
    return next((path for path in (file.with_name(name), file.with_name(f"{name}.gz")) if path.is_file()), None)


def _lines(file: Path | None) -> Iterator[list[str]]:
    if file is None:
        return
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number >= MAX_LINES:
                    raise SettingsError(f"{file} is too large for an ontology: more than {MAX_LINES:,} lines.")
                yield line.split()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SettingsError(f"Cannot read the ontology file {file}: {error}") from error
