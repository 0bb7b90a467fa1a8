"""Masking: removes the names of topics from text, so that a model cannot answer from memory (thesis, section 3.4).

For embeddings, the name is dropped, because relations are then ranked best. For language models, a placeholder such as
`[E1]` or the topic's id replaces the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice, takewhile

from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.word_matching import (
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
from kgqa.search.words import word_list

ABBREVIATIONS = {"st": "saint", "mt": "mount", "ft": "fort", "dr": "doctor"}
_POSSESSIVE = re.compile(r"['’]s?(?!\w)|")


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


@cache
def generic_words() -> frozenset[str]:
    """Return the words for kinds of things: "college" is not masked as a part of the name "Boston College"."""
    return frozenset(word_list("generic", "names"))


def leaks(texts: Sequence[str], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the strings that still contain a name, each with the first name found in it.

    A name may have other spaces and a common ending. Names of up to three letters must occur exactly as written; names
    of only function words are ignored.
    """
    wanted = [(name, word_keys(name)) for name in dict.fromkeys(names) if not _is_functional(name)]
    found = []
    for text in texts:
        words = words_of(text)
        carried = (
            name
            for name, keys in wanted
            if (len("".join(keys)) > 3 or name in text)
            and (squeezed_windows(_keys(words), keys, least=4) or _derived(words, keys))
        )
        found += [(text, name) for name in islice(carried, 1)]
    return found


def _is_functional(name: str) -> bool:
    """Return whether a name has only function words (It, Her)."""
    return {word.casefold() for word in name.split()} <= STOPWORDS


# --- search for names

_Windows = list[tuple[int, int]]
_Finder = Callable[[Sequence[Word], Sequence[str]], _Windows]


def _exact(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    keys = _keys(words)
    return windows_of(keys, name, same_word) + squeezed_windows(keys, name)


def _derived(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    return windows_of(_keys(words), name, lambda word, part: same_word(word, part) or is_derived(word, part))


def _formed(words: Sequence[Word], name: Sequence[str]) -> _Windows:
    return _derived(words, name) + initials_windows(words, name, STOPWORDS | {"us"})


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
        distinctive = [key for key in part if len(key) > 2 and key not in generic_words() and key not in STOPWORDS]
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
    parts = {topic: [(n, word_keys(n)) for n in dict.fromkeys(map(str.strip, given))] for topic, given in names.items()}
    taken: list[Span] = []
    for finder in _LEVELS:
        found = []
        for topic, given in parts.items():
            if any(span.topic == topic for span in taken):
                continue
            for name, name_keys in given:
                if finder is _exact and name and not name_keys:  # a name without words, such as !!!
                    literal = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", question)
                    found += [Span(*match.span(), topic) for match in literal]
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
    known = {key for name in names for key in name if key not in generic_words() and key not in STOPWORDS}
    known |= {short for short, long in ABBREVIATIONS.items() if long in known}
    known |= {_initials(name[start:end]) for name in names for start, end in combinations(range(len(name) + 1), 2)}
    after = spans[index - 1].end if index else 0
    before = spans[index + 1].start if index + 1 < len(spans) else len(words[-1:]) and words[-1].tail

    def belongs(word: Word) -> bool:
        return word.key in known and word.key not in STOPWORDS

    left = takewhile(belongs, reversed([word for word in words if after <= word.start and word.tail <= span.start]))
    right = takewhile(belongs, (word for word in words if span.end <= word.start and word.tail <= before))
    start = min((word.start for word in left), default=span.start)
    return replace(span, start=start, end=max((word.end for word in right), default=span.end))


def _initials(words: Sequence[str]) -> str:
    """Return the initials of two or more words of a name; "" for one word."""
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _with_names_as_written(
    question: str, words: Sequence[Word], windows: Sequence[tuple[int, int]], name: str, topic: Entity
) -> list[Span]:
    """Return the spans of characters for windows of words, including punctuation at either end of the name.

    If a name has only function words (It, Her), spans written exactly like the name are preferred.
    """
    before, after = re.match(r"[\W_]*", name).group(), re.search(r"[\W_]*$", name).group()  # type: ignore[union-attr]
    spans = []
    for first, last in windows:
        start, end = words[first].start, words[last - 1].end
        start -= len(before) if question[:start].endswith(before) else 0
        end += len(after) if question[end:].startswith(after) else 0
        spans.append(Span(start, end, topic))
    as_written = [span for span in spans if question[span.start : span.end].startswith(name)]
    return as_written if as_written and _is_functional(name) else spans
