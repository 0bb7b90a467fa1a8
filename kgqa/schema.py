"""Reads schemas: TOML files that describe ids, names, types, mediators and noise in one kind of graph.

The bundled schemas are in `kgqa/schemas/`; docs/schemas.md explains every key. A schema does not list the content of a
graph. For example, it gives the predicate that marks mediator types, and kgqa looks up these types in the graph.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from kgqa.errors import SchemaError, SettingsError
from kgqa.model import Entity
from kgqa.settings.table import WalkRule
from kgqa.storage.loading import MAX_TOML_BYTES, convert, parse_toml, read_bytes

Wording = Literal["dotted", "label"]
Iris = tuple[str, ...]
Mark = Annotated[tuple[str, ...], Meta(min_length=2)]
"""One predicate and one or more values; () if there is none."""

STANDARD_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
TYPE, SUBCLASS_OF = STANDARD_PREFIXES["rdf"] + "type", STANDARD_PREFIXES["rdfs"] + "subClassOf"
INSTANCE_OF = "urn:kgqa:rdfs/type"
"""Stands in a step for the way from a node to its types and the classes above them, which no single relation leads."""
WIKIDATA = "http://www.wikidata.org/"
DIRECT_CLAIM = "http://wikiba.se/ontology#directClaim"
"""Leads from each property of a Wikibase to the predicate of its truthy values."""
WIKIBASE_LABELS = ("instance of", "inverse property")
"""English labels of the properties that a schema uses. Their ids differ between one Wikibase and another."""
BUNDLED = ("freebase", "wikidata", "corpus", "grbench", "rdfs")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+\Z")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*\Z")
_SCHEMES = {"urn", "tag", "mailto", "data", "info", "doi", "did", "ark", "geo", "tel", "news", "file"}
_Namespace = Annotated[str, Meta(pattern=r"\A" + _IRI.pattern)]
_KEYS = {
    "detect": "detect.predicates", "fallback": "detect.fallback",
    "id_base": "ids.base", "id_characters": "ids.characters", "id_example": "ids.example",
    "label": "names.label", "alias": "names.alias", "languages": "names.languages",
    "types": "types.predicates", "domain": "types.domain", "range": "types.range",
    "domain_from_name": "types.domain_from_name",
    "wording": "relations.wording", "labelled": "relations.labelled", "inverse": "relations.inverse",
    "labelled_as": "relations.labelled_as", "order": "relations.order",
    "degree": "relations.degree", "units_of_relations": "relations.unit",
    "units_of_values": "relations.unit_of_value", "declared_by": "relations.declared_by",
    "noise_prefixes": "noise.prefixes", "noise_except": "noise.except", "noise_marked_by": "noise.marked_by",
    "mediator_types": "mediators.types", "mediator_marked_by": "mediators.marked_by", "mediator_list": "mediators.list",
    "mediator_iri_prefixes": "mediators.iri_prefixes", "mediator_object_of": "mediators.object_of",
    "mediator_subject_of": "mediators.subject_of", "mediator_pairs": "mediators.pairs",
    "mediator_untrue": "mediators.untrue", "mediator_unnamed": "mediators.unnamed",
    "walks": "walks.rule", "probes": "probes.entities",
}  # fmt: skip
"""The key in the file of each field that has another name."""
_TEXTS = {"name", "title", "id_characters", "id_example", "languages", "wording", "mediator_list", "walks"}
_TEXTS |= {"mediator_marked_by", "mediator_unnamed", "probes"}
"""The fields whose texts are no IRIs, or not all."""


class Schema(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True, rename=_KEYS):
    """A parsed schema file. Except for `languages` and `probes`, all tuples contain full IRIs or IRI prefixes.

    `mediator_list`: a bundled list of mediator types and relations, `kgqa/schemas/NAME_mediators.txt`. `probes`:
    well-known entities with their labels; `kgqa doctor` checks that the graph contains them.
    """

    name: str
    title: str
    prefixes: dict[str, _Namespace]
    source: str
    detect: Iris = ()
    fallback: bool = False
    id_base: str = ""
    id_characters: str = ""
    id_example: str = ""
    label: Iris = ()
    alias: Iris = ()
    languages: tuple[str, ...] = ("en", "")
    types: Iris = ()
    domain: Iris = ()
    range: Iris = ()
    domain_from_name: bool = False
    wording: Wording = "label"
    labelled: Iris = ()
    inverse: Iris = ()
    labelled_as: tuple[tuple[str, str], ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    degree: tuple[tuple[str, str], ...] = ()
    units_of_relations: Iris = ()
    units_of_values: tuple[tuple[str, str], ...] = ()
    declared_by: Mark = ()
    noise_prefixes: Iris = ()
    noise_except: Iris = ()
    noise_marked_by: Mark = ()
    mediator_types: Iris = ()
    mediator_marked_by: tuple[str, str] | None = None
    mediator_list: Literal["", "freebase"] = ""
    mediator_iri_prefixes: Iris = ()
    mediator_object_of: Iris = ()
    mediator_subject_of: Iris = ()
    mediator_pairs: tuple[tuple[str, str, str], ...] = ()
    mediator_untrue: Mark = ()
    mediator_unnamed: bool = False
    walks: WalkRule = "topic-not-end"
    probes: tuple[tuple[Annotated[str, Meta(min_length=1)], Annotated[str, Meta(min_length=1)]], ...] = ()

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
        return structs.replace(self, prefixes={**self.prefixes, **new}) if new else self

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
        return (
            structs.replace(self, languages=tuple(dict.fromkeys((*languages, *self.languages)))) if languages else self
        )

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


def parse_schema(text: str, *, where: str = "schema") -> Schema:
    """Parse a schema from TOML text.

    Args:
        where: name of the source, for error messages.

    Raises:
        SchemaError: the text is not TOML, or contains an unknown key or a wrong value. The message names the key.
    """
    try:
        data: dict[str, Any] = parse_toml(text)
    except ValueError as error:
        raise SchemaError(f"{where} is not valid TOML: {error}.") from error
    try:
        flat: dict[str, Any] = {"name": None, "title": data.get("name"), "prefixes": {}}
        for section, values in data.items():
            is_section = isinstance(values, dict) and section != "prefixes"
            flat |= {f"{section}.{key}": value for key, value in values.items()} if is_section else {section: values}
        schema: Schema = convert({**flat, "source": text}, Schema)
    except ValueError as error:
        raise SchemaError(f"{where}: {error}.", "docs/schemas.md lists the keys.") from error
    prefixes = {**STANDARD_PREFIXES, **schema.prefixes}

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

    iris = {field: _expand_all(getattr(schema, field), expand) for field in _KEYS.keys() - _TEXTS}
    iris["probes"] = tuple((expand(id), label) for id, label in schema.probes)
    if schema.mediator_marked_by:
        predicate, value = schema.mediator_marked_by
        iris["mediator_marked_by"] = expand(predicate), value
    return structs.replace(schema, prefixes=prefixes, **iris)


def _expand_all(value: Any, expand: Callable[[str], str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_expand_all(item, expand) for item in value)
    return expand(value) if isinstance(value, str) else value


def schema_text(schema: Schema) -> str:
    """Return a schema as TOML text, with full IRIs; `parse_schema` reads the same schema from it."""
    sections: dict[str, list[str]] = {"": []}
    for field in structs.fields(Schema):
        value = getattr(schema, field.name)
        if field.name not in ("prefixes", "source") and value != field.default:
            section, _, name = field.encode_name.rpartition(".")
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


def wikibase_schema(root: str, properties: Mapping[str, str]) -> Schema:
    """Return the schema of a Wikibase other than Wikidata, which has the same form under other IRIs.

    Args:
        root: what its IRIs begin with, in place of `http://www.wikidata.org/`.
        properties: its predicate for the values of each property in `WIKIBASE_LABELS` that it has, by English label.
    """
    wikidata = bundled_schema("wikidata")

    def own(iri: str) -> str:
        return root + iri.removeprefix(WIKIDATA) if iri.startswith(WIKIDATA) else iri

    kind, inverse = (tuple(filter(None, [properties.get(label)])) for label in WIKIBASE_LABELS)
    moved = {field: _expand_all(getattr(wikidata, field), own) for field in _KEYS.keys() - _TEXTS - {"prefixes"}}
    known = {"types": kind, "inverse": (*inverse, f"{STANDARD_PREFIXES['owl']}inverseOf")}
    named = {"name": "wikibase", "title": f"Wikibase at {root}", "detect": (DIRECT_CLAIM,), "probes": ()}
    prefixes = {name: own(namespace) for name, namespace in wikidata.prefixes.items()}
    schema = structs.replace(wikidata, **{**moved, **known, **named}, prefixes=prefixes)
    return structs.replace(schema, source=schema_text(schema))


def load_schema(name_or_file: str | Path) -> Schema:
    """Load a bundled schema by name, or any schema by the path of its TOML file.

    Raises:
        SchemaError: no bundled schema has this name, or the file cannot be read or is not a valid schema.
    """
    path = Path(name_or_file)
    if path.suffix != ".toml":
        return bundled_schema(str(name_or_file))
    try:
        text = read_bytes(path, MAX_TOML_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
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
