"""Rules for valid lines of a dump that are dropped: predicates by rule, literals by language."""

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
    """Predicates that are dropped together.

    Attributes:
        predicates: full IRIs.
        prefixes: prefixes of full IRIs.
        copy_of: a predicate with the same values that is kept, or empty.
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
    """What to keep of a dump.

    Args:
        languages: language tags in lower case whose literals are kept, with regional variants (`en` keeps `en-us`);
            `("all",)` keeps all. Literals without a tag are always kept.
        rules: predicates to drop, see `freebase_rules`; () keeps all.
    """

    languages: tuple[str, ...] = ("en",)
    rules: tuple[Rule, ...] = ()

    def wants_language(self, tag: str) -> bool:
        """Tell whether literals of this tag (lower case) are kept."""
        return self.languages == ALL_LANGUAGES or any(
            tag == language or tag.startswith(language + "-") for language in self.languages
        )

    def noise(self, predicate: str) -> str | None:
        """Return the drop reason of lines with this predicate; None if they are kept."""
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
        """16 hexadecimal digits that change with the rules and languages."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:16]
