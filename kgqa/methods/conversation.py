"""Resolves what a question of a conversation refers to: by a language model if there is one, else by one rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from kgqa.errors import KgqaError, NamesNotIndexed
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.reply import Form, Reply, reply_of
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, Named
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.kinds import types_in_words
from kgqa.search.linking import find_mentions
from kgqa.search.masking import replace_spans, topic_spans
from kgqa.search.name_matching import generic_words
from kgqa.search.topics import MAX_QUESTION_CHARS, check_text
from kgqa.text.words import clean, display_name, normalise
from kgqa.trace.trace import BudgetExhausted, Trace

TURNS = 3
"""How many of the last turns a question may refer to."""
MAX_ENTITIES = 20
MAX_SHOWN = 10
"""Answers of a turn to which a question may refer."""
_MAX_NAMED = 4
_MAX_NAME = 200
_PERSON, _THING = ("he", "she", "him", "her", "his"), ("it", "its", "there")
_FUNCTION_WORDS = "|".join(sorted(STOPWORDS))
_PRONOUN = re.compile(
    r"\b(?:(?:is|are|was|were|be|has|have) there|there (?:is|are|was|were|be|been|exist)|of them|time is it"
    r"|(?:is|was) it (?:true|possible|known|that|raining|snowing|cold|hot|warm|dark)"
    r"|it (?:is|was) (?:true|possible|known|said|that)"
    rf"|(?P<owner>his|its|their|her(?= (?!(?:{_FUNCTION_WORDS})\b)\w))"
    r"|(?:(?P<in>in|from|near|to) )?(?P<place>there)|(?P<other>he|she|him|her|it|they|them))\b",
    re.IGNORECASE,
)
"""A pronoun that has a name, or words in which it refers to nothing before the question."""
_ANOTHER = re.compile(
    r"\s*(?:(?:and|or|but)\b[\s,]*(?:(?:what|how) about\s+)?|(?:what|how) about\s+)"
    r"(?:(?:of|in|for|from|by|at|on|with|to)\s+)?(?!the\s+(?-i:[^A-Z]*)\Z)(?:the\s+)?(?P<name>.+?)\s*[?.!]*\s*",
    re.IGNORECASE,
)
_EXCEPT = re.compile(r"\b(?:other than|besides|apart from|except(?: for)?|excluding) (?:the )?\Z", re.IGNORECASE)
_IS_PERSON = re.compile(
    r"(?:(?!(?:of|in|for|or|with|from|by) )\S+ )*(?:person|people|human|man|woman|actor|actress|artist|author|athlete|"
    r"composer|director|king|minister|musician|painter|player|poet|politician|president|queen|scientist|singer|writer)"
    r"(?: (?:of|in|for|or|with|from|by) .*)?",
    re.IGNORECASE,
)
"""A type of persons. A human language is a language, no human."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A question that was asked, with names in place of references, and its entities: the answers and the topics."""

    question: str
    answers: tuple[Named, ...] = ()
    topics: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is asked.

    Attributes:
        question: The question with names in place of references.
        topics: The entities that it is about; empty if they are to be found in its text.
        notes: Sentences for the user, such as which other entities a reference may mean.
        by: What resolved the references; empty if the question is asked as it was given.
    """

    question: str
    topics: tuple[Named, ...] = ()
    notes: tuple[str, ...] = ()
    by: Literal["", "rules", "model"] = ""


def turn_of(answer: Answer) -> ChatTurn:
    """Return the turn of an answered question."""
    return ChatTurn(answer.question.text, _entities(answer.answers), _entities(answer.topics))


def turn_of_object(answer: Mapping[str, Any]) -> ChatTurn:
    """Return the turn of an answer in JSON (docs/answer-json.md). What has another form is left out."""
    question = answer.get("question")
    return ChatTurn(
        clean(question) if isinstance(question, str) else "",
        _named(answer.get("answers")),
        _named(answer.get("topics")),
    )


def _named(objects: Any) -> tuple[Named, ...]:
    return _entities(
        Named(Entity(each["iri"]), str(each.get("id") or ""), each["name"])
        for each in (objects if isinstance(objects, list) else ())
        if isinstance(each, dict) and isinstance(each.get("iri"), str) and isinstance(each.get("name"), str)
    )


def _entities(named: Iterable[Named]) -> tuple[Named, ...]:
    entities = (each for each in named if isinstance(each.value, Entity) and clean(each.name))
    return tuple(Named(each.value, each.id, clean(each.name)[:_MAX_NAME]) for each in entities)[:MAX_ENTITIES]


def resolve(question: str, turns: Sequence[ChatTurn], resources: Resources, *, trace: Trace | None = None) -> Resolved:
    """Return what is asked, given the turns so far, the latest last.

    If the reply of the language model cannot be read, or the model cannot be used, the rule decides; a question that
    was stopped ends when it is asked.

    Args:
        question: The question.
        turns: The turns so far.
        resources: The graph and, perhaps, a language model.
        trace: Is charged for the language model; needed only if there is one.

    Raises:
        QuestionError: The question is empty or too long.
        StoreError: A query failed.
    """
    text = check_text(question)
    if not turns:
        return Resolved(text)
    turns = [turn for turn in turns if turn.answers or turn.topics][-TURNS:]
    types = types_in_words(resources.graph, [each.value for turn in turns for each in (*turn.answers, *turn.topics)])
    resolved = None
    if turns and resources.by_model and trace is not None:
        with suppress(BudgetExhausted, KgqaError):
            resolved = _rewritten(text, turns, types, resources, trace)
    resolved = resolved or (_another(text, turns[-1], resources.graph) if turns else None)
    return resolved or _with_names(text, turns, types, resources.graph)


def _rewritten(
    question: str,
    turns: Sequence[ChatTurn],
    types: Mapping[Any, Sequence[str]],
    resources: Resources,
    trace: Trace,
) -> Resolved | None:
    """Return the question as a language model writes it; None if its reply cannot be read."""
    entities = list(dict.fromkeys(e for turn in turns[::-1] for e in (*turn.answers[:MAX_SHOWN], *turn.topics)))
    prompt = resources.prompts.prompt(
        "chat/rewrite",
        "link",
        rewritten_reply(len(entities)),
        turns=[
            {"question": turn.question, "answers": [each.name for each in turn.answers[:MAX_SHOWN]]} for turn in turns
        ],
        entities=[{"name": each.name, "types": list(types[each.value])[:3]} for each in entities],
        question=question,
    )
    (reply,) = resources.ask([prompt], trace)
    if reply is None:
        return None
    topics = tuple(entities[number - 1] for number in dict.fromkeys(reply.refers_to))
    resolved = Resolved(reply.question, topics, by="model" if topics or reply.question != question else "")
    return _with_topics(resolved, _named_in(reply.question, resources.graph))


@dataclass(frozen=True)
class Rewritten:
    """A question that can be understood alone, and the numbers of the entities that it is about."""

    question: Annotated[str, Form(chars=MAX_QUESTION_CHARS)]
    refers_to: Annotated[tuple[int, ...], Form(strict=True)]


def rewritten_reply(size: int) -> Reply[Rewritten]:
    """Return the form of a reply to a prompt with `size` entities, numbered from 1."""

    def check(reply: Rewritten) -> Rewritten:
        if not any(map(str.isalnum, reply.question)):
            raise ValueError("The question is empty.")
        if not all(0 < number <= size for number in reply.refers_to):
            raise ValueError(f"refers_to must list numbers of entities, from 1 to {size}.")
        return reply

    return reply_of(Rewritten).then(check)


def _another(text: str, last: ChatTurn, graph: KnowledgeGraph) -> Resolved | None:
    """Return the last question about another entity, if a text only names one: and of Norway?, what about Norway?"""
    match = _ANOTHER.fullmatch(text)
    mentions = find_mentions(graph, match["name"]) if match else []
    if match is None or not mentions:
        return None
    rest = normalise(match["name"].replace(mentions[0].text, " ")).split()
    topics = {each.value: each for each in last.topics if isinstance(each.value, Entity)}
    aliases = graph.names.names_of(list(topics))
    spans = topic_spans(last.question, {value: [topic.name, *aliases[value]] for value, topic in topics.items()})
    if not spans or not generic_words().issuperset(rest):
        return None
    replaced = spans[-1].topic
    (new,) = graph.named([mentions[0].matches[0].entity])
    question = replace_spans(last.question, [each for each in spans if each.topic == replaced], {replaced: new.name})
    return Resolved(question, tuple({**topics, replaced: new}.values()), by="rules")


def _with_names(
    text: str, turns: Sequence[ChatTurn], types: Mapping[Any, Sequence[str]], graph: KnowledgeGraph
) -> Resolved:
    """Return a question with names in place of its pronouns, up to the first name that it has itself.

    A pronoun means the last entity that it may mean by its types, answers before topics.
    """
    named = _named_in(text, graph)
    first = min((start for start, _ in named), default=len(text))
    groups = [group for turn in turns[::-1] for group in (turn.answers, turn.topics)]
    topics, notes = list[Named](), list[str]()

    def name_of(match: re.Match[str]) -> str:
        if match.lastgroup is None or match.end() > first:
            return match[0]
        word = match[match.lastgroup]
        fitting = ([each for each in group if _may_mean(word.lower(), types[each.value])] for group in groups)
        meant = next(filter(None, fitting), None)
        if meant is None:
            notes.append(f"Nothing before this question fits “{word}”.")
            return match[0]
        if len(meant) > 1:
            others = ", ".join(map(display_name, meant[1:_MAX_NAMED]))
            more = f" and {len(meant) - _MAX_NAMED} more" if len(meant) > _MAX_NAMED else ""
            notes.append(f"Asked about {display_name(meant[0])} only; “{word}” may also mean {others}{more}.")
        topics.append(meant[0])
        name = meant[0].name
        ending = "" if not match["owner"] else "'" if name.endswith("s") else "'s"
        return f"{match['in'] or 'in'} {name}" if match["place"] else name + ending

    question = _PRONOUN.sub(name_of, text)
    resolved = Resolved(question, tuple(dict.fromkeys(topics)), tuple(notes), "rules" if topics else "")
    return _with_topics(resolved, named)


def _may_mean(pronoun: str, types: Sequence[str]) -> bool:
    """Return whether a pronoun may mean an entity of these types; one without types may be anything."""
    is_person = any(map(_IS_PERSON.fullmatch, types))
    return not types or pronoun not in (_THING if is_person else _PERSON)


def _named_in(text: str, graph: KnowledgeGraph) -> list[tuple[int, Named]]:
    """Return the entities that a text names in full and in capitals, but for excluded ones: other than Paris."""
    try:
        mentions = find_mentions(graph, text, whole_only=True)
    except NamesNotIndexed:
        return []
    # "Who" at the beginning of a question is not the name of an organisation (WHO)
    certain = {
        start: mention.matches[0].entity
        for mention in mentions
        if (start := text.find(mention.text)) > 0
        and mention.certain
        and any(map(str.isupper, mention.text))
        and not _EXCEPT.search(text[:start])
    }
    return list(zip(certain, graph.named(certain.values())))


def _with_topics(resolved: Resolved, named: Sequence[tuple[int, Named]]) -> Resolved:
    """Add the entities that the question names itself to those that it refers to."""
    if not resolved.topics:
        return resolved
    topics = {each.value: each for each in (*resolved.topics, *(entity for _, entity in named))}
    return replace(resolved, topics=tuple(topics.values()))
