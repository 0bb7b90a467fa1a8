"""The noise rules for Freebase: predicates they drop, predicates they must keep, and parsing."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from kgqa.errors import SchemaError
from kgqa.schema import bundled_schema
from kgqa.virtuoso.freebase.dump.rules import ALL_LANGUAGES, Cleaning, Rule
from kgqa.virtuoso.freebase.rules import check_rules, freebase_rules, parse_rules, protected

NS = "http://rdf.freebase.com/ns/"
SCHEMA = bundled_schema("freebase")
CLEANING = Cleaning(rules=freebase_rules())
COPIES = {
    "http://www.w3.org/2000/01/rdf-schema#label": f"{NS}type.object.name",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": f"{NS}type.object.type",
}


class TestFreebaseRules:
    def test_predicates_of_the_schema_are_kept(self):
        for predicate in sorted({each for group in protected(SCHEMA) for each in group}):
            if predicate in COPIES:
                assert CLEANING.noise(predicate) and not CLEANING.noise(COPIES[predicate])
            else:
                assert CLEANING.noise(predicate) is None, predicate

    @pytest.mark.parametrize(
        "name",
        "type.object.name common.topic.alias type.object.type freebase.type_hints.mediator type.property.expected_type "
        "type.property.schema type.property.reverse_property type.property.unique type.type.extends "
        "freebase.type_hints.included_types common.topic.description common.topic.notable_types common.topic.image "
        "kg.object_profile.prominent_type user.robert.us_congress.us_representative.committee_memberships "
        "people.person.place_of_birth base.biblioness.bibs_location.country common.topic.official_website".split(),
    )
    def test_kept_predicates(self, name):
        assert CLEANING.noise(NS + name) is None

    @pytest.mark.parametrize("name", ["owl#inverseOf", "rdfs domain", "rdfs range"])
    def test_relations_between_relations_are_kept(self, name):
        iri = {
            "owl#inverseOf": "http://www.w3.org/2002/07/owl#inverseOf",
            "rdfs domain": "http://www.w3.org/2000/01/rdf-schema#domain",
            "rdfs range": "http://www.w3.org/2000/01/rdf-schema#range",
        }[name]
        assert any(iri in group for group in protected(SCHEMA))
        assert CLEANING.noise(iri) is None

    @pytest.mark.parametrize(
        ("iri", "rule"),
        [
            (f"{NS}type.object.key", "keys"),
            ("http://rdf.freebase.com/key/wikipedia.en", "keys"),
            (f"{NS}type.type.instance", "types the other way round"),
            (f"{NS}freebase.valuenotation.has_value", "notes about values"),
            (f"{NS}common.topic.topic_equivalent_webpage", "web pages"),
            (f"{NS}common.document.text", "documents"),
            (f"{NS}dataworld.gardening_hint.replaced_by", "editing"),
        ],
    )
    def test_dropped_predicates(self, iri, rule):
        assert CLEANING.noise(iri) == f"noise: {rule}"

    def test_schema_is_still_detected(self):
        left = [predicate for predicate in SCHEMA.detect if not CLEANING.noise(predicate)]
        assert len(left) / len(SCHEMA.detect) > 0.5

    def test_gold_queries_keep_their_predicates(self, data_folder):
        """Predicates with a kept copy are excepted: rdf:type, and types in the other direction."""
        replaced = {*COPIES, f"{NS}type.type.instance"}
        lost = set()
        for file in [*data_folder.glob("freebase*/questions*.gz"), *data_folder.glob("train/*.gz")]:
            with gzip.open(file, "rt", encoding="utf-8") as questions:
                for line in questions:
                    query = json.loads(line).get("sparql_portable") or ""
                    lost |= {iri for iri in set(re.findall(r"<([^<>\s]+)>", query)) - replaced if CLEANING.noise(iri)}
        assert lost == set()


class TestCheckRules:
    @pytest.mark.parametrize("predicate", sorted({each for group in protected(SCHEMA) for each in group}))
    def test_rule_for_a_needed_predicate_is_refused(self, predicate):
        for rule in (Rule("bad", "why", frozenset([predicate])), Rule("bad", "why", prefixes=(predicate[:-2],))):
            with pytest.raises(SchemaError, match="the schema freebase needs"):
                check_rules((rule,), SCHEMA)

    def test_copy_of_a_kept_predicate_may_be_dropped(self):
        label, name = next(iter(COPIES.items()))
        check_rules((Rule("copies", "why", frozenset([label]), copy_of=name),), SCHEMA)

    def test_copy_of_a_dropped_predicate_is_refused(self):
        label, name = next(iter(COPIES.items()))
        rules = (
            Rule("copies", "why", frozenset([label]), copy_of=name),
            Rule("names", "why", frozenset([name]), copy_of=label),
        )
        with pytest.raises(SchemaError):
            check_rules(rules, SCHEMA)

    def test_copy_with_another_use_is_refused(self):
        label, _ = next(iter(COPIES.items()))
        with pytest.raises(SchemaError):
            check_rules((Rule("copies", "why", frozenset([label]), copy_of=f"{NS}type.object.type"),), SCHEMA)


RULES = """
[prefixes]
ns = "http://rdf.freebase.com/ns/"
[[drop]]
name = "keys"
why = "no question asks for them"
predicates = ["ns:type.object.key"]
prefixes = ["ns:type.key."]
"""


class TestParsing:
    def test_parse_rule(self):
        (rule,) = parse_rules(RULES)
        assert rule == Rule(
            "keys", "no question asks for them", frozenset([f"{NS}type.object.key"]), (f"{NS}type.key.",)
        )
        assert rule.drops(f"{NS}type.key.x") and rule.drops(f"{NS}type.object.key")
        assert not rule.drops(f"{NS}type.object.keys") and not rule.drops(f"{NS}type.keys")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("[prefixes]", "[prefixes", "not valid TOML"),
            ('name = "keys"', "", "needs `name` and `why`"),
            ('why = "no question asks for them"', 'why = ""', "needs `name` and `why`"),
            ('prefixes = ["ns:type.key."]', 'prefixes = "ns:type.key."', "may contain only"),
            ('prefixes = ["ns:type.key."]', 'prefix = ["ns:type.key."]', "may contain only"),
            ('["ns:type.key."]', '["type.key."]', "declared in"),
            ('["ns:type.key."]', '["fb:type.key."]', "declared in"),
            ('["ns:type.key."]', "[1]", "declared in"),
            ("\n[prefixes]", "keep = 1\n[prefixes]", "may contain only"),
        ],
    )
    def test_invalid_rules(self, old, new, message):
        with pytest.raises(SchemaError, match=message):
            parse_rules(RULES.replace(old, new, 1), where="my.toml")

    def test_duplicate_rule_names(self):
        with pytest.raises(SchemaError, match="same name"):
            parse_rules(RULES + RULES[RULES.index("[[drop]]") :])


class TestCleaning:
    def test_json_round_trip(self):
        again = Cleaning.from_json(json.loads(json.dumps(CLEANING.as_json())))
        assert again == CLEANING and again.digest == CLEANING.digest

    def test_digests_differ(self):
        digests = {c.digest for c in (CLEANING, Cleaning(), Cleaning(ALL_LANGUAGES), Cleaning(("en", "de")))}
        assert len(digests) == 4
