"""What a question asks to compute: a count, an extreme, a comparison, yes or no, a sum, an average or a difference.

A request is read from cue words ("how many", "the second largest"). The rest of the question describes the path whose
ends are computed with; it is the text that paths are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from kgqa.rank.lexical import STOPWORDS
from kgqa.search.words import folded, meaning, pattern, stems, word_table

RequestKind = Literal["count", "exists", "extreme", "most of", "compare", "sum", "average", "difference"]
MAX_NOUN = 3

# a capitalised title within a sentence, such as The Last Samurai
_TITLE = re.compile(r"(?<=\s)(?:The|A|An)(?:\s+(?:[A-Z]\w*|of|the|and))*\s+[A-Z]\w*")


@dataclass(frozen=True, slots=True)
class Measure:
    """A value that a question compares.

    Attributes:
        words: Words of relations that lead to the value, the most likely first.
        scale: Whether the values are numbers or dates.
        most: Whether the largest value, or the latest date, is asked for.
        events: Whether the value is the time of an event, and not the age of a person or thing.
        phrase: The question's own words for the value; "" if the question only has an adjective.
        counted: Whether the words name things that may have to be counted.
    """

    words: tuple[str, ...]
    scale: Literal["number", "day"] = "number"
    most: bool = True
    events: bool = False
    phrase: str = ""
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What a question asks to compute.

    Attributes:
        kind: What is computed. `extreme` asks for the ends with the largest or smallest value; `most of` for the ends
            with the most or fewest others, as in "the most films"; `compare` for one of two topics.
        text: The question without the cue words.
        cue: The cue words.
        noun: The noun whose instances are the ends, such as "films"; "" if the wording does not name it.
        measure: The compared or added value.
        counted: The noun whose instances are counted (`most of`, `compare`).
        owned: Whether the ends have what is counted ("has the most films"), so that the text has no words for it.
        rank: 2 for "the second largest".
    """

    kind: RequestKind
    text: str
    cue: str
    noun: str = ""
    measure: Measure = Measure(())
    counted: str = ""
    owned: bool = False
    rank: int = 1


def unsupported_kind(question: str) -> str | None:
    """Return the kind of question, in words, if relation paths alone cannot answer it; else None.

    "How much" is a count, although it often asks for a stored value. "Who was the first ..." is a superlative, because
    the answer depends on an order in time. Remove names of entities before the call.
    """
    text = (question if question.isupper() else _TITLE.sub(" ", question)).strip()
    found = ((each["kind"], pattern(each["words"]).search(text)) for each in word_table("unsupported", "en"))
    return next((kind.format(match[0].strip().lower()) for kind, match in found if match), None)


def read_request(text: str, names: Sequence[str] = ()) -> Request | None:
    """Return what a question asks to compute; None if no wording is known for it, or it asks for two computations.

    Args:
        text: The question.
        names: Names of entities in the question; words in them are no cues.
    """
    # two topics may be compared in "which is larger, A or B", but not in "no later than 1862" or "more than 30"
    has_two = pattern("{alternatives}").search(pattern("{amount}|{before_year}").sub(" ", text))
    for cue, read in _READERS.items():
        found = pattern(f"{{{cue}}}").search(text)
        request = read(text, found) if found else None
        if request is None or (request.kind == "compare" and not has_two):
            continue
        if not any(_name(request.cue).search(name) for name in names):
            return None if _asks_for_more(request, names) else request
    return None


def _asks_for_more(request: Request, names: Sequence[str]) -> bool:
    """Return whether the rest of a question has a second superlative, comparison or count, which would be ignored."""
    rest = request.text
    between_topics = request.kind in ("compare", "difference")
    if between_topics:
        rest = pattern(r"\bthan\b").sub(",", rest.replace(request.cue, " "))
    for name in sorted(filter(str.strip, names), key=len, reverse=True):
        rest = _name(name).sub("X", rest)
    rest = pattern("{before_year}|{amount}").sub(" ", rest)
    kind = unsupported_kind(rest)
    expected = kind == "a yes/no question" and (between_topics or request.kind == "exists")
    return bool(kind and not expected) or bool(pattern("{restricting}").search(rest))


def _name(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def measure_of(adjective: str, *, less: bool = False) -> Measure:
    """Return the measure by which an adjective compares."""
    lists = ("superlatives", "first_and_last", "comparatives", "adjectives")
    if not any(folded(adjective) in word_table(each, "en") for each in lists):
        return Measure((folded(adjective),), most=not less)  # "the most downloaded"
    (name,) = (meaning(each, adjective) for each in lists if folded(adjective) in word_table(each, "en"))
    least, name = name.startswith("-"), name.removeprefix("-")
    scale: Literal["day", "number"] = "day" if name in ("age", "event") else "number"
    return Measure(tuple(meaning("measures", name).split()), scale, most=least == less, events=name == "event")


def _named_measure(phrase: str, *, most: bool = True) -> Measure:
    """Return the measure that a question names, as in "the average elevation" or "the most official languages"."""
    return Measure(tuple(phrase.lower().split()[-1:]), most=most, phrase=phrase.lower(), counted=True)


def _happening(verb: str) -> tuple[str, ...]:
    """Return words of the relations to the date of an event; none for "first"."""
    return tuple(meaning("events", verb).split())


def _rank(found: re.Match[str]) -> int:
    return int(meaning("ordinals", found["rank"])) if found["rank"] else 1


def _difference(text: str, found: re.Match[str]) -> Request | None:
    measure = _named_measure(found["named"]) if found["named"] else measure_of(found["word"])
    return Request("difference", text, found[0], measure=measure)


def _compared(text: str, found: re.Match[str]) -> Request | None:
    less = (found["how"] or found["much"] or "").lower() == "less"
    measure = measure_of(found["short"] or found["long"] or found["verb"], less=less)
    if happened := pattern("{happened_first}").search(text):
        measure = replace(measure, words=_happening(happened["verb"]) or measure.words, events=False)
    return Request("compare", text, found[0], measure=measure)


def _more_of(text: str, found: re.Match[str]) -> Request | None:
    measure = _named_measure(found["noun"], most=found["how"].lower() == "more")
    return Request("compare", text, found[0], measure=measure, counted=found["noun"])


def _happened_first(text: str, found: re.Match[str]) -> Request | None:
    most = found["word"].lower() in ("later", "last", "after")
    measure = Measure(_happening(found["verb"]) or measure_of("first").words, "day", most)
    return Request("compare", text, found[0], measure=measure) if pattern(r"\bor\b").search(text) else None


def _total(text: str, found: re.Match[str]) -> Request | None:
    kind: RequestKind = "average" if found["how"].lower() in ("average", "mean") else "sum"
    words = " ".join(word for word in found["noun"].lower().split() if word not in STOPWORDS)
    before, rest = text[: found.start()], text[found.end() :]
    return Request(kind, f"{before} {rest}".strip(), found[0].strip(), _noun(rest), _named_measure(words))


def _count(text: str, found: re.Match[str]) -> Request | None:
    before, rest = text[: found.start()].strip(), text[found.end() :]
    asked = "" if pattern(r"\b{asks}\b").search(before) else "which "
    return Request("count", f"{before} {asked}{rest}".strip(), found[0].strip(), _noun(rest))


def _most_of(text: str, found: re.Match[str]) -> Request | None:
    counted = _noun(found["noun"], verbs=False)
    is_superlative = pattern("{superlative_adjective}").search(found[0])
    if is_superlative or not pattern(r"\b{asks}\b").search(text) or not pattern("{plural}").search(counted):
        return None  # "the most common language" is no count
    before, rest = text[: found.start()], text[found.start("noun") + len(counted) :]
    return Request(
        "most of",
        " ".join(f"{before}{'' if found['has'] else counted}{rest}".split()),
        f"the {found['how']} {counted}",
        _noun_asked(text),
        _named_measure(counted, most=found["how"].lower() == "most"),
        counted,
        bool(found["has"]),
        _rank(found),
    )


def _superlative(text: str, found: re.Match[str]) -> Request | None:
    less = folded(found["how"] or found["much"] or "") == "least"
    measure = measure_of(found["short"] or found["long"] or found["verb"], less=less)
    before, after = text[: found.start()], text[found.end() :]
    happened = pattern(r"\b(?:is|was|were|are)?\s*({events})\s*$").search(before)
    if measure.events and happened:
        measure = replace(measure, words=_happening(happened[1]), events=False)
        before = before[: happened.start()]
    noun, asked = _noun(after) or _noun_asked(text), _noun_asked(before)
    # "which country has the largest area", not "in which country is the largest harbour"
    is_property = pattern(r"\b(?:has|have|had)\s*(?:the\s*)?$").search(before)
    if is_property and asked not in ("", "person") and noun and stems(asked) != stems(noun):
        measure = replace(measure, words=(*noun.lower().split(), *measure.words), phrase=noun.lower())
        noun, after = asked, after.replace(noun, " ", 1)
    if by := pattern(r"\bby\s+([^\W\d_]+)\s*\??\s*$").search(after):  # "by area" names the value
        measure = replace(measure, words=(by[1].lower(),))
        after = after[: by.start()]
    return Request("extreme", " ".join(f"{before} {after}".split()), found[0], noun, measure, rank=_rank(found))


def _yes_no(text: str, found: re.Match[str]) -> Request | None:
    if pattern(r"\b(?:not|or)\b").search(text):
        return None  # "isn't" expects yes, "is it not" no
    return Request("exists", text[found.end() :], found[0].strip())


def _noun(text: str, *, verbs: bool = True) -> str:
    """Return the noun at the beginning of a text: "official languages" of "official languages in Africa".

    `verbs` says that a verb ends it, too.
    """
    words = re.findall(r"[^\W\d_]+(?:['’]s)?", text)[:MAX_NOUN]
    is_verb = pattern(r"^(?:{noun_ends}|\w+(?:ed|ing))$").match
    return " ".join(takewhile(lambda word: word.lower() not in STOPWORDS and not (verbs and is_verb(word)), words))


def _noun_asked(text: str) -> str:
    if found := pattern(r"\b(?:what|which)\s+(.*)").search(text):
        return _noun(found[1])
    return "person" if pattern(r"\b(?:who|whom)\b").search(text) else ""


_READERS = {
    "difference": _difference,
    "compared": _compared,
    "more_of": _more_of,
    "happened_first": _happened_first,
    "total": _total,
    "count": _count,
    "most_of": _most_of,
    "superlative_adjective": _superlative,
    "yes_no": _yes_no,
}
"""The functions that read a request, by the pattern of its cue; the first that reads one decides."""
