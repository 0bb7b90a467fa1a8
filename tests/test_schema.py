"""Schemas: loading, ids and IRIs, noise, errors in files and injection."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_schemas_load(name):
    schema = bundled_schema(name)
    assert schema.name == name
    assert schema.title and schema.label
    assert load_schema(name) == schema
    assert re.fullmatch(r"[0-9a-f]{16}", schema.digest)


def test_digests_differ():
    assert len({bundled_schema(name).digest for name in BUNDLED}) == len(BUNDLED)


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


@given(st.from_regex(r"[mg]\.[A-Za-z0-9_]{1,10}", fullmatch=True))
def test_freebase_id_round_trip(ident):
    assert FREEBASE.iri(ident) == NS + ident
    assert FREEBASE.short_id(FREEBASE.iri(ident)) == ident


@given(st.from_regex(r"[QPL][0-9]{1,8}(-[FS][0-9]{1,3})?", fullmatch=True))
def test_wikidata_id_round_trip(ident):
    assert WIKIDATA.iri(ident) == WD + ident
    assert WIKIDATA.short_id(WIKIDATA.iri(ident)) == ident


_local = st.text(
    st.characters(blacklist_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), blacklist_characters='<>"{}|^`\\ '), max_size=15
)


@pytest.mark.parametrize("name", BUNDLED)
def test_schema_as_text(name):
    schema = bundled_schema(name)
    again = parse_schema(schema_text(schema))
    assert replace(again, source=schema.source) == schema
    assert schema_text(again) == again.source


@pytest.mark.parametrize("name", BUNDLED)
def test_short_id_round_trip(name):
    schema = bundled_schema(name)
    bases = [*schema.prefixes.values(), "http://elsewhere.org/", "urn:x:"]
    if schema.id_base:
        bases.append(schema.id_base)

    @given(st.sampled_from(bases), _local)
    @example(bases[-1], "ü東京")
    @example(bases[-1], "a,b")
    @example(bases[-1], "(film)")
    @example(bases[-1], "a%20b")
    @example(bases[-1], "50%")
    @example(bases[-1], "a#b")
    @example(bases[-1], "x?y=1")
    def round_trip(base, local):
        iri = base + local
        assume(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:.", iri))
        assert schema.iri(schema.short_id(iri)) == iri

    round_trip()


@pytest.mark.parametrize(
    "text",
    [NS + "m.0x", f"<{NS}m.0x>", "ns:m.0x", "m.0x", "  m.0x  "],
    ids=["iri", "angle", "prefixed", "id", "spaces"],
)
def test_forms_of_an_entity_id(text):
    assert FREEBASE.iri(text) == NS + "m.0x"
    assert value_of(text, FREEBASE) == Entity(NS + "m.0x")


def test_value_of_an_entity():
    assert value_of(Entity("urn:x:1"), FREEBASE) == Entity("urn:x:1")


INJECTIONS = [
    "m.0x> . ?a ?b ?c",
    "<http://ex.org/a> . ?a ?b <http://ex.org/b>",
    "http://ex.org/a> } ; DROP ALL ; #",
    "ns:m.0x> ?p ?o . <x:y",
    'http://ex.org/"quoted"',
    "http://ex.org/{x}",
    "http://ex.org/a|b",
    "http://ex.org/a^b",
    "http://ex.org/a`b",
    "http://ex.org/a\\u003eb",
    "http://ex.org/a\nb",
    "http://ex.org/a\n",
    "http://ex.org/a\x00",
    "m.0x\n.\n?a",
    "m.0x ?p ?o",
    "no scheme at all",
    "",
    "<>",
    ":",
    "1http://ex.org/",
]


@pytest.mark.parametrize("schema", [FREEBASE, WIKIDATA, RDFS], ids=lambda schema: schema.name)
@pytest.mark.parametrize("text", INJECTIONS)
def test_iri_refuses_injections(schema, text):
    """Harmless text at the ends is stripped; anything else that could end `<...>` is an error."""
    try:
        iri = schema.iri(text)
    except SchemaError as error:
        assert len(str(error)) < 300  # noqa: PT017  either an error or a harmless IRI
    else:
        assert text.strip() == text[:-1] and iri == "http://ex.org/a"


@given(st.text(max_size=40))
def test_iri_has_no_forbidden_character(text):
    for schema in (FREEBASE, RDFS):
        try:
            iri = schema.iri(text)
        except SchemaError:
            continue
        assert not re.search(r'[\x00-\x20<>"{}|^`\\]', iri)


# ---- relations ----


@pytest.mark.parametrize(
    ("relation", "noise"),
    [
        ("type.object.name", True),
        ("type.object.type", True),
        ("common.topic.alias", True),
        ("common.topic.notable_types", True),
        ("freebase.type_hints.mediator", True),
        ("kg.object_profile.prominent_type", True),
        ("user.tsegaran.random.taxonomy_subject.entry", True),
        ("people.person.gender", False),
        ("location.country.capital", False),
        ("typeface.font.name", False),
        ("common_cold.symptom", False),
        ("base.locations.continents.countries_within", False),
    ],
)
def test_freebase_noise(relation, noise):
    assert FREEBASE.is_noise(NS + relation) is noise


def test_exception_from_noise():
    corpus = bundled_schema("corpus")
    assert corpus.is_noise("urn:kgqa:corpus:mentions")
    assert not corpus.is_noise("urn:kgqa:corpus:party")


@pytest.mark.parametrize(
    ("relation", "label_of"),
    [
        ("wdt:P36", "wd:P36"),
        ("p:P36", "wd:P36"),
        ("ps:P36", "wd:P36"),
        ("pq:P580", "wd:P580"),
        ("wd:P36", "wd:P36"),
        ("rdfs:label", "rdfs:label"),
    ],
)
def test_wikidata_label_subject(relation, label_of):
    assert WIKIDATA.label_subject(WIKIDATA.iri(relation)) == WIKIDATA.iri(label_of)


def test_relations_named_by_an_entity():
    found = WIKIDATA.named_by(WD + "P36")
    assert {WIKIDATA.short_id(relation) for relation in found} == {"wdt:P36", "ps:P36", "pq:P36", "p:P36"}
    assert {WIKIDATA.label_subject(relation) for relation in found} == {WD + "P36"}
    assert WIKIDATA.named_by("http://ex.org/r") == ["http://ex.org/r"]
    assert FREEBASE.named_by(NS + "people.person.gender") == [NS + "people.person.gender"]


@pytest.mark.parametrize(
    "relation",
    ["wikibase:rank", "schema:about", "prov:wasDerivedFrom", "pr:P854", "rdfs:label", "skos:altLabel"]
    + [f"http://www.wikidata.org/prop/{kind}/P36" for kind in ("direct-normalized", "novalue")]
    + [
        f"http://www.wikidata.org/prop/{kind}{of}/P36"
        for kind in ("statement/", "qualifier/", "reference/")
        for of in ("value", "value-normalized")
    ],
)
def test_wikidata_noise(relation):
    assert WIKIDATA.is_noise(WIKIDATA.iri(relation))
    assert not any(WIKIDATA.is_noise(WIKIDATA.iri(f"{prefix}:P36")) for prefix in ("wdt", "p", "ps", "pq"))


def test_probes():
    assert dict(WIKIDATA.probes)[WD + "Q42"] == "Douglas Adams"
    assert dict(FREEBASE.probes)[NS + "m.02mjmr"] == "Barack Obama"
    assert all(len(schema.probes) >= 4 for schema in (WIKIDATA, FREEBASE))
    assert RDFS.probes == bundled_schema("corpus").probes == ()
    own = parse_schema('name = "x"\n[prefixes]\nex = "http://ex.org/"\n[probes]\nentities = [["ex:a", "An A"]]')
    assert own.probes == (("http://ex.org/a", "An A"),)


@pytest.mark.parametrize(
    ("text", "languages"),
    [(None, ()), ("", ()), ("de", ("de",)), ("de,en", ("de", "en")), (" zh-Hans , EN,en", ("zh-hans", "en"))],
)
def test_language_list(text, languages):
    assert language_list(text) == languages


@pytest.mark.parametrize("text", ["de en", "d3", "*", "de,\x1b[31m", "toolonglanguage", "de-"])
def test_invalid_languages(text):
    with pytest.raises(SettingsError, match="graph.languages"):
        language_list(text)


def test_preferred_languages_come_first():
    schema = WIKIDATA.preferring(("de", "mul"))
    assert schema.languages == ("de", "mul", "en", "") and schema.digest == WIKIDATA.digest
    assert WIKIDATA.preferring(()) is WIKIDATA


def test_freebase_relation_has_its_own_label():
    assert FREEBASE.label_subject(NS + "people.person.gender") == NS + "people.person.gender"


@pytest.mark.parametrize(
    ("schema", "relation", "domain"),
    [
        (FREEBASE, NS + "people.person.gender", NS + "people.person"),
        (FREEBASE, NS + "base.locations.continents.countries_within", NS + "base.locations.continents"),
        (FREEBASE, NS + "nodots", None),
        (WIKIDATA, "http://www.wikidata.org/prop/direct/P36", None),
        (RDFS, "http://ex.org/a.b.c", None),
    ],
)
def test_domain_in_name(schema, relation, domain):
    assert schema.domain_in_name(relation) == domain


def test_no_domain_in_names_of_other_namespaces():
    """The namespace is checked, because hosts of other namespaces contain dots as well."""
    assert FREEBASE.domain_in_name(STANDARD_PREFIXES["rdfs"] + "label") is None
    assert FREEBASE.domain_in_name("http://vocabulary.example.org/terms/v1.2/author.name") is None


# ---- errors in a file ----


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ('name = "x"\nnam = "y"', "nam"),
        ('name = "x"\n[names]\nlabels = ["rdfs:label"]', "names.labels"),
        ('name = "x"\n[nosuch]\nkey = 1', "nosuch"),
        ('name = "x"\nnames = 3', "names"),
        ("name = 3", "name"),
        ("", "name"),
        ('name = "x"\ntitle = 3', "title"),
        ('name = "x"\n[names]\nlabel = "rdfs:label"', "names.label"),
        ('name = "x"\n[names]\nlabel = [3]', "names.label"),
        ('name = "x"\n[names]\nlabel = ["no prefix"]', "no prefix"),
        ('name = "x"\n[names]\nlanguages = "en"', "names.languages"),
        ('name = "x"\n[detect]\nfallback = "yes"', "detect.fallback"),
        ('name = "x"\n[types]\ndomain_from_name = 1', "types.domain_from_name"),
        ('name = "x"\n[relations]\nwording = "dots"', "relations.wording"),
        ('name = "x"\n[relations]\nwording = ["label"]', "relations.wording"),
        ('name = "x"\n[relations]\nlabelled_as = [["rdfs:"]]', "relations.labelled_as"),
        ('name = "x"\n[mediators]\nmarked_by = ["rdf:type"]', "mediators.marked_by"),
        ('name = "x"\n[mediators]\npairs = [["rdf:", "rdfs:"]]', "mediators.pairs"),
        ('name = "x"\n[mediators]\nuntrue = ["rdf:type"]', "mediators.untrue"),
        ('name = "x"\n[relations]\ndeclared_by = ["rdf:type"]', "relations.declared_by"),
        ('name = "x"\n[relations]\ndeclared_by = "rdf:type"', "relations.declared_by"),
        ('name = "x"\n[noise]\nmarked_by = ["rdf:type"]', "noise.marked_by"),
        ('name = "x"\n[probes]\nentities = ["rdf:type"]', "probes.entities"),
        ('name = "x"\n[probes]\nentities = [["rdf:type", 3]]', "probes.entities"),
        ('name = "x"\n[probes]\nentities = [["", "x"]]', "probes.entities"),
        ('name = "x"\n[probes]\nentities = [["nowhere:x", "x"]]', "nowhere:x"),
        ('name = "x"\n[probes]\nentity = []', "probes.entity"),
        ('name = "x"\n[walks]\nrule = "wild"', "walks.rule"),
        ('name = "x"\n[prefixes]\nex = 3', "prefixes"),
        ('name = "x"\n[prefixes]\nex = "not an iri"', "prefixes"),
        ('name = "x"\nprefixes = 3', "prefixes"),
        ('name = "x"\n[ids]\nbase = 3', "ids.base"),
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
    file.write_text(
        'name = "own"\n[prefixes]\nex = "http://ex.org/"\n[ids]\nbase = "ex:"\n[names]\nlabel = ["ex:name"]', "utf-8"
    )
    schema = load_schema(file)
    assert schema.label == ("http://ex.org/name",)
    assert schema.title == "own"
    assert schema.iri("thing") == "http://ex.org/thing"


@pytest.mark.parametrize("content", [b"name = 'x'\n#" + b"x" * 1_000_001, b"name = '\xff\xfe'"], ids=["large", "bytes"])
def test_invalid_schema_files(tmp_path, content):
    file = tmp_path / "big.toml"
    file.write_bytes(content)
    with pytest.raises(SchemaError, match="big.toml"):
        load_schema(file)


@pytest.mark.parametrize("name", ["nosuch", "nosuch.toml", "."])
def test_missing_schemas(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SchemaError):
        load_schema(name)


def test_folder_instead_of_a_schema(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(SchemaError):
        load_schema(tmp_path / "folder.toml")


def test_undeclared_prefix_is_an_error():
    with pytest.raises(SchemaError, match="'foo:name' is not declared"):
        parse_schema('name = "own"\n[names]\nlabel = ["foo:name"]\n')
    assert parse_schema('name = "own"\n[names]\nlabel = ["urn:x:name"]\n').label == ("urn:x:name",)


def test_ids_with_the_prefixes_of_a_file_lead_back_to_their_iris():
    """A file may give any name to a namespace, also one with which IRIs of the graph begin."""
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
