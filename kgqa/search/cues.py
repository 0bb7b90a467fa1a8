"""Cues in a question's wording about the path to the answer: words for the hops, in order, and the number of hops.

The cues are found by rules of English grammar: a possessive, "of", a relative clause and "same" each suggest one
more hop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

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
_OWNER = re.compile(r"\s*(?:'s|’s|(?<=\s)s)$", re.IGNORECASE)
_CONTRACTION = re.compile(r"\b(who|what|where|when|that|there|it)\s?['’]s\b", re.IGNORECASE)
_OF = re.compile(r"\bof\b", re.IGNORECASE)
# phrases with "of" that describe a single relation: place of birth, form of government
_ONE_THING = re.compile(
    r"\b(?:places?|causes?|dates?|forms?|kinds?|types?|sorts?|names?|times?|parts?|members?|pieces?|numbers?|some|one|all|"
    r"any|languages?|years?|days?|lines?|works?|books?|seats?|head|chief|secretary|minister|board|out|because)\s+of\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"(?<=\w\s)(?:that|which|who|whom|whose|where)(?=\s)", re.IGNORECASE)
# in "which is the river that flows into X", the clause describes what is asked for
_DEFINITION = re.compile(
    r"\W*(?:what|which|who)\s+(?:is|are|was|were)\s+the\s+(?:(?!of\b)\w+\s+){1,2}(?:that|which|who)\b"
    r"(?!\s+(?:the|a|an|their|his|her|its)\b)",
    re.IGNORECASE,
)
_SHARED = re.compile(r"\b(?:same|shares?|shared|also|together|co-\w+)\b", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:what|which|who|whom|whose|where|when)\b", re.IGNORECASE)
# a relative clause without a pronoun, as in "the movies written by", unless the participle belongs to a verb before it
_REDUCED = re.compile(
    r"\b(?!(?:is|are|was|were|be|been|being|has|have|had|did|does|do|who|which|that|also)\b)\w+\s+"
    r"\w+(?:ed|en|wn|ght|ade)\s+by\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(r"\W*(?:please\s+)?(?:name|list|give|tell|find|show|describe)\b", re.IGNORECASE)
_KIND_OF_TOPIC = re.compile(
    rf"\b(?:what|which)\s+(?:kind|sort|type)s?\s+of\s+\w+\s+(?:is|are|was|were)\s+{_MENTION}", re.IGNORECASE
)
_ENDS_IN_OF = re.compile(r"\bof(?:\s+(?:the|all|some))*\s*$", re.IGNORECASE)
# in "the film Avatar", the noun is the kind of the topic, not a hop; in "the films Ann directed", the noun is a hop
_APPOSITION = re.compile(rf"\bthe\s+\w*[^\W_sS]\s+{_MENTION}", re.IGNORECASE)
# "where did X study" asks for an organization, not for a place
_AT_AN_ORGANIZATION = re.compile(
    r"\bwhere\s+(?:did|does|do|has|have|had|was|were)\b.*"
    r"\b(?:school|college|university|graduated?|study|studied|educated|works?|worked|employed|teach|teaches|taught)\b",
    re.IGNORECASE,
)
# "what did X do" and "what is X famous for" ask for the profession
_PROFESSION = re.compile(
    rf"\bwhat\s+(?:(?:did|does|do|has|have)\s+{_MENTION}\s+(?:do|done)\b(?!\s+(?:about|after|before|for|in|on|with)\s)|"
    rf"(?:is|are|was|were)\s+{_MENTION}\s+(?:(?:best|most)\s+)?(?:famous|known)\s+for\b)",
    re.IGNORECASE,
)
_ASKED_NOUN = re.compile(
    rf"^(?:in|of|for)?\s*(?:what|which)\s+\w+\s+(?:is|are|was|were|do|does|did)\s+(?:the\s+)?{_MENTION}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Cues:
    """Cues about the path to the answer.

    Attributes:
        words: The question's content words, in the order of the hops: the words after the topic's mention, then the
            words before the mention in reverse order.
        hops: Number of hops that the wording suggests, at least 1.
        asked_for: The kind of answer that the question asks for, such as "person"; "" if the wording does not show it.
    """

    words: tuple[str, ...]
    hops: int
    asked_for: str = ""

    @property
    def plain(self) -> bool:
        """Whether the wording has no words for a second hop: at most one word apart from the words in `asked_for`."""
        return self.hops == 1 and len(set(self.words) - set(self.asked_for.split())) <= 1


def read_cues(question: str, names: Iterable[str]) -> Cues:
    """Return the cues in a question; `names` are the names of its topics."""
    marked = _marked(question, names)
    return Cues(tuple(_outward(marked)[:MAX_WORDS]), _announced(marked), _asked_for(marked))


def _marked(question: str, names: Iterable[str]) -> str:
    """Replace each mention of a topic in the question by the character `_MENTION`."""
    text = question
    # the possessive ending is removed from names, so that it stays in the question; it suggests a hop
    bare = {_OWNER.sub("", name.strip()).strip() for name in names}
    for name in sorted((name for name in bare if name.replace("_", " ").strip()), key=len, reverse=True):
        pattern = r"(?<!\w)" + r"[\s_]+".join(re.escape(word) for word in name.replace("_", " ").split()) + r"(?!\w)"
        text = re.sub(pattern, f" {_MENTION} ", text, flags=re.IGNORECASE)
    return _APPOSITION.sub(_MENTION, " ".join(_CONTRACTION.sub(r"\1 is", text).split()))


def _outward(marked: str) -> list[str]:
    before, mention, after = marked.partition(_MENTION)
    if not mention:
        return _content(marked)
    if _ASKS.search(after) and not _ASKS.search(before):
        # in "the films written by X were in which languages", the kind of answer comes last
        return _content(before)[::-1] + _content(after)
    return _content(after) + _content(before)[::-1]


def _content(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in _QUESTION_WORDS]


def _announced(marked: str) -> int:
    body = _OPENING.sub(" ", marked, count=1)
    links = len(_POSSESSIVE.findall(marked)) + len(_OF.findall(_ONE_THING.sub(" ", body)))
    # in "what gender is X's father", the noun directly after the question word is also a hop
    links += bool(links and _ASKED_NOUN.search(marked))
    # with several mentions, a clause connects the answer with a second topic
    alone = marked.count(_MENTION) < 2
    clauses = len(_RELATIVE.findall(body)) if alone else 0
    if clauses and not _OPENING.match(marked) and not _IMPERATIVE.match(marked):
        clauses -= 1  # one of the pronouns asks the question, as in "X directed which films"
    if clauses and _DEFINITION.match(marked):
        clauses -= 1
    shared = bool(_SHARED.search(body))
    reduced = list(_REDUCED.finditer(marked)) if alone else []
    if not reduced:
        return max(1, links) + clauses + shared
    return max(max(1, links) + clauses, links + len(reduced) + _says_more(marked, reduced[0])) + shared


def _says_more(marked: str, clause: re.Match[str]) -> bool:
    """Return whether the words around a clause suggest one more hop.

    "who directed the movies written by X" suggests one more hop; "what is a film written by X" does not.
    """
    before = marked[: clause.start()]
    if _ENDS_IN_OF.search(before):
        return False
    end = marked.rfind(_MENTION)
    after = marked[end + 1 :] if end > clause.end() else ""
    return bool(_content(_OPENING.sub(" ", before, count=1)) or _content(after) or _ASKS.search(after))


def _asked_for(marked: str) -> str:
    """Return the noun after "what" or "which"; for other question words and some phrases, the kind of answer."""
    if _KIND_OF_TOPIC.search(marked):
        return "type genre"  # "what kind of film is X" asks for the kind, not for a film
    if _PROFESSION.search(marked):
        return "profession"
    if _AT_AN_ORGANIZATION.search(marked):
        return "organization"
    words = re.findall(r"[^\W\d_]+|\0", _POSSESSIVE.sub("", marked.lower()))
    for index, word in enumerate(words):
        if word in _STANDS_FOR:
            return _STANDS_FOR[word]
        if word in ("what", "which"):
            return _noun(words[index + 1 :])
    return ""


def _noun(words: list[str]) -> str:
    if not words or words[0] in _VERBS:
        return ""  # there is no noun, as in "what did she do"
    start = len(list(takewhile(_BEFORE_NOUN.__contains__, words[:5])))
    nouns = words[start : start + (1 if words[0] in _COPULA else 2)]
    return " ".join(takewhile(lambda word: word not in STOPWORDS and word != _MENTION, nouns))
