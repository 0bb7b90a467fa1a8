"""Masking: removes the names of topics from text, so that a model cannot answer from memory (thesis, section 3.4).

For embeddings, the name is dropped, because relations are then ranked best. For language models, a placeholder such as
`[E1]` or the topic's id replaces the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from kgqa.graph.names.index import NameMatch
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.name_matching import LOOSE, NameHit, NameText, forms, generic_words, word_certainty, word_keys

ABBREVIATIONS = {"st": "saint", "mt": "mount", "ft": "fort", "dr": "doctor"}
MARGIN = 0.15
"""Hits are left out if another one of the topic is better by this much: "Indian" in a question that names India."""
LEAKING = ("exact", "derived", "squeezed")
MENTIONED = Entity("urn:kgqa:topic")
"""What stands for entities of which only a name is known."""
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
    for span in reversed(spans):
        question = question[: span.start] + marks.get(span.topic, " ") + question[span.end :]
    return question


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


def mention_spans(question: str, names: Iterable[str]) -> list[Span]:
    """Return the spans of a question that are any of the names; see `topic_spans`."""
    return topic_spans(question, {MENTIONED: [name for name in names if name.strip()]})


def drop_mentions(question: str, names: Iterable[str]) -> str:
    """Return the question without the given names; see `topic_spans`."""
    return " ".join(drop_spans(question, mention_spans(question, names)).split())


def leaks(texts: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the strings that still contain one of the names.

    A name may have other spaces and a common ending. Names of up to three letters must occur exactly as written; names
    of only function words are ignored.
    """
    names = tuple(names)
    wanted, squeezed = _leaking_forms(names)

    def leaks_in(text: str) -> bool:
        worded = NameText(text)
        forms_in = wanted.keys() & worded.variants(worded.windows_of(squeezed))
        carried = any(len(form) > 3 or wanted[form] in text for form in forms_in)
        return carried or any(any(_literal(text, name)) for name in names)

    return [text for text in texts if leaks_in(text)]


@lru_cache(maxsize=100)
def _leaking_forms(names: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Return the forms of names that leak, each with its name, and these forms without spaces."""
    wanted = {
        form: name
        for name in reversed(names)
        if not STOPWORDS.issuperset(word_keys(name))
        for form, how in forms(name).items()
        if how in LEAKING
    }
    return wanted, _squeezed(wanted)


def topic_spans(question: str, names: Mapping[Entity, Sequence[str]]) -> list[Span]:
    """Return the spans of a question that name its topics, in order; spans do not overlap.

    A topic's names are first searched in full, regardless of case, accents, punctuation and endings. If none is found,
    misspelled, shortened and partial names are also searched. Longer names have priority.

    Args:
        question: The question.
        names: Map from a topic to its label, aliases and other names.
    """
    text = NameText(question)
    squeezed = _squeezed(form for given in names.values() for name in given for form in forms(name.strip()))
    variants = text.variants(text.windows_of(squeezed))
    hits: list[NameHit] = []
    for topic, given in names.items():
        matches = [NameMatch(topic, name, "label", True) for name in dict.fromkeys(map(str.strip, given))]
        found = _whole(text, variants, matches) or _in_part(text, matches)
        best = max((hit.quality for hit in found), default=0.0)
        hits += [_widened(hit, text.keys, given) for hit in found if hit.quality > best - MARGIN]
    hits.sort(key=lambda hit: (hit.how == "part", hit.start - hit.end, hit.start))
    spans = [Span(*text.extent(*hit.span, hit.match.name), hit.match.entity) for hit in hits]
    pairs = [(topic, name) for topic, given in names.items() for name in given]
    signs = [Span(*found.span(), topic) for topic, name in pairs for found in _literal(question, name)]
    taken: list[Span] = []
    for span in (*spans, *sorted(signs, key=lambda span: (span.start - span.end, span.start))):
        if all(span.end <= other.start or span.start >= other.end for other in taken):
            taken.append(span)
    return sorted(taken, key=lambda span: span.start)


def _squeezed(forms: Iterable[str]) -> list[str]:
    return sorted({form.replace(" ", "") for form in forms})


def _literal(text: str, name: str) -> Iterable[re.Match[str]]:
    """Return where a name without words, such as !!!, stands as it is written."""
    name = "" if word_keys(name) else name.strip()
    return re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text) if name else ()


def _whole(
    text: NameText, variants: Mapping[str, Sequence[tuple[int, int, str]]], matches: Sequence[NameMatch]
) -> list[NameHit]:
    """Return where names stand in full; a name of words such as It or Her, only where it is written so, if anywhere."""
    hits = [
        NameHit(start, end, match, LOOSE[how] * LOOSE[change], how)
        for match in matches
        for form, how in forms(match.name).items()
        for start, end, change in variants.get(form, ())
    ]
    as_written = [
        hit
        for hit in hits
        if not text.is_functional(*hit.span)
        or (hit.end - hit.start == 1 and text.written(*hit.span).isupper())
        or text.written(*hit.span) == hit.match.name
    ]
    return as_written or [hit for hit in hits if hit.quality == 1]


def _in_part(text: NameText, matches: Sequence[NameMatch]) -> list[NameHit]:
    """Return where a part of a name stands that is not only of words such as "city"."""
    aligned = (text.align(match, lambda word: 0.3 if word in generic_words() else 1.0, gaps=False) for match in matches)
    return [hit for hit in aligned if hit and any(len(key) > 2 for key in _distinctive(text.keys[slice(*hit.span)]))]


def _distinctive(words: Iterable[str]) -> set[str]:
    return set(words) - generic_words() - STOPWORDS


def _widened(hit: NameHit, keys: Sequence[str], names: Iterable[str]) -> NameHit:
    """Extend a hit by the words beside it that belong to the same name, as in "Scott" Fitzgerald."""
    known = _distinctive(part for name in names for part in word_keys(name))

    def belongs(word: str) -> bool:
        whole = ABBREVIATIONS.get(word, word)
        return word not in STOPWORDS and any(word_certainty(whole, part) > LOOSE["derived"] for part in known)

    before = sum(1 for _ in takewhile(belongs, reversed(keys[: hit.start])))
    after = sum(1 for _ in takewhile(belongs, keys[hit.end :]))
    return replace(hit, start=hit.start - before, end=hit.end + after)
