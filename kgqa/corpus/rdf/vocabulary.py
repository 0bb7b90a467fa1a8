"""The terms of a corpus's graphs, and the IRIs of the graphs.

Terms of NIF, PROV-O, SKOS, DCMI and schema.org are used where they exist; `ontology.ttl` defines the terms with the
prefix `kc:`.
"""

from __future__ import annotations

from kgqa.model.terms import Entity

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
PROV = "http://www.w3.org/ns/prov#"
DCTERMS = "http://purl.org/dc/terms/"
SCHEMA = "http://schema.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
KC = "urn:kgqa:corpus:"
"""Namespace of kgqa's own terms, and the usual base of the graphs' IRIs."""

VIEWS = ("facts", "hyper", "text", "statements", "communities", "edits")
"""The names of the graphs of a corpus."""
BESIDE = "beside"
"""The name of the graph that holds the triples of a knowledge graph beside the corpus."""
SPAN = "urn:kgqa:span:"
AGENT = "urn:kgqa:agent:"
USAGE = "urn:kgqa:usage:"
"""Prefixes of the IRIs of places in texts, of those who make edits, and of what an edit uses."""

LABEL = f"{RDFS}label"
ALIAS = f"{SKOS}altLabel"
TYPE_OF = f"{RDF}type"
SUB_RELATION_OF = f"{RDFS}subPropertyOf"
DESCRIPTION = f"{SCHEMA}description"
MENTIONS = f"{SCHEMA}mentions"

CORPUS = f"{KC}Corpus"
VIEW = f"{KC}view"
"""Each graph has one triple `kc:Corpus kc:view "NAME"`, by which the schema `corpus` is detected."""
HYPEREDGE_TYPE = f"{KC}Hyperedge"
SEGMENT = f"{KC}segment"
PARTY = f"{KC}party"
PARTY_LABEL = "participant"
COMPLETENESS = f"{KC}completeness"

DOCUMENT_TYPES = (f"{SCHEMA}DigitalDocument", f"{NIF}Context")
TEXT_TYPE = f"{NIF}OffsetBasedString"
IN_DOCUMENT = f"{NIF}referenceContext"
BEGIN = f"{NIF}beginIndex"
END = f"{NIF}endIndex"
TEXT = f"{NIF}anchorOf"
PAGE = f"{KC}page"
DIGEST = f"{KC}digest"
TITLE = f"{DCTERMS}title"
SOURCE = f"{DCTERMS}source"
FORMAT = f"{DCTERMS}format"

STATEMENT_TYPE = f"{RDF}Statement"
DERIVED_FROM = f"{PROV}wasDerivedFrom"
IN_CHUNK = f"{KC}chunk"
CONFIDENCE = f"{KC}confidence"
MODEL = f"{KC}model"
PROMPT = f"{KC}prompt"

COMMUNITY_TYPE = f"{KC}Community"
MEMBER = f"{SKOS}member"
PARENT = f"{DCTERMS}isPartOf"
SUMMARY = f"{DCTERMS}abstract"
LEVEL = f"{KC}level"
MEMBERS_HASH = f"{KC}membersHash"

ACTIVITY_TYPE = f"{PROV}Activity"
AGENT_TYPE = f"{PROV}Agent"
ASSOCIATED_WITH = f"{PROV}wasAssociatedWith"
USED = f"{PROV}used"
QUALIFIED_USAGE = f"{PROV}qualifiedUsage"
USAGE_TYPE = f"{PROV}Usage"
USED_ENTITY = f"{PROV}entity"
STARTED_AT = f"{PROV}startedAtTime"
REASON = f"{RDFS}comment"
EDIT_KIND = f"{KC}editKind"
SEQ = f"{KC}seq"
PREVIOUS = f"{KC}previous"
SESSION = f"{KC}session"
QUESTION = f"{KC}question"
TARGET = f"{KC}target"
CONTENT = f"{KC}content"
TRUST = f"{KC}trust"
CONFLICTS_WITH = f"{KC}conflictsWith"
ADDITIONS = f"{KC}additions"
REMOVALS = f"{KC}removals"

STATEMENT_VOCABULARY = {
    "subject": Entity(f"{RDF}subject"),
    "predicate": Entity(f"{RDF}predicate"),
    "object": Entity(f"{RDF}object"),
    "mention": Entity(DERIVED_FROM),
    "document": Entity(IN_DOCUMENT),
    "begin": Entity(BEGIN),
    "end": Entity(END),
}
"""How the graphs `statements` and `text` describe statements and chunks, for `evidence_query`."""


def graph_iris(base: str = KC) -> dict[str, str]:
    """Return the IRI of the graph of each view. `base`: another prefix for several corpora on one server."""
    return {view: f"{base}{view}" for view in VIEWS}


def beside_graph(base: str = KC) -> str:
    """Return the IRI of the graph that holds the triples of a knowledge graph beside the corpus."""
    return f"{base}{BESIDE}"
