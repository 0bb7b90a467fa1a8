"""The topics of a question: checked if they are given, otherwise found in its text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from kgqa.errors import NamesNotIndexed, NoTopicFound, QuestionError, SchemaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.model import Answer, Entity, Named, Question, Step, Value
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.schema import value_of
from kgqa.search.classes import find_topics, instances_of
from kgqa.search.conditions.requests import Request, read_request, unsupported_kind
from kgqa.search.linking import Mention, find_mentions, has_relations, unknown_names
from kgqa.search.masking import MENTIONED, mention_spans, replace_spans, topic_spans
from kgqa.search.words import pattern, stems
from kgqa.settings.values import Settings
from kgqa.text.hints import Command, Hint, Option
from kgqa.text.words import clean, display_name, local_words, normalise
from kgqa.trace import Linked, LinkedMention
from kgqa.trace.trace import Trace

MAX_QUESTION_CHARS = 4000
MAX_NAME_CHARS = 300
MAX_SHOWN = 5
"""How many entities a message lists."""
SAME_AS = ("http://www.w3.org/2002/07/owl#sameAs", "http://dbpedia.org/ontology/wikiPageRedirects")
"""Predicates between two ids of one thing."""
NAME = "E1"
"""What stands for the names of entities while cue words are read."""
_IRI = re.compile(r"\w+:\S+")
MANY_EDGES = 1000


def names_of_topics(
    graph: KnowledgeGraph, text: str, topics: Sequence[Entity], mentions: Sequence[Mention], *, given: bool
) -> tuple[list[Named], dict[Value, list[str]]]:
    """Return the topics with their names, and the strings that may name each topic in the question.

    `given` says that the topics were given with the question; then its text is searched for their names.
    """
    named = graph.named(topics)
    known = graph.names.names_of(topics)
    names: dict[Value, list[str]] = {
        topic: [
            name.name,
            *known[topic],
            *(mention.text for mention in mentions for match in mention.matches if match.entity == topic),
        ]
        for topic, name in zip(topics, named)
    }
    for span in topic_spans(text, {topic: names[topic] for topic in topics}) if given else ():
        names[span.topic].append(text[span.start : span.end])
    return named, names


def generic_topics(graph: KnowledgeGraph, topics: Sequence[Entity], mentioned: Collection[Entity]) -> set[Entity]:
    """Return the topics that are too general to start a path from; never all topics.

    These are classes (country, city), and entities with more than `MANY_EDGES` edges that the question does not mention
    by name, such as Male for "dad", if it mentions another topic.
    """
    if len(topics) < 2:
        return set()
    silent = [topic for topic in topics if topic not in mentioned]
    degrees = graph.paths.degrees(silent) if len(silent) < len(topics) else {}
    found = {*instances_of(graph, topics), *(topic for topic in degrees if degrees[topic] > MANY_EDGES)}
    return found if len(found) < len(topics) else set()


def request_of(text: str, names: Iterable[str]) -> tuple[str | None, Request | None]:
    """Return the kind of a question that paths alone cannot answer, and what it asks to compute; None if unknown.

    Args:
        text: The question.
        names: Names of entities in the question, because "last" in "The Last Samurai" is not a superlative.
    """
    names = list(names)
    shown = unsupported_kind(text)
    kind = unsupported_kind(replace_spans(text, mention_spans(text, names), {MENTIONED: NAME})) if shown else None
    if kind and shown and kind.partition(" (")[0] == shown.partition(" (")[0]:
        kind = shown  # quotes the words of the question
    return kind, read_request(text, names) if kind else None


def named_in(graph: KnowledgeGraph, text: str, mentions: Sequence[Mention]) -> list[str]:
    """Return the names of entities in a question; `mentions` are its mentions if they are known."""
    with suppress(NamesNotIndexed):  # no error, because the topics are given with --topic
        mentions = mentions or find_mentions(graph, text)
    # "directed the most films" is similar to the name of a type, "film director"
    most = pattern(r"\b(?:most|least|fewest)\b")
    return [each.text for each in mentions if each.matches[0].exact or not most.search(each.text)]


def mentions_of_request(graph: KnowledgeGraph, request: Request, *, fit: TextScorer | None) -> list[Mention]:
    """Return the mentions in a request; the type of what is counted if the request has no whole name."""
    mentions = find_topics(graph, request.text, fit=fit)
    if request.kind in ("compare", "difference") and len(mentions) != 2:
        sides = pattern(r"\b(?:or|than|and)\b").split(request.text)[-2:]
        mentions = [mention for side in sides for mention in find_mentions(graph, side, fit=fit)[-1:]]
    counted = graph.tables.counted_types
    if request.kind == "extreme" and all(each.matches[0].entity.iri in counted for each in mentions):
        # "in which country is the oldest brewery"
        mentions = (find_topics(graph, request.noun, fit=fit) if request.noun else []) or mentions
    if request.counted and not any(each.matches[0].exact for each in mentions):
        mentions = find_mentions(graph, request.counted, fit=fit) or mentions
    # first what has the same name but for its ending: "films" names "Film"
    return [
        replace(each, matches=tuple(sorted(each.matches, key=lambda match: stems(match.name) != stems(each.text))))
        for each in mentions
    ]


def declined(question: Question, kind: str) -> Answer:
    """Return the answer for a question of a kind for which nothing in the graph was found."""
    return Answer(
        question,
        "unsupported",
        reason=f"The question asks for {kind}, and no relation or value was found in the graph that decides it.",
    )


def check_text(text: str) -> str:
    """Return the text of a question, cleaned.

    Raises:
        QuestionError: The text is too long or has no letters and digits.
    """
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"The question has {len(text):,} characters, more than {MAX_QUESTION_CHARS:,}.",
            "Ask one question at a time.",
        )
    text = clean(text)
    if not any(char.isalnum() for char in text):
        raise QuestionError(
            "The question is empty.", "Give a question, for example: ", Command("ask", "What is the capital of Japan?")
        )
    return text


def check_topics(
    graph: KnowledgeGraph, topics: Sequence[str | Entity], settings: Settings, notes: list[str]
) -> list[Entity]:
    """Return the entities with the given ids or names, and add a note on each entity found by its name to `notes`.

    Raises:
        QuestionError: A text is neither the id nor the name of an entity of this graph, or several entities have it.
    """
    texts = [topic.iri if isinstance(topic, Entity) else topic for topic in topics]
    ids: dict[str, Entity] = {}
    for text in texts:
        with suppress(SchemaError):
            ids[text] = value_of(text, graph.schema)
    # the labels are needed next, and what has a label is in the graph
    labels = graph.labels(ids.values())
    known = labels.keys() | graph.paths.present(each for each in ids.values() if each not in labels)
    entities = [ids[text] if ids.get(text) in known else entity_called(graph, text, settings, notes) for text in texts]
    return list(dict.fromkeys(followed(graph, each, notes) for each in entities))


def followed(graph: KnowledgeGraph, topic: Entity, notes: list[str]) -> Entity:
    """Return the entity that a topic without relations is the same as or redirects to, and add a note to `notes`."""
    if topic.iri in graph.tables.classes or has_relations(graph, topic):
        return topic
    for step in [Step(predicate, direction) for predicate in SAME_AS for direction in ("out", "in")]:
        for other in graph.paths.hop([topic], (step,), limit=MAX_SHOWN).get(topic, ()):
            if isinstance(other, Entity) and has_relations(graph, other):
                notes.append(
                    f"Read {_listed(graph, [topic])} as {_listed(graph, [other])}, by {local_words(step.relation)}."
                )
                return other
    return topic


def entity_called(graph: KnowledgeGraph, name: str, settings: Settings, notes: list[str]) -> Entity:
    """Return the only entity with this name or a similar one, or whose label it is, and add a note to `notes`.

    Raises:
        NoTopicFound: No entity has this name; the message lists similar names.
        QuestionError: Several have it; the message lists them.
    """
    text = clean(name)[:MAX_NAME_CHARS].strip()
    try:
        matches = graph.names.for_text(text).exact([normalise(text)]).get(normalise(text), [])
        for same in (str, str.casefold):  # as written, else in any case
            matches = [each for each in matches if same(text) in map(same, each.spellings)] or matches
        similar = [] if matches or _IRI.fullmatch(text) else _similar(graph, text)
    except NamesNotIndexed:
        raise QuestionError(
            f"{text!r} is not an entity id in this graph.", "Look it up: ", _search(settings, text)
        ) from None
    entities = [match.entity for match in matches]
    whole_first = sorted(similar, key=lambda found: not found[1])
    near = list(dict.fromkeys(match.entity for match, _ in whole_first))
    if len(entities) == 1:
        notes.append(f"Read the topic “{text}” as {_listed(graph, entities)}.")
    elif [match.kind for match in matches].count("label") == 1 or (len(near) == 1 and whole_first[0][1]):
        notes.append(_reading_note(graph, f"the topic “{text}”", entities or near, "ID"))
    elif entities:
        raise QuestionError(
            f"{len(entities)} entities are called “{text}”: {_listed(graph, entities)}.",
            "Choose one by its id: ",
            Option("topic", "ID"),
        )
    else:
        raise NoTopicFound(
            f"No entity of this graph has the id or the name “{text}”."
            + (f" Similar names: {_listed(graph, near)}." if near else ""),
            Hint(
                *("Choose an entity with ", Option("topic", "ID"), ", or search: ", _search(settings, "NAME")),
                client=_SEARCH_FIRST,
            ),
        )
    return (entities or near)[0]


def search_similar(graph: KnowledgeGraph, text: str, *, limit: int) -> list[NameMatch]:
    """Find entities by name as `KnowledgeGraph.search` does; if there are none, by a similar name."""
    return graph.search(text, limit=limit) or [match for match, is_whole in _similar(graph, text) if is_whole][:limit]


def _similar(graph: KnowledgeGraph, text: str) -> list[tuple[NameMatch, bool]]:
    """Return the names similar to a text, each with whether all of the text means it, and not only a part."""
    words = normalise(text).split()
    mentions = find_mentions(graph, text)
    found = [(match, normalise(mention.text).split() == words) for mention in mentions for match in mention.matches]
    for match in graph.search(text, limit=MAX_SHOWN):
        name = normalise(match.name).split()
        found.append((match, all(any(each.startswith(word) for each in name) for word in words)))
    return found


def _listed(graph: KnowledgeGraph, entities: Sequence[Entity]) -> str:
    shown = ", ".join(display_name(each) for each in graph.named(entities[:MAX_SHOWN]))
    return shown + (f" and {len(entities) - MAX_SHOWN} more" if len(entities) > MAX_SHOWN else "")


def _search(settings: Settings, name: str) -> Command:
    return Command("graph search", name, **({"graph": settings.graph.path} if settings.graph.path else {}))


_SEARCH_FIRST = Hint("First ", Command("graph search"), ", then ", Option("topic"))


def link_topics(
    graph: KnowledgeGraph, text: str, found: Sequence[Mention], notes: list[str], trace: Trace
) -> list[Entity]:
    """Return the most likely entity of each mention, and add notes on uncertain mentions and unknown names to `notes`.

    `text` is the question.

    Raises:
        NoTopicFound: There is no mention.
        QuestionError: The graph is empty.
    """
    linked = (
        LinkedMention(
            each.text,
            tuple(graph.schema.short_id(match.entity.iri) for match in each.matches[:5]),
            # perhaps in another form, such as "films" for Film
            each.matches[0].exact or stems(each.text) == stems(each.matches[0].name),
        )
        for each in found
    )
    trace.record(Linked(mentions=tuple(linked)))
    unknown = unknown_names(text, [mention.text for mention in found])
    if not found:
        if graph.names.count == 0:
            named = "".join(f" <{entity.iri}>" for entity in graph.view)
            raise QuestionError(
                f"The graph{named} is empty.",
                *(("Correct ", Option("graph-iri"), ", or load data: ") if named else ("Load data: ",)),
                Command("graph load", "FILE", into="GRAPH"),
            )
        raise NoTopicFound(
            f"No entity of this graph was found in the question{f': {_called(unknown)}' if unknown else ''}.",
            Hint(
                *("Look up its id with `", Command("graph search", "NAME"), "` and add ", Option("topic", "ID")),
                client=_SEARCH_FIRST,
            ),
        )
    notes += (
        _reading_note(graph, f"“{clean(mention.text)}”", [match.entity for match in mention.matches[:4]])
        for mention in found
        if not mention.certain
    )
    if unknown := [name for name in unknown if " " in name]:
        notes.append(f"In this graph {_called(unknown)}.")
    return list(dict.fromkeys(followed(graph, mention.matches[0].entity, notes) for mention in found))


def _called(names: Sequence[str]) -> str:
    return "nothing is called " + " or ".join(f"“{clean(name)}”" for name in names[:MAX_SHOWN])


def _reading_note(graph: KnowledgeGraph, words: str, meant: Sequence[Entity], value: str | None = None) -> str:
    """Return the note on words that are not the exact name of one entity; `meant` are those they may mean."""
    chosen, topic = f"Read {words} as {_listed(graph, meant[:1])}", Option("topic", value)
    if len(meant) == 1:
        another = Hint("use ", topic, " to choose another", client=Hint("to choose another, ", topic))
        return f"{chosen} (inexact match); {another}."
    choose = Hint("Use ", topic, " to choose", client=Hint("To choose, ", topic))
    return f"{chosen}; it could also be {_listed(graph, meant[1:])}. {choose}."
