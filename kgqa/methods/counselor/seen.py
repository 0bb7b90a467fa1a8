"""The values that the language model has seen, found again in what it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kgqa.corpus.extraction.rules.values import read_value
from kgqa.llm.replies.action_lines import top_level_parts, without_quotes
from kgqa.methods.counselor.observations import ObservedCall
from kgqa.methods.counselor.sets import NodeSet, union
from kgqa.methods.counselor.writing import safe, value_text
from kgqa.model import Entity, Literal, Named, Value
from kgqa.search.words import folded, word_table
from kgqa.text.words import clean, local_name, normalise

MAX_BOUNDARIES = 4000
"""Most places of a text at which a name may begin or end."""
MAX_UNSEEN = 5
MAX_VALUE_CHARS = 40
"""Longest text that may be a date or number in another form."""
MARGIN = 10
"""By how many characters, and places, a name may be longer than any that was shown: quotes and list marks."""
_BOUNDARY = re.compile(r"[,;:/|()\[\]{}\n\"\u201c\u201d`*]+|(?<!\w)(?:and|or|the|an?)(?!\w)", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\W_]|(?<!\w)(?:and|or|the|an?)(?!\w))*", re.IGNORECASE)
_COMPUTED = re.compile(
    r"(?:yes|no|true|false)|(?:about|around|approximately|nearly|over|under|in)?"
    r"\W{0,3}[-+]?[0-9][0-9.,:/ -]{0,30}(?:\s*[^\W\d]{1,20}){0,2}",
    re.IGNORECASE,
)
"""Answers that follow from what was seen without being seen: yes, no, and numbers with their units."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a text names: the values that were seen, in its order, and the rest of it, cut at semicolons or commas."""

    values: tuple[Named, ...]
    others: tuple[str, ...] = ()

    @property
    def unseen(self) -> tuple[str, ...]:
        """The first parts of the text that no observation shows, except yes, no and numbers."""
        return tuple(each for each in self.others if not _COMPUTED.fullmatch(each))[:MAX_UNSEEN]


class ShownValues:
    """Finds the values that were seen, by their ids and names, and as they were shown.

    A name that several values have stands for those in the latest observation that shows one of them. A node that was
    retrieved starts a path of its own, whatever other paths lead to it.

    Args:
        types: The types in words with which nodes are shown, as far as they are known by now.
    """

    def __init__(self, types: Mapping[Value, str]) -> None:
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

    def add(self, observation: ObservedCall) -> None:
        """Add the values that an observation shows."""
        nodes = NodeSet(observation.found.sources)
        added: dict[str, dict[Value, tuple[Named, NodeSet]]] = {}
        # the name of a node that was seen stands for the node, although it may be seen as a text, too
        known = {key for key, values in self._by_key.items() if any(isinstance(value, Entity) for value in values)}
        for each in observation.found.shown if observation.call.name != "Retrieve" else ():
            one = self._topics.get(each.value) or nodes.among({each.value})
            for key in self._keys(each) if one.sources else ():
                if isinstance(each.value, Entity) or key not in known:
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
        if isinstance(named.value, Literal):
            return {normalise(named.name), normalise(safe(named.name)), named.name, plain_value(named.name)} - {""}
        type_ = self._types.get(named.value, "")
        shown = [value_text(named), value_text(named, type_), f"{named.name} ({type_})", named.id]
        keys = {normalise(each) for each in (named.name, safe(named.name), *shown)}
        return {*keys, named.name, named.id, named.value.iri, local_name(named.value.iri)} - {""}

    def chosen(self, text: str) -> Chosen:
        """Return the values that a text names, longest names first, and what is left of it."""
        values: dict[Value, Named] = {}
        others: list[str] = []
        longest = max(map(len, self._by_key), default=0) + MARGIN
        most = 2 * max((len(_BOUNDARY.findall(key)) for key in self._by_key), default=0) + MARGIN
        places = sorted({0, len(text), *(at for found in _BOUNDARY.finditer(text) for at in found.span())})
        at = 0
        for number, begin in enumerate(places[:MAX_BOUNDARIES]):
            ends = (end for end in reversed(places[number + 1 : number + 1 + most]) if end - begin <= longest)
            named = ((end, found) for end in ends if begin >= at and (found := self._named(text[begin:end])))
            for end, found in [*named][:1]:
                others += _left_over(text[at:begin], text)
                values |= {value: each for value, (each, _) in found.items() if value not in values}
                at = end
        return Chosen(tuple(values.values()), (*others, *_left_over(text[at:], text)))


def plain_value(text: str) -> str:
    """Return a date or number in the form in which graphs write it, as a key; "" for another text."""
    if len(text) >= MAX_VALUE_CHARS:
        return ""
    word, found = word_table("numbers", "en").get(folded(text)), read_value(text.strip())
    value = str(word) if word is not None else found.value if found is not None else ""
    return f"={value}" if value else ""


def _left_over(part: str, text: str) -> list[str]:
    """Return what has words in a part of a text, cut at semicolons if the text has any, else at commas."""
    cut = part.split(";") if ";" in text else top_level_parts(part)
    parts = (without_quotes(clean(each)).strip(" .;,:") for each in cut)
    return [each for each in parts if not _LEFT_OVER.fullmatch(each)]
