"""Writes the demo graph, `kgqa/demo/graph.nt`, from the tables in `kgqa/demo/facts/`.

    python -m scripts.demo_graph            write graph.nt
    python -m scripts.demo_graph --check    exit 1 if graph.nt is out of date

The tables are tab-separated and have a header. Each table is named after a type and lists the instances of the type:

- `type.type.tsv` lists the types and their names. `mediator` = yes: the instances of the type are mediators.
  `instances` = yes: the graph contains an edge from the type to each instance; the type is then a hub, as in Freebase.
- `type.property.tsv` lists the relations with domain, range, inverse, and the unit of their numbers; only one relation
  of an inverse pair is needed.
- Every other table, such as `location.country.tsv`, has one row per entity or mediator. Its columns are `id` (optional;
  derived from the name), `name`, `alias`, `names` (in other languages, `Japon@fr`) and relations. Several values in a
  cell are separated by `|`. A cell of a relation between entities contains ids, or names whose slug is the id: `São
  Paulo` stands for `sao_paulo`. If a mediator has no id, its id is derived from the entities that it connects.

Dates are written as 1912, 1912-06 or 1912-06-23. The year of a prize is the year in which it was awarded; for an
Academy Award it is the year of the ceremony. The graph contains both directions of a relation, and the types of each
entity that follow from the domains and ranges of its relations.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DEMO_FOLDER = Path(__file__).resolve().parents[1] / "kgqa" / "demo"
NS = "http://rdf.freebase.com/ns/"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"

_TYPES, _PROPERTIES = "type.type", "type.property"
_LITERAL_RANGES = {"type.datetime", "type.int", "type.float", "type.text", "type.enumeration"}
_DATE_KINDS = (
    (re.compile(r"\d{4}\Z"), "gYear"),
    (re.compile(r"\d{4}-\d\d\Z"), "gYearMonth"),
    (re.compile(r"\d{4}-\d\d-\d\d\Z"), "date"),
)
# letters that Unicode does not decompose into a base letter and a mark
_UNDECOMPOSED = str.maketrans("øØłŁđĐðı", "oOlLdDdi", "'’")
_UNDECOMPOSED |= str.maketrans({"þ": "th", "ß": "ss", "æ": "ae", "Æ": "AE"})
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class FactsError(ValueError):
    """A table contains a value that cannot be written as a triple of the graph."""


@dataclass(frozen=True)
class Relation:
    """One row of `type.property.tsv`."""

    name: str
    domain: str
    range: str
    inverse: str = ""
    unit: str = ""

    @property
    def is_literal(self) -> bool:
        return self.range in _LITERAL_RANGES


@dataclass
class Facts:
    """The content of all tables: the schema and the rows."""

    type_names: dict[str, str]
    mediators: set[str]
    listing: set[str]
    """Types with an edge to each of their instances."""
    relations: dict[str, Relation]
    rows: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Rows of all tables except the schema: type, node id (such as `m.demo_japan`) and cells."""


def slug(text: str) -> str:
    """Return the ASCII form of a name for ids: `sao_paulo` for `São Paulo`."""
    plain = unicodedata.normalize("NFKD", text.translate(_UNDECOMPOSED)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")


def literal(value: str, range_type: str) -> str:
    """Return a value as an N-Triples term, typed by the range of its relation.

    Raises:
        FactsError: the value does not fit the range.
    """
    if range_type == "type.datetime":
        for shape, kind in _DATE_KINDS:
            if shape.match(value):
                return f'"{value}"^^<{XSD}{kind}>'
        raise FactsError(f"{value!r} is not a year, month or date.")
    if range_type in ("type.int", "type.float"):
        if not re.fullmatch(r"-?[1-9]\d*", value):
            raise FactsError(f"{value!r} is not an integer.")
        return f'"{value}"^^<{XSD}{"integer" if range_type == "type.int" else "decimal"}>'
    return text_literal(value)


def text_literal(value: str, language: str = "") -> str:
    """Return a text as an N-Triples literal, with a language tag if `language` is given."""
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise FactsError(f"{value!r} contains a control character.")
    return f'"{value.translate(_ESCAPES)}"' + (f"@{language}" if language else "")


def read_table(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of one table with stripped cells; raise FactsError if a row has a wrong number of cells."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if None in row or None in row.values():
                raise FactsError(f"{path.name}: row and header differ in length: {row!r}")
            yield {column: cell.strip() for column, cell in row.items()}


def values(cell: str) -> list[str]:
    """Return the values in a cell."""
    return [part.strip() for part in cell.split("|") if part.strip()]


def read_facts(folder: Path = DEMO_FOLDER / "facts") -> Facts:
    """Read every table of a folder."""
    types = list(read_table(folder / f"{_TYPES}.tsv"))
    relations: dict[str, Relation] = {}
    for row in read_table(folder / f"{_PROPERTIES}.tsv"):
        if row["relation"] in relations:
            raise FactsError(f"{row['relation']} is listed twice.")
        relations[row["relation"]] = Relation(row["relation"], row["domain"], row["range"], row["inverse"], row["unit"])
    for relation in list(relations.values()):
        if relation.inverse:
            back = Relation(relation.inverse, relation.range, relation.domain, relation.name)
            if relations.setdefault(back.name, back) != back:
                raise FactsError(f"{relation.name} and {back.name} are not inverse to each other.")
    facts = Facts(
        type_names={row["type"]: row["name"] for row in types},
        mediators={row["type"] for row in types if row["mediator"] == "yes"},
        listing={row["type"] for row in types if row["instances"] == "yes"},
        relations=relations,
    )
    for path in sorted(folder.glob("*.tsv")):
        if path.stem not in (_TYPES, _PROPERTIES):
            facts.rows.extend((path.stem, node_id(path.stem, row, facts), row) for row in read_table(path))
    return facts


def node_id(type_name: str, row: dict[str, str], facts: Facts) -> str:
    """Return the id of a row's entity or mediator."""
    given = slug(row.get("id", ""))
    if type_name not in facts.mediators:
        return f"m.demo_{given or slug(row['name'])}"
    if not given:
        joined = [
            slug(value)
            for column, cell in row.items()
            if column in facts.relations and not facts.relations[column].is_literal
            for value in values(cell)
        ]
        given = "_".join([type_name.rpartition(".")[2], *joined])
    return f"g.demo_{given}"


class Builder:
    """Collects the triples of the graph."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.lines: set[str] = set()
        self.types: dict[str, set[str]] = defaultdict(set)
        self.used: set[str] = set()
        self.nodes: set[str] = set()

    def build(self) -> list[str]:
        """Return all triples, sorted."""
        for type_name, node, _ in self.facts.rows:
            if type_name not in self.facts.type_names:
                raise FactsError(f"{type_name} is the name of a table but not a type in {_TYPES}.tsv.")
            if node in self.nodes:
                raise FactsError(f"{node} is listed twice.")
            self.nodes.add(node)
            self.types[node].add(type_name)
        for type_name, node, row in self.facts.rows:
            try:
                self._row(type_name, node, row)
            except (FactsError, KeyError) as error:
                raise FactsError(f"{type_name}, {node}: {error}") from error
        self._types()
        self._schema()
        return sorted(self.lines)

    def _add(self, subject: str, predicate: str, term: str) -> None:
        """Add a triple; a predicate without a scheme is in the graph's own namespace."""
        if ":" not in predicate:
            self.used.add(predicate)
            predicate = NS + predicate
        self.lines.add(f"<{NS}{subject}> <{predicate}> {term} .")

    def _row(self, type_name: str, node: str, row: dict[str, str]) -> None:
        """Add the facts of one row."""
        if type_name not in self.facts.mediators:
            self._add(node, "type.object.name", text_literal(row["name"], "en"))
            self._add(node, "common.topic.notable_types", f"<{NS}{type_name}>")
        for column, cell in row.items():
            for value in values(cell):
                if column == "alias":
                    self._add(node, "common.topic.alias", text_literal(value, "en"))
                elif column == "names":
                    name, _, language = value.rpartition("@")
                    if not name or not re.fullmatch(r"[a-z]{2,3}", language):
                        raise FactsError(f"{value!r} is not a name with a language, such as Japon@fr.")
                    self._add(node, "type.object.name", text_literal(name, language))
                elif column not in ("id", "name"):
                    self._fact(node, self.facts.relations[column], value)

    def _fact(self, node: str, relation: Relation, value: str) -> None:
        """Add one fact, its inverse, and the types that follow from the fact."""
        self.types[node].add(relation.domain)
        if relation.is_literal:
            self._add(node, relation.name, literal(value, relation.range))
            return
        other = f"m.demo_{slug(value)}"
        if other not in self.nodes:
            raise FactsError(f"{value!r} in {relation.name} is not in any table.")
        self.types[other].add(relation.range)
        self._add(node, relation.name, f"<{NS}{other}>")
        if relation.inverse:
            self._add(other, relation.inverse, f"<{NS}{node}>")

    def _types(self) -> None:
        """Add the types of every node, and the triples that describe the types."""
        for node, types in self.types.items():
            for type_name in types:
                self._add(node, "type.object.type", f"<{NS}{type_name}>")
                if type_name in self.facts.listing:
                    self._add(type_name, "type.type.instance", f"<{NS}{node}>")
        for type_name, name in self.facts.type_names.items():
            self._add(type_name, "type.object.type", f"<{NS}type.type>")
            self._add(type_name, "type.object.name", text_literal(name, "en"))
            if type_name in self.facts.mediators:
                self._add(type_name, "freebase.type_hints.mediator", f'"true"^^<{XSD}boolean>')

    def _schema(self) -> None:
        """Add domain, range, inverse and unit of every relation."""
        for relation in self.facts.relations.values():
            if relation.unit:
                self._add(relation.name, "type.property.unit", text_literal(relation.unit))
        odd = set(self.facts.relations) ^ self.used
        if odd:
            raise FactsError(f"Unused, or not in {_PROPERTIES}.tsv: {', '.join(sorted(odd))}.")
        ranges = {relation.range for relation in self.facts.relations.values()}
        domains = {relation.domain for relation in self.facts.relations.values()}
        if unnamed := (ranges | domains) - set(self.facts.type_names):
            raise FactsError(f"Missing in {_TYPES}.tsv: {', '.join(sorted(unnamed))}.")
        for relation in self.facts.relations.values():
            self._add(relation.name, f"{RDFS}domain", f"<{NS}{relation.domain}>")
            self._add(relation.name, f"{RDFS}range", f"<{NS}{relation.range}>")
            if relation.inverse:
                self._add(relation.name, f"{OWL}inverseOf", f"<{NS}{relation.inverse}>")


def build_lines() -> list[str]:
    """Return the sorted lines of `graph.nt` without newlines."""
    return Builder(read_facts()).build()


def main(arguments: list[str] | None = None) -> int:
    """Write or check `graph.nt`; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.demo_graph", description="Build the demo graph.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if the file is out of date")
    options = parser.parse_args(arguments)
    path = DEMO_FOLDER / "graph.nt"
    data = "".join(line + "\n" for line in build_lines()).encode()
    if not options.check:
        path.write_bytes(data)
        return 0
    if not path.is_file() or path.read_bytes() != data:
        sys.stderr.write(f"{path} is out of date: run python -m scripts.demo_graph\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
