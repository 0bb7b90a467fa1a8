"""Writes the edits of a corpus as activities in the sense of PROV-O."""

from __future__ import annotations

from kgqa.corpus.edit_log import Edit, EditSource
from kgqa.corpus.items import digest, name_iri
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.terms import integer_term, iri_term, is_iri, stored_value, text_term, triple_of, value_term
from kgqa.model import Literal, Triple


def edit_texts(edit: Edit, *, additions: int | None = None, removals: int | None = None) -> list[str]:
    """Return the triples of an edit as texts, for the view `edits`. What the edit changes is given as numbers.

    Args:
        additions, removals: the numbers, for an edit that was read without its content.
    """
    iri, agent = iri_term(edit.id), f"<{name_iri(v.AGENT, edit.agent)}>"
    found = [
        f"{iri} <{v.TYPE_OF}> <{v.ACTIVITY_TYPE}>",
        f"{iri} <{v.SEQ}> {integer_term(edit.seq)}",
        f"{iri} <{v.EDIT_KIND}> {text_term(edit.kind)}",
        f"{iri} <{v.ADDITIONS}> {integer_term(len(edit.adds) if additions is None else additions)}",
        f"{iri} <{v.REMOVALS}> {integer_term(len(edit.removes) if removals is None else removals)}",
        f"{iri} <{v.ASSOCIATED_WITH}> {agent}",
        f"{agent} <{v.TYPE_OF}> <{v.AGENT_TYPE}>",
        f"{agent} <{v.LABEL}> {text_term(edit.agent)}",
        *(f"{iri} <{v.PREVIOUS}> {iri_term(each)}" for each in edit.previous),
    ]
    if edit.at:
        found.append(f"{iri} <{v.STARTED_AT}> {value_term(stored_value(Literal(edit.at, f'{v.XSD}dateTime')))}")
    texts = ((v.REASON, edit.reason), (v.SESSION, edit.session), (v.QUESTION, edit.question), (v.CONTENT, edit.content))
    found += [f"{iri} <{relation}> {text_term(text)}" for relation, text in texts if text]
    if edit.target:
        found.append(f"{iri} <{v.TARGET}> {iri_term(edit.target) if is_iri(edit.target) else text_term(edit.target)}")
    for source in edit.sources:
        found += _source(iri, source)
    return found


def edit_triples(edit: Edit, *, additions: int | None = None, removals: int | None = None) -> set[Triple]:
    """Return the triples of an edit, for the view `edits`; see `edit_texts`."""
    return set(map(triple_of, edit_texts(edit, additions=additions, removals=removals)))


def _source(edit: str, source: EditSource) -> list[str]:
    """Return what an edit used. A node of the type prov:Usage has the part of the text, its hash and its trust."""
    if not is_iri(source.iri):
        return [f"{edit} <{v.SOURCE}> {text_term(source.iri)}"] if source.iri else []
    iri = iri_term(source.iri)
    found = [f"{edit} <{v.USED}> {iri}"]
    details = []
    if source.end > source.begin:
        details += [(v.BEGIN, integer_term(source.begin)), (v.END, integer_term(source.end))]
    details += [(name, text_term(text)) for name, text in ((v.CONTENT, source.digest), (v.TRUST, source.trust)) if text]
    if details:
        usage = f"<{v.USAGE}{digest(edit, iri, *(value for _, value in details), length=24)}>"
        found += [f"{edit} <{v.QUALIFIED_USAGE}> {usage}", f"{usage} <{v.TYPE_OF}> <{v.USAGE_TYPE}>"]
        found += [f"{usage} <{v.USED_ENTITY}> {iri}", *(f"{usage} <{name}> {value}" for name, value in details)]
    return found
