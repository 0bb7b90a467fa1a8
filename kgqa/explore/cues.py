"""What the wording of a question says of the path to its answer: the words for each hop, in order, and how many hops.

Rules of English, no look-ups: possessives, `of`, relative pronouns and `same` each announce another hop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.rank.lexical import STOPWORDS

MAX_WORDS = 10
_MENTION = "\0"
_STANDS_FOR = {"who": "person", "whom": "person", "whose": "person", "where": "location place", "when": "date time"}
_COPULA = {"is", "are", "was", "were", "s"}
_VERBS = {"did", "does", "do", "can", "to", "has", "have", "had", "will"}
_BEFORE_NOUN = _COPULA | {
    "the",
    "a",
    "an",
    "all",
    "some",
    "other",
    "kind",
    "kinds",
    "type",
    "types",
    "sort",
    "of",
    "name",
    "names",
}
_QUESTION_WORDS = STOPWORDS | {"name", "names", "list", "give", "tell", "please", "s"}
_WORD = re.compile(r"[^\W\d_]{2,}|\d{2,}")
_OPENING = re.compile(
    r"^(?:in|of|for|from|to|at|on|by|with)?\s*(?:what|which|who|whose|whom|where|when|that)\b", re.IGNORECASE
)
_POSSESSIVE = re.compile(r"(?:'s|’s|(?<=\s)s)(?=\s|$)", re.IGNORECASE)
_OF = re.compile(r"\bof\b", re.IGNORECASE)
# `of` that belongs to a name for one thing: place of birth, form of government
_ONE_THING = re.compile(
    r"\b(?:places?|causes?|dates?|forms?|kinds?|types?|sorts?|names?|times?|parts?|members?|pieces?|numbers?|some|one|all|"
    r"any|languages?|years?|days?|lines?|works?|books?|seats?|head|chief|secretary|minister|board|out|because)\s+of\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"(?<=\w\s)(?:that|which|who|whom|whose|where)(?=\s)", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:same|shares?|shared|also)\b", re.IGNORECASE)
_ASKED_NOUN = re.compile(
    rf"^(?:in|of|for)?\s*(?:what|which)\s+\w+\s+(?:is|are|was|were|do|does|did)\s+(?:the\s+)?{_MENTION}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Cues:
    """`words`: the content words in the order in which hops leave the topic: those after its mention, then those
    before it backwards. `hops`: how many hops the wording announces, at least 1. `asked_for`: what kind of thing is
    asked for, in words; empty where the wording does not say."""

    words: tuple[str, ...]
    hops: int
    asked_for: str = ""


def read_cues(question: str, names: Iterable[str]) -> Cues:
    """The cues of a question about entities with these names."""
    marked = _marked(question, names)
    return Cues(tuple(_outward(marked)[:MAX_WORDS]), _announced(marked), _asked_for(marked))


def _marked(question: str, names: Iterable[str]) -> str:
    """The question with one sign for each mention."""
    text = question
    bare = {
        _POSSESSIVE.sub("", name).strip() for name in names
    }  # whose mention it is does not matter, that it is a mother's does
    for name in sorted((name for name in bare if name), key=len, reverse=True):
        pattern = r"(?<!\w)" + r"[\s_]+".join(re.escape(word) for word in name.replace("_", " ").split()) + r"(?!\w)"
        text = re.sub(pattern, f" {_MENTION} ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _outward(marked: str) -> list[str]:
    before, mention, after = marked.partition(_MENTION)
    if not mention:
        return _content(marked)
    return _content(after) + _content(before)[::-1]


def _content(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in _QUESTION_WORDS]


def _announced(marked: str) -> int:
    body = _OPENING.sub(" ", marked, count=1)
    links = len(_POSSESSIVE.findall(marked)) + len(_OF.findall(_ONE_THING.sub(" ", body)))
    # what gender is X's father: the noun right after the question word is a hop as well
    links += bool(links and _ASKED_NOUN.search(marked))
    # with several mentions a clause says of the answer what another topic has to do with it
    clauses = len(_RELATIVE.findall(body)) if marked.count(_MENTION) < 2 else 0
    return max(1, links) + clauses + bool(_SHARED.search(body))


def _asked_for(marked: str) -> str:
    """The noun after what or which, or what who, where and when stand for."""
    words = re.findall(r"[a-z]+|\0", marked.lower())
    for index, word in enumerate(words):
        if word in _STANDS_FOR:
            return _STANDS_FOR[word]
        if word in ("what", "which"):
            return _noun(words[index + 1 :])
    return ""


def _noun(words: list[str]) -> str:
    if not words or words[0] in _VERBS:
        return ""  # what did she do: no noun
    start = 0
    while start < min(len(words), 5) and words[start] in _BEFORE_NOUN:
        start += 1
    found: list[str] = []
    for word in words[start : start + (1 if words[0] in _COPULA else 2)]:
        if word in STOPWORDS or word == _MENTION:
            break
        found.append(word)
    return " ".join(found)
