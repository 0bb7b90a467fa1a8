"""Masking: removes the names of topics from text, so that a model cannot answer from memory (thesis, section 3.4).

For embeddings, the name is dropped, because relations are then ranked best. For language models, a placeholder such as
`[E1]` or the topic's id replaces the name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.word_matching import (
    ENDINGS,
    Word,
    initials_windows,
    is_derived,
    is_misspelling,
    same_word,
    shortened_windows,
    squeezed_windows,
    windows_of,
    word_keys,
    words_of,
)

# words for kinds of things: the word "college" in a question is not masked as a part of the name "Boston College"
GENERIC = frozenset(
    [
        "album",
        "award",
        "band",
        "book",
        "capital",
        "church",
        "city",
        "club",
        "college",
        "company",
        "country",
        "county",
        "film",
        "first",
        "game",
        "government",
        "group",
        "high",
        "house",
        "island",
        "islands",
        "king",
        "lake",
        "language",
        "last",
        "league",
        "list",
        "river",
        "mountain",
        "movie",
        "music",
        "name",
        "national",
        "new",
        "north",
        "number",
        "of",
        "old",
        "one",
        "party",
        "people",
        "person",
        "place",
        "president",
        "prince",
        "queen",
        "region",
        "religion",
        "school",
        "season",
        "series",
        "show",
        "song",
        "south",
        "state",
        "states",
        "station",
        "street",
        "team",
        "the",
        "time",
        "tour",
        "town",
        "two",
        "university",
        "war",
        "west",
        "world",
        "year",
    ]
)
ABBREVIATIONS = {"st": "saint", "mt": "mount", "ft": "fort", "dr": "doctor"}
_POSSESSIVE = re.compile(r"['’]s?(?!\w)|")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters of a question, from `start` to before `end`, that name a topic."""

    start: int
    end: int
    topic: Entity


def placeholders(topics: Iterable[Entity]) -> dict[Entity, str]:
    """Return a placeholder for each topic: `[E1]`, `[E2]`, ..."""
    return {topic: f"[E{number}]" for number, topic in enumerate(dict.fromkeys(topics), start=1)}


def replace_spans(question: str, spans: Sequence[Span], marks: Mapping[Entity, str]) -> str:
    """Replace each span of a question by the mark of its topic, such as a placeholder or an id, or by a space."""
    parts, at = [], 0
    for span in spans:
        parts += [question[at : span.start], marks.get(span.topic, " ")]
        at = span.end
    return "".join([*parts, question[at:]])


def drop_spans(question: str, spans: Sequence[Span]) -> str:
    """Return a question without the spans and their possessive endings; unchanged if no word or no span would be left.

    A question without spans keeps its spacing.
    """
    with_endings = [
        replace(span, end=span.end + len(_POSSESSIVE.match(question, span.end).group()))  # type: ignore[union-attr]
        for span in spans
    ]
    rest = replace_spans(question, with_endings, {})
    return " ".join(rest.split()) if spans and re.search(r"\w", rest) else question


def drop_mentions(question: str, names: Iterable[str]) -> str:
    """Return the question without the given names; see `topic_spans`."""
    topic = Entity("urn:kgqa:topic")
    spans = topic_spans(question, {topic: [name for name in names if name.strip()]})
    return " ".join(drop_spans(question, spans).split())


def leaks(texts: Sequence[str], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the strings that still contain a name, each with the first name found in it.

    This check is independent of `topic_spans`: only letters and digits are compared, without spaces and punctuation. A
    name must begin at the start of a word, and end at the end of a word or before a common ending. Names of up to three
    letters must occur exactly as written; names of only function words are ignored.
    """
    wanted = [(name, _letters(name)[0]) for name in dict.fromkeys(names) if not _is_functional(name)]
    found = []
    for text in texts:
        squeezed, positions = _letters(text)
        carried = (name for name, letters in wanted if letters and _carries(text, squeezed, positions, name, letters))
        found += [(text, name) for name in islice(carried, 1)]
    return found


def _is_functional(name: str) -> bool:
    """Return whether a name has only function words (It, Her)."""
    return {word.casefold() for word in name.split()} <= STOPWORDS


def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text, in lower case without accents, and the position of each in the text."""
    letters: list[str] = []
    positions: list[int] = []
    for position, char in enumerate(text):
        for plain in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()):
            if plain.isalnum():
                letters.append(plain)
                positions.append(position)
    return "".join(letters), positions


def _carries(text: str, squeezed: str, positions: list[int], name: str, letters: str) -> bool:
    at = squeezed.find(letters)
    while at >= 0:
        start, end = positions[at], positions[at + len(letters) - 1] + 1
        begins = start == 0 or not text[start - 1].isalnum()
        rest = re.match(r"[^\W_]*", text[end:]).group().casefold()  # type: ignore[union-attr]
        ends = not rest or (len(letters) > 3 and rest in ENDINGS)
        if begins and ends and (len(letters) > 3 or name in text):
            return True
        at = squeezed.find(letters, at + 1)
    return False


# --- search for names

_Windows = list[tuple[int, int]]
_Finder = Callable[[Sequence[Word], Sequence[str]], _Windows]


def _exact(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    keys = _keys(words)
    return windows_of(keys, name, same_word) + squeezed_windows(keys, name)


def _formed(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    formed = windows_of(_keys(words), name, lambda word, part: same_word(word, part) or is_derived(word, part))
    return formed + initials_windows(words, name, STOPWORDS | {"us"})


def _spelt(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    keys = _keys(words)
    # if a name has several words, at least one must be spelled correctly
    spelt = [
        (start, end)
        for start, end in windows_of(keys, name, lambda word, part: same_word(word, part) or is_misspelling(word, part))
        if len(name) == 1 or any(same_word(*pair) for pair in zip(keys[start:end], name, strict=True))
    ]
    return spelt + shortened_windows(keys, name)


def _in_part(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    """Return the longest window of words that all occur in a name and are not all generic, such as "city"."""
    keys = _keys(words)
    best: tuple[int, int] | None = None
    for start in range(len(keys)):
        end = start
        while end < len(keys) and any(same_word(keys[end], part) for part in name):
            end += 1
        part = keys[start:end]
        distinctive = [key for key in part if len(key) > 2 and key not in GENERIC and key not in STOPWORDS]
        if distinctive and (best is None or end - start > best[1] - best[0]):
            best = (start, end)
    content = [index for index in range(*best) if keys[index] not in STOPWORDS] if best else []
    return [(content[0], content[-1] + 1)] if content else []


# from certain to uncertain; a finder is used only for topics that no earlier finder has found
_LEVELS: tuple[_Finder, ...] = (_exact, _formed, _spelt, _in_part)


def _keys(words: Sequence[Word]) -> list[str]:
    return [word.key for word in words]


def topic_spans(question: str, names: Mapping[Entity, Sequence[str]]) -> list[Span]:
    """Return the spans of a question that name its topics, in order; spans do not overlap.

    A topic's names are first searched as written, regardless of case, accents, punctuation and plurals. If no name is
    found, misspelled, shortened and partial names are also searched. Longer names have priority.

    Args:
        question: The question.
        names: Map from a topic to its label, aliases and other names.
    """
    words = words_of(question)
    parts = {topic: [(name, word_keys(name)) for name in dict.fromkeys(given)] for topic, given in names.items()}
    taken: list[Span] = []
    for finder in _LEVELS:
        found = []
        for topic, given in parts.items():
            if any(span.topic == topic for span in taken):
                continue
            for name, name_keys in given:
                if finder is _exact:
                    found += [Span(start, end, topic) for start, end in _literal(question, name, name_keys)]
                found += _with_names_as_written(question, words, finder(words, name_keys), name, topic)
        for span in sorted(found, key=lambda span: (span.start - span.end, span.start)):
            if all(span.end <= other.start or span.start >= other.end for other in taken):
                taken.append(span)
    taken.sort(key=lambda span: span.start)
    keys = {topic: [word_keys for _, word_keys in given] for topic, given in parts.items()}
    return [_grown(index, taken, words, keys[span.topic]) for index, span in enumerate(taken)]


def _grown(index: int, spans: Sequence[Span], words: Sequence[Word], names: Sequence[Sequence[str]]) -> Span:
    """Extend a span by words beside it that belong to the same name, as in "Scott" Fitzgerald or "la" Kings."""
    span = spans[index]
    known = {key for name in names for key in name if key not in GENERIC and key not in STOPWORDS}
    known |= {short for short, long in ABBREVIATIONS.items() if long in known}
    known |= {_initials(name[start:end]) for name in names for start, end in combinations(range(len(name) + 1), 2)}
    after = spans[index - 1].end if index else 0
    before = spans[index + 1].start if index + 1 < len(spans) else len(words[-1:]) and words[-1].tail
    start, end = span.start, span.end
    for word in reversed([word for word in words if after <= word.start and word.tail <= span.start]):
        if word.key in STOPWORDS or word.key not in known:
            break
        start = word.start
    for word in [word for word in words if span.end <= word.start and word.tail <= before]:
        if word.key in STOPWORDS or word.key not in known:
            break
        end = word.end
    return replace(span, start=start, end=end)


def _initials(words: Sequence[str]) -> str:
    """Return the initials of two or more words of a name; "" for one word."""
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _with_names_as_written(
    question: str, words: Sequence[Word], windows: Sequence[tuple[int, int]], name: str, topic: Entity
) -> list[Span]:
    """Return the spans of characters for windows of words, including punctuation at either end of the name.

    If a name has only function words (It, Her), spans written exactly like the name are preferred.
    """
    spans = [_with_punctuation(question, words[start], words[end - 1], name, topic) for start, end in windows]
    as_written = [span for span in spans if question[span.start : span.end].startswith(name)]
    return as_written if as_written and _is_functional(name) else spans


def _with_punctuation(question: str, first: Word, last: Word, name: str, topic: Entity) -> Span:
    name = name.strip()
    before = re.match(r"[\W_]*", name).group()  # type: ignore[union-attr]
    after = re.search(r"[\W_]*$", name).group()  # type: ignore[union-attr]
    start, end = first.start, last.end
    if before and question[:start].endswith(before):
        start -= len(before)
    if after and question[end:].startswith(after):
        end += len(after)
    return Span(start, end, topic)


def _literal(question: str, name: str, keys: Sequence[str]) -> list[tuple[int, int]]:
    """Find a name exactly as written, if it has no words (`!!!`) or its script has no spaces between words."""
    name = name.strip()
    if not name or (keys and not _CJK.search(name)):
        return []
    pattern = re.escape(name) if keys else rf"(?<!\w){re.escape(name)}(?!\w)"
    return [match.span() for match in re.finditer(pattern, question)]
