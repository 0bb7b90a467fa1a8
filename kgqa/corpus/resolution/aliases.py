"""Names that a text itself explains: "also known as", and acronyms that stand beside the words they are short for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kgqa.corpus.resolution.evidence import Evidence, Proposal, is_alias_relation
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import comparison_form
from kgqa.corpus.resolution.word_lists import word_list
from kgqa.model.terms import Entity

_ADVERB = r"(?:also|commonly|better|formerly|previously|sometimes|popularly|widely|officially|professionally|often)"
_PHRASE = re.compile(
    rf"(?:\b(?:is|was|are|were)\s+)?\b(?:{_ADVERB}\s+(?:known|called|named|referred\s+to|abbreviated|styled)|nicknamed|"
    rf"abbreviated|known\s+professionally|a\.?k\.?a\.?)(?:\s+(?:simply|professionally|commonly|just))?(?:\s+(?:as|by))?"
    rf"(?=[\s:])",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r"\(([^()\n]{2,80})\)")
_OPENING = re.compile(r"[\s:,]*(?:the\b|an?\b)?[\s\"'“‘«`]*", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_MAX_WORDS = 10
_WINDOW = 200
_CLOSED = re.compile(r"\s*\([^()]*\)[\s,]*\Z")
_PREPOSITIONS = word_list("prepositions")
_SMALL = word_list("not_in_acronyms")
_MAX_LETTERS = 8
_SURE_LETTERS = 4
_MAX_OPENING = 5


def aliases(evidence: Evidence) -> Iterator[Proposal]:
    """Propose names of which a text or a fact says that they mean the same, and acronyms of names beside them.

    An alias of several things is left out. So is an acronym that most documents do not spell out, unless it has four
    letters or more and a text states what it is short for.
    """
    found = _Meanings(evidence)
    for proposal in _in_facts(evidence):
        found.add_stated(proposal)
    found.read(evidence.documents)
    found.read(sorted({document for alias in list(found.meanings) for document in alias.documents}))
    for alias, proposals in found.meanings.items():
        if len(proposals) == 1 and (not is_acronym_name(alias) or found.is_clear(alias)):
            yield from proposals.values()


class _Meanings:
    """The meanings of each alias, by their wording, and the documents that spell out an acronym."""

    def __init__(self, evidence: Evidence) -> None:
        self.meanings: dict[Name, dict[str, Proposal]] = defaultdict(dict)
        self._evidence = evidence
        self._spelled: dict[Name, set[str]] = defaultdict(set)
        self._stated: set[Name] = set()
        self._read: set[str] = set()

    def add_stated(self, proposal: Proposal) -> None:
        """Add an alias that a fact or a text states, if the two names are of one kind."""
        left, right = proposal.left, proposal.right
        if left.is_proper == right.is_proper and self._evidence.types_allow(left, right):
            self.meanings[right].setdefault(left.wording, proposal)
            self._stated.add(right)

    def read(self, documents: Iterable[str]) -> None:
        """Add what documents say; each document is read once."""
        for document in documents:
            if document in self._read:
                continue
            self._read.add(document)
            for proposal in _in_text(self._evidence, document):
                self.add_stated(proposal)
            for acronym, name in _beside(self._evidence.names_of[document]):
                self._spelled[acronym].add(document)
                if self._evidence.types_allow(name, acronym):
                    proposal = Proposal(name, acronym, "acronym of a name in the same documents", 0.95)
                    self.meanings[acronym].setdefault(name.wording, proposal)

    def is_clear(self, acronym: Name) -> bool:
        """Return whether an acronym has the same meaning in all documents, as far as can be told."""
        spelled = self._spelled[acronym]
        if acronym.documents <= spelled:
            return True
        is_long = len(letters_of(acronym)) >= _SURE_LETTERS
        return acronym in self._stated and (is_long or 2 <= len(spelled) >= len(acronym.documents) / 3)


def _beside(names: Sequence[Name]) -> Iterator[tuple[Name, Name]]:
    """Yield the acronyms among the names of one document, and the names with these initials."""
    short = {name: letters_of(name) for name in names if is_acronym_name(name)}
    for name in names if short else ():
        for acronym, letters in short.items():
            if acronym.form not in name.form.split() and is_acronym_of(letters, name.text):
                yield acronym, name


def is_acronym_name(name: Name) -> bool:
    """Return whether a name is one word of 2 to 8 letters, all or nearly all of them capitals."""
    letters = letters_of(name)
    capitals = max(sum(map(str.isupper, text)) for text in name.spellings)
    return len(name.form.split()) == 1 and 2 <= len(letters) <= _MAX_LETTERS and capitals >= max(2, len(letters) - 1)


def letters_of(name: Name) -> str:
    """Return the letters and digits of a name in small letters."""
    return "".join(char for char in name.form if char.isalnum())


def is_acronym_of(letters: str, text: str) -> bool:
    """Return whether letters are the initials of the words of a name, with or without small words such as "of"."""
    words = comparison_form(re.sub(r"\([^)]*\)", " ", text)).split()
    if not 2 <= len(words) <= _MAX_WORDS or not text[:1].isupper():
        return False
    full = [word for word in words if word not in _SMALL]
    return letters in ("".join(word[0] for word in words), "".join(word[0] for word in full)) and len(full) > 1


def _in_facts(evidence: Evidence) -> Iterator[Proposal]:
    by_iri = {name.iri: name for name in evidence.names}
    for fact in evidence.statements:
        if is_alias_relation(fact.relation_name) and isinstance(fact.object, Entity):
            left, right = by_iri.get(fact.subject), by_iri.get(fact.object.iri)
            if left and right and left is not right:
                if is_acronym_name(left) and not is_acronym_name(right):
                    left, right = right, left
                yield Proposal(left, right, f"the text states it: {fact.words[:200]}", 0.95)


def _in_text(evidence: Evidence, document: str) -> Iterator[Proposal]:
    if evidence.text_of is None:
        return
    text = evidence.text_of(document)
    forms = {name.form.removeprefix("the "): name for name in evidence.names_of[document]}
    for match in _PHRASE.finditer(text):
        inside = text[max(0, match.start() - _MAX_OPENING) : match.start()].rstrip(" \t\"'“”").endswith("(")
        left, right = _before(text, match.start(), forms, near=inside), _after(text, match.end(), forms)
        if left and right and left is not right:
            yield Proposal(left, right, f"the text states it: {_quote(text, match)}", 0.95)
    for match in _PARENTHESIS.finditer(text):
        short = forms.get(comparison_form(match[1].strip("\"'“”")))
        left = _before(text, match.start(), forms, near=True) if short else None
        if not short or not left or left is short or not is_acronym_name(short):
            continue
        if is_acronym_of(letters_of(short), left.text):
            yield Proposal(left, short, f"the text states it: {_quote(text, match)}", 0.97)


def _before(text: str, end: int, forms: Mapping[str, Name], *, near: bool) -> Name | None:
    """Return the longest name that ends before a position; a comma or parentheses may stand between.

    Args:
        near: Whether what follows belongs to the nearest name. Otherwise a name after a preposition is not taken,
            because what follows may belong to the words before it: "the house in London, also known as Number 10".
    """
    before = text[max(0, end - _WINDOW) : end]
    if not near:
        before = _CLOSED.sub("", before)
    words = before.rstrip(" \t,(\"'“”").split()[-_MAX_WORDS:]
    for first in range(len(words)):
        if found := forms.get(comparison_form(" ".join(words[first:])).removeprefix("the ")):
            previous = [word.lower() for word in words[:first] if word.lower() != "the"]
            return found if near or not previous or previous[-1] not in _PREPOSITIONS else None
    return None


def _after(text: str, begin: int, forms: Mapping[str, Name]) -> Name | None:
    """Return the longest name that begins after a position; quotes and an article may stand before it."""
    opening = _OPENING.match(text, begin)
    begin = opening.end() if opening else begin
    words = _WORD.findall(text[begin : begin + _WINDOW])[:_MAX_WORDS]
    for last in range(len(words), 0, -1):
        if found := forms.get(comparison_form(" ".join(words[:last])).removeprefix("the ")):
            return found
    return None


def _quote(text: str, match: re.Match[str]) -> str:
    return " ".join(text[max(0, match.start() - 60) : match.end() + 60].split())
