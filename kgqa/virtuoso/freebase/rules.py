"""What is kept of a dump: the noise rules of freebase_dump.toml, which drop predicates, and the languages of literals."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

ALL_LANGUAGES = ("all",)
NOISE = "noise: "


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that drops all lines with these predicates (full IRIs), or with predicates that begin with these prefixes."""

    name: str
    predicates: frozenset[str]
    prefixes: tuple[str, ...]


@lru_cache(maxsize=1)
def noise_rules() -> tuple[Rule, ...]:
    """Return the bundled rules."""
    data = tomllib.loads((files("kgqa.virtuoso.freebase") / "freebase_dump.toml").read_text(encoding="utf-8"))

    def iri(short: str) -> str:
        prefix, _, local = short.partition(":")
        return f"{data['prefixes'][prefix]}{local}"

    return tuple(
        Rule(rule["name"], frozenset(map(iri, rule.get("predicates", ()))), tuple(map(iri, rule.get("prefixes", ()))))
        for rule in data["drop"]
    )


@dataclass(frozen=True)
class Cleaning:
    """Which lines of a dump to keep.

    Args:
        languages: language tags, in lower case, of the literals to keep. A tag includes its regional variants (`en`
            keeps `en-us`); `("all",)` keeps every language. Literals without a tag are always kept.
        keep_noise: whether the predicates of the noise rules are kept.
    """

    languages: tuple[str, ...] = ("en",)
    keep_noise: bool = False

    def wants_language(self, tag: str) -> bool:
        """Tell whether literals with this language tag, in lower case, are kept."""
        return self.languages == ALL_LANGUAGES or any(
            tag == language or tag.startswith(language + "-") for language in self.languages
        )

    def noise(self, predicate: str) -> str | None:
        """Return why lines with this predicate are dropped; None if they are kept."""
        for rule in () if self.keep_noise else noise_rules():
            if predicate in rule.predicates or predicate.startswith(rule.prefixes):
                return NOISE + rule.name
        return None
