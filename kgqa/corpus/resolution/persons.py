"""Variants of the names of persons: initials, middle names that are left out, titles, and surnames alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from kgqa.corpus.resolution.evidence import Evidence, Proposal
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import is_roman
from kgqa.corpus.resolution.types import types_agree
from kgqa.corpus.resolution.word_lists import word_list

_TITLES = word_list("titles")
_TITLE_PAIRS = ("prime minister", "vice president", "lieutenant colonel", "major general", "first lady")
_SUFFIXES = word_list("suffixes")
_PARTICLES = word_list("particles")
_NOT_NAMES = word_list("not_personal")


def initials(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "J. F. Smith" for "John Francis Smith".

    Both are in one document, or two initials agree and no other name in the corpus fits them.
    """
    for people in _by_surname(evidence).values():
        for one in people:
            fitting = [other for other in people if _expands(_given(one), _given(other))]
            if not fitting or not evidence.is_new(one, *fitting) or not _are_compatible(fitting):
                continue
            several = sum(len(word) == 1 for word in _given(one)) > 1
            for other in fitting:
                if (several or one.documents & other.documents) and _are_one(evidence, one, other):
                    yield Proposal(one, other, "initials of the same person's name", 0.97)


def middle_names(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "John Smith" for "John Francis Smith" of the same document.

    No sentence names both, no fact connects them, and no other middle name occurs in the corpus.
    """
    for people in _by_surname(evidence).values():
        for one in people:
            given = _given(one)
            if len(given[0]) == 1 or given[0] in _TITLES:
                continue
            longer = [each for each in people if _leaves_out(given, _given(each))]
            middles = {_given(each) for each in longer}
            for other in longer if len(middles) == 1 and evidence.is_new(one, *longer) else ():
                if one.documents & other.documents and _are_one(evidence, one, other):
                    yield Proposal(one, other, "the same person's name with a middle name", 0.95)


def titles(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "Dr. John Smith" for "John Smith"."""
    people = [name for name in evidence.names if len(name.words) > 1 and _is_capitalised(name.text)]
    for block in evidence.blocks(lambda name: " ".join(without_title(name.words)), people):
        bare = [name for name in block if without_title(name.words) == name.words]
        for one in block:
            for other in bare:
                if one.wording != other.wording and evidence.types_allow(one, other):
                    yield Proposal(one, other, "the same person's name with a title", 0.97)


def surnames(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "Smith" for "John Smith", both persons by type, if each document of "Smith" contains "John Smith".

    No other person with this surname occurs in the corpus.
    """
    people = _by_surname(evidence)
    for name in evidence.names:
        if len(name.words) != 1 or not types_agree(name.type, "person") or not name.is_proper:
            continue
        full = [each for each in people.get(name.words[0], ()) if types_agree(each.type, "person")]
        if len(full) != 1 or not name.documents <= full[0].documents or not name.documents:
            continue
        if evidence.is_new(name, *full) and _are_one(evidence, name, full[0]):
            yield Proposal(name, full[0], "surname of the only person of that name", 0.9)


def without_title(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name without titles before it; at least two words that may be a person's name are left."""
    rest = words
    while len(rest) > 2:
        if " ".join(rest[:2]) in _TITLE_PAIRS and len(rest) > 3:
            rest = rest[2:]
        elif rest[0] in _TITLES:
            rest = rest[1:]
        else:
            break
    named = rest[:-1] if is_roman(rest[-1]) else rest
    return rest if _is_personal(named) else words


def _by_surname(evidence: Evidence) -> dict[str, list[Name]]:
    """Return the names of two to five words that may be those of persons, by their last word."""
    found: dict[str, list[Name]] = defaultdict(list)
    for name in evidence.names:
        if not 2 <= len(name.words) <= 5 or (name.type and not types_agree(name.type, "person")):
            continue
        if _is_personal(name.words) and _is_capitalised(name.text):
            found[name.words[-1]].append(name)
    return found


def _is_personal(words: Sequence[str]) -> bool:
    return (
        not _NOT_NAMES.intersection(words)
        and not any(char.isdigit() for word in words for char in word)
        and words[-1] not in _SUFFIXES
        and len(words[-1]) > 1
        and not any(is_roman(word) and len(word) > 1 for word in words)
    )


def _are_one(evidence: Evidence, one: Name, other: Name) -> bool:
    """Return whether the types of two names agree, and neither a fact nor a sentence contains both."""
    return (
        evidence.types_allow(one, other)
        and not evidence.are_related(one, other)
        and not evidence.share_sentence(one, other)
    )


def _is_capitalised(text: str) -> bool:
    return all(
        word[0].isupper() or word.lower() in _PARTICLES for word in text.replace("-", " ").split() if word[0].isalpha()
    )


def _given(name: Name) -> tuple[str, ...]:
    """Return the given names; initials written together, such as `jrr`, are taken apart."""
    given: list[str] = []
    dotted = {part.replace(".", "").lower() for part in name.text.split() if part.count(".") > 1}
    pieces = name.text.replace(".", ". ").split()
    single = sum(len(piece.strip(".")) == 1 for piece in pieces)
    for word in name.words[:-1]:
        given += list(word) if word in dotted or (len(word) > 1 and len(word) == single) else [word]
    return tuple(given)


def _leaves_out(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
    """Return whether given names are others without some of those after the first one."""
    rest = iter(full)
    return short[0] == full[0] and len(short) < len(full) and all(word in rest for word in short)


def _are_compatible(people: Sequence[Name]) -> bool:
    """Return whether all given names may be those of one person."""
    given = sorted({_given(name) for name in people})
    return all(_expands(one, other) or _expands(other, one) for one, other in combinations(given, 2))


def _expands(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
    """Return whether given names are initials of others, at least one of them."""
    if len(short) != len(full) or short == full:
        return False
    return all(a == b or (len(a) == 1 and b.startswith(a)) for a, b in zip(short, full))
