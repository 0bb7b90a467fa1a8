"""Finds the words of a question that refer to what was said before: he, its, there, that city, the second one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["person", "thing", "several", "place", "noun", "any", "numbered"]
Gender = Literal["", "male", "female"]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("he", "she", "him", "his", "her", "himself", "herself"), "person"),
    **dict.fromkeys(("it", "its", "itself"), "thing"),
    **dict.fromkeys(("they", "them", "their", "themselves"), "several"),
    "there": "place",
}
_NUMBERS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "former": 0, "latter": -1}
_WORD = re.compile(
    rf"\b(?:(?P<numbered>the ({'|'.join(_NUMBERS)}) (?:one|of (?:them|these|those)))"
    rf"|(?P<noun>(?:that|this|these|those) (?!(?:{'|'.join(_KINDS)})\b)(?P<named>[a-z]+))"
    r"|(?P<any>(?:that|this|these|those)(?=\s*[?.!]*$))"
    rf"|(?P<word>{'|'.join(_KINDS)}))\b",
    re.IGNORECASE,
)
_GENDERS: dict[str, Gender] = {
    **dict.fromkeys(("he", "him", "his", "himself"), "male"),
    **dict.fromkeys(("she", "her", "herself"), "female"),
}
_POSSESSIVE = ("his", "its", "their")
_EXISTENTIAL = re.compile(
    r"\b(?:is|are|was|were|be|has|have)\s+there\b|\bthere\s+(?:is|are|was|were|be|been|exist|lives?)\b", re.IGNORECASE
)
_IMPERSONAL = re.compile(
    r"\btime is it\b|\b(?:is|was) it (?:true|possible|known|that|raining|snowing|cold|hot|warm|dark)\b|"
    r"\bit (?:is|was) (?:true|possible|known|said|that)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:when|(?:what|which) (?:year|month|day|date|time)) (?:is|was) (?=that\s*[?.!]*$)", re.IGNORECASE
)
"""Before `that`, which then means what happened: what year was that?"""
_AFTER_OBJECT = frozenset(
    [
        "a",
        "an",
        "and",
        "as",
        "at",
        "be",
        "before",
        "after",
        "born",
        "by",
        "did",
        "do",
        "does",
        "during",
        "for",
        "from",
        "how",
        "if",
        "in",
        "into",
        "is",
        "of",
        "on",
        "or",
        "than",
        "that",
        "the",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "with",
        "without",
    ]
)
"""Words before which `her` is an object, not a possessive."""
_SINGULARS = {"were": "was", "are": "is", "do": "does", "have": "has"}
_VERB_BEFORE = re.compile(rf"\b({'|'.join(_SINGULARS)})(?=(?:n['’]t)?\s+\Z)", re.IGNORECASE)
_VERB_AFTER = re.compile(rf"(?<=\A )({'|'.join(_SINGULARS)})\b", re.IGNORECASE)
_PLACE_PREPOSITIONS = ("from", "in", "near", "to")


@dataclass(frozen=True, slots=True)
class Reference:
    """The characters of a question from `start` to before `end` that refer to something.

    Attributes:
        text: The words.
        kind: What they can mean.
        possessive: Whether what they mean owns what follows: his, its, their, her.
        noun: The noun after that, this, these or those; after a possessive, the next word.
        gender: The gender of the person that is meant, as far as the word tells.
        number: The place of the answer that is meant, for the kind `numbered`; -1: the last.
    """

    start: int
    end: int
    text: str
    kind: Kind
    possessive: bool = False
    noun: str = ""
    number: int = 0
    gender: Gender = ""

    @property
    def plural(self) -> bool:
        """Whether the words mean several."""
        return self.kind == "several" or self.text.lower().startswith(("these", "those"))

    def agreeing(self, before: str, after: str) -> tuple[str, str]:
        """Return what stands around the reference, with singular verbs if a plural subject is replaced by one name."""
        if not self.plural or self.possessive or self.text.lower() in ("them", "themselves"):
            return before, after
        return _VERB_BEFORE.sub(_singular_verb, before), _VERB_AFTER.sub(_singular_verb, after)

    def filled(self, question: str, name: str) -> str:
        """Return the text that stands in place of the reference, if it means what is called `name`."""
        if self.possessive:
            return f"{name}'" if name.endswith("s") else f"{name}'s"
        before = question[: self.start].split()[-1:]
        if self.kind == "place" and before and before[0].lower() not in _PLACE_PREPOSITIONS:
            return f"in {name}"
        return name


def _singular_verb(match: re.Match[str]) -> str:
    verb = _SINGULARS[match[0].lower()]
    return verb.capitalize() if match[0][0].isupper() else verb


def find_references(question: str) -> list[Reference]:
    """Return the references in a question, in their order."""
    found = []
    for match in _WORD.finditer(question):
        start, end, text = match.start(), match.end(), match[0]
        word = text.lower()
        if match["numbered"]:
            found.append(Reference(start, end, text, "numbered", number=_NUMBERS[word.split()[1]]))
        elif match["noun"]:
            found.append(Reference(start, end, text, "noun", noun=match["named"].lower()))
        elif match["any"]:
            if not any(each.end() == start for each in _TIME.finditer(question)):
                found.append(Reference(start, end, text, "any"))
        elif not _is_idiom(question, match.start(), word):
            following = _next_word(question[end:])
            possessive = word in _POSSESSIVE or (word == "her" and following not in ("", *_AFTER_OBJECT))
            owned = following if possessive else ""
            found.append(Reference(start, end, text, _KINDS[word], possessive, owned, gender=_GENDERS.get(word, "")))
    return found


def _is_idiom(question: str, start: int, word: str) -> bool:
    """Return whether `there` or `it` refers to nothing: how many are there, is it true that."""
    pattern = {"there": _EXISTENTIAL, "it": _IMPERSONAL}.get(word)
    return pattern is not None and any(each.start() <= start < each.end() for each in pattern.finditer(question))


def _next_word(rest: str) -> str:
    word = re.match(r"\s+([a-z]+)", rest, re.IGNORECASE)
    return word[1].lower() if word else ""
