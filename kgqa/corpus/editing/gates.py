"""The rules that an edit proposed by a language model must pass. Pure functions of what was proposed and shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import highest, rank
from kgqa.corpus.editing.wording import Name, Wording, wording
from kgqa.rank.lexical import STOPWORDS, stem
from kgqa.text.words import clean

MAX_CONTENT_CHARS = 500
MAX_EDITS = 3
MAX_DELETES = 1
"""Most edits, and most deletions among them, per question."""
MIN_SUPPORT = 0.6
"""The share of the words of a new text that must stand in its sources."""
SAME_WORDS = 0.9
"""The share of common words from which two texts with the same names and numbers are near-duplicates."""
SAME_CLAIM = 0.5
"""The share of the words of a text, beside names and numbers, that a text which contradicts it must contain."""
MIN_CLAIM = 1
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}:/{1,2}\S|\bwww\.\S|\burn:\S|\bmailto:|\bjavascript:|\bdata:\S+[,;]"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|io|biz|example|test|invalid|ru|cn|xyz|top|onion)\b(?:/\S*)?",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"</?[a-z!?][^<>]{0,200}>|<\|[^<>]{0,40}\|?>|\[/?INST\]|<</?SYS>>|```|\{\{|\}\}|\[\[|\]\]|&(?:#\d+|#x[0-9a-f]+|[a-z]+);"
    r"|^\s*(?:#{1,6}|system|user|assistant|human|ai|tool|observation|action|thought|answer|question)\s*:"
    r"|\b(?:im_start|im_end|tool_call|tool_response|end_of_turn|start_of_turn|endoftext)\b|[{}\[\]|\\]",
    re.IGNORECASE | re.MULTILINE,
)
_TO_THE_MODEL = re.compile(
    r"(?i:\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|instructions?|rules?|"
    r"prompts?|everything|context)\b)"
    r"|\b(?:you|your|yours|yourself)\b|\bYou (?:are|can|have|may|must|need|shall|should|will)\b|\bYOUR?\b"
    r"|(?i:\b(?:language model|llm|chatbot|chat ?gpt|gpt-?\d|ai (?:assistant|model|agent)|(?:the|dear|an?) "
    r"(?:assistant|agent|model))\b.{0,60}\b(?:must|should|shall|has to|have to|needs? to|answers?|respond|reply|delete|"
    r"insert|update)\b)"
    r"|(?i:\b(?:system|developer) (?:prompt|message|instructions?)\b|\bnew instructions?\b|\binstructions?\s*:)"
    r"|(?i:\b(?:always|only|never|please|now|instead) (?:answer|respond|reply|say|output|return|delete|insert|"
    r"trust|cite)\b)"
    r"|(?i:\b(?:the )?(?:correct|right|final|expected) answer (?:is|to)\b|\banswer (?:with|yes|no)\b)"
    r"|(?i:^\s*(?:answer|respond|reply|say|output|return|delete|insert|update|remove|replace|undo|revert|call|note to)"
    r"\s+(?:the|this|that|these|all|every|with|only|it|yes|no|to|edits?|segments?|results?|numbers?|facts?|\d+)\b)",
)
_SCHEMA = re.compile(
    r"\b(?:rdfs?|owl|skos|prov|kc|xsd|schema|foaf|dcterms|nif|wdt?|fb|ns):\w|\b(?:subClassOf|subPropertyOf|sameAs|"
    r"altLabel|prefLabel|conflictsWith|hyperedge|rdf triple|named graph|sparql)\b|\b(?:INSERT|DELETE) (?:DATA|WHERE)\b"
    r"|\b(?:label|alias|class|type|property|relation|predicate|schema|ontology) of (?:the )?(?:entity|node|"
    r"relation|graph)"
    r"|\b(?:is|are) (?:labell?ed|an alias of|the same (?:entity|node) as)\b",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(?=\w*[A-Za-z\u00c0-\u024f])\w*[\u0400-\u052fΑΒΕΖΗΙΚΜΝΟΡΤΥΧο]\w*")
"""A word that has Latin letters beside letters of another script that look like Latin ones."""
_RULES: Sequence[tuple[str, re.Pattern[str], str]] = (
    ("address", _ADDRESS, "The text contains an address. Write facts, without addresses."),
    ("markup", _MARKUP, "The text contains tags or marks. Write one plain sentence."),
    ("instruction", _TO_THE_MODEL, "The text speaks to a reader or a model. Write a fact about the world."),
    ("schema", _SCHEMA, "The text is about the graph itself. Write a fact about the world."),
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit that a language model proposes.

    Attributes:
        kind: insert, update or delete.
        content: The new text; "" for a delete.
        sources: Numbers of the texts that it rests on.
        target: The IRI of the hyperedge that is replaced or hidden; "" for an insert.
        target_text, target_trust: Its text, and how far it is trusted.
    """

    kind: str
    content: str = ""
    sources: tuple[int, ...] = ()
    target: str = ""
    target_text: str = ""
    target_trust: str = ""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an edit was not accepted. `rule`: the name of the gate. `why`: a sentence for the language model."""

    rule: str
    why: str


def check(proposal: Proposal, shown: Mapping[int, ShownText], accepted: Sequence[str] = ()) -> Rejection | None:
    """Return why a proposed edit is rejected; None if it passes all gates.

    Args:
        proposal: the edit.
        shown: what the session has shown, by number.
        accepted: the kinds of the edits that passed the gates for this question.
    """
    return (
        _limits(proposal, accepted)
        or _form(proposal)
        or _sources(proposal, shown)
        or _support(proposal, shown)
        or _target(proposal, shown)
    )


def near_duplicate(content: str, others: Iterable[ShownText]) -> ShownText | None:
    """Return the first text that says the same as a new one in nearly the same words; None if there is none."""
    mine = wording(content)
    for each in others:
        other = wording(each.text)
        common = len(mine.stems & other.stems)
        if (
            (mine.numbers, mine.name_words, mine.denies) == (other.numbers, other.name_words, other.denies)
            and common >= SAME_WORDS * len(mine.stems | other.stems)
        ) or mine.sequence == other.sequence:
            return each
    return None


def contradicts(text: str, other: str) -> bool:
    """Return whether a text says about the same names something that the other does not leave room for.

    They share a name and most words beside names and numbers, but each has a name or a number that the other lacks, or
    one of them denies what the other says.
    """
    one, two = wording(text), wording(other)
    claim = two.others
    if len(claim) < MIN_CLAIM or len(claim & one.stems) < SAME_CLAIM * len(claim):
        return False
    if not one.name_words & two.name_words:
        return False
    differ = (one.numbers - two.numbers and two.numbers - one.numbers) or (
        one.name_words - frozenset(two.sequence) and two.name_words - frozenset(one.sequence)
    )
    return bool(differ) or one.denies != two.denies


def keeps(text: str, other: str) -> bool:
    """Return whether a text still says what the other says: it has its names, numbers and most of its words."""
    one, two = wording(text), wording(other)
    return (
        two.numbers <= one.numbers
        and two.name_words <= frozenset(one.sequence)
        and one.denies == two.denies
        and len(two.stems & one.stems) >= MIN_SUPPORT * len(two.stems)
    )


def _limits(proposal: Proposal, accepted: Sequence[str]) -> Rejection | None:
    if proposal.kind not in ("insert", "update", "delete"):
        return Rejection("kind", "An edit is an insert, an update or a delete.")
    if len(accepted) >= MAX_EDITS:
        return Rejection("edits", f"At most {MAX_EDITS} edits per question; they are used up.")
    if proposal.kind == "delete" and accepted.count("delete") >= MAX_DELETES:
        return Rejection("deletes", f"At most {MAX_DELETES} deletion per question; it is used up.")
    if proposal.kind != "insert" and not proposal.target:
        return Rejection("target", "The text to change was not found. Name it by its number.")
    return None


def _form(proposal: Proposal) -> Rejection | None:
    content = proposal.content
    if proposal.kind == "delete":
        return None
    if not content.strip():
        return Rejection("empty", "The text is empty.")
    if len(content) > MAX_CONTENT_CHARS:
        return Rejection("length", f"The text is longer than {MAX_CONTENT_CHARS} characters ({len(content):,}).")
    if clean(content) != " ".join(content.split()) or "\ufffd" in content:
        return Rejection("characters", "The text contains invisible characters.")
    plain = unicodedata.normalize("NFKC", content)
    if found := _MIXED.search(plain):
        return Rejection("characters", f"The word “{found[0][:40]}” has letters of two scripts that look alike.")
    for rule, pattern, why in _RULES:
        if pattern.search(content) or pattern.search(plain):
            return Rejection(rule, why)
    if len(wording(content).others) < MIN_CLAIM:
        return Rejection("label", "The text says nothing about what it names. Write a whole sentence.")
    return None


def _sources(proposal: Proposal, shown: Mapping[int, ShownText]) -> Rejection | None:
    if not proposal.sources:
        return Rejection("sources", "Name the numbers of the results that the edit rests on.")
    missing = sorted(number for number in set(proposal.sources) if number not in shown)
    if missing:
        return Rejection("sources", f"Result {missing[0]} was not shown. Name results that a tool showed.")
    if all(shown[number].iri == proposal.target for number in proposal.sources):
        return Rejection("sources", "A text cannot be the source of its own change. Name another result.")
    return None


def _support(proposal: Proposal, shown: Mapping[int, ShownText]) -> Rejection | None:
    if proposal.kind == "delete":
        return None
    content = wording(proposal.content)
    sources = [wording(shown[number].text) for number in dict.fromkeys(proposal.sources)]
    numbers: set[str] = set().union(*(each.numbers for each in sources))
    if lacking := sorted(content.numbers - numbers):
        return Rejection("numbers", f"No source contains the number {lacking[0]}.")
    if name := next((name for name in content.names if not _is_named(name, sources)), None):
        return Rejection("names", f"No source contains the name “{' '.join(name.words)}”.")
    stems: set[str] = set().union(*(each.stems for each in sources))
    if len(content.stems & stems) < MIN_SUPPORT * len(content.stems):
        lacking = sorted(content.stems - stems)
        return Rejection("support", f"The sources do not say this; they lack, for example, “{lacking[0]}”.")
    if content.denies and not any(each.denies for each in sources):
        return Rejection("support", "The sources do not deny this.")
    return None


def _is_named(name: Name, sources: Sequence[Wording]) -> bool:
    """Return whether a source contains a name, or whole names of sources follow each other in it."""
    if any(source.contains(name.words) for source in sources):
        return True
    if name.initial and any(stem(name.words[0]) in source.others for source in sources):
        rest = name.words[1:]
        if not rest or any(source.contains(rest) for source in sources):
            return True
    whole = {each.words for source in sources for each in source.names}
    return _is_joined(tuple(word for word in name.words if word not in STOPWORDS), whole)


def _is_joined(words: tuple[str, ...], names: set[tuple[str, ...]]) -> bool:
    reached = {0}
    for end in range(1, len(words) + 1):
        if any(words[start:end] in names for start in reached):
            reached.add(end)
    return len(words) in reached and len(words) > 1


def _target(proposal: Proposal, shown: Mapping[int, ShownText]) -> Rejection | None:
    if proposal.kind == "update":
        if " ".join(proposal.content.split()) == " ".join(proposal.target_text.split()):
            return Rejection("same", "The new text is the old one.")
        if not (keeps(proposal.content, proposal.target_text) or contradicts(proposal.content, proposal.target_text)):
            return Rejection("target", "The new text is about something else. Insert it, and leave the old one.")
    elif proposal.kind == "delete":
        sources = [shown[number] for number in proposal.sources]
        against = [each for each in sources if contradicts(each.text, proposal.target_text)]
        if not against:
            return Rejection("contradiction", "No source contradicts the text, so it may not be deleted.")
        if max(rank(each.trust) for each in against) < rank(proposal.target_trust):
            return Rejection(
                "trust",
                f"The text is trusted more ({proposal.target_trust}) than what contradicts it "
                f"({highest(each.trust for each in against)}). Insert the other statement; both are shown.",
            )
    return None
