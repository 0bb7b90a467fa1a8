"""How values are shown in observations, and found again in what a language model writes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.corpus.extraction.rules.values import read_value
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import top_level_parts, without_quotes
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found, Observation, Record
from kgqa.methods.counselor.sets import NodeSet, Pairs, ordered, union
from kgqa.model import Entity, Literal, Named, Step, Value
from kgqa.search.words import folded, word_table
from kgqa.text.words import clean, local_name, normalise, type_words

Types = Mapping[Value, str]
"""The types of nodes in words."""
MAX_NAMED = 1000
"""Most values of a result or answer that are named, if only by their ids."""
MAX_NODES = 1000
"""Most nodes of which something is looked up at once, and most types that are read."""
MAX_CHARS = 3000
"""Most characters of an observation."""
LISTED_CHARS = 2600
"""Most characters of a list in it; what stands beside the list fits in the rest."""
BESIDE_RECORDS = 2000
"""The same if records follow the list."""
LONGEST = 200
"""Longest text of a value that stands among others."""
LONGEST_ALONE = 2500
MAX_FIELD_VALUES = 4
"""Most values of a field of a record that are shown."""
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
_CHAT_MARK = re.compile(
    r"<\|[^<>|]{0,60}\|>|<\||\|>|</?(?:s|think|start_of_turn|end_of_turn|tool_call|tool_response|eos|bos)>|"
    r"\[/?INST\]|<<?/?SYS>>?|[\uff1c]\uff5c|\uff5c[\uff1e]",
    re.IGNORECASE,
)


def safe(text: str, limit: int = LONGEST) -> str:
    """Return a text of the graph as one line without control characters and marks of chat templates."""
    line = clean(_CHAT_MARK.sub(" ", text[: 4 * limit]))
    while (again := clean(_CHAT_MARK.sub(" ", line))) != line:  # what is left may be a mark again
        line = again
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}\u2026"


def value_text(named: Named, type_: str = "", *, ids_only: bool = False, limit: int = LONGEST) -> str:
    """Return a value as `name (id, type)`; a literal as its text."""
    name = safe(named.name, limit)
    if not isinstance(named.value, Entity):
        return f"{name} {safe(named.unit)}" if named.unit else name
    ident = safe(named.id or named.value.iri)
    if ids_only:
        return ident
    more = ", ".join(part for part in (ident if ident != name else "", safe(type_, 60)) if part)
    return f"{name} ({more})" if more else name or ident


def list_text(texts: Iterable[str], total: int | None, *, separator: str = ", ", limit: int = LISTED_CHARS) -> str:
    """Return texts as one line of about `limit` characters at most, with the number of those that are left out.

    Args:
        texts: The texts.
        total: How many there are in all; None if there are more than are known.
        separator: What stands between them.
        limit: Most characters, unless the first text is longer.
    """
    shown: list[str] = []
    size = 0
    for text in texts:
        size += len(text) + len(separator)
        if size > limit and shown:
            break
        shown.append(text)
    left = "more" if total is None else f"{total - len(shown)} more" if total > len(shown) else ""
    return separator.join([*shown, *([f"and {left}"] if left else [])])


def shares(counts: Sequence[int], most: int) -> list[int]:
    """Return how many values of each node are shown: at least one of each, and further ones from the first node on."""
    found = [min(1, count) for count in counts]
    left = max(0, most - sum(found))
    for at, count in enumerate(counts):
        more = min(count - found[at], left)
        found[at], left = found[at] + more, left - more
    return found


def records_text(records: Sequence[Record], hop: Hop, name: Callable[[Hop], str], limit: int) -> str:
    """Return what follows the values in an observation: `. Records: value (field: value, value); value (...)`.

    Args:
        records: The records; the text is empty without any.
        hop: The hop that leads through them.
        name: Returns the name of a hop.
        limit: Most characters of the list.
    """
    if not records:
        return ""
    steps = dict.fromkeys(step for each in records for step in each.fields)
    words = {step: safe(name((hop[0], step)).partition(": ")[2]) for step in steps}
    texts = []
    for record in records:
        fields = [f"{words[step]}: {_listed(values)}" for step, values in record.fields.items()]
        texts.append(f"{_listed(record.values)} ({'; '.join(fields) or 'nothing else'})")
    return f". Records: {list_text(texts, len(texts), separator='; ', limit=limit)}"


def _listed(values: Sequence[Named]) -> str:
    # a date may stand in a graph twice, with different datatypes
    return ", ".join(list(dict.fromkeys(safe(each.name, 80) for each in values))[:MAX_FIELD_VALUES])


class ValueWriter:
    """Writes values of one graph.

    Args:
        graph: The graph of a question.
        shown: Most values in an observation.
        ids_only: Whether nodes are shown by their ids only, as published.
    """

    def __init__(self, graph: KnowledgeGraph, *, shown: int, ids_only: bool) -> None:
        self._graph = graph
        self.shown = shown
        self._ids_only = ids_only
        self.words: dict[Value, str] = {}
        """The types with which nodes were shown."""
        self._types: dict[Value, str] = {}  # IRIs

    def node(self, named: Named, *, typed: bool = True) -> str:
        """Return a node as text."""
        types = self._types_of([named]) if typed else {}
        return value_text(named, types.get(named.value, ""), ids_only=self._ids_only)

    def set_words(self, start: NodeSet) -> str:
        """Return a set as the subject of a sentence."""
        if len(start.values) != 1:
            return f"these {len(start.values)} nodes"
        return self.node(self._graph.named(start.values)[0], typed=False)

    def values(self, found: Found, note: str, nothing: str) -> tuple[Found, str, tuple[Named, ...]]:
        """Return what was found with the names of the first values, the text, and the values that the text names.

        Args:
            found: What was found.
            note: What stands before the values.
            nothing: What is said of the set from which a hop was followed if there are no values.
        """
        start = found.of[0].nodes if found.of else ()
        values: Sequence[Value] = found.nodes.values
        if not values:
            whose = self.set_words(found.of[0]) if found.of else "the set"
            return found, f"{note}nothing: {whose} {nothing}.", ()
        if len(start) > 1 and found.pairs:  # in the order in which they are shown
            values = list(dict.fromkeys(value for node in start for value in found.pairs.get(node, ())))
        every = self.named(values[: max(self.shown, MAX_NAMED)])
        named, found = every[: self.shown], replace(found, values=tuple(every))
        types = self._types_of(named, found.of[1] if found.of else ())
        if len(start) > 1 and found.pairs:
            nodes, text = self._pairs(found.of, found.pairs, named)
            return found, f"{note}{len(start)} nodes: {text}", (*nodes, *named)
        longest = LONGEST_ALONE if len(named) == 1 else LONGEST
        texts = (self._text(each, types, longest) for each in named)
        text = list_text(texts, found.total, limit=BESIDE_RECORDS if found.records else LISTED_CHARS)
        number = f"more than {len(values)}" if found.total is None else found.total
        head = "" if found.total == 1 else f"{number} values: "
        return found, f"{note}{head}{text}", tuple(named)

    def _pairs(self, of: tuple[NodeSet, Hop] | None, pairs: Pairs, named: list[Named]) -> tuple[list[Named], str]:
        """Return what each of several nodes has, as `node: value, value; node: value`; names are added to `named`."""
        start, hop = of or (NodeSet(()), ())
        having = [node for node in start.nodes if pairs.get(node)]
        shown = having[: self.shown]
        counts = shares([len(pairs[node]) for node in shown], self.shown)
        own = {node: pairs[node][:count] for node, count in zip(shown, counts)}
        known = {each.value for each in named}
        named += self._graph.named(
            dict.fromkeys(each for values in own.values() for each in values if each not in known)
        )
        types = self._types_of(named, hop)
        names = {each.value: each for each in named}
        nodes = self._graph.named(shown)
        for limit in (LONGEST, LONGEST // 4):
            lines = [
                f"{value_text(node, ids_only=self._ids_only, limit=limit)}: {list_text(texts, len(pairs[at]))}"
                for node, at in zip(nodes, shown)
                for texts in [[self._text(names[each], types, limit) for each in own[at]]]
            ]
            text = list_text(lines, len(having), separator="; ")
            if len("; ".join(lines)) <= LISTED_CHARS:
                break
        without = len(start.nodes) - len(having)
        return nodes, f"{text}; none of {without} others" if without and having else text

    def _text(self, named: Named, types: Types, limit: int) -> str:
        return value_text(named, types.get(named.value, ""), ids_only=self._ids_only, limit=limit)

    def named(self, values: Sequence[Value]) -> list[Named]:
        """Return values with their names; those beyond the shown ones without looking up names that are not known."""
        known, schema = self._graph.tables.labels, self._graph.schema
        found = self._graph.named(values[: self.shown])
        for value in values[self.shown :]:
            if isinstance(value, Entity):
                short = schema.short_id(value.iri)
                found.append(Named(value, short, known.get(value) or short))
            else:
                found.append(Named(value, "", value.value))
        return found

    def types_of(self, nodes: NodeSet) -> set[str]:
        """Return the types of the nodes of a set that are known without a query: none if some are not known."""
        found: set[str | None] = set()
        for source in nodes.sources:
            path = source.candidate.path
            found.add(self._graph.tables.target_type(path.steps[-1]) if path.steps else self._types.get(path.topic))
        return set() if None in found or "" in found else {each for each in found if each}

    def _types_of(self, named: Sequence[Named], hop: Hop = ()) -> Types:
        """Return the types of nodes in words: the type that the graph declares for a hop, else their first types."""
        schema, nodes = self._graph.schema, [each.value for each in named if isinstance(each.value, Entity)]
        found: dict[Value, str]
        declared = self._graph.tables.target_type(hop[-1]) if hop else None
        if self._ids_only or declared:
            found = dict.fromkeys(nodes, type_words(declared, schema) if declared else "")
            self.words |= found
            return found
        new = [node for node in nodes if node not in self._types][:MAX_NODES]
        for predicate in schema.types if new and schema.wording == "label" else ():
            kinds = self._graph.paths.hop(new, (Step(predicate),), limit=MAX_NODES)
            for node, own in kinds.items():
                first = next((kind for kind in ordered(own) if isinstance(kind, Entity)), None)
                self._types.setdefault(node, first.iri if first else "")
        self._types.update(dict.fromkeys((node for node in new if node not in self._types), ""))
        found = {node: type_words(type_, schema) if (type_ := self._types.get(node, "")) else "" for node in nodes}
        self.words |= found
        return found


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

    def __init__(self, types: Types) -> None:
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
        return Chosen(tuple(values.values())[:MAX_NAMED], tuple(others))

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
