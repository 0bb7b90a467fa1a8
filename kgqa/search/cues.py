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
from kgqa.search.words import folded, pattern, stem_list, stems, word_list, word_table

MAX_WORDS = 10
_MENTION = "\0"


@dataclass(frozen=True, slots=True)
class Cues:
    """Cues about the path to the answer.

    Attributes:
        words: The question's content words, in the order of the hops: the words after the topic's mention, then the
            words before the mention in reverse order.
        hops: Number of hops that the wording suggests, at least 1.
        asked_for: The kind of answer that the question asks for, such as "person"; "" if the wording does not show it.
        asks_topic: Whether the topic, a class, is what the question asks for, as in "which films were made by".
        value: What the question word asks for: "date", "number", "thing" or, for "what year", "year"; else "".
    """

    words: tuple[str, ...]
    hops: int
    asked_for: str = ""
    value: str = ""
    asks_topic: bool = False

    @property
    def noun(self) -> str:
        """The kind of answer if it is a word of the question; else ""."""
        return self.asked_for if set(self.asked_for.split()) <= set(self.words) else ""

    @property
    def plain(self) -> bool:
        """Whether the wording has no words for a second hop: at most one word apart from the words in `asked_for`."""
        return self.hops == 1 and len(set(self.words) - set(self.asked_for.split())) <= 1


def read_cues(question: str, names: Iterable[str]) -> Cues:
    """Return the cues in a question; `names` are the names of its topics."""
    marked = _marked(question, names)
    asked_for, (before, mention, _) = _asked_for(marked), marked.partition(_MENTION)
    return Cues(
        tuple(_outward(marked)[:MAX_WORDS]),
        _announced(marked),
        asked_for,
        _value(marked, asked_for),
        asks_topic=bool(mention)
        and asked_for not in ("location place", "date time")
        and not _content(pattern(r"\b(?:{asks}|{commands})\b").sub(" ", before)),
    )


def asking_clause(question: str, names: Iterable[str]) -> str:
    """Return the last clause of a question, with its topic in place of "it", if only an earlier clause names the topic.

    "My train is the Sea Eagle again, so who runs its line?" asks "who runs Sea Eagle's line?".
    """
    names = [name for name in names if folded(name) in folded(question)]
    found = pattern("{told}").match(_marked(question, names))
    if found is None or not names:
        return question
    topic = max(names, key=len)
    said = pattern("{referring}").sub(lambda each: topic + "'s" * (folded(each[0]) in ("its", "his")), found["asked"])
    return said if topic in said else question


def _marked(question: str, names: Iterable[str]) -> str:
    """Replace each mention of a topic in the question by the character `_MENTION`."""
    text = question
    # the possessive ending is removed from names, so that it stays in the question; it suggests a hop
    bare = {
        re.sub(r"\s*(?:'s|’s|(?<=\s)s)$", "", name.strip(), flags=re.IGNORECASE).replace("_", " ") for name in names
    }
    for name in sorted(filter(str.strip, bare), key=len, reverse=True):
        written = r"[\s_]+".join(map(re.escape, name.split()))
        text = re.sub(rf"(?<!\w){written}(?!\w)", f" {_MENTION} ", text, flags=re.IGNORECASE)
    return pattern("{apposition}").sub(_MENTION, " ".join(pattern("{contraction}").sub(r"\1 is", text).split()))


def _outward(marked: str) -> list[str]:
    before, mention, after = marked.partition(_MENTION)
    asks = pattern(r"\b{asks}\b")
    if not mention:
        return _content(marked)
    if asks.search(after) and not asks.search(before):
        # in "the films written by X were in which languages", the kind of answer comes last
        return _content(before)[::-1] + _content(after)
    return _content(after) + _content(before)[::-1]


def _content(text: str) -> list[str]:
    words = re.findall(r"[^\W\d_]{2,}|\d{2,}", text.lower())
    return [word for word in words if word not in STOPWORDS and word not in word_list("empty")]


def _announced(marked: str) -> int:
    body = pattern("{opening}").sub(" ", marked, count=1)
    one_relation = pattern(r"\b{one_relation}\s+of\b").sub(" ", body)
    links = len(pattern("{possessive}").findall(marked)) + len(pattern(r"\bof\b").findall(one_relation))
    # in "what gender is X's father", the noun directly after the question word is also a hop
    links += bool(links and pattern("{asked_noun}").search(marked))
    shared = bool(pattern("{shared}").search(body))
    if marked.count(_MENTION) > 1:  # a clause connects the answer with a second topic
        return max(1, links) + shared
    clauses = len(pattern("{relative_clause}").findall(body))
    # one of the pronouns asks the question, as in "X directed which films"
    clauses -= not pattern(r"{opening}|\W*(?:please\s+)?{commands}\b").match(marked)
    clauses -= bool(pattern("{definition}").match(marked))
    reduced = list(pattern("{reduced_clause}").finditer(marked))
    by_clauses = links + len(reduced) + _says_more(marked, reduced[0]) if reduced else 0
    return max(max(1, links) + max(0, clauses), by_clauses) + shared


def _says_more(marked: str, clause: re.Match[str]) -> bool:
    """Return whether the words around a clause suggest one more hop.

    "who directed the movies written by X" suggests one more hop; "what is a film written by X" does not.
    """
    before = marked[: clause.start()]
    if pattern(r"\bof(?:\s+(?:the|all|some))*\s*$").search(before):
        return False
    end = marked.rfind(_MENTION)
    after = marked[end + 1 :] if end > clause.end() else ""
    words = _content(pattern("{opening}").sub(" ", before, count=1)) + _content(after)
    return bool(words) or pattern(r"\b{asks}\b").search(after) is not None


def _asked_for(marked: str) -> str:
    """Return the noun after "what" or "which"; for other question words and some phrases, the kind of answer."""
    for phrase in word_table("phrases", "en"):
        if pattern(phrase["words"]).search(marked):
            return str(phrase["kind"])
    words = re.findall(r"[^\W\d_]+|\0", pattern("{possessive}").sub("", marked.lower()))
    asking = next((index for index, word in enumerate(words) if word in word_list("asks")), len(words))
    word, after = "".join(words[asking : asking + 1]), words[asking + 1 :]
    if word not in ("what", "which"):
        return str(word_table("stands_for", "en").get(word, ""))
    if not after or after[0] in word_list("auxiliaries"):
        return ""  # there is no noun, as in "what did she do"
    start = len(list(takewhile(word_list("before_noun").__contains__, after[:5])))
    nouns = after[start : start + (1 if after[0] in word_list("copulas") else 2)]
    return " ".join(takewhile(lambda noun: noun not in STOPWORDS and noun != _MENTION, nouns))


def _value(marked: str, asked_for: str) -> str:
    """Return whether the first question word asks for a date, a number or a thing; "" if it does not show it."""
    if not set(stem_list("date_nouns")).isdisjoint(stems(asked_for)) and asked_for != "date time":
        return "year"
    found = pattern(r"\b({asks}|{asks_number})\b").search(marked)
    word = folded(found[0]) if found else ""
    return "number" if word.startswith("how") else str(word_table("asks_for", "en").get(word, ""))
