"""What a question asks to compute: a count, an extreme, a comparison, yes or no, a sum, an average or a difference.

A request is read from cue words ("how many", "the second largest"). The rest of the question describes the path whose
ends are computed with; it is the text that paths are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kgqa.rank.lexical import STOPWORDS
from kgqa.search.conditions.measures import (
    COMPARATIVES,
    LONG_ADJECTIVES,
    ORDINALS,
    SUPERLATIVES,
    Measure,
    named_measure,
)
from kgqa.search.question_kind import unsupported_kind

RequestKind = Literal["count", "exists", "extreme", "most of", "compare", "sum", "average", "difference"]
MAX_NOUN = 3
_ASKS = re.compile(r"\b(?:what|which|who|whom|whose|where|when)\b", re.IGNORECASE)
_COUNT = re.compile(
    r"\b(?:what\s+is\s+|give\s+(?:me\s+)?)?(?:the\s+)?(?:total\s+)?(?:how\s+many|number\s+of|count(?:\s+of)?)"
    r"(?:\s+(?:different|distinct|of\s+the|the))?\s+",
    re.IGNORECASE,
)
_VERB_FIRST = re.compile(
    r"^\s*(?:is|are|was|were|am|does|do|did|has|have|had|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|hasn't)\s+",
    re.IGNORECASE,
)
_NEGATED_VERB = re.compile(r"^\s*\w+(?:n't|n’t)\b|\bnot\b", re.IGNORECASE)
_RANK = rf"(?:(?P<rank>{'|'.join(ORDINALS)})[\s-]+)?"
_SHORT = re.compile(rf"\b{_RANK}(?P<word>{'|'.join(SUPERLATIVES)})\b", re.IGNORECASE)
_LONG = re.compile(rf"\b{_RANK}(?P<how>most|least)\s+(?P<word>{'|'.join(LONG_ADJECTIVES)})\b", re.IGNORECASE)
_MOST_OF = re.compile(
    rf"\b(?P<has>(?:has|have|had|with)\s+)?the\s+{_RANK}(?P<how>most|fewest|least)\s+(?P<noun>(?:[^\W\d_]+[\s?]*){{1,3}})",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    rf"\b(?:(?P<short>{'|'.join(COMPARATIVES)})|(?P<how>more|less)\s+(?P<long>{'|'.join(LONG_ADJECTIVES)}))\b",
    re.IGNORECASE,
)
_BORN_FIRST = re.compile(
    r"\b(?P<verb>born|died|die|founded|released|published|come\s+out|came\s+out|open(?:ed)?|first|begin|began)\b"
    r".*?\b(?P<word>first|earlier|later|last|before|after)\b",
    re.IGNORECASE,
)
_MORE_OF = re.compile(r"\b(?P<how>more|fewer|less)\s+(?P<noun>[^\W\d_]+(?:\s+[^\W\d_]+)?)\b", re.IGNORECASE)
_DIFFERENCE = re.compile(
    rf"\bhow\s+(?:much|many\s+[^\W\d_]+)\s+(?:(?P<short>{'|'.join(COMPARATIVES)})|more\s+(?P<long>{'|'.join(LONG_ADJECTIVES)}))\b"
    r"|\b(?:difference|gap)\s+(?:in|of)\s+(?P<named>[^\W\d_]+)",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:what\s+(?:is|are)\s+)?(?:the\s+)?(?P<how>average|mean|total|combined|sum)\s+(?:of\s+)?(?:the\s+)?"
    r"(?P<noun>[^\W\d_]+(?:\s+(?!of\b|for\b|in\b)[^\W\d_]+){0,2})\s+(?:of|for|in|across)\s+(?:(?:all|every|the)\s+)*",
    re.IGNORECASE,
)
# restrictions of the ends that `unsupported_kind` leaves to paths: "higher than 2000 m", "over 8000 m", "older sons"
_RESTRICTING = re.compile(
    rf"\b(?:{'|'.join(COMPARATIVES)}|more|less|fewer)(?:\s+\w+){{0,2}}?\s+than\b"
    r"|\b(?:over|above|under|below|at\s+least|at\s+most|up\s+to)\s+\d"
    r"|\b(?:older|elder|younger|average|median|combined)\s+\w",
    re.IGNORECASE,
)
_BEFORE_YEAR = re.compile(r"\b(?:later|earlier)\s+than(?=\s+(?:the\s+year\s+)?[12][0-9]{3}\b)", re.IGNORECASE)
_UP_TO_YEAR = re.compile(r"\bup\s+to(?=\s+(?:the\s+year\s+)?(?:1[0-9]|20)[0-9]{2}\s*(?:\?|$))", re.IGNORECASE)
_PLURAL = re.compile(r"(?:s|people|children|men|women|media)$", re.IGNORECASE)
_VERB_MEASURES = {
    "born": ("birth", "born"), "died": ("death", "died"), "die": ("death", "died"), "founded": ("founded", "inception"),
    "released": ("release", "publication"), "published": ("publication", "published"), "open": ("opened", "opening"),
    "opened": ("opened", "opening"), "begin": ("start", "from"), "began": ("start", "from"),
}  # fmt: skip


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
    measure: Measure | None = None
    counted: str = ""
    owned: bool = False
    rank: int = 1


def read_request(text: str, names: Sequence[str] = ()) -> Request | None:
    """Return what a question asks to compute; None if no wording is known for it, or it asks for two computations.

    Args:
        text: The question.
        names: Names of entities in the question; words in them are no cues.
    """
    for read in (_difference, _comparison, _total, _count, _most_of, _superlative, _yes_no):
        found = read(text)
        if found is not None and not _is_named(found.cue, names):
            return None if _asks_for_more(found, names) else found
    return None


def _asks_for_more(request: Request, names: Sequence[str]) -> bool:
    """Return whether the rest of a question has a second superlative, comparison or count, which would be ignored."""
    rest = request.text
    if between_topics := request.kind in ("compare", "difference"):
        rest = re.sub(r"\bthan\b", ",", rest.replace(request.cue, " "))
    for name in sorted(filter(str.strip, names), key=len, reverse=True):
        rest = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "X", rest, flags=re.IGNORECASE)
    rest = _UP_TO_YEAR.sub(" ", _BEFORE_YEAR.sub(" ", rest))
    kind = unsupported_kind(rest)
    if kind == "a yes/no question" and (between_topics or request.kind == "exists"):
        kind = None
    return kind is not None or bool(_RESTRICTING.search(rest))


def _is_named(cue: str, names: Sequence[str]) -> bool:
    pattern = rf"(?<!\w){re.escape(cue)}(?!\w)"
    return any(re.search(pattern, name, re.IGNORECASE) for name in names)


def _count(text: str) -> Request | None:
    found = _COUNT.search(text)
    if not found:
        return None
    rest = text[found.end() :]
    if re.match(r"times\b", rest, re.IGNORECASE):
        return None  # the graph has facts, not occasions
    before = text[: found.start()].strip()
    asked = "which " if not _ASKS.search(before) else ""
    return Request("count", f"{before} {asked}{rest}".strip(), found[0].strip(), _noun(rest))


def _most_of(text: str) -> Request | None:
    found = _MOST_OF.search(text)
    if not found or _LONG.search(found[0]) or _SHORT.search(found["noun"]):
        return None
    before, after = text[: found.start()], text[found.end() :]
    counted = _first_words(found["noun"])
    if not counted or not _ASKS.search(text) or not _PLURAL.search(counted):
        return None  # "the most common language" is no count
    rest = found["noun"][len(counted) :] + after if found["noun"].startswith(counted) else after
    owned = bool(found["has"])
    kept = f"{before}{rest}" if owned else f"{before}{counted}{rest}"
    return Request(
        "most of",
        " ".join(kept.split()),
        f"the {found['how']} {counted}",
        _noun_asked(text),
        named_measure(counted, most=found["how"].lower() == "most"),
        counted,
        owned,
        _rank(found),
    )


def _superlative(text: str) -> Request | None:
    found = _LONG.search(text) or _SHORT.search(text)
    if not found:
        return None
    word = found["word"].lower()
    measure = LONG_ADJECTIVES.get(word) or SUPERLATIVES[word]
    if "how" in found.groupdict() and found["how"].lower() == "least":
        measure = replace(measure, most=not measure.most)
    before, after = text[: found.start()], text[found.end() :]
    born = re.search(
        r"\b(?:is|was|were|are)?\s*(born|died|founded|released|published|opened)\s*$", before, re.IGNORECASE
    )
    if measure.events and born:
        measure = replace(measure, words=_VERB_MEASURES[born[1].lower()], events=False)
        before = before[: born.start()]
    noun = _noun(after) or _noun_asked(text)
    # "by area" names the value
    by = re.search(r"\bby\s+([^\W\d_]+)\s*\??\s*$", after, re.IGNORECASE)
    if by:
        measure = replace(measure, words=(by[1].lower(),))
        after = after[: by.start()]
    return Request("extreme", _joined(before, after), found[0], noun, measure, rank=_rank(found))


def _comparison(text: str) -> Request | None:
    """Read a comparison of two topics: "which is larger, A or B", "is A older than B"."""
    if _BEFORE_YEAR.search(text):
        return None  # a time, as in "no later than 1862"
    if not re.search(r"\bor\b|\bthan\b|\b(?:of|between)\b.*\band\b", text, re.IGNORECASE):
        return None
    if found := _COMPARED.search(text):
        word = (found["short"] or found["long"]).lower()
        measure = COMPARATIVES.get(word) or LONG_ADJECTIVES[word]
        if found["how"] and found["how"].lower() == "less":
            measure = replace(measure, most=not measure.most)
        if verb := _BORN_FIRST.search(text):
            measure = replace(measure, words=_VERB_MEASURES.get(verb["verb"].lower(), measure.words), events=False)
        return Request("compare", text, found[0], measure=measure)
    if found := _MORE_OF.search(text):
        counted = found["noun"].removesuffix(" than").removesuffix(" does")
        measure = named_measure(counted, most=found["how"].lower() == "more")
        return Request("compare", text, found[0], measure=measure, counted=counted)
    if (found := _BORN_FIRST.search(text)) and re.search(r"\bor\b", text, re.IGNORECASE):
        most = found["word"].lower() in ("later", "last", "after")
        words = _VERB_MEASURES.get(found["verb"].lower(), SUPERLATIVES["first"].words)
        return Request("compare", text, found[0], measure=Measure(words, "day", most))
    return None


def _difference(text: str) -> Request | None:
    found = _DIFFERENCE.search(text)
    if not found:
        return None
    if found["named"]:
        return Request("difference", text, found[0], measure=named_measure(found["named"]))
    word = (found["short"] or found["long"]).lower()
    return Request("difference", text, found[0], measure=COMPARATIVES.get(word) or LONG_ADJECTIVES[word])


def _total(text: str) -> Request | None:
    found = _TOTAL.search(text)
    if not found or found["noun"].lower().startswith("number"):
        return None
    rest = text[found.end() :]
    kind: RequestKind = "average" if found["how"].lower() in ("average", "mean") else "sum"
    words = " ".join(word for word in found["noun"].lower().split() if word not in STOPWORDS)
    return Request(kind, _joined(text[: found.start()], rest), found[0].strip(), _noun(rest), named_measure(words))


def _yes_no(text: str) -> Request | None:
    found = _VERB_FIRST.match(text)
    if not found or _NEGATED_VERB.search(text) or re.search(r"\bor\b", text, re.IGNORECASE):
        return None  # "isn't" expects yes, "is it not" no
    return Request("exists", text[found.end() :], found[0].strip())


def _rank(found: re.Match[str]) -> int:
    return ORDINALS.get((found["rank"] or "").lower(), 1)


def _joined(before: str, after: str) -> str:
    return " ".join(f"{before} {after}".split())


def _first_words(text: str) -> str:
    """Return the content words at the beginning of a text: "official languages" of "official languages in Africa"."""
    kept: list[str] = []
    for word in re.findall(r"[^\W\d_]+", text):
        if word.lower() in STOPWORDS or len(kept) == MAX_NOUN:
            break
        kept.append(word)
    return " ".join(kept)


_VERBS = re.compile(
    r"^(?:is|are|was|were|did|does|do|has|have|had|can|\w+(?:ed|ing)|live|lived|speak|spoke|won|win|wrote|made|born|"
    r"border|borders|flow|flows|starred|act|acted|play|plays|played|exist|there|by|in|of)$",
    re.IGNORECASE,
)


def _noun(text: str) -> str:
    """Return the noun at the beginning of a text."""
    kept: list[str] = []
    for word in re.findall(r"[^\W\d_]+(?:['’]s)?", text)[: MAX_NOUN + 1]:
        if word.lower() in STOPWORDS or _VERBS.match(word) or len(kept) == MAX_NOUN:
            break
        kept.append(word)
    return " ".join(kept)


def _noun_asked(text: str) -> str:
    if found := re.search(r"\b(?:what|which)\s+(.*)", text, re.IGNORECASE):
        return _noun(found[1])
    return "person" if re.search(r"\b(?:who|whom)\b", text, re.IGNORECASE) else ""
