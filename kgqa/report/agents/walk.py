"""The walk of a language model through a graph: the sets of nodes that its calls found, and how it reached them.

The events of a trace name the paths of a call in words, such as `Kimigayo → anthem of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.llm.replies.action_lines import SETS
from kgqa.report.lenient_json import count_of, list_of, objects_of, text_of
from kgqa.trace import Called, Event

MAX_PLACES = 60
MAX_HOPS = 12
MAX_PATHS = 8
_ARROW = re.compile(r" (→|←) ")
_MEETING = " & "
_ALONG = frozenset({"Most", "Degree"})
"""The functions that follow a hop and return something else than all that it leads to."""
_MADE = SETS | _ALONG
Path = tuple[str, ...]
"""The topic, then for each hop its arrow and relation, such as `("Kimigayo", "→ anthem of")`."""
_Key = tuple[str, frozenset[Path]]
"""What a place is: the function that made it, or "" for hops, and the paths that lead to it."""


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
    names = {text_of(each.get("name")) for each in objects_of(answer.get("answers"))}
    builder = _Builder({path[:length] for path in answered for length in range(1, len(path) + 1)}, names)
    for event in trace:
        if isinstance(event, Called) and not event.failed:
            builder.add(event)
    for each in objects_of(answer.get("paths")):
        for path, walked in _walked(each).items():
            builder.name(path, walked)
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


def _key(path: Path) -> _Key:
    return "", frozenset([path])


def _walked(path: Mapping[str, Any]) -> dict[Path, list[str]]:
    """Return the names of the nodes after each hop of an answer's path, from its walks; mediators are left out."""
    paths = read_paths(text_of(path.get("words")))
    mediators = {count_of(each) for each in list_of(path.get("mediators"))}
    found: dict[Path, list[str]] = {}
    for walk in list_of(path.get("walks")) if len(paths) == 1 else ():
        nodes = [node for place, node in enumerate(objects_of(walk)) if place not in mediators]
        if len(nodes) == len(paths[0]):
            for length, node in enumerate(nodes, 1):
                found.setdefault(paths[0][:length], []).append(text_of(node.get("name")))
    return {part: list(dict.fromkeys(filter(None, names))) for part, names in found.items()}


class _Builder:
    def __init__(self, answered: set[Path], answers: set[str]) -> None:
        self.walk = Walk()
        self._answered = answered
        self._answers = answers
        self._places: dict[_Key, Place] = {}

    def add(self, event: Called) -> None:
        paths = [path for words in event.paths[:MAX_PATHS] for path in read_paths(words)]
        paths = list(dict.fromkeys(paths))[:MAX_PATHS]
        if not paths:
            return
        together = len(paths) > 1 or event.name in _MADE
        place = self._where_they_meet(paths, event) if together else self._at(paths[0])
        if place is None:
            self.walk.left_out += 1
            return
        if place.total is None:
            # a call without a relation lists those of a topic
            place.total, place.names = (1, place.names) if place.topic else (event.total, event.names)
        place.calls.append(f"{event.trial + 1}.{event.step} {event.call_words()}")
        place.steps.append((event.trial, event.step))

    def name(self, path: Path, names: Sequence[str]) -> None:
        """Name the nodes of a place that no call asked for."""
        place = self._places.get(_key(path))
        if place is not None and not place.names:
            place.names = tuple(names)

    def _at(self, path: Path) -> Place | None:
        """Return the place at the end of a path; places on the way to it are added."""
        place, before = None, None
        for length in range(1, len(path) + 1):
            part = path[:length]
            place = self._places.get(_key(part))
            if place is None:
                place = self._new(_key(part))
                if place is None:
                    return None
                if before is not None:
                    self.walk.links.append(Link(before, place, path[length - 1], place.chosen))
                else:
                    place.topic, place.names = True, (part[0],)
            before = place
        return place

    def _where_they_meet(self, paths: Sequence[Path], event: Called) -> Place | None:
        """Return the place where several paths meet, or that a function made of what they lead to.

        A function on sets starts from what the paths lead to; one that follows a hop from where their last hop starts.
        """
        name = event.name
        key = (name if name in _MADE else "", frozenset(paths))
        if key in self._places:
            return self._places[key]
        sources = []
        chosen = not self._answers.isdisjoint(event.names)
        for path in paths:
            combined = len(path) == 1 or name in _MADE - _ALONG
            source = self._at(path if combined else path[:-1])
            if source is None:
                return None
            text = name if combined else f"{path[-1]} ({name})" if name in _ALONG else path[-1]
            sources.append((source, text, chosen and path in self._answered, name in _MADE))
        place = self._new(key)
        if place is not None:
            place.chosen = any(taken for _, _, taken, _ in sources)
            self.walk.links += [Link(source, place, text, taken, by) for source, text, taken, by in sources]
        return place

    def _new(self, key: _Key) -> Place | None:
        if len(self.walk.places) >= MAX_PLACES:
            return None
        place = Place(chosen=not key[1].isdisjoint(self._answered))
        self._places[key] = place
        self.walk.places.append(place)
        return place
