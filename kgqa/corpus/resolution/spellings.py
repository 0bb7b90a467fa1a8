"""Names that differ in spelling only: the article, number, plural and order of words, or the place that is added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from kgqa.corpus.resolution.evidence import Evidence, Proposal
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import comparison_form
from kgqa.corpus.resolution.types import types_agree
from kgqa.corpus.resolution.word_lists import word_list

_SHORT = 3
_UNCOUNTED = re.compile(r"(?:ss|us|is|ics|ness|news|series|species|means|goods|arms|customs|savings)\Z")
_NO_PLACES = word_list("no_places")
_LEGAL_FORMS = re.compile(r",? (?:Inc|Ltd|LLC|Corp|Corporation|Co\.|[Pp][Ll][Cc]|GmbH|AG|Limited|Incorporated)\.?\Z")
_LINKS = frozenset(("of", "in"))
_NO_ROTATION = word_list("fixed_order")
_PLURAL_NAMES = word_list("plural_names")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_POSSESSIVE = re.compile(r"['’]s\Z")


def same_form(evidence: Evidence) -> Iterator[Proposal]:
    """Propose names with the same comparison form, if all their types agree; else those of equal types only.

    A short word in capitals, such as US, differs from the same word in small letters.
    """
    for block in evidence.blocks(_cased_form):
        yield from _stars(evidence, block, "same spelling but for case, accents and punctuation", 1.0)


def same_wording(evidence: Evidence) -> Iterator[Proposal]:
    """Propose names that differ in articles, in numbers as words or digits, or in U.S. against United States."""
    for block in evidence.blocks(lambda name: name.wording if len(name.words) > 1 else ""):
        yield from _stars(evidence, block, "same words but for articles and numbers written out", 0.99)


def with_article(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "the X" for "X" of one word, if types are known and equal or the texts that contain "X" write "the X"."""
    for block in evidence.blocks(lambda name: name.form.removeprefix("the ")):
        for one, other in combinations(block, 2):
            if one.form == other.form or len(one.words) > 1 or not evidence.types_allow(one, other):
                continue
            bare = other if one.form.startswith("the ") else one
            if (one.type and one.type == other.type) or (bare.is_proper and evidence.has_article(bare)):
                yield Proposal(one, other, "same word with an article", 0.97)


def plurals(evidence: Evidence) -> Iterator[Proposal]:
    """Propose singular and plural of terms of several words in small letters, and "Award" and "Awards" in names."""
    terms = [name for name in evidence.names if len(name.words) > 1 and not any(map(str.isdigit, name.form))]
    for block in evidence.blocks(lambda name: singular(name.wording), terms):
        if not any(name.is_proper for name in block) or block[0].words[-1] in _PLURAL_NAMES:
            yield from _stars(evidence, block, "singular and plural", 0.98)


def word_order(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "X of Y" for "Y X", and names whose year stands at the other end."""
    for block in evidence.blocks(_sorted_words):
        for one, other in combinations(block, 2):
            if one.wording != other.wording and evidence.types_allow(one, other) and _is_reordered(one, other):
                yield Proposal(one, other, "same words in another order", 0.97)


def with_place(evidence: Evidence) -> Iterator[Proposal]:
    """Propose "X, Y" for "X", if Y is a name too and no other place is added to X anywhere.

    Each document that contains "X" alone contains it with the place too. A longer list of places needs no common
    document: "X, Y, Z" for "X, Y".
    """
    for block in evidence.blocks(lambda name: comparison_form(name.text.partition(",")[0])):
        parts = {name: places for name in block if (places := _places(name.text, evidence))}
        longest = max(parts.values(), key=len, default=())
        if not all(longest[: len(places)] == places for places in parts.values()):
            continue
        documents = frozenset().union(*(name.documents for name in parts))
        for one, other in combinations(block, 2):
            short, long = sorted((one, other), key=lambda name: (len(parts.get(name, ())), name.iri))
            if (
                long not in parts
                or len(parts.get(short, ())) == len(parts[long])
                or short.text.count(",") != len(parts.get(short, ()))
            ):
                continue
            shared = short in parts or (short.documents <= documents and not evidence.share_sentence(one, other))
            if shared and evidence.types_allow(one, other):
                yield Proposal(short, long, "same name with the place it is in", 0.97)


def with_ending(evidence: Evidence) -> Iterator[Proposal]:
    """Propose names that differ by a possessive ending or a legal form ("Inc.").

    If one of them is a single word ("McDonald", "McDonald's") or a legal form is left out, one document contains both.
    """
    for block in evidence.blocks(lambda name: comparison_form(_stem(name.text)) if name.is_proper else ""):
        for one, other in combinations(block, 2):
            is_sure = min(len(one.words), len(other.words)) > 1 and _possessive(one.text) == _possessive(other.text)
            if one.form == other.form or not (is_sure or one.documents & other.documents):
                continue
            if evidence.types_allow(one, other):
                yield Proposal(one, other, "same name with an ending", 0.95)


def singular(words: str) -> str:
    """Return words with the last one in singular, as far as this is sure; `words` are in small letters."""
    if len(words) < 5 or not words.endswith("s") or not words.isascii() or _UNCOUNTED.search(words):
        return words
    if words.endswith("ies") and len(words) > 6:
        return f"{words[:-3]}y"
    if words.endswith(("sses", "shes", "ches", "xes")):
        return words[:-2]
    return words[:-1]


def _stars(evidence: Evidence, block: Sequence[Name], reason: str, confidence: float) -> Iterator[Proposal]:
    """Propose the first name of a block with each other; if not all types agree, only among equal types."""
    types = sorted({name.type for name in block if name.type})
    agree = all(types_agree(one, other) for number, one in enumerate(types) for other in types[:number])
    for type_ in [None] if agree else ["", *types]:
        first, *others = [name for name in block if type_ is None or name.type == type_] or [block[0]]
        for other in others:
            yield Proposal(first, other, reason, confidence)


def _cased_form(name: Name) -> str:
    is_short = len(name.form) <= _SHORT and name.form.isalpha()
    return f"{name.form}^" if is_short and name.is_acronym else name.form


def _sorted_words(name: Name) -> str:
    words = [word for word in name.words if word not in _LINKS]
    return " ".join(sorted(words)) if len(words) > 1 and not _NO_ROTATION.intersection(words) else ""


def _is_reordered(one: Name, other: Name) -> bool:
    for long, short in ((one.words, other.words), (other.words, one.words)):
        plain = tuple(word for word in short if word not in _LINKS)
        for position, word in enumerate(long):
            head, tail = long[:position], long[position + 1 :]
            if word in _LINKS and head and tail and not _LINKS.intersection(short) and (*tail, *head) == short:
                return True
        if _YEAR.fullmatch(long[0]) and (*long[1:], long[0]) == plain:
            return True
    return False


def _places(text: str, evidence: Evidence) -> tuple[str, ...]:
    """Return the places that are added to a name, if all of them are names themselves."""
    name, *places = text.split(",")
    forms = tuple(comparison_form(part) for part in places if part.strip())
    if any(form.split()[-1] == comparison_form(name).split()[-1] for form in forms):
        return ()  # a list: "North Park, South Park"
    if not 1 <= len(forms) <= 2 or " and " in text or any(form in _NO_PLACES for form in forms):
        return ()
    return forms if all(form in evidence.by_form and not form[0].isdigit() for form in forms) else ()


def _stem(text: str) -> str:
    return _LEGAL_FORMS.sub("", _POSSESSIVE.sub("", text))


def _possessive(text: str) -> str:
    return comparison_form(_POSSESSIVE.sub("", text))
