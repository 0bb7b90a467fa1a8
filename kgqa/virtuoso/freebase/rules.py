"""Reads the noise rules of the Freebase dump from freebase_dump.toml."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files

from kgqa.virtuoso.freebase.dump.rules import Rule


@lru_cache(maxsize=1)
def freebase_rules() -> tuple[Rule, ...]:
    """Return the bundled rules with full IRIs."""
    data = tomllib.loads((files("kgqa.virtuoso.freebase") / "freebase_dump.toml").read_text(encoding="utf-8"))

    def iri(short: str) -> str:
        prefix, _, local = short.partition(":")
        return f"{data['prefixes'][prefix]}{local}"

    return tuple(
        Rule(
            name=rule["name"],
            why=rule["why"],
            predicates=tuple(sorted(map(iri, rule.get("predicates", ())))),
            prefixes=tuple(map(iri, rule.get("prefixes", ()))),
            copy_of=iri(rule["copy_of"]) if "copy_of" in rule else "",
        )
        for rule in data["drop"]
    )
