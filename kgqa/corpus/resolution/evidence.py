"""What a corpus says about two names: whether a document, a sentence or a fact contains both."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from kgqa.corpus.documents.sentences import sentence_cuts
from kgqa.corpus.records import StatementRecord
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import comparison_form, sentence_form
from kgqa.corpus.resolution.types import types_agree
from kgqa.corpus.resolution.word_lists import word_list
from kgqa.model.terms import Entity

_MAX_LOOKED_AT = 20
_NEW_LINE = re.compile(r"\n(?=[^\W\d_])(?=[^a-z])")  # a heading, not a line broken within a sentence


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two names that may mean the same entity. `confidence`: the measured or estimated share of right ones."""

    left: Name
    right: Name
    reason: str
    confidence: float


class Evidence:
    """The names of a corpus and the texts they stand in.

    Args:
        names: All names, in the order of their IRIs.
        only: IRIs of the new names; None if all are new.
        statements: Facts about the names, before resolution.
        text_of: Returns the text of a document by its IRI.
    """

    def __init__(
        self,
        names: Sequence[Name],
        *,
        only: Collection[str] | None = None,
        statements: Iterable[StatementRecord] = (),
        text_of: Callable[[str], str] | None = None,
    ) -> None:
        self.names = names
        self.only = None if only is None else frozenset(only)
        self.statements = tuple(statements)
        self.text_of = text_of
        self.by_form: dict[str, list[Name]] = defaultdict(list)
        for name in names:
            self.by_form[name.form].append(name)
        self._sentences = lru_cache(64)(self._sentences_of)

    def blocks(self, key: Callable[[Name], str], names: Iterable[Name] | None = None) -> Iterator[list[Name]]:
        """Yield groups of at least two names with the same key, at least one of them new; the key "" has no group."""
        found: dict[str, list[Name]] = defaultdict(list)
        for name in self.names if names is None else names:
            if value := key(name):
                found[value].append(name)
        for block in found.values():
            if len(block) > 1 and self.is_new(*block):
                yield block

    @cached_property
    def names_of(self) -> Mapping[str, list[Name]]:
        """The names of each document."""
        found: dict[str, list[Name]] = defaultdict(list)
        for name in self.names:
            for document in name.documents:
                found[document].append(name)
        return found

    @property
    def documents(self) -> list[str]:
        """The documents that contain a new name, sorted."""
        return sorted(document for document, names in self.names_of.items() if self.is_new(*names))

    @cached_property
    def _related(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            _pair(statement.subject, statement.object.iri)
            for statement in self.statements
            if isinstance(statement.object, Entity) and not is_alias_relation(statement.relation_name)
        )

    def types_allow(self, one: Name, other: Name) -> bool:
        """Return whether the types of two names agree; a name without a type agrees if the other name has one meaning.

        A name has several meanings if entities with this name have types that do not agree.
        """
        if one.type and other.type:
            return types_agree(one.type, other.type)
        return self.has_one_meaning(one) and self.has_one_meaning(other)

    def has_one_meaning(self, name: Name) -> bool:
        """Return whether all types of entities with this name agree."""
        types = sorted({each.type for each in self.by_form[name.form] if each.type})
        return all(types_agree(one, other) for number, one in enumerate(types) for other in types[:number])

    def is_new(self, *names: Name) -> bool:
        """Return whether one of the names is new."""
        return self.only is None or any(name.iri in self.only for name in names)

    def are_related(self, one: Name, other: Name) -> bool:
        """Return whether a fact connects two names, which then mean two entities."""
        return _pair(one.iri, other.iri) in self._related

    def share_sentence(self, one: Name, other: Name) -> bool:
        """Return whether a sentence names both: a writer who needs two names at once means two entities."""
        longer, shorter = sorted((f" {one.form} ", f" {other.form} "), key=lambda form: (-len(form), form))
        return any(
            longer in sentence and shorter in sentence.replace(longer, " | ")
            for document in sorted(one.documents & other.documents)
            for sentence in self._sentences(document)
        )

    def has_article(self, name: Name) -> bool:
        """Return whether the texts that contain a name write "the" before at least two thirds of its places."""
        places = articles = 0
        for document in sorted(name.documents)[:_MAX_LOOKED_AT]:
            for sentence in self._sentences(document):
                places += sentence.count(f" {name.form} ")
                articles += sentence.count(f" the {name.form} ")
        return 0 < 2 * places <= 3 * articles

    def context(self, name: Name) -> str:
        """Return the first sentence that contains a name, as it is written; "" if there is none."""
        if self.text_of is None:
            return ""
        for document in sorted(name.documents)[:_MAX_LOOKED_AT]:
            text = self.text_of(document)
            for sentence, form in zip(_split(text), self._sentences(document)):
                if f" {name.form} " in form:
                    return " ".join(sentence.split())
        return ""

    def _sentences_of(self, document: str) -> tuple[str, ...]:
        """Return the comparison forms of the sentences of a document, with blanks around."""
        if self.text_of is None:
            return ()
        return tuple(f" {sentence_form(sentence)} " for sentence in _split(self.text_of(document)))


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _split(text: str) -> list[str]:
    """Return the sentences of a text; a heading is a sentence."""
    found: list[str] = []
    for begin, end in pairwise((0, *(at for at, _ in sentence_cuts(text, 0, len(text))), len(text))):
        found += [part for part in _NEW_LINE.split(text[begin:end]) if part.strip()]
    return found


_ALIAS_RELATIONS = word_list("alias_relations")


def is_alias_relation(words: str) -> bool:
    """Return whether a relation says that its ends are names of one thing, such as `is also known as`."""
    plain = comparison_form(words)
    for prefix in ("is ", "are ", "was ", "were ", "has ", "the "):
        plain = plain.removeprefix(prefix)
    return plain in _ALIAS_RELATIONS
