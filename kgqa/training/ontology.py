"""An ontology: the types that relations lead from and to; they determine the paths that an entity of a type could have.

An ontology provides pools for topics that are in no available graph. The files have the format of GrailQA's Freebase.
The main file has lines of `domain relation range`. The same folder may contain the files `fb_types` (lines of a type, a
word and a type that includes the first type), `reverse_properties` (lines of two relations) and `cvt_types` (lines of
one type). All may be gzipped.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.errors import SettingsError
from kgqa.model import Step
from kgqa.schema import Schema


@dataclass(frozen=True)
class Ontology:
    """Relations with the types that they lead from and to; all names are full IRIs.

    Attributes:
        leaving: Map from a type to the relations with this domain.
        entering: Map from a type to the relations with this range.
        ends: Map from a relation to its domain and range.
        inverses: Map from a relation to its inverse, if it has an inverse.
        mediators: Types of mediators.
        wider: Map from a type to the types that include it (the type location includes the type country).
    """

    leaving: Mapping[str, tuple[str, ...]]
    entering: Mapping[str, tuple[str, ...]]
    ends: Mapping[str, tuple[str, str]]
    inverses: Mapping[str, str]
    mediators: frozenset[str]
    wider: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def start(self, step: Step) -> str | None:
        """Return the type of the nodes from which a step starts; None for an unknown relation."""
        ends = self.ends.get(step.relation)
        return ends and ends[0 if step.direction == "out" else 1]

    def end(self, step: Step) -> str | None:
        """Return the type of the nodes that a step leads to; None for an unknown relation."""
        return self.start(step.reversed())

    def steps_from(self, type_: str | None, *, widened: bool = False) -> tuple[Step, ...]:
        """Return the steps that start from nodes of a type, with only one relation of each pair of inverses.

        Types that are not the domain of any relation, such as dates and numbers, have no steps.

        Args:
            type_: The type.
            widened: Whether to include the steps of the types that include this type.
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
        """Return the step in the form of `steps_from`: a backward step becomes a forward step of the inverse."""
        twin = self.inverses.get(step.relation) if step.direction == "in" else None
        return Step(twin) if twin is not None and twin in self.ends else step


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
        _grouped((domain, relation) for relation, (domain, _) in ends.items()),
        _grouped((range_, relation) for relation, (_, range_) in ends.items()),
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
