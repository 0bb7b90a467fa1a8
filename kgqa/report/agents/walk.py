"""The walk of a language model through a graph: the sets of nodes that its calls found, and how it reached them.

The events of a trace name the paths of a call in words, such as `Kimigayo → anthem of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.events import Called, Event
from kgqa.events.acting_words import call_words
from kgqa.report.lenient_json import objects_of, text_of

MAX_PLACES = 60
MAX_HOPS = 12
MAX_PATHS = 8
_ARROW = re.compile(r" (→|←) ")
_MEETING = " & "
Path = tuple[str, ...]
"""The topic, then for each hop its arrow and relation, such as `("Kimigayo", "→ anthem of")`."""


@dataclass(eq=False)
class Place:
    """Nodes that calls found, or the node at which a path starts.

    `names`: the first of them. `total`: their number; None if no call asked for them. `calls`: the calls as text, with
    trial and step. `steps`: trial (from 0) and step of each call. `topic`: a path starts here. `chosen`: the path of
    the answer leads here.
    """

    names: tuple[str, ...] = ()
    total: int | None = None
    calls: list[str] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    topic: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class Link:
    """A hop from one place to another. `chosen`: the answer's path takes it. `combined`: a call combines places."""

    source: Place
    target: Place
    text: str
    chosen: bool = False
    combined: bool = False


@dataclass
class Walk:
    """The places of a walk, in the order in which they were found, and the links between them."""

    places: list[Place] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    left_out: int = 0


def walk_of(trace: Iterable[Event], answer: Mapping[str, Any]) -> Walk:
    """Return the walk of a trace; without places if no call followed a path.

    Args:
        trace: The events of a question.
        answer: Its answer object (docs/answer-json.md), whose paths are marked.
    """
    answered = [path for each in objects_of(answer.get("paths")) for path in read_paths(text_of(each.get("words")))]
    builder = _Builder({path[:length] for path in answered for length in range(1, len(path) + 1)})
    for event in trace:
        if isinstance(event, Called) and not event.failed:
            builder.add(event)
    return builder.walk


def read_paths(words: str) -> list[Path]:
    """Read paths in words; several paths are joined by ` & `."""
    found: list[Path] = []
    text = ""
    for part in words.split(_MEETING):
        text = f"{text}{_MEETING}{part}" if text else part
        if _ARROW.search(part):  # a name may contain the mark, too
            found.append(_read(text))
            text = ""
    return [*found, *([_read(text)] if text else [])]


def _read(words: str) -> Path:
    topic, *rest = _ARROW.split(words)
    hops = [f"{arrow} {relation.strip()}" for arrow, relation in zip(rest[::2], rest[1::2])]
    return (topic.strip(), *hops[:MAX_HOPS])


class _Builder:
    def __init__(self, answered: set[Path]) -> None:
        self.walk = Walk()
        self._answered = answered
        self._places: dict[frozenset[Path], Place] = {}

    def add(self, event: Called) -> None:
        paths = [path for words in event.paths[:MAX_PATHS] for path in read_paths(words)]
        paths = list(dict.fromkeys(paths))[:MAX_PATHS]
        if not paths:
            return
        place = self._at(paths[0]) if len(paths) == 1 else self._where_they_meet(paths, event.name)
        if place is None:
            self.walk.left_out += 1
            return
        if place.total is None:
            place.names, place.total = event.names, event.total
        place.calls.append(f"{event.trial + 1}.{event.step} {call_words(event)}")
        place.steps.append((event.trial, event.step))

    def _at(self, path: Path) -> Place | None:
        """Return the place at the end of a path; places on the way to it are added."""
        place, before = None, None
        for length in range(1, len(path) + 1):
            part = path[:length]
            place = self._places.get(frozenset([part]))
            if place is None:
                place = self._new([part])
                if place is None:
                    return None
                if before is not None:
                    self.walk.links.append(Link(before, place, path[length - 1], place.chosen))
                else:
                    place.topic, place.names = True, (part[0],)
            before = place
        return place

    def _where_they_meet(self, paths: Sequence[Path], name: str) -> Place | None:
        """Return the place to which several paths lead: from what they found before, or by their last hops."""
        known = self._places.get(frozenset(paths))
        if known is not None:
            return known
        sources = []
        for path in paths:
            found = self._places.get(frozenset([path]))
            combined = len(path) == 1 or (found is not None and found.total is not None)
            source = self._at(path if combined else path[:-1])
            if source is None:
                return None
            sources.append((source, name if combined else path[-1], path in self._answered, combined))
        place = self._new(paths)
        if place is not None:
            self.walk.links += [Link(source, place, text, chosen, by) for source, text, chosen, by in sources]
        return place

    def _new(self, paths: Sequence[Path]) -> Place | None:
        if len(self.walk.places) >= MAX_PLACES:
            return None
        place = Place(chosen=all(path in self._answered for path in paths))
        self._places[frozenset(paths)] = place
        self.walk.places.append(place)
        return place
