"""Reads schemas: TOML files that describe ids, names, types, mediators and noise in one kind of graph.

The bundled schemas are in `kgqa/schemas/`; docs/schemas.md explains every key. A schema does not list the content of a
graph. For example, it gives the predicate that marks mediator types, and kgqa looks up these types in the graph.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from kgqa.errors import SchemaError, SettingsError
from kgqa.model import Entity
from kgqa.settings_table import WALK_RULES, WalkRule
from kgqa.toml_text import MAX_BYTES, parse_toml

Wording = Literal["dotted", "label"]

STANDARD_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
BUNDLED = ("freebase", "wikidata", "corpus", "rdfs")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+\Z")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*\Z")
_SCHEMES = {"urn", "tag", "mailto", "data", "info", "doi", "did", "ark", "geo", "tel", "news", "file"}


@dataclass(frozen=True)
class Schema:
    """A parsed schema file. Except for `languages` and `probes`, all tuples contain full IRIs or IRI prefixes."""

    name: str
    title: str
    prefixes: dict[str, str]
    source: str
    detect: tuple[str, ...] = ()
    fallback: bool = False
    id_base: str = ""
    id_example: str = ""
    label: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()
    languages: tuple[str, ...] = ("en", "")
    types: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    domain_from_name: bool = False
    wording: Wording = "label"
    inverse: tuple[str, ...] = ()
    labelled_as: tuple[tuple[str, str], ...] = ()
    declared_by: tuple[str, ...] = ()
    noise_prefixes: tuple[str, ...] = ()
    noise_except: tuple[str, ...] = ()
    noise_marked_by: tuple[str, ...] = ()
    mediator_types: tuple[str, ...] = ()
    mediator_marked_by: tuple[str, str] | None = None
    mediator_iri_prefixes: tuple[str, ...] = ()
    mediator_object_of: tuple[str, ...] = ()
    mediator_subject_of: tuple[str, ...] = ()
    mediator_pairs: tuple[tuple[str, str, str], ...] = ()
    mediator_untrue: tuple[str, ...] = ()
    walks: WalkRule = "topic-not-end"
    probes: tuple[tuple[str, str], ...] = ()
    """Well-known entities with their labels; `kgqa doctor` checks that the graph contains them."""

    @cached_property
    def digest(self) -> str:
        """A hash of the schema file's text (16 hex digits); keys of cached data contain this hash."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    @cached_property
    def _by_length(self) -> list[tuple[str, str]]:
        return sorted(self.prefixes.items(), key=lambda item: -len(item[1]))

    def short_id(self, iri: str) -> str:
        """Return the shortest id that `iri()` accepts: `m.0abc`, `Q42`, `rdfs:label`, or the IRI itself."""
        if self.id_base and iri.startswith(self.id_base):
            rest = iri[len(self.id_base) :]
            if re.fullmatch(r"[\w.\-]+", rest):
                return rest
        for prefix, namespace in self._by_length:
            rest = iri[len(namespace) :]
            if iri.startswith(namespace) and rest and not re.search(r"[/#:\s]", rest):
                return f"{prefix}:{rest}"
        return iri

    def iri(self, text: str) -> str:
        """Expand an id to an IRI. `text` is a full IRI, `<IRI>`, `prefix:local`, or an id such as `m.0abc`.

        Raises:
            SchemaError: the text is not an id in this schema.
        """
        text = text.strip()
        if text.startswith("<") and text.endswith(">"):
            text = text[1:-1]
        prefix, colon, local = text.partition(":")
        if colon and prefix in self.prefixes and not local.startswith("//"):
            text = self.prefixes[prefix] + local
        elif self.id_base and re.fullmatch(r"[\w.\-]+", text):
            text = self.id_base + text
        if not _IRI.match(text):
            example = f"an id such as {self.id_example}, " if self.id_example else ""
            raise SchemaError(
                f"{text[:80]!r} is not an id in this graph (schema {self.name}).",
                f"Use {example}a prefixed name or a full IRI.",
            )
        return text

    def is_noise(self, relation: str) -> bool:
        """Check whether exploration ignores a relation, such as one for names, types or administrative data."""
        if relation in self.noise_except:
            return False
        return relation.startswith(self.noise_prefixes) or relation in self.label or relation in self.alias

    def label_subject(self, relation: str) -> str:
        """Return the IRI that has the label of a relation, for example wd:P36 for wdt:P36."""
        for namespace, target in self.labelled_as:
            if relation.startswith(namespace) and "/" not in relation[len(namespace) :]:
                return target + relation[len(namespace) :]
        return relation

    def named_by(self, subject: str) -> list[str]:
        """Return the relations whose label belongs to `subject`, as in `label_subject`.

        For example wdt:P36, p:P36, ps:P36 and pq:P36 for wd:P36.
        """
        found = [
            namespace + subject[len(target) :]
            for namespace, target in self.labelled_as
            if subject.startswith(target) and "/" not in subject[len(target) :]
        ]
        return found or [subject]

    def preferring(self, languages: Sequence[str]) -> Schema:
        """Return a copy of this schema that prefers the given language tags to its own languages."""
        return replace(self, languages=tuple(dict.fromkeys((*languages, *self.languages)))) if languages else self

    def domain_in_name(self, relation: str) -> str | None:
        """Return the type of a relation's subjects if the relation's name contains this type, else None.

        For example people.person for people.person.gender.
        """
        named = self.domain_from_name and relation.startswith(self.id_base)
        if not named or "." not in relation[len(self.id_base) :]:
            return None
        return relation.rsplit(".", 1)[0]


_KEYS = {
    "detect": {"predicates", "fallback"},
    "ids": {"base", "example"},
    "names": {"label", "alias", "languages"},
    "types": {"predicates", "domain", "range", "domain_from_name"},
    "relations": {"wording", "inverse", "labelled_as", "declared_by"},
    "noise": {"prefixes", "except", "marked_by"},
    "mediators": {"types", "marked_by", "iri_prefixes", "object_of", "subject_of", "pairs", "untrue"},
    "walks": {"rule"},
    "probes": {"entities"},
}


def parse_schema(text: str, *, where: str = "schema") -> Schema:
    """Parse a schema from TOML text.

    Args:
        where: name of the source, for error messages.

    Raises:
        SchemaError: the text is not TOML, or contains an unknown key or a wrong value. The message names the key.
    """
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise SchemaError(f"{where} is not valid TOML: {error}") from error
    unknown = set(data) - set(_KEYS) - {"name", "title", "prefixes"}
    for section, keys in _KEYS.items():
        table = data.get(section, {})
        if not isinstance(table, dict):
            raise SchemaError(f"{where}: [{section}] must be a table.")
        unknown |= {f"{section}.{key}" for key in set(table) - keys}
    if unknown:
        raise SchemaError(f"{where}: unknown key {', '.join(sorted(unknown))}. docs/schemas.md lists the keys.")
    reader = _Reader(data, where)
    values: dict[str, Any] = {
        "name": reader.text("", "name"),
        "title": reader.text("", "title", data.get("name", "")),
        "prefixes": reader.prefixes,
        "source": text,
        "detect": reader.iris("detect", "predicates"),
        "fallback": reader.flag("detect", "fallback"),
        "id_base": reader.expand(reader.text("ids", "base", "")),
        "id_example": reader.text("ids", "example", ""),
        "label": reader.iris("names", "label"),
        "alias": reader.iris("names", "alias"),
        "languages": reader.strings("names", "languages", ("en", "")),
        "types": reader.iris("types", "predicates"),
        "domain": reader.iris("types", "domain"),
        "range": reader.iris("types", "range"),
        "domain_from_name": reader.flag("types", "domain_from_name"),
        "wording": reader.choice("relations", "wording", get_args(Wording), "label"),
        "inverse": reader.iris("relations", "inverse"),
        "labelled_as": reader.groups("relations", "labelled_as", 2),
        "declared_by": reader.predicate_and_values("relations", "declared_by"),
        "noise_prefixes": reader.iris("noise", "prefixes"),
        "noise_except": reader.iris("noise", "except"),
        "noise_marked_by": reader.predicate_and_values("noise", "marked_by"),
        "mediator_types": reader.iris("mediators", "types"),
        "mediator_marked_by": reader.marked_by(),
        "mediator_iri_prefixes": reader.iris("mediators", "iri_prefixes"),
        "mediator_object_of": reader.iris("mediators", "object_of"),
        "mediator_subject_of": reader.iris("mediators", "subject_of"),
        "mediator_pairs": reader.groups("mediators", "pairs", 3),
        "mediator_untrue": reader.predicate_and_values("mediators", "untrue"),
        "walks": reader.choice("walks", "rule", WALK_RULES, "topic-not-end"),
        "probes": reader.probes(),
    }
    assert set(values) == {field.name for field in fields(Schema)}
    return Schema(**values)


class _Reader:
    """Reads values of the expected types from TOML data and expands prefixes; errors name the key."""

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self._data = data
        self._where = where
        given = data.get("prefixes", {})
        if not isinstance(given, dict) or not all(isinstance(v, str) and _IRI.match(v) for v in given.values()):
            raise SchemaError(f"{where}: [prefixes] must map names to IRIs.")
        self.prefixes = {**STANDARD_PREFIXES, **given}

    def _get(self, section: str, key: str, default: Any) -> Any:
        return (self._data.get(section, {}) if section else self._data).get(key, default)

    def _fail(self, section: str, key: str, wanted: str) -> SchemaError:
        return SchemaError(f"{self._where}: {section + '.' if section else ''}{key} must be {wanted}.")

    def expand(self, text: str) -> str:
        prefix, colon, local = text.partition(":")
        if colon and prefix in self.prefixes:
            text = self.prefixes[prefix] + local
        elif colon and not local.startswith("//") and prefix.lower() not in _SCHEMES:
            raise SchemaError(f"{self._where}: the prefix of {text!r} is not declared in [prefixes].")
        if text and not _IRI.match(text):
            raise SchemaError(
                f"{self._where}: {text!r} is not an IRI and does not start with a prefix declared in [prefixes]."
            )
        return text

    def text(self, section: str, key: str, default: str | None = None) -> str:
        value = self._get(section, key, default)
        if not isinstance(value, str):
            raise self._fail(section, key, "a string")
        return value

    def flag(self, section: str, key: str) -> bool:
        value = self._get(section, key, False)
        if not isinstance(value, bool):
            raise self._fail(section, key, "true or false")
        return value

    def choice(self, section: str, key: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._get(section, key, default)
        if not isinstance(value, str) or value not in allowed:
            raise self._fail(section, key, "one of " + ", ".join(allowed))
        return value

    def strings(self, section: str, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._get(section, key, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._fail(section, key, "a list of strings")
        return tuple(value)

    def iris(self, section: str, key: str) -> tuple[str, ...]:
        return tuple(self.expand(item) for item in self.strings(section, key))

    def groups(self, section: str, key: str, size: int) -> tuple[tuple[str, ...], ...]:
        value = self._get(section, key, [])
        if not isinstance(value, list) or not all(
            isinstance(group, list) and len(group) == size and all(isinstance(i, str) for i in group) for group in value
        ):
            raise self._fail(section, key, f"a list of lists of {size} prefixes")
        return tuple(tuple(self.expand(item) for item in group) for group in value)

    def predicate_and_values(self, section: str, key: str) -> tuple[str, ...]:
        """Read a list of a predicate and its possible values, all IRIs; () if the key is missing."""
        value = self.iris(section, key)
        if len(value) == 1:
            raise self._fail(section, key, "a list of one predicate and one or more values")
        return value

    def probes(self) -> tuple[tuple[str, str], ...]:
        value = self._get("probes", "entities", [])
        if not isinstance(value, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) and text for text in pair)
            for pair in value
        ):
            raise self._fail("probes", "entities", "a list of [id, label] pairs")
        return tuple((self.expand(entity), label) for entity, label in value)

    def marked_by(self) -> tuple[str, str] | None:
        value = self._get("mediators", "marked_by", None)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2 or not all(isinstance(item, str) for item in value):
            raise self._fail("mediators", "marked_by", "a list of a predicate and a value")
        return self.expand(value[0]), value[1]


def bundled_schema(name: str) -> Schema:
    """Load a bundled schema by name.

    Raises:
        SchemaError: no bundled schema has this name.
    """
    if name not in BUNDLED:
        raise SchemaError(f"Unknown schema {name!r}.", f"Choose one of {', '.join(BUNDLED)}, or give a .toml file.")
    return parse_schema((files("kgqa") / "schemas" / f"{name}.toml").read_text(encoding="utf-8"), where=f"{name}.toml")


def load_schema(name_or_file: str | Path) -> Schema:
    """Load a bundled schema by name, or any schema by the path of its TOML file.

    Raises:
        SchemaError: no bundled schema has this name, or the file cannot be read or is not a valid schema.
    """
    if str(name_or_file) in BUNDLED:
        return bundled_schema(str(name_or_file))
    path = Path(name_or_file)
    if path.suffix != ".toml":
        return bundled_schema(str(name_or_file))
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SchemaError(f"{path} is larger than {MAX_BYTES:,} bytes, too large for a schema file.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"The schema file {path} cannot be read: {error}") from error
    return parse_schema(text, where=str(path))


def language_list(text: str | None) -> tuple[str, ...]:
    """Parse a language list such as `de,en`, most preferred first; () for None.

    Raises:
        SettingsError: an item is not a language tag.
    """
    tags = [tag.strip() for tag in (text or "").split(",") if tag.strip()]
    for tag in tags:
        if not _LANGUAGE.match(tag):
            raise SettingsError(f"graph.languages: {tag[:40]!r} is not a language tag.", "Give a list such as de,en.")
    return tuple(dict.fromkeys(tag.lower() for tag in tags))


def value_of(entity_or_text: Entity | str, schema: Schema) -> Entity:
    """Convert an id to an Entity. `Schema.iri` describes the accepted strings and the errors."""
    return entity_or_text if isinstance(entity_or_text, Entity) else Entity(schema.iri(entity_or_text))
