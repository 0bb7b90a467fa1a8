"""Values in the order of GRBench's lists, if the graph was converted with it."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.grbench.conversion import convert
from tests.memory_graph import memory_graph

from .conftest import played

IDS = ["p7", "p1", "p12", "p3"]
PAPERS = [f"Paper {each}" for each in [*IDS, "p5"]]


@pytest.fixture(scope="module", params=[True, False], ids=["with order", "without"])
def papers(tmp_path_factory, request):
    """A graph converted with the order of lists or without, and what sorts values if there is none."""
    graph = memory_graph(converted(tmp_path_factory.mktemp("papers"), keep_order=request.param), schema="grbench")
    return graph, list if request.param else sorted


def converted(folder, *, keep_order=True):
    """Return the triples of two authors and their papers."""

    def node(name, **links):
        return {"features": {"title": name, "keywords": ["tides", "maps", "bridges"]}, "neighbors": links}

    nodes = {each: node(f"Paper {each}", author=["a1"]) for each in [*sorted(IDS), "p5"]}
    nodes["p5"]["neighbors"] |= {"reference": IDS[1:]}
    authors = {"a1": {"features": {"name": "Mira Belander"}, "neighbors": {"paper": [*IDS, "p5"]}}}
    authors["a2"] = {"features": {"name": "Odo Renk"}, "neighbors": {"paper": ["p1", "p3", "p3", "gone", "lost"]}}
    (folder / "graph.json").write_text(json.dumps({"paper_nodes": nodes, "author_nodes": authors}))
    convert(folder, folder / "papers.nt", name="papers", keep_order=keep_order)
    return (folder / "papers.nt").read_text().splitlines()


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("Neighbour[Retrieve[Mira Belander], paper]", PAPERS),  # the order of the inverse link
        ("Neighbour[Retrieve[Paper p5], reference]", PAPERS[1:4]),
        ("Feature[Retrieve[Paper p5], keywords]", ["tides", "maps", "bridges"]),
        ("Neighbour[Neighbour[Retrieve[Paper p5], author], paper]", PAPERS),
    ],
)
def test_neighbours_and_values_keep_their_order(papers, call, names):
    graph, in_order = papers
    found = played(graph, call).observations[0].found
    assert [each.name for each in found.values] == in_order(names)


@pytest.mark.parametrize(("author", "part"), [("Odo Renk", "degree:author.paper"), ("Mira Belander", "COUNT")])
def test_degree_counts_the_ids_of_no_node_as_the_data_set_does(papers, author, part):
    done = played(papers[0], f"Degree[Retrieve[{author}], paper]", "Finish[5]")
    assert [each.number for each in done.observations[0].found.numbers] == [5]
    assert done.answer.query_class == "exact" and part in done.answer.sparql


@pytest.mark.parametrize("stated", ["many", "5.5", "\u00b2"])
def test_a_stated_degree_that_is_no_number_is_counted(tmp_path, stated):
    lines = [line.replace('"5"', f'"{stated}"') if "degree:" in line else line for line in converted(tmp_path)]
    done = played(memory_graph(lines, schema="grbench"), "Degree[Retrieve[Odo Renk], paper]")
    assert [each.number for each in done.observations[0].found.numbers] == [2]
