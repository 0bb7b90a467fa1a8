"""Facts in common forms of English sentences about the topic of a document.

A sentence is about the topic if it begins with its name, or with a pronoun after such a sentence. Only forms are read
that rarely mean anything else: "X is a Y", "directed by", "(born 5 May 1960)", "was the son of", "located in".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa.corpus.documents.document import Span
from kgqa.corpus.extraction.names import folded_name
from kgqa.corpus.extraction.rules import english_forms as forms
from kgqa.corpus.extraction.rules.english_words import BEGINNINGS, NO_ROLES, PERSONS, RELATIVES, THINGS, VAGUE
from kgqa.corpus.extraction.rules.facts import RuleFact
from kgqa.corpus.extraction.rules.proper_names import ProperName, read_name, read_names
from kgqa.corpus.extraction.rules.values import DATE_PATTERN, date_literal, year_literal
from kgqa.corpus.items import EntityItem, Party, StatementItem, normal_name
from kgqa.model.terms import Literal
from kgqa.text.words import clean

MAX_SENTENCES = 40
"""Sentences after the definition of the topic that are read."""
_MAX_SENTENCE_CHARS = 1_500
_DATE = re.compile(DATE_PATTERN, re.IGNORECASE)
_DISTINCTION = re.compile(r"\s*\([^()]*\)\s*\Z")
_DASH = re.compile(r"\s?[–—]\s?|\s-\s")
_PERSONAL = re.compile(r"\b(?:[Hh]e|[Ss]he|[Hh]is|[Hh]er|born)\b")
_TYPE = re.compile(r"[A-Za-z][a-z-]{2,}")
_RELATIVES = frozenset(RELATIVES.split("|"))
_INCOMPLETE = re.compile(r"(?:-| and| or|\b[A-Z])\Z")
_TITLE_OF = re.compile(r"(?:Duke|Duchess|King|Queen|Count|Countess|Prince|Princess|Earl|Lord) of")


@dataclass(frozen=True, slots=True)
class Definition:
    """A sentence `X is a Y`: its span, the match of its beginning, the noun phrase Y, and the type that Y names."""

    span: Span
    opening: re.Match[str]
    phrase: str
    type: str


def find_definition(text: str, sentences: Sequence[Span], title: str) -> Definition | None:
    """Return the definition of the topic among the first sentences of a text; None if there is none."""
    wanted = folded_name(_DISTINCTION.sub("", title)).split()
    for begin, end in sentences[:3]:
        found = forms.DEFINITION.match(text, begin, min(end, begin + _MAX_SENTENCE_CHARS))
        if not found or not _means(wanted, folded_name(found["name"]).split()):
            continue
        if phrase := _noun_phrase(text, found.end(), end):
            return Definition((begin, end), found, clean(text[slice(*phrase[0])]), phrase[1])
    return None


class EnglishReader:
    """Reads the sentences about one topic.

    Args:
        text: A text.
        topic: The topic, with its type.
        definition: The definition of the topic in the text.
    """

    def __init__(self, text: str, topic: Party, definition: Definition) -> None:
        self._text = text
        self._topic = topic
        self._definition = definition
        self._names = set(folded_name(_DISTINCTION.sub("", topic.name)).split())
        self._is_person = definition.type in PERSONS or (
            definition.type not in THINGS and bool(_PERSONAL.search(text, *definition.span))
        )

    def facts(self, sentences: Sequence[Span]) -> Iterator[RuleFact]:
        """Yield the facts of sentences, which begin with the definition."""
        yield from self._of_definition()
        about_topic = True
        for begin, end in [span for span in sentences if span[0] >= self._definition.span[1]][:MAX_SENTENCES]:
            if end - begin > _MAX_SENTENCE_CHARS:
                continue
            subject = self._subject_end(begin, end, pronouns=about_topic)
            about_topic = subject is not None
            if subject is not None:
                yield from self._of_sentence((begin, end), subject)

    def _subject_end(self, begin: int, end: int, *, pronouns: bool) -> int | None:
        """Return where the subject of a sentence ends, if it is the topic."""
        if found := forms.PRONOUN.match(self._text, begin, end):
            fits = self._is_person if found["person"] else not self._is_person
            if found["noun"]:
                fits = found["noun"] == self._definition.type or (
                    found["noun"] == "film" and self._definition.type == "movie"
                )
            return found.end() if fits and pronouns else None
        at = begin
        for word in re.finditer(r"(\S+)\s", self._text[begin : begin + 150]):
            if not word[1][0].isupper() and not word[1][0].isdigit():
                break
            if not set(folded_name(word[1]).split()) <= self._names or not folded_name(word[1]):
                return None
            at = begin + word.end()
        return at if begin < at < end else None

    # ---- the definition ----

    def _of_definition(self) -> Iterator[RuleFact]:
        definition, text = self._definition, self._text
        begin, end = definition.span
        yield self._fact("definition", EntityItem(self._topic, clean(text[begin:end])[:500]), 0.95)
        relation = "is the" if definition.opening["article"] == "the" else "is a"
        if not _INCOMPLETE.search(definition.phrase):
            yield from self._statement("definition", relation, Literal(definition.phrase), 0.9)
        if definition.opening["parentheses"]:
            yield from self._parentheses(*definition.opening.span("parentheses"))
        if definition.opening["alias"] and (alias := forms.ALIAS.search(definition.opening["alias"])):
            for name in clean(alias["name"]).split(" or ") if " and " not in alias["name"] else ():
                yield from self._statement("alias", "also known as", Literal(name.strip("\"'“” ")), 0.9)
        if year := forms.YEAR_OF_WORK.match(definition.phrase):
            yield from self._statement("year", "year of release", year_literal(int(year["year"])), 0.9)
        stop = forms.SUBORDINATE.search(text, definition.opening.end(), end)
        last = stop.start() if stop else end
        yield from self._clause(definition.opening.end(), last, definition.span)
        yield from self._roles(definition.opening.end(), last)

    def _roles(self, begin: int, end: int) -> Iterator[RuleFact]:
        text = self._text
        if found := forms.CAPITAL_OF.match(text, begin, end):
            yield from self._named("place", "capital of", found.end(), end, self._definition.span, 0.9)
        elif not forms.RELATIVE_OF.match(text, begin, end) and (found := forms.ROLE_OF.match(text, begin, end)):
            role = found["role"].lower()
            if role not in NO_ROLES:
                yield from self._named("role", f"{role} of", found.end(), end, self._definition.span, 0.85)

    def _parentheses(self, begin: int, end: int) -> Iterator[RuleFact]:
        """Yield the dates and places of birth and death of a person: `(5 May 1960, Rome – 2010)`."""
        text = self._text
        begin, end = begin + text[begin:end].find("(") + 1, begin + text[begin:end].rfind(")")
        begin = max(begin, text.rfind(";", begin, end) + 1)
        begin += len(text[begin:end]) - len(text[begin:end].lstrip())
        dash = _DASH.search(text, begin, end)
        if dash and self._is_person:
            yield from self._life(begin, dash.start(), "birth")
            yield from self._life(dash.end(), end, "death")
        elif not dash and text.startswith("born ", begin):
            yield from self._life(begin, end, "birth")
        elif not dash and text.startswith("died ", begin):
            yield from self._life(begin, end, "death")

    def _life(self, begin: int, end: int, event: str) -> Iterator[RuleFact]:
        text = self._text
        for prefix in ("born on ", "born ", "died on ", "died "):
            if text.startswith(prefix, begin):
                begin += len(prefix)
                break
        found = _DATE.match(text, begin, end)
        if not found or forms.ROUNDED.match(text[found.end() : end].strip()):
            return
        yield from self._statement("date", f"date of {event}", date_literal(found), 0.95)
        place = re.compile(r",? in |, ").match(text, found.end(), end)
        if place and (name := read_name(text, place.end(), end)):
            yield from self._party_facts("place", f"place of {event}", [name], self._definition.span, 0.85)

    # ---- other sentences, and what they have in common with the definition ----

    def _of_sentence(self, span: Span, begin: int) -> Iterator[RuleFact]:
        text, end = self._text, span[1]
        stop = forms.SUBORDINATE.search(text, begin, end)
        end = stop.start() if stop else end
        verb = forms.IS.match(text, begin, end)
        if verb:
            yield from self._clause(verb.end(), end, span)
            if found := forms.BEGAN_ON.match(text, verb.end(), end):
                yield from self._dated(found, f"date of {BEGINNINGS[found['verb'].lower()]}", span)
        elif forms.STARRING.match(text, begin, end):
            yield from self._cast(begin, end, span)
        if not self._is_person:
            return
        simple = ((forms.EDUCATED_AT, "educated at"), (forms.MARRIED, "spouse"), (forms.PLAYS_FOR, "plays for"))
        for form, relation in (*simple, (forms.DIED_IN, "place of death")):
            if found := form.match(text, begin, end):
                yield from self._named("sentence", relation, found.end(), end, span, 0.85)
        if found := forms.DIED_ON.match(text, begin, end):
            yield from self._dated(found, "date of death", span)

    def _clause(self, begin: int, end: int, span: Span) -> Iterator[RuleFact]:
        """Yield the facts of a clause after `is` or `was`."""
        text = self._text
        yield from self._relatives(begin, end, span)
        if self._is_person:
            if (found := forms.BORN_IN.search(text, begin, end)) and self._follows(found.start(), begin):
                yield from self._named("place", "place of birth", found.end(), end, span, 0.9)
            if (found := forms.BORN_ON.search(text, begin, end)) and self._follows(found.start(), begin):
                yield from self._dated(found, "date of birth", span)
            return
        for found in forms.MADE_BY.finditer(text, begin, end):
            if not self._follows(found.start(), begin):
                continue
            names, _ = read_names(text, found.end(), end)
            for verb in forms.MAKER.findall(found["verbs"]):
                yield from self._party_facts("made by", f"{_joined(verb)} by", names, span, 0.9)
        for found in forms.STARRING.finditer(text, begin, end):
            if self._follows(found.start(), begin):
                yield from self._cast(found.start(), end, span)
        if (found := forms.WORK_BY.search(text, begin, end)) and found["noun"] == self._definition.type:
            yield from self._named("made by", f"{found['noun']} by", found.end(), end, span, 0.85)
        place = forms.LOCATED_IN.search(text, begin, end)
        place = place if place and self._follows(place.start(), begin) else forms.PLACE_IN.search(text, begin, end)
        if place:
            yield from self._places("located in", place.end(), end, span)

    def _relatives(self, begin: int, end: int, span: Span) -> Iterator[RuleFact]:
        found = forms.RELATIVE_OF.match(self._text, begin, end)
        while found:
            names, at = read_names(self._text, found.end(), end, commas=False)
            if any(_TITLE_OF.match(name.name) for name in names) or _has_long_title(names):
                names = names[:1]  # "Duke of A and B", "X, Duke of A and B": one person
            yield from self._party_facts("relative", f"{_joined(found['relative'])} of", names, span, 0.9)
            found = forms.MORE_RELATIVES.match(self._text, at, end) if names else None

    def _cast(self, begin: int, end: int, span: Span) -> Iterator[RuleFact]:
        found = forms.STARRING.match(self._text, begin, end)
        names, _ = read_names(self._text, found.end(), end) if found else ([], 0)
        yield from self._party_facts("made by", "starring", names, span, 0.9)

    def _places(self, relation: str, begin: int, end: int, span: Span) -> Iterator[RuleFact]:
        """Yield the places of `in A, B, C`; each contains the one before it."""
        at = begin
        names: list[ProperName] = []
        while (name := read_name(self._text, at, end)) and len(names) < 4:
            names.append(name)
            if not self._text.startswith(", ", name.end):
                break
            at = name.end + 2
        yield from self._party_facts("place", relation, names, span, 0.9)

    def _follows(self, at: int, begin: int) -> bool:
        """Return whether the words before a verb belong to the topic: nothing, a comma, "and", or its type."""
        before = self._text[begin:at].rstrip()
        nouns = ("film", "movie", "series", "album", "song", self._definition.type or "film")
        return not before or before.endswith((",", ")")) or before.split()[-1] in ("and", "was", "is", "that", *nouns)

    # ---- facts ----

    def _named(
        self, rule: str, relation: str, begin: int, end: int, span: Span, confidence: float
    ) -> Iterator[RuleFact]:
        if name := read_name(self._text, begin, end):
            yield from self._party_facts(rule, relation, [name], span, confidence)

    def _party_facts(
        self, rule: str, relation: str, names: Sequence[ProperName], span: Span, confidence: float
    ) -> Iterator[RuleFact]:
        for name in names:
            if normal_name(name.name) != normal_name(self._topic.name):
                party = Party(name.name)
                yield RuleFact(rule, EntityItem(party), name.begin, name.end, confidence)
                yield RuleFact(rule, StatementItem(self._topic, relation, party), *span, confidence)

    def _dated(self, found: re.Match[str], relation: str, span: Span) -> Iterator[RuleFact]:
        if literal := date_literal(found):
            yield RuleFact("date", StatementItem(self._topic, relation, literal), *span, 0.9)

    def _statement(self, rule: str, relation: str, value: Literal | None, confidence: float) -> Iterator[RuleFact]:
        if value is not None and value.value:
            yield self._fact(rule, StatementItem(self._topic, relation, value), confidence)

    def _fact(self, rule: str, item: StatementItem | EntityItem, confidence: float) -> RuleFact:
        return RuleFact(rule, item, *self._definition.span, confidence)


def _means(title: list[str], name: list[str]) -> bool:
    """Return whether a name in a text means the topic: one has all words of the other, or first and last word agree."""
    if not title or not name or len(name) > 14:
        return False
    one, other = set(title), set(name)
    return one <= other or other <= one or (len(name) > 1 and (title[0], title[-1]) == (name[0], name[-1]))


def _has_long_title(names: Sequence[ProperName]) -> bool:
    """Return whether the second of two names is rather a part of the title in the first one."""
    return len(names) > 1 and "," in names[0].name and " " not in names[1].name


def _joined(words: str) -> str:
    """Return words without blanks after hyphens, which some texts have: `mother- in- law`."""
    return " ".join(words.split()).replace("- ", "-")


def _noun_phrase(text: str, begin: int, end: int) -> tuple[Span, str] | None:
    """Return the span of the noun phrase at an offset, and the noun that says what the thing is; "" if it is unclear.

    The noun is `film` in `1948 American drama film`, and `actor` in `film, television and stage actor`.
    """
    found = forms.NOUN_PHRASE.match(text, begin, end)
    if not found:
        return None
    span = found.span("phrase")
    for head in re.split(r" and |/| & ", found["phrase"].partition(" of ")[0]):
        if (word := head.rpartition(" ")[2].lower()) in PERSONS:
            return span, "person" if word in _RELATIVES else word
    if listed := forms.LISTED_PERSON.match(text, span[1], end):
        return (span[0], listed.end()), listed["type"].lower()
    words = found["phrase"].partition(" of ")[0].split()
    while words and words[-1].endswith("ed") and len(words) > 1:
        words.pop()
    word = words[-1]
    is_type = _TYPE.fullmatch(word) and word[0].islower() and not word.endswith(("-", "ly")) and word not in VAGUE
    return span, word if is_type else ""
