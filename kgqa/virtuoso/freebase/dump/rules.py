"""Rules that drop valid lines of a dump by predicate, and literals by language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOISE = "noise: "
ALL_LANGUAGES = ("all",)


@dataclass(frozen=True)
class Rule:
    """A rule that drops all lines with certain predicates.

    Attributes:
        predicates: full IRIs of dropped predicates.
        prefixes: prefixes of full IRIs; every predicate that begins with one of them is dropped.
        copy_of: a kept predicate with the same values as the dropped predicates; empty if there is none.
    """

    name: str
    why: str
    predicates: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    copy_of: str = ""

    def drops(self, predicate: str) -> bool:
        return predicate in self.predicates or predicate.startswith(self.prefixes)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "why": self.why,
            "predicates": sorted(self.predicates),
            "prefixes": list(self.prefixes),
            "copy_of": self.copy_of,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        return cls(data["name"], data["why"], frozenset(data["predicates"]), tuple(data["prefixes"]), data["copy_of"])


@dataclass(frozen=True)
class Cleaning:
    """Which lines of a dump to keep.

    Args:
        languages: language tags, in lower case, of the literals to keep. A tag includes its regional variants (`en`
            keeps `en-us`); `("all",)` keeps every language. Literals without a tag are always kept.
        rules: rules for the predicates to drop (see `freebase_rules`); () drops none.
    """

    languages: tuple[str, ...] = ("en",)
    rules: tuple[Rule, ...] = ()

    def wants_language(self, tag: str) -> bool:
        """Tell whether literals with this language tag, in lower case, are kept."""
        return self.languages == ALL_LANGUAGES or any(
            tag == language or tag.startswith(language + "-") for language in self.languages
        )

    def noise(self, predicate: str) -> str | None:
        """Return why lines with this predicate are dropped; None if they are kept."""
        return next((NOISE + rule.name for rule in self.rules if rule.drops(predicate)), None)

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object for `from_json`."""
        return {"languages": list(self.languages), "rules": [rule.as_json() for rule in self.rules]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cleaning:
        """Restore an object from `as_json`."""
        return cls(tuple(data["languages"]), tuple(Rule.from_json(rule) for rule in data["rules"]))

    @property
    def digest(self) -> str:
        """A hash of the rules and languages, as 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:16]
