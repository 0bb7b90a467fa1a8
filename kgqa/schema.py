"""Reads schemas: TOML files that describe ids, names, types, mediators and noise in one kind of graph.

The bundled schemas are in `kgqa/schemas/`; docs/schemas.md explains every key. A schema does not list the content of a
graph. For example, it gives the predicate that marks mediator types, and kgqa looks up these types in the graph.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from kgqa.errors import SchemaError, SettingsError
from kgqa.model import Entity
from kgqa.settings.table import WALK_RULES, WalkRule
from kgqa.storage.loading import MAX_TOML_BYTES, parse_toml

Wording = Literal["dotted", "label"]

STANDARD_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
BUNDLED = ("freebase", "wikidata", "corpus", "grbench", "rdfs")
MEDIATOR_LISTS = ("freebase",)
"""Names of the bundled lists of mediator types and relations, `kgqa/schemas/NAME_mediators.txt`."""
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
    id_characters: str = ""
    id_example: str = ""
    label: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()
    languages: tuple[str, ...] = ("en", "")
    types: tuple[str, ...] = ()
    gender: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    domain_from_name: bool = False
    wording: Wording = "label"
    labelled: tuple[str, ...] = ()
    inverse: tuple[str, ...] = ()
    labelled_as: tuple[tuple[str, str], ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    units_of_relations: tuple[str, ...] = ()
    units_of_values: tuple[tuple[str, str], ...] = ()
    declared_by: tuple[str, ...] = ()
    noise_prefixes: tuple[str, ...] = ()
    noise_except: tuple[str, ...] = ()
    noise_marked_by: tuple[str, ...] = ()
    mediator_types: tuple[str, ...] = ()
    mediator_marked_by: tuple[str, str] | None = None
    mediator_list: str = ""
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
    def _id_pattern(self) -> re.Pattern[str]:
        return re.compile(rf"[\w.\-{re.escape(self.id_characters)}]+")

    @cached_property
    def _by_length(self) -> list[tuple[str, str]]:
        return sorted(self.prefixes.items(), key=lambda item: -len(item[1]))

    def short_id(self, iri: str) -> str:
        """Return the shortest id that `iri()` accepts: `m.0abc`, `Q42`, `rdfs:label`, the IRI, or the IRI in `<>`."""
        if self.id_base and iri.startswith(self.id_base):
            rest = iri[len(self.id_base) :]
            if self._id_pattern.fullmatch(rest) and not _IRI.match(rest):
                return rest
        for prefix, namespace in self._by_length:
            rest = iri[len(namespace) :]
            if iri.startswith(namespace) and rest and not re.search(r"[/#:\s]", rest):
                return f"{prefix}:{rest}"
        scheme, _, rest = iri.partition(":")
        return f"<{iri}>" if scheme in self.prefixes and not rest.startswith("//") else iri

    def iri(self, text: str) -> str:
        """Expand an id to an IRI. `text` is a full IRI, `<IRI>`, `prefix:local`, or an id such as `m.0abc`.

        Raises:
            SchemaError: the text is not an id in this schema.
        """
        text = text.strip()
        prefix, colon, local = text.partition(":")
        if text.startswith("<") and text.endswith(">"):
            text = text[1:-1]
        elif colon and prefix in self.prefixes and not local.startswith("//"):
            text = self.prefixes[prefix] + local
        elif self.id_base and self._id_pattern.fullmatch(text) and not _IRI.match(text):
            text = self.id_base + text
        if not _IRI.match(text):
            example = f"an id such as {self.id_example}, " if self.id_example else ""
            raise SchemaError(
                f"{text[:80]!r} is not an id in this graph (schema {self.name}).",
                f"Use {example}a prefixed name or a full IRI.",
            )
        return text

    def with_prefixes(self, declared: Mapping[str, str]) -> Schema:
        """Return a copy of this schema with further prefixes; its own names and namespaces keep their meaning."""
        own = set(self.prefixes.values())
        new = {name: iri for name, iri in declared.items() if name not in self.prefixes and iri not in own}
        return replace(self, prefixes={**self.prefixes, **new}) if new else self

    def is_noise(self, relation: str) -> bool:
        """Check whether exploration ignores a relation, such as one for names, types or administrative data."""
        if relation in self.noise_except:
            return False
        return relation.startswith(self.noise_prefixes) or relation in self.label or relation in self.alias

    def is_labelled(self, relation: str) -> bool:
        """Return whether a relation appears under its label in output, ranking and prompts."""
        return self.wording == "label" or relation.startswith(self.labelled)

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


MAX_PREFIXES = 200
_RESERVED = ("http", "https", "bif", "sql")
_PREFIX_NAME = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]{0,31})?\Z")


def usable_prefixes(declared: Any) -> dict[str, str]:
    """Return the prefixes of a file, or of any JSON, that names and queries can use: at most `MAX_PREFIXES`.

    A prefix has a plain name that is not the scheme of an IRI, nor one that Virtuoso calls functions by, and an
    absolute IRI that ends in `/`, `#`, `:` or `_`.
    """
    found = {
        name: iri
        for name, iri in (declared.items() if isinstance(declared, Mapping) else ())
        if isinstance(name, str)
        and isinstance(iri, str)
        and _PREFIX_NAME.match(name)
        and name.lower() not in (*_SCHEMES, *_RESERVED)
        and len(iri) <= 500
        and _IRI.match(iri)
        and iri[-1] in "/#:_"
    }
    return dict(list(found.items())[:MAX_PREFIXES])


def _is_strings(value: Any, size: int | None = None) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and size in (None, len(value))


def _is_groups(value: Any, size: int) -> bool:
    return isinstance(value, list) and all(_is_strings(group, size) for group in value)


def _expand_all(value: Any, expand: Callable[[str], str]) -> Any:
    return expand(value) if isinstance(value, str) else tuple(_expand_all(item, expand) for item in value)


def _expand_first(pair: Sequence[str], expand: Callable[[str], str]) -> tuple[str, str]:
    return expand(pair[0]), pair[1]


_Shape = tuple[Callable[[Any], bool], str, Callable[[Any, Callable[[str], str]], Any]]
"""The check of a value, its description in messages, and its conversion with a function that expands prefixes."""
_TEXT: _Shape = (lambda value: isinstance(value, str), "a string", lambda value, _: value)
_IRI_TEXT: _Shape = (_TEXT[0], _TEXT[1], _expand_all)
_FLAG: _Shape = (lambda value: isinstance(value, bool), "true or false", lambda value, _: value)
_STRINGS: _Shape = (_is_strings, "a list of strings", lambda value, _: tuple(value))
_IRIS: _Shape = (_is_strings, "a list of strings", _expand_all)
_MARKED: _Shape = (
    lambda value: _is_strings(value) and len(value) != 1,
    "a list of one predicate and one or more values",
    _expand_all,
)
_MARK: _Shape = (lambda value: _is_strings(value, 2), "a list of a predicate and a value", _expand_first)
_PAIRS: _Shape = (lambda value: _is_groups(value, 2), "a list of lists of 2 prefixes", _expand_all)
_TRIPLES: _Shape = (lambda value: _is_groups(value, 3), "a list of lists of 3 prefixes", _expand_all)
_PROBES: _Shape = (
    lambda value: _is_groups(value, 2) and all(map(all, value)),
    "a list of [id, label] pairs",
    lambda value, expand: tuple(_expand_first(pair, expand) for pair in value),
)


def _one_of(choices: tuple[str, ...]) -> _Shape:
    return lambda value: value in choices, "one of " + ", ".join(choices), lambda value, _: value


_FIELDS: dict[str, tuple[str, _Shape]] = {
    "name": ("name", _TEXT),
    "title": ("title", _TEXT),
    "detect": ("detect.predicates", _IRIS),
    "fallback": ("detect.fallback", _FLAG),
    "id_base": ("ids.base", _IRI_TEXT),
    "id_characters": ("ids.characters", _TEXT),
    "id_example": ("ids.example", _TEXT),
    "label": ("names.label", _IRIS),
    "alias": ("names.alias", _IRIS),
    "languages": ("names.languages", _STRINGS),
    "types": ("types.predicates", _IRIS),
    "gender": ("types.gender", _IRIS),
    "domain": ("types.domain", _IRIS),
    "range": ("types.range", _IRIS),
    "domain_from_name": ("types.domain_from_name", _FLAG),
    "wording": ("relations.wording", _one_of(get_args(Wording))),
    "labelled": ("relations.labelled", _IRIS),
    "inverse": ("relations.inverse", _IRIS),
    "labelled_as": ("relations.labelled_as", _PAIRS),
    "order": ("relations.order", _PAIRS),
    "units_of_relations": ("relations.unit", _IRIS),
    "units_of_values": ("relations.unit_of_value", _PAIRS),
    "declared_by": ("relations.declared_by", _MARKED),
    "noise_prefixes": ("noise.prefixes", _IRIS),
    "noise_except": ("noise.except", _IRIS),
    "noise_marked_by": ("noise.marked_by", _MARKED),
    "mediator_types": ("mediators.types", _IRIS),
    "mediator_marked_by": ("mediators.marked_by", _MARK),
    "mediator_list": ("mediators.list", _one_of(MEDIATOR_LISTS)),
    "mediator_iri_prefixes": ("mediators.iri_prefixes", _IRIS),
    "mediator_object_of": ("mediators.object_of", _IRIS),
    "mediator_subject_of": ("mediators.subject_of", _IRIS),
    "mediator_pairs": ("mediators.pairs", _TRIPLES),
    "mediator_untrue": ("mediators.untrue", _MARKED),
    "walks": ("walks.rule", _one_of(WALK_RULES)),
    "probes": ("probes.entities", _PROBES),
}
"""The key of each field of a schema in the file, and the shape of its value."""
_KEYS = {key for key, _ in _FIELDS.values()}
_SECTIONS = {key.partition(".")[0] for key in _KEYS if "." in key}


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
    given = data.pop("prefixes", {})
    found = {key: value for key, value in data.items() if key not in _SECTIONS}
    for section in _SECTIONS & data.keys():
        if not isinstance(data[section], dict):
            raise SchemaError(f"{where}: [{section}] must be a table.")
        found |= {f"{section}.{key}": value for key, value in data[section].items()}
    if unknown := found.keys() - _KEYS:
        raise SchemaError(f"{where}: unknown key {', '.join(sorted(unknown))}. docs/schemas.md lists the keys.")
    if not isinstance(given, dict) or not all(isinstance(v, str) and _IRI.match(v) for v in given.values()):
        raise SchemaError(f"{where}: [prefixes] must map names to IRIs.")
    prefixes = {**STANDARD_PREFIXES, **given}

    def expand(text: str) -> str:
        prefix, colon, local = text.partition(":")
        if colon and prefix in prefixes:
            text = prefixes[prefix] + local
        elif colon and not local.startswith("//") and prefix.lower() not in _SCHEMES:
            raise SchemaError(f"{where}: the prefix of {text!r} is not declared in [prefixes].")
        if text and not _IRI.match(text):
            raise SchemaError(
                f"{where}: {text!r} is not an IRI and does not start with a prefix declared in [prefixes]."
            )
        return text

    found = {"name": None, "title": found.get("name"), **found}
    values: dict[str, Any] = {}
    for field, (key, (fits, wanted, converted)) in _FIELDS.items():
        if key in found:
            if not fits(found[key]):
                raise SchemaError(f"{where}: {key} must be {wanted}.")
            values[field] = converted(found[key], expand)
    return Schema(prefixes=prefixes, source=text, **values)


def schema_text(schema: Schema) -> str:
    """Return a schema as TOML text, with full IRIs; `parse_schema` reads the same schema from it."""
    default = Schema(name="", title="", prefixes={}, source="")
    sections: dict[str, list[str]] = {"": []}
    for field, (key, _) in _FIELDS.items():
        value = getattr(schema, field)
        if value != getattr(default, field):
            section, _, name = key.rpartition(".")
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    sections["prefixes"] = [
        f"{json.dumps(name)} = {json.dumps(iri, ensure_ascii=False)}" for name, iri in schema.prefixes.items()
    ]
    parts = ["\n".join([*([f"[{name}]"] if name else []), *lines]) for name, lines in sections.items() if lines]
    return "\n\n".join(parts) + "\n"


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
    path = Path(name_or_file)
    if path.suffix != ".toml":
        return bundled_schema(str(name_or_file))
    try:
        if path.stat().st_size > MAX_TOML_BYTES:
            raise SchemaError(f"{path} is larger than {MAX_TOML_BYTES:,} bytes, too large for a schema file.")
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
