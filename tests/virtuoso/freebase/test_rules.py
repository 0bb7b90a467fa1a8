"""The noise rules for Freebase: predicates they drop, predicates they must keep, and parsing."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from msgspec import to_builtins

from kgqa.schema import bundled_schema
from kgqa.storage.loading import convert
from kgqa.virtuoso.freebase.dump.rules import ALL_LANGUAGES, Cleaning, Rule
from kgqa.virtuoso.freebase.rules import freebase_rules

NS = "http://rdf.freebase.com/ns/"
SCHEMA = bundled_schema("freebase")
CLEANING = Cleaning(rules=freebase_rules())
COPIES = {
    "http://www.w3.org/2000/01/rdf-schema#label": f"{NS}type.object.name",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": f"{NS}type.object.type",
}


def needed_predicates() -> set[str]:
    """Return the predicates that the schema needs."""
    groups = [SCHEMA.label, SCHEMA.alias, SCHEMA.types, SCHEMA.domain, SCHEMA.range, SCHEMA.inverse]
    groups += [SCHEMA.mediator_object_of, SCHEMA.mediator_subject_of]
    # in each of these tuples (predicate, value, ...), only the first item is a predicate
    groups += [marks[:1] for marks in (SCHEMA.mediator_marked_by or (), SCHEMA.noise_marked_by, SCHEMA.declared_by)]
    return {predicate for group in groups for predicate in group}


class TestFreebaseRules:
    def test_rules_are_valid(self):
        rules = freebase_rules()
        assert len({rule.name for rule in rules}) == len(rules) and all(rule.why for rule in rules)
        assert {copied: rule.copy_of for rule in rules if rule.copy_of for copied in rule.predicates} == COPIES

    def test_predicates_of_the_schema_are_kept(self):
        for predicate in sorted(needed_predicates()):
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
        assert iri in needed_predicates()
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


class TestCleaning:
    def test_rule_drops_predicates_by_name_and_prefix(self):
        rule = Rule("keys", "why", (f"{NS}type.object.key",), (f"{NS}type.key.",))
        assert rule.drops(f"{NS}type.key.x") and rule.drops(f"{NS}type.object.key")
        assert not rule.drops(f"{NS}type.object.keys") and not rule.drops(f"{NS}type.keys")

    def test_json_round_trip(self):
        again = convert(json.loads(json.dumps(to_builtins(CLEANING))), Cleaning)
        assert again == CLEANING and again.digest == CLEANING.digest

    def test_digests_differ(self):
        digests = {c.digest for c in (CLEANING, Cleaning(), Cleaning(ALL_LANGUAGES), Cleaning(("en", "de")))}
        assert len(digests) == 4
