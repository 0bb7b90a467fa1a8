"""Checks of a graph's content: labels, schema, well-known entities."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgqa.doctor.graph_checks import judge_schema
from kgqa.graph.detection import SchemaFit
from kgqa.graph.opening import load_into_folder
from kgqa.schema import BUNDLED, bundled_schema
from tests.doctor.subjects import examined

FREEBASE, WIKIDATA, RDFS = map(bundled_schema, ("freebase", "wikidata", "rdfs"))
LABEL, FOREIGN = "http://www.w3.org/2000/01/rdf-schema#label", "http://example.org/called"
PEOPLE = 26


def graph(tmp_path, *triples: str, more: Sequence[str] = ()) -> str:
    """Load people who know each other with these triples of each person, and more triples; return the folder."""
    knows = "<http://example.org/knows> <http://example.org/p{}>"
    lines = [f"<http://example.org/p{n}> {knows.format((7 * n + 3) % PEOPLE)}" for n in range(PEOPLE)]
    lines += [f"<http://example.org/p{n}> {triple.format(n)}" for n in range(PEOPLE) for triple in triples]
    (tmp_path / "people.nt").write_text("".join(f"{line} .\n" for line in [*lines, *more]))
    load_into_folder([tmp_path / "people.nt"], tmp_path / "graph")
    return str(tmp_path / "graph")


@pytest.mark.parametrize(
    "names, trusted, verdict, word",
    [
        ([f'<{LABEL}> "Person {{}}"'], True, "ok", "26 of 26"),
        (['<http://schema.org/name> "Person {}"'], True, "ok", "26 of 26"),
        ([f'<{LABEL}> "Mensch {{}}"@de'], True, "warning", "0 of 26 sampled entities have a label in en"),
        ([], False, "failed", "0 of 26"),
        ([f'<{FOREIGN}> "Person {{}}"'], False, "failed", f"have texts by <{FOREIGN}>."),
        ([f'<{FOREIGN}> "Person {{}}"@en', '<http://e/age> "{}"^^<http://e/n>'], False, "failed", f"by <{FOREIGN}>."),
    ],
)
def test_only_a_graph_with_readable_labels_is_trusted(tmp_path, names, trusted, verdict, word):
    health, findings = examined(tmp_path, graph(tmp_path, *names))
    labels = findings["labels"]
    assert (health.trusted, labels.verdict) == (trusted, verdict) and word in labels.found
    assert bool(labels.remedy) == (verdict != "ok")
    assert findings["full-text search"].verdict == ("ok" if verdict == "ok" else "warning" if not trusted else "ok")


@pytest.mark.parametrize("labelled, verdict", [(2, "failed"), (3, "warning"), (20, "warning"), (21, "ok")])
def test_share_of_labels(tmp_path, labelled, verdict):
    labels = [f'<http://example.org/p{n}> <{LABEL}> "Person {n}"' for n in range(labelled)]
    folder = graph(tmp_path, more=labels)
    assert examined(tmp_path, folder)[1]["labels"].verdict == verdict


def test_schema_file_with_the_predicate_of_the_names_is_trusted(tmp_path):
    schema = tmp_path / "own.toml"
    schema.write_text(f'name = "own"\ntitle = "Own"\n[names]\nlabel = ["{FOREIGN}"]\nlanguages = ["en", ""]\n')
    folder = graph(tmp_path, f'<{FOREIGN}> "Person {{}}"')
    health, findings = examined(tmp_path, folder, **{"graph.schema": str(schema)})
    assert health.trusted, findings
    assert findings["schema"].found == "Own (from the settings); it lists no characteristic predicates."


def fits(**hits: int) -> list[SchemaFit]:
    schemas = {name: bundled_schema(name) for name in BUNDLED}
    return [
        SchemaFit(schema, hits.get(name, 0), len(schema.label if schema.fallback else schema.detect))
        for name, schema in schemas.items()
    ]


@pytest.mark.parametrize(
    "chosen, found, verdict, word",
    [
        (FREEBASE, {"freebase": 3}, "ok", "3 of 3"),
        (FREEBASE, {"freebase": 2, "wikidata": 2}, "warning", "Wikidata fits too: 2 of 4"),
        (WIKIDATA, {"freebase": 3}, "failed", "Freebase fits too: 3 of 3"),
        (WIKIDATA, {}, "failed", "0 of 4"),
        (WIKIDATA, {"freebase": 3, "wikidata": 1}, "warning", "Freebase fits too"),
        (RDFS, {}, "warning", "IRIs are used as names"),
    ],
)
def test_schema_verdicts(chosen, found, verdict, word):
    finding = judge_schema(chosen, fits(**found), origin="detected")
    assert finding.verdict == verdict and word in finding.found and bool(finding.remedy) == (verdict != "ok")


@pytest.mark.parametrize(
    "names, verdict, word",
    [
        (["JAPAN ", "Iceland"], "ok", "Found 2 of 2"),
        ([], "failed", "Found 0 of 2"),
        (["Japan", "Ireland"], "failed", "1 of 2 well-known entities have other names: Q1 should be Iceland but is"),
    ],
)
def test_known_entities(tmp_path, names, verdict, word):
    schema = tmp_path / "own.toml"
    schema.write_text(
        f'name = "own"\ntitle = "Own"\n[ids]\nbase = "http://q/"\nexample = "Q1"\n[names]\nlabel = ["{LABEL}"]\nlanguages = ["en", ""]\n'
        '[probes]\nentities = [["http://q/Q0", "Japan"], ["http://q/Q1", "Iceland"]]\n'
    )
    known = [f'<http://q/Q{n}> <{LABEL}> "{name}"' for n, name in enumerate(names)]
    folder = graph(tmp_path, f'<{LABEL}> "Person {{}}"', more=known)
    finding = examined(tmp_path, folder, **{"graph.schema": str(schema)})[1]["known entities"]
    assert finding.verdict == verdict and word in finding.found, finding
