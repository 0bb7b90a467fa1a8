"""Turns relations, paths and labels into words for people, BM25 and embeddings.

By default, a relation with a dotted name is written as the last two parts of the name, because this wording ranked best
in measurements (docs/ranking.md). The wording published with Tournament on Path uses full dotted names with `->` and
`<-`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from typing import Literal as OneOf
from urllib.parse import unquote

if TYPE_CHECKING:  # `kgqa --version` needs only `clean`
    from kgqa.model import Named, RelationPath, Step
    from kgqa.schema import Schema

MEETING = " & "
PathWording = OneOf["words", "published"]
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\s._/:#\-+]+")
_BYTE = re.compile("[\udc80-\udcff]")
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn")
"""The Unicode categories of characters that are not shown: control and format characters, surrogates and others."""
_TOKEN = re.compile(r"\w+", re.UNICODE)


def clean(text: str) -> str:
    r"""Return the text as one line without control characters, bidirectional overrides or terminal escapes.

    Bytes of file names that are not UTF-8 are shown as \xNN.
    """
    if text.isprintable():
        return " ".join(text.split())
    text = _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return " ".join("".join(c for c in text if c.isspace() or unicodedata.category(c) not in INVISIBLE).split())


def sentence(message: object) -> str:
    """Add a full stop to a message that has none at its end, so that a second sentence can follow."""
    text = str(message)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def safe_text(text: str) -> str:
    """Remove terminal escapes and control characters from a text; keep line breaks and indentation."""
    shown = (c if c == "\n" or unicodedata.category(c) not in INVISIBLE else " " for c in text.replace("\t", "    "))
    return "\n".join(line.rstrip() if line.strip(" ") else line for line in "".join(shown).split("\n"))


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 triple`, `2,000 triples`; `many` for an irregular plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def text_width(text: str) -> int:
    """Return the width of a text in terminal columns: wide characters take two columns, combining characters none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def split_words(name: str) -> str:
    """Split `team_mascot`, `teamMascot` or `team-mascot` into `team mascot`; keep acronyms whole."""
    spaced = _CAMEL.sub(" ", _SEPARATORS.sub(" ", name).strip())
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in spaced.split())


def local_name(iri: str) -> str:
    """Return the part of an IRI after its last `#`, `/` or `:`, percent-decoded."""
    return unquote(re.split(r"[#/]", iri.rstrip("/#"))[-1].rsplit(":", 1)[-1])


def local_words(iri: str) -> str:
    """Return the readable end of an IRI: `Charlton Athletic FC` for `.../e/Charlton_Athletic_FC`."""
    return clean(local_name(iri).replace("_", " ")) or iri


def relation_words(relation: str, schema: Schema, labels: Mapping[str, str] | None = None) -> str:
    """Return a relation as plain words, for BM25 and embeddings.

    The words are the first of these that exists:

    1. the relation's label;
    2. the last two parts of a dotted name (`sports team team mascot`), because this wording ranked best;
    3. the end of the relation's IRI, split at underscores and capitals.
    """
    return _relation_words(relation, labels.get(relation, "") if labels else "", schema.id_base, schema.wording)


@lru_cache(maxsize=50_000)  # many paths share few relations
def _relation_words(relation: str, label: str, id_base: str, wording: str) -> str:
    if label:
        return clean(label)
    own = id_base and relation.startswith(id_base)
    name = relation.removeprefix(id_base) if own else local_name(relation)
    if wording == "dotted" and "." in name:
        return " ".join(split_words(part) for part in name.split(".")[-2:])
    return split_words(local_name(name)) or clean(name) or relation


_DATATYPES = {
    **dict.fromkeys(("datetime", "date", "dateTime", "gYear", "gYearMonth"), "date time"),
    **dict.fromkeys(("int", "integer", "long", "nonNegativeInteger", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "langString", "rawstring"), "text"),
}


def type_words(type_: str, schema: Schema) -> str:
    """Return a type or datatype as plain words: the last part of its dotted name or of its IRI."""
    name = type_.removeprefix(schema.id_base) if schema.id_base else local_name(type_)
    last = local_name(name).rsplit(".", 1)[-1]
    return _DATATYPES.get(last) or split_words(last)


def short_words(relation: str, schema: Schema, labels: Mapping[str, str] | None = None) -> str:
    """Return the words of a relation for people: `relation_words` without words repeated between type and property.

    `sports team` and `team mascot` become `sports team mascot`.
    """
    words = relation_words(relation, schema, labels)
    name = relation.removeprefix(schema.id_base)
    own = name != relation and schema.wording == "dotted"
    if relation in (labels or {}) or not own or "." not in name:
        return words
    left, right = (split_words(part).split() for part in name.split(".")[-2:])
    overlap = next((n for n in range(min(len(left), len(right) - 1), 0, -1) if left[-n:] == right[:n]), 0)
    return " ".join(left + right[overlap:]) if overlap < len(left) else " ".join(right)


def hop_words(
    path: RelationPath,
    schema: Schema,
    labels: Mapping[str, str] | None = None,
    *,
    is_mediator: Callable[[Step], bool] = lambda step: False,
) -> tuple[str, ...]:
    """Return the words of each logical hop of a path."""
    groups = (_distinctly_named(group, schema) for group in grouped_steps(path, is_mediator))
    return tuple(" ".join(relation_words(step.relation, schema, labels) for step in group) for group in groups)


def grouped_steps(path: RelationPath, is_mediator: Callable[[Step], bool]) -> list[tuple[Step, ...]]:
    """Group the steps into logical hops: a step to a mediator and the step that leaves it form one hop."""
    groups: list[tuple[Step, ...]] = []
    pending: tuple[Step, ...] = ()
    for step in path.steps:
        pending += (step,)
        if not is_mediator(step):
            groups.append(pending)
            pending = ()
    if pending:
        groups.append(pending)
    return groups


def _distinctly_named(group: tuple[Step, ...], schema: Schema) -> list[Step]:
    """Drop steps that have the same name as the previous step (p:P39 and ps:P39 both have the label of wd:P39)."""
    kept: list[Step] = []
    for step in group:
        before = kept[-1].relation if kept else step.relation
        if before == step.relation or schema.label_subject(before) != schema.label_subject(step.relation):
            kept.append(step)
    return kept


def published_words(path: RelationPath, schema: Schema, labels: Mapping[str, str] | None = None) -> str:
    """Return a path in the published wording (thesis, section 3.3.2): full dotted names with `->` and `<-`.

    Args:
        labels: map from IRIs to labels, for relations with unreadable ids such as P36.
    """
    parts = []
    for step in path.steps:
        name = clean((labels or {}).get(step.relation, "")) or schema.short_id(step.relation)
        parts.append(f"{'->' if step.direction == 'out' else '<-'} {name}")
    return " ".join(parts)


def ambiguous_relations(
    relations: Mapping[str, int], schema: Schema, *, of_mediators: Callable[[str], bool]
) -> frozenset[str]:
    """Return the relations with dotted names whose property is not clear without its type: `film` of a director.

    These are the relations that share the name of their property with others, except for one that has more than half of
    the triples of that name.

    Args:
        relations: Map from each relation to its number of triples.
        of_mediators: Whether the subjects of a relation are mediators; such a relation is left out.
    """
    if schema.wording != "dotted":
        return frozenset()
    same: dict[str, dict[str, int]] = {}
    for relation, count in relations.items():
        name = relation.removeprefix(schema.id_base)
        if relation != name and "." in name and not of_mediators(relation):
            same.setdefault(property_words(name.rsplit(".", 1)[-1]), {})[relation] = count
    return frozenset(
        relation
        for counts in same.values()
        for relation, count in counts.items()
        if len(counts) > 1 and 2 * count <= sum(counts.values())
    )


def prompt_words(
    path: RelationPath,
    schema: Schema,
    labels: Mapping[str, str],
    *,
    is_mediator: Callable[[Step], bool],
    inverse: Callable[[str], str | None],
    target_type: Callable[[Step], str | None],
    ambiguous: Container[str],
) -> tuple[str, ...]:
    """Return the words of each logical hop for prompts; a hop is named after what it reaches.

    | words | hop |
    |---|---|
    | `place of birth` | a relation, or the declared inverse of a relation that is followed backwards |
    | `film (as director)` | an ambiguous relation |
    | `person whose "place of birth" is it` | a relation followed backwards; `it` is where the hop starts |
    | `film: character` | through a mediator; a property of the mediator comes after the colon |

    Args:
        is_mediator: Whether a step leads to mediators only.
        inverse: Maps a relation to its declared inverse.
        target_type: Maps a step to the declared type of the nodes it leads to.
        ambiguous: See `ambiguous_relations`.
    """

    def one(step: Step, record: bool) -> str:
        relation = step.relation
        if step.direction == "in":
            back = inverse(relation)
            if not back or (schema.wording != "dotted" and back not in labels):
                type_ = target_type(step) or schema.domain_in_name(relation)
                start = type_words(type_, schema) if type_ else "those"
                return f'{start} whose "{forward(relation, record=True)}" is it'
            relation = back
        return forward(relation, record)

    def forward(relation: str, record: bool) -> str:
        name = relation.removeprefix(schema.id_base)
        if relation in labels or schema.wording != "dotted" or "." not in name:
            return relation_words(relation, schema, labels)
        words, type_ = property_words(name.rsplit(".", 1)[-1]), type_words(name.rsplit(".", 1)[0], schema)
        return words if record or type_ in words or relation not in ambiguous else f"{words} (as {type_})"

    hops = []
    for group in grouped_steps(path, is_mediator):
        parts: list[str] = []
        for step in _distinctly_named(group, schema):
            words = one(step, record=bool(parts))
            if not parts or parts[-1].split(" (as ")[0] not in (words, f"{words}s", f"{words}es"):  # spouses: spouse
                parts.append(words)
        hops.append(": ".join(parts))
    return tuple(hops)


@lru_cache(maxsize=50_000)
def property_words(name: str) -> str:
    """Return the last part of a dotted name as words; Freebase writes a plural as `spouse_s`."""
    return re.sub(r" s$", "s", split_words(name)) or name


def path_key(path: RelationPath, schema: Schema) -> str:
    """Return a string that identifies a path in a trace."""
    return f"{schema.short_id(path.topic.iri)} {published_words(path, schema)}".rstrip()


def paths_key(paths: Iterable[RelationPath], schema: Schema) -> str:
    """Return a string that identifies a set of joined paths, in any order."""
    return MEETING.join(sorted({path_key(path, schema) for path in paths}))


def arrow_words(
    topic: str,
    path: RelationPath,
    schema: Schema,
    labels: Mapping[str, str] | None = None,
    *,
    is_mediator: Callable[[Step], bool] = lambda step: False,
) -> str:
    """Return a path for people: `Kimigayo → national anthem · country → capital`, with `←` for reversed relations."""
    parts = [clean(topic)]
    for group in grouped_steps(path, is_mediator):
        arrow = "→" if group[-1].direction == "out" else "←"
        parts.append(
            f"{arrow} "
            + " · ".join(short_words(step.relation, schema, labels) for step in _distinctly_named(group, schema))
        )
    return " ".join(parts)


def display_name(named: Named) -> str:
    """Return a name with its id or unit: `Tokyo (m.0abc)`, `664 km`.

    The id is omitted if it is a full IRI or that of a blank node.
    """
    name = clean(named.description) or clean(named.name) or clean(named.id)
    if named.unit:
        return f"{name} {clean(named.unit)}"
    ident = clean(named.id)
    if ident in ("", name) or "://" in ident or is_anonymous(ident):
        return name
    return f"{name} ({ident})"


def is_unnamed(named: Named, schema: Schema) -> bool:
    """Return whether a value is an entity without a name, known only by an opaque id."""
    return bool(schema.id_base and named.id) and named.name == named.id


def is_anonymous(iri: str) -> bool:
    """Return whether an id stands for a blank node, which has no name: Wikidata's unknown values, for example."""
    return iri.startswith(("_:", "nodeID:", "urn:kgqa:genid:")) or "/.well-known/genid/" in iri


def normalise(text: str) -> str:
    """Normalise a name for comparison: fold compatibility forms, remove accents and punctuation, lower-case it."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(c for c in folded if not unicodedata.combining(c))
    return " ".join(_TOKEN.findall(re.sub("['\u2019]", "", bare.replace("_", " "))))
