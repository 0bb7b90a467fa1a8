"""Schemas: loading, ids and IRIs, noise, errors in files and injection."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kgqa.errors import SchemaError, SettingsError
from kgqa.model import Entity
from kgqa.schema import (
    BUNDLED,
    STANDARD_PREFIXES,
    bundled_schema,
    language_list,
    load_schema,
    parse_schema,
    schema_text,
    usable_prefixes,
    value_of,
)

NS = "http://rdf.freebase.com/ns/"
WD = "http://www.wikidata.org/entity/"
FREEBASE = bundled_schema("freebase")
WIKIDATA = bundled_schema("wikidata")
RDFS = bundled_schema("rdfs")


def test_bundled_schemas():
    schemas = {name: load_schema(name) for name in BUNDLED}
    assert all(schema.name == name and schema.title and schema.label for name, schema in schemas.items())
    assert len({schema.digest for schema in schemas.values()}) == len(BUNDLED)
    for schema in schemas.values():
        again = parse_schema(schema_text(schema))
        assert replace(again, source=schema.source) == schema and schema_text(again) == again.source


# ---- ids and IRIs ----


@pytest.mark.parametrize(
    ("schema", "iri", "short"),
    [
        (FREEBASE, NS + "m.07dfk", "m.07dfk"),
        (FREEBASE, NS + "people.person.gender", "people.person.gender"),
        (FREEBASE, STANDARD_PREFIXES["rdfs"] + "label", "rdfs:label"),
        (FREEBASE, "http://rdf.freebase.com/key/en", "key:en"),
        (WIKIDATA, WD + "Q42", "Q42"),
        (WIKIDATA, WD + "L7-F4", "L7-F4"),
        (WIKIDATA, "http://www.wikidata.org/prop/direct/P36", "wdt:P36"),
        (WIKIDATA, "http://www.wikidata.org/prop/P36", "p:P36"),
        (WIKIDATA, WD + "statement/Q42-abc", "wds:Q42-abc"),
        (RDFS, "http://xmlns.com/foaf/0.1/name", "foaf:name"),
        (RDFS, "http://elsewhere.org/x/y", "http://elsewhere.org/x/y"),
    ],
)
def test_short_id_and_back(schema, iri, short):
    assert schema.short_id(iri) == short
    assert schema.iri(short) == iri


_local = st.text(
    st.characters(blacklist_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), blacklist_characters='<>"{}|^`\\ '), max_size=15
)


@pytest.mark.parametrize("name", BUNDLED)
def test_short_id_round_trip(name):
    schema = bundled_schema(name)
    bases = [*schema.prefixes.values(), "http://elsewhere.org/", "urn:x:", *filter(None, [schema.id_base])]

    @given(st.sampled_from(bases), _local)
    @example(bases[-1], "ü東京")
    @example(bases[-1], "50%")
    @example(bases[-1], "a#b")
    @example(bases[-1], "x?y=1,(film)")
    def round_trip(base, local):
        iri = base + local
        assume(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:.", iri))
        assert schema.iri(schema.short_id(iri)) == iri

    round_trip()


@pytest.mark.parametrize("text", [NS + "m.0x", f"<{NS}m.0x>", "ns:m.0x", "m.0x", "  m.0x  "])
def test_forms_of_an_entity_id(text):
    assert value_of(text, FREEBASE) == value_of(Entity(NS + "m.0x"), WIKIDATA) == Entity(NS + "m.0x")


INJECTIONS = [
    "m.0x> . ?a ?b ?c", "<http://ex.org/a> . ?a ?b <http://ex.org/b>", "http://ex.org/a> } ; DROP ALL ; #",
    "ns:m.0x> ?p ?o . <x:y", 'http://ex.org/"quoted"', "http://ex.org/{x}", "http://ex.org/a\\u003eb", "http://ex.org/a\nb",
    "http://ex.org/a\x00", "no scheme at all", "", "<>", ":", "1http://ex.org/",
]  # fmt: skip


@pytest.mark.parametrize("text", INJECTIONS)
def test_iri_refuses_injections(text):
    for schema in (FREEBASE, WIKIDATA, RDFS):
        with pytest.raises(SchemaError) as raised:
            schema.iri(text)
        assert len(str(raised.value)) < 300


@given(st.text(max_size=40))
@example("http://ex.org/a\n")
def test_iri_has_no_forbidden_character(text):
    for schema in (FREEBASE, RDFS):
        with suppress(SchemaError):
            iri = schema.iri(text)
            assert not re.search(r'[\x00-\x20<>"{}|^`\\]', iri)


# ---- relations ----


def test_noise():
    """Names, types and administrative data; relations whose names begin alike are none."""
    noise = (
        "type.object.name common.topic.alias freebase.type_hints.mediator user.tsegaran.random.taxonomy_subject.entry"
    )
    assert all(FREEBASE.is_noise(NS + relation) for relation in noise.split())
    others = "people.person.gender typeface.font.name common_cold.symptom location.country.capital"
    assert not any(FREEBASE.is_noise(NS + relation) for relation in others.split())
    corpus = load_schema("corpus")
    assert corpus.is_noise("urn:kgqa:corpus:mentions") and not corpus.is_noise("urn:kgqa:corpus:party")


def test_relations_and_the_entities_with_their_labels():
    found = WIKIDATA.named_by(WD + "P36")
    assert {WIKIDATA.short_id(relation) for relation in found} == {"wdt:P36", "ps:P36", "pq:P36", "p:P36"}
    assert {WIKIDATA.label_subject(relation) for relation in (*found, WD + "P36")} == {WD + "P36"}
    for schema, relation in ((WIKIDATA, "http://ex.org/r"), (FREEBASE, NS + "people.person.gender")):
        assert schema.named_by(relation) == [schema.label_subject(relation)] == [relation]


def test_wikidata_noise():
    kinds = [f"{kind}/value{form}" for kind in ("statement", "qualifier", "reference") for form in ("", "-normalized")]
    noise = "wikibase:rank schema:about prov:wasDerivedFrom pr:P854 rdfs:label skos:altLabel".split()
    noise += [f"http://www.wikidata.org/prop/{kind}/P36" for kind in ("direct-normalized", "novalue", *kinds)]
    assert all(WIKIDATA.is_noise(WIKIDATA.iri(relation)) for relation in noise)
    assert not any(WIKIDATA.is_noise(WIKIDATA.iri(f"{prefix}:P36")) for prefix in ("wdt", "p", "ps", "pq"))


def test_probes():
    assert dict(WIKIDATA.probes)[WD + "Q42"] == "Douglas Adams"
    assert dict(FREEBASE.probes)[NS + "m.02mjmr"] == "Barack Obama"
    own = parse_schema('name = "x"\n[prefixes]\nex = "http://ex.org/"\n[probes]\nentities = [["ex:a", "An A"]]')
    assert own.probes == (("http://ex.org/a", "An A"),)


def test_languages():
    given = {None: "", "": "", "de": "de", "de,en": "de en", " zh-Hans , EN,en": "zh-hans en"}
    assert {text: " ".join(language_list(text)) for text in given} == given
    for text in ("de en", "d3", "*", "de,\x1b[31m", "toolonglanguage", "de-"):
        with pytest.raises(SettingsError, match="graph.languages"):
            language_list(text)


def test_preferred_languages_come_first():
    schema = WIKIDATA.preferring(("de", "mul"))
    assert schema.languages == ("de", "mul", "en", "") and schema.digest == WIKIDATA.digest
    assert WIKIDATA.preferring(()) is WIKIDATA


def test_domain_in_name():
    domains = {
        NS + "people.person.gender": NS + "people.person",
        NS + "base.locations.continents.countries_within": NS + "base.locations.continents",
        NS + "nodots": None,
        "http://vocabulary.example.org/terms/v1.2/author.name": None,  # hosts have dots as well
    }
    assert {relation: FREEBASE.domain_in_name(relation) for relation in domains} == domains
    assert RDFS.domain_in_name("http://ex.org/a.b.c") is None


# ---- errors in a file ----


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ('name = "x"\nnam = "y"', "nam"),
        ('name = "x"\n[names]\nlabels = ["rdfs:label"]', "names.labels"),
        ("name = 3", "name"),
        ('name = "x"\n[names]\nlabel = "rdfs:label"', "names.label"),
        ('name = "x"\n[names]\nlabel = ["no prefix"]', "no prefix"),
        ('name = "x"\n[names]\nlabel = ["foo:name"]', "the prefix of 'foo:name' is not declared"),
        ('name = "x"\n[detect]\nfallback = "yes"', "detect.fallback"),
        ('name = "x"\n[relations]\nwording = "dots"', "relations.wording"),
        ('name = "x"\n[relations]\nlabelled_as = [["rdfs:"]]', "relations.labelled_as"),
        ('name = "x"\n[mediators]\npairs = [["rdf:", "rdfs:"]]', "mediators.pairs"),
        ('name = "x"\n[relations]\ndeclared_by = ["rdf:type"]', "relations.declared_by"),
        ('name = "x"\n[probes]\nentities = [["rdf:type", 3]]', "probes.entities"),
        ('name = "x"\n[probes]\nentities = [["", "x"]]', "probes.entities"),
        ('name = "x"\n[probes]\nentities = [["nowhere:x", "x"]]', "nowhere:x"),
        ('name = "x"\n[walks]\nrule = "wild"', "walks.rule"),
        ('name = "x"\n[prefixes]\nex = 3', "prefixes"),
        ('name = "x"\n[prefixes]\nex = "not an iri"', "prefixes"),
        ('name = "x"\n[ids]\nbase = "http://ex.org/> ?a ?b"', "http://ex.org/> ?a ?b"),
        ("name = ", "Invalid value"),
    ],
)
def test_error_names_the_key(toml, named):
    with pytest.raises(SchemaError, match=re.escape(named)) as caught:
        parse_schema(toml, where="mine.toml")
    assert "mine.toml" in str(caught.value)


def test_schema_file(tmp_path):
    file = tmp_path / "own.toml"
    prefixes = '[prefixes]\nex = "http://ex.org/"\n[ids]\nbase = "ex:"'
    file.write_text(f'name = "own"\n{prefixes}\n[names]\nlabel = ["ex:name", "urn:x:name"]', "utf-8")
    schema = load_schema(file)
    assert schema.label == ("http://ex.org/name", "urn:x:name") and schema.title == "own"
    assert schema.iri("thing") == "http://ex.org/thing"
    for content in (b"name = 'x'\n#" + b"x" * 1_000_001, b"name = '\xff\xfe'"):
        file.write_bytes(content)
        with pytest.raises(SchemaError, match=r"own\.toml"):
            load_schema(file)
    for name in ("nosuch", tmp_path / "nosuch.toml", ".", tmp_path):
        with pytest.raises(SchemaError):
            load_schema(name)


def test_ids_with_the_prefixes_of_a_file_lead_back_to_their_iris():
    declared = {"": "http://e.org/", "isbn": "http://isbn.org/", "bif": "http://e.org/bif#", "urn": "http://e.org/urn#"}
    assert set(usable_prefixes(declared)) == {"", "isbn"}
    schema = load_schema("rdfs").with_prefixes(usable_prefixes(declared))
    for iri, id_ in {
        "http://e.org/ada": ":ada",
        "http://isbn.org/0441": "isbn:0441",
        "isbn:0441": "<isbn:0441>",
        "isbn://x/0441": "isbn://x/0441",
        "urn:isbn:0441": "urn:isbn:0441",
        "http://e.org/bif#f": "http://e.org/bif#f",
    }.items():
        assert (schema.short_id(iri), schema.iri(id_)) == (id_, iri)
