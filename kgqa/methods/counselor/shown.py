"""The values that the language model has seen: what its texts name of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kgqa.corpus.extraction.rules.values import read_value
from kgqa.llm.replies.action_lines import top_level_parts, without_quotes
from kgqa.methods.counselor.observations import Observation
from kgqa.methods.counselor.sets import NodeSet, union
from kgqa.methods.counselor.writing import safe, value_text
from kgqa.model import Entity, Literal, Named, Value
from kgqa.search.words import folded, word_table
from kgqa.text.words import clean, local_name, normalise

MAX_ANSWERS = 1000
MAX_WORDS = 4000
"""Most words of a text that are compared with names."""
MAX_UNSEEN = 5
MAX_VALUE_CHARS = 40
"""Longest text that may be a date or number in another form."""
_WORD = re.compile(r"\w+")
_BEFORE = re.compile(
    r"(?:^|[,;:/|(\[{\"'\u201c\u2018`\n]|(?<!\w)(?:and|or)\s)[\s\"'\u201c\u2018`(\[{*-]*"
    r"(?:(?:the|an?)\s)?$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s\"'\u201d\u2019`)\]}*.%\u00b0]*(?:$|[,;/|()\n]|(?:and|or)(?!\w))", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\W_]|(?<!\w)(?:and|or|the|an?)(?!\w))*", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"[\s\"'\u201d\u2019`]*[(\[]\s*")
_COMPUTED = re.compile(
    r"(?:yes|no|true|false)|(?:about|around|approximately|nearly|over|under|in)?"
    r"\W{0,3}[-+]?[0-9][0-9.,:/ -]{0,30}(?:\s*[^\W\d]{1,20}){0,2}",
    re.IGNORECASE,
)
"""Answers that follow from what was seen without being seen: yes, no, and numbers with their units."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a text names: the values that were seen, in its order, and the rest of it, cut at commas."""

    values: tuple[Named, ...]
    others: tuple[str, ...] = ()

    @property
    def unseen(self) -> tuple[str, ...]:
        """The first parts of the text that no observation shows, except yes, no and numbers."""
        return tuple(each for each in self.others if not _COMPUTED.fullmatch(each.strip()))[:MAX_UNSEEN]


class ShownValues:
    """Finds the values that were seen, by their ids and names, and as they were shown.

    A name that several values have stands for those in the latest observation that shows one of them. A node that was
    retrieved starts a path of its own, whatever other paths lead to it.

    Args:
        types: The types in words with which nodes are shown, as far as they are known by now.
    """

    def __init__(self, types: Mapping[Value, str] = MappingProxyType({})) -> None:
        self._types = types
        self._topics: dict[Value, NodeSet] = {}
        self._by_key: dict[str, dict[Value, tuple[Named, NodeSet]]] = {}

    @property
    def names(self) -> dict[Value, str]:
        """The names of the values."""
        return {value: named.name for values in self._by_key.values() for value, (named, _) in values.items()}

    def add_topic(self, nodes: NodeSet, named: Named) -> None:
        """Add a node that was retrieved."""
        self._topics.setdefault(named.value, nodes)
        for key in self._keys(named):
            self._by_key.setdefault(key, {}).setdefault(named.value, (named, nodes))

    def add(self, observation: Observation) -> None:
        """Add the values that an observation shows."""
        if observation.found is None or observation.call.name == "Retrieve":
            return
        nodes = NodeSet(observation.sources)
        added: dict[str, dict[Value, tuple[Named, NodeSet]]] = {}
        # the name of a node that was seen stands for the node, although it may be seen as a text, too
        known = {key for key, values in self._by_key.items() if any(isinstance(value, Entity) for value in values)}
        for each in observation.shown:
            one = self._topics.get(each.value) or nodes.among({each.value})
            if one.sources:
                for key in self._keys(each) - (known if isinstance(each.value, Literal) else set()):
                    added.setdefault(key, {})[each.value] = each, one
        self._by_key |= added

    def get(self, text: str) -> NodeSet | None:
        """Return the values with an id or name; None if no value that was seen has it."""
        found = self._named(text)
        return union([nodes for _, nodes in found.values()]) if found else None

    def _named(self, text: str) -> Mapping[Value, tuple[Named, NodeSet]]:
        """Return the values that a text may mean: by id or name, as it was shown, or as a date or number."""
        keys = (text.strip(), normalise(text), plain_value(text))
        return next(filter(None, (self._by_key.get(key) for key in keys if key)), {})

    def _keys(self, named: Named) -> set[str]:
        """Return what a value may be called: its ids as they are, its name as it is compared, and as it is shown."""
        keys = {normalise(named.name), normalise(safe(named.name)), named.name}
        if isinstance(named.value, Entity):
            type_ = self._types.get(named.value, "")
            shown = [value_text(named), value_text(named, type_), f"{named.name} ({type_})"]
            keys |= {
                named.id,
                named.value.iri,
                local_name(named.value.iri),
                normalise(named.id),
                *map(normalise, shown),
            }
        else:
            keys.add(plain_value(named.name))
        return keys - {""}

    def chosen(self, text: str) -> Chosen:
        """Return the values that a text names, longest names first, and what is left, cut at commas."""
        values: dict[Value, Named] = {}
        others: list[str] = []
        at, before = 0, dict[Value, Named]()
        for begin, end, found in self._spans(text):
            others += _left_over(text[at:begin])
            common = found.keys() & before.keys()
            if common and _IN_BRACKETS.fullmatch(text[at:begin]):  # the id after a name
                for value in before.keys() - common:
                    values.pop(value, None)
            else:
                values |= {value: named for value, named in found.items() if value not in values}
            at, before = end, found
        others += _left_over(text[at:])
        return Chosen(tuple(values.values())[:MAX_ANSWERS], tuple(others))

    def _spans(self, text: str) -> list[tuple[int, int, dict[Value, Named]]]:
        """Return the places of names in a text, with the values that have them; the longest where they overlap."""
        words = [(found.start(), found.end()) for found in _WORD.finditer(text)][:MAX_WORDS]
        longest = max((name.count(" ") + 1 for name in self._by_key), default=0)
        spans: list[tuple[int, int, dict[Value, Named]]] = []
        for first, (begin, _) in enumerate(words):
            if not _BEFORE.search(text[max(0, begin - 40) : begin]):
                continue
            for _, end in words[first : first + longest + 4]:
                found = self._named(text[begin:end])
                if found and _AFTER.match(text[end : end + 40]):
                    spans.append((begin, end, {value: named for value, (named, _) in found.items()}))
        taken: list[tuple[int, int, dict[Value, Named]]] = []
        for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
            if all(span[1] <= other[0] or span[0] >= other[1] for other in taken):
                taken.append(span)
        return sorted(taken, key=lambda span: span[0])


def plain_value(text: str) -> str:
    """Return a date or number in the form in which graphs write it, as a key; "" for another text."""
    word = word_table("numbers", "en").get(folded(text)) if len(text) < MAX_VALUE_CHARS else None
    found = read_value(text.strip()) if len(text) < MAX_VALUE_CHARS and word is None else None
    value = str(word) if word is not None else found.value if found is not None else ""
    return f"={value}" if value else ""


def _left_over(text: str) -> list[str]:
    """Return the parts of a text that have words, cut at semicolons, else at commas."""
    if _LEFT_OVER.fullmatch(text):
        return []
    cut = text.split(";") if ";" in text else top_level_parts(text)
    parts = (without_quotes(clean(part)).strip(" .;,") for part in cut)
    return [part for part in parts if not _LEFT_OVER.fullmatch(part)]
