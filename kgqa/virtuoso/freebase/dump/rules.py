"""Rules that drop valid lines of a dump by predicate, and literals by language."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

NOISE = "noise: "
ALL_LANGUAGES = ("all",)


@dataclass(frozen=True)
class Rule:
    """A rule that drops all lines with certain predicates.

    Attributes:
        predicates: sorted full IRIs of dropped predicates.
        prefixes: prefixes of full IRIs; every predicate that begins with one of them is dropped.
        copy_of: a kept predicate with the same values as the dropped predicates; empty if there is none.
    """

    name: str
    why: str
    predicates: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    copy_of: str = ""

    def drops(self, predicate: str) -> bool:
        return predicate in self.predicates or predicate.startswith(self.prefixes)


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

    @property
    def digest(self) -> str:
        """A hash of the rules and languages, as 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]
