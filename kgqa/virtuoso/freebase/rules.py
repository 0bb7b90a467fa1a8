"""Reads the noise rules of the Freebase dump from freebase_dump.toml and checks them against the schema."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from kgqa.errors import SchemaError
from kgqa.schema import Schema, bundled_schema
from kgqa.virtuoso.freebase.dump.rules import Rule


@lru_cache(maxsize=1)
def freebase_rules() -> tuple[Rule, ...]:
    """Return the bundled rules, checked against the Freebase schema."""
    text = (files("kgqa.virtuoso.freebase") / "freebase_dump.toml").read_text(encoding="utf-8")
    rules = parse_rules(text, where="freebase_dump.toml")
    check_rules(rules, bundled_schema("freebase"))
    return rules


def parse_rules(text: str, *, where: str = "rules") -> tuple[Rule, ...]:
    """Read rules from TOML text.

    Raises:
        SchemaError: the text is not TOML, or has an unknown key, a value of the wrong type, or an undeclared prefix.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{where} is not valid TOML: {error}.", "See docs/freebase.md for an example.") from error
    prefixes, tables = data.get("prefixes", {}), data.get("drop", [])
    unknown = set(data) - {"prefixes", "drop"}
    if unknown or not isinstance(prefixes, dict) or not isinstance(tables, list):
        raise SchemaError(f"{where} may contain only [prefixes] and [[drop]].", "See docs/freebase.md for an example.")
    rules = tuple(_rule(table, prefixes, where) for table in tables)
    if len({rule.name for rule in rules}) < len(rules):
        raise SchemaError(
            f"{where}: two rules have the same name.", "Rename one: dropped lines are counted by rule name."
        )
    return rules


def _rule(table: object, prefixes: Mapping[str, str], where: str) -> Rule:
    known = {"name": str, "why": str, "predicates": list, "prefixes": list, "copy_of": str}
    if not isinstance(table, dict) or not all(isinstance(v, known.get(k, ())) for k, v in table.items()):
        raise SchemaError(
            f"{where}: a rule ([[drop]]) may contain only {', '.join(known)}.", "See docs/freebase.md for an example."
        )
    if not table.get("name") or not table.get("why"):
        raise SchemaError(f"{where}: every rule ([[drop]]) needs `name` and `why`. Explain there why it drops lines.")

    def iri(short: object) -> str:
        prefix, colon, local = short.partition(":") if isinstance(short, str) else ("", "", "")
        if not colon or prefix not in prefixes:
            raise SchemaError(f"{where}: the prefix of {short!r} is not declared in [prefixes]. Declare the prefix.")
        return prefixes[prefix] + local

    return Rule(
        name=table["name"],
        why=table["why"],
        predicates=frozenset(map(iri, table.get("predicates", ()))),
        prefixes=tuple(map(iri, table.get("prefixes", ()))),
        copy_of=iri(table["copy_of"]) if "copy_of" in table else "",
    )


def protected(schema: Schema) -> tuple[frozenset[str], ...]:
    """Return the predicates that the schema needs; the predicates in a group can replace each other."""
    groups = [schema.label, schema.alias, schema.types, schema.domain, schema.range, schema.inverse]
    groups += [schema.mediator_object_of, schema.mediator_subject_of]
    # in each of these tuples (predicate, value, ...), only the first item is a predicate
    for marks in (schema.mediator_marked_by or (), schema.noise_marked_by, schema.declared_by):
        groups.append(tuple(marks[:1]))
    return tuple(frozenset(group) for group in groups if group)


def check_rules(rules: tuple[Rule, ...], schema: Schema) -> None:
    """Check rules against a schema.

    Raises:
        SchemaError: a rule drops a predicate that the schema needs.
    """
    for group in protected(schema):
        for predicate in sorted(group):
            for rule in rules:
                if rule.drops(predicate) and not _stays(rule.copy_of, group, rules):
                    raise SchemaError(
                        f"The rule {rule.name!r} drops {predicate}, which the schema {schema.name} needs.",
                        "Remove this predicate from the rule, or set copy_of to a kept predicate with the same values.",
                    )


def _stays(predicate: str, group: frozenset[str], rules: tuple[Rule, ...]) -> bool:
    return predicate in group and not any(rule.drops(predicate) for rule in rules)
