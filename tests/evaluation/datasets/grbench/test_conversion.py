"""Each rule of the conversion, on ten lines of each of GRBench's five domains."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.evaluation.datasets.grbench import edges as edge_sides
from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.testing.grbench.mini import write_mini_grbench

FIXTURES = Path(__file__).parent / "fixtures"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
INVERSE = "<http://www.w3.org/2002/07/owl#inverseOf>"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture
def converted(tmp_path):
    """Convert a fixture, and return the report and the lines in short form: `graph/id link:x graph/id`."""

    def run(place, **options):
        out = tmp_path / f"{Path(place).name}.nt"
        report = convert(FIXTURES / place, out, **options)
        lines = out.read_text("utf-8").splitlines()
        assert len(lines) == report.triples == len(set(lines)), "no triple is written twice"
        return report, {re.sub(r"<urn:grbench:([^>]*)>", r"\1", line).removesuffix(" .") for line in lines}

    return run


def edges(lines, link):
    """Return the ends of the edges of a link, without the name of the graph."""
    found = (line.split(" ") for line in lines if f" link:{link} " in line)
    return {f"{subject.split('/', 1)[1]} {end.split('/', 1)[1]}" for subject, _, end in found}


def counts(report, link):
    return next(each for each in report.links if each.link == link)


def test_academic(converted):
    report, lines = converted("academic")
    assert report.nodes == {"paper": 3, "author": 2, "venue": 1}
    assert edges(lines, "paper.author") == {"p1 a1", "p1 a2", "p2 a2", "p3 a2"}, "p3 stands at its author alone"
    assert edges(lines, "paper.reference") == {"p1 p2", "p3 p2"}, "a cited_by without a reference is added"
    assert not edges(lines, "paper.cited_by") and not edges(lines, "author.paper")
    assert f"link:paper.reference {INVERSE} link:paper.cited_by" in lines
    assert {f'link:paper.cited_by {LABEL} "cited_by"', f'link:author.paper {LABEL} "paper"'} <= lines
    reference, cited = counts(report, "paper.reference"), counts(report, "paper.cited_by")
    assert (reference.dangling, reference.edges, cited.dangling, cited.only_here, cited.added) == (1, 1, 1, 1, 1)
    authors = counts(report, "paper.author")
    assert (authors.duplicates, authors.only_here, counts(report, "author.paper").added) == (1, 1, 1)
    assert "p1 reference p9" in report.dangling_examples


def test_features_become_literals(converted):
    _, lines = converted("academic")
    assert f'academic/p1 feature:year "2004"^^<{XSD}integer>' in lines
    assert {line for line in lines if "p1 feature:keywords" in line} == {
        'academic/p1 feature:keywords "maps"',
        'academic/p1 feature:keywords "tides"',
    }
    assert f'academic/p2 {LABEL} "Tides, \\"Again\\""' in lines
    assert 'academic/p2 feature:abstract "We look\\nagain."' in lines
    assert f'academic/p3 {LABEL} "Länge und Größe \N{ROCKET}"' in lines
    assert not any("p3 feature:abstract" in line or "p1 feature:abstract" in line for line in lines)


def test_commerce(converted):
    report, lines = converted("commerce")
    assert edges(lines, "item.also_viewed_item") == {"B1 B2", "B2 B1"}, "symmetric"
    assert edges(lines, "item.also_bought_item") == {"B1 B2", "B2 B1", "B1 B3", "B3 B1"}
    assert edges(lines, "item.bought_together_item") == {"B2 B3", "B3 B2"}
    assert edges(lines, "item.buy_after_viewing_item") == {"B1 B2"}, "not symmetric"
    assert counts(report, "item.bought_together_item").dangling == 1
    assert [counts(report, f"item.{each}").added for each in ("also_viewed_item", "also_bought_item")] == [1, 0]
    assert f'commerce/B1 feature:price "19.9"^^<{XSD}decimal>' in lines
    assert not any("B2 feature:price" in line or f"B3 {LABEL}" in line for line in lines)
    assert 'commerce/B1 feature:category "Home,Kitchen"' in lines


def test_literature(converted):
    report, lines = converted("literature")
    assert edges(lines, "book.publisher") == {"11 pub_0", "12 pub_0"} and edges(lines, "book.series") == {"11 71"}
    similar = counts(report, "book.similar_books")
    assert (similar.duplicates, similar.dangling, similar.edges, similar.only_here) == (1, 1, 1, 0)
    assert f'literature/11 feature:num_pages "256"^^<{XSD}integer>' in lines
    assert 'literature/12 feature:publication_year "007"' in lines, "no number as it is usually written"
    assert 'literature/11 feature:description "Long.\\\\ ago"' in lines


def test_healthcare(converted):
    """A link has one name at both ends, and a gene that is regulated does not list the gene that regulates it."""
    report, lines = converted("healthcare")
    assert edges(lines, "Gene-regulates-Gene") == {"10 11", "11 12", "12 11", "12 10"}
    assert not any("Gene-regulates-Gene" in line and INVERSE in line for line in lines)
    assert edges(lines, "Gene-interacts-Gene") == {"10 11", "11 10"}
    assert f"link:Gene-interacts-Gene {INVERSE} link:Gene-interacts-Gene" in lines
    assert edges(lines, "Gene-participates-Biological_Process") == {"10 GO:1", "11 GO:1"}
    assert f'link:Gene-participates-Biological_Process {LABEL} "Gene-participates-Biological Process"' in lines
    inverse = "link:Biological_Process.Gene-participates-Biological_Process"
    assert f"link:Gene-participates-Biological_Process {INVERSE} {inverse}" in lines
    assert edges(lines, "Disease-associates-Gene") == {"DOID:1 10", "DOID:1 12"}
    assert counts(report, "Disease.Disease-associates-Gene").only_here == 1
    assert counts(report, "Gene.Gene-regulates-Gene").only_here == 0


def test_legal(converted):
    report, lines = converted("legal")
    assert edges(lines, "docket.court") == {"d-1 orrct"}, "d-2 stands at its court alone, with an id of another form"
    dockets = counts(report, "court.docket")
    assert (dockets.without_prefix, dockets.dangling, dockets.only_here, dockets.added) == (3, 1, 1, 0)
    assert edges(lines, "opinion.reference") == {"op-1 op-2", "op-3 op-1", "op-3 op-2"}, "lists by depth, too"
    assert f'legal/opc-1 {LABEL} "Bel v. Cor"' in lines and f'legal/d-1 {LABEL} "310007.0"' in lines
    assert f'legal/op-1 {LABEL} "The court of Orrin hears the case."' in lines
    assert not any("NaN" in line or 'feature:attorneys "' in line for line in lines)


def test_order_of_lists(converted):
    _, lines = converted("academic", keep_order=True)
    order = {line.split(" ", 2)[1]: line.split(" ", 2)[2] for line in lines if line.startswith("academic/p1 order:")}
    assert json.loads(json.loads(order["order:keywords"])) == ["maps", "tides"]
    assert json.loads(json.loads(order["order:paper.author"])) == ["urn:grbench:academic/a1", "urn:grbench:academic/a2"]
    plain = converted("academic")[1]
    assert plain == {line for line in lines if " order:" not in line}


def write_graph(folder, sections):
    folder.mkdir(exist_ok=True)
    (folder / "graph.json").write_text(json.dumps(sections), encoding="utf-8")
    return folder


def node(features=(), **neighbours):
    return {"features": dict(features), "neighbors": neighbours}


def test_ids_that_two_types_share(converted, tmp_path):
    place = write_graph(
        tmp_path / "clash",
        {
            "book_nodes": {"1": node({"title": "One"}, author=["1"]), "2": node({"title": "Two"}, author=["5", "1"])},
            "author_nodes": {"1": node({"name": "Ada"}, book=["1", "2"]), "5": node({"name": "Bo"}, book=["2"])},
        },
    )
    report, lines = converted(place)
    assert edges(lines, "book.author") == {"book/1 author/1", "2 author/1", "2 5"}
    assert report.shared_ids == 2 and set(report.shared_examples) == {"book/1", "author/1"}
    assert not sum(each.added + each.only_here for each in report.links)


def test_repeated_nodes_are_refused(tmp_path):
    one = json.dumps(node({"name": "old"}))
    (tmp_path / "graph.json").write_text(f'{{"author_nodes": {{"1": {one}, "2": {one}, "1": {one}}}}}')
    with pytest.raises(LoadError, match="twice"):
        convert(tmp_path, tmp_path / "x.nt")


def test_values_too_long_for_a_line_are_cut(converted, tmp_path, monkeypatch):
    monkeypatch.setattr("kgqa.evaluation.datasets.grbench.lines.MAX_CHARS", 5)
    place = write_graph(tmp_path / "long", {"opinion_nodes": {"1": node({"plain_text": "0123456", "x": ["01", "23"]})}})
    report, lines = converted(place)
    assert report.cut_values == 1
    assert {'long/1 feature:plain_text "01234"', 'long/1 feature:x "23"'} <= lines


def test_hostile_text_stays_text(converted, tmp_path):
    bad = 'x" . <urn:a> <urn:b> "\\\r\n\x00\x1f\ud800> <'
    place = write_graph(
        tmp_path / "hostile",
        {f"{bad}_nodes": {bad: node({bad: bad, "title": bad}, **{bad: [bad, "é /#?%"]}), "é /#?%": node()}},
    )
    out = tmp_path / "hostile.nt"
    report = convert(place, out)
    pyoxigraph = pytest.importorskip("pyoxigraph")
    triples = list(pyoxigraph.parse(out.read_bytes(), format=pyoxigraph.RdfFormat.N_TRIPLES))
    assert len(triples) == report.triples
    assert {each.subject.value.split(":")[1] for each in triples} == {"grbench"}
    title = next(each.object.value for each in triples if each.predicate.value == "urn:grbench:feature:title")
    assert title == bad.replace("\x00", "").replace("\ud800", "?")


def test_small_buffers_change_nothing(tmp_path, monkeypatch):
    """Hashes in files, small blocks and gzip give the same triples as everything in memory."""
    for place in write_mini_grbench(tmp_path, per_template=1):
        whole = tmp_path / f"{place.name}.nt"
        report = convert(place, whole)
        with monkeypatch.context() as patch:
            patch.setattr(edge_sides, "BUFFER", 64)
            patch.setattr("kgqa.evaluation.datasets.grbench.scan.BATCH", 10)
            (place / "graph.json.gz").write_bytes(gzip.compress((place / "graph.json").read_bytes()))
            (place / "graph.json").unlink()
            out = tmp_path / f"{place.name}-again.nt.gz"
            again = convert(place, out)
        assert sorted(gzip.decompress(out.read_bytes()).splitlines()) == sorted(whole.read_bytes().splitlines())
        assert again == replace(report, seconds=again.seconds)


def test_out_is_whole_or_not_at_all(tmp_path):
    place = tmp_path / "legal"
    place.mkdir()
    text = (FIXTURES / "legal" / "graph.json").read_text()
    (place / "graph.json").write_text(text[:-200])
    out = tmp_path / "legal.nt.gz"
    out.write_bytes(b"old")
    with pytest.raises(LoadError, match="damaged or not a graph of GRBench"):
        convert(place, out)
    assert out.read_bytes() == b"old" and sorted(each.name for each in tmp_path.iterdir()) == ["legal", "legal.nt.gz"]


@pytest.mark.parametrize("stage", ["reading", "writing"])
def test_ctrl_c_leaves_nothing(tmp_path, stage):
    def stop(now, done, total):
        assert 0 < done <= total
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(FIXTURES / "legal", tmp_path / "legal.nt", progress=stop)
    assert not list(tmp_path.iterdir())
