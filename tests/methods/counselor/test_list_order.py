"""Values in the order of GRBench's lists, if the graph was converted with it."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.grbench.conversion import convert
from tests.memory_graph import memory_graph
from tests.methods.counselor.conftest import played

IDS = ["p7", "p1", "p12", "p3"]


@pytest.fixture(scope="module")
def graphs_of_papers(tmp_path_factory):
    """The same papers converted with the order of lists, and without."""
    folder = tmp_path_factory.mktemp("papers")

    def node(name, **links):
        return {"features": {"title": name, "keywords": ["tides", "maps", "bridges"]}, "neighbors": links}

    papers = {each: node(f"Paper {each}", author=["a1"]) for each in [*sorted(IDS), "p5"]}
    papers["p5"]["neighbors"] |= {"reference": IDS[1:]}
    authors = {"a1": {"features": {"name": "Mira Belander"}, "neighbors": {"paper": [*IDS, "p5"]}}}
    authors["a2"] = {"features": {"name": "Odo Renk"}, "neighbors": {"paper": ["p1", "p3", "p3", "gone", "lost"]}}
    (folder / "graph.json").write_text(json.dumps({"paper_nodes": papers, "author_nodes": authors}))
    found = []
    for keep in (True, False):
        convert(folder, folder / "papers.nt", name="papers", keep_order=keep)
        found.append(memory_graph((folder / "papers.nt").read_text().splitlines(), schema="grbench"))
    return found


def seen(graph, call):
    done = played(graph, call, "Finish[nothing]")
    assert not done.problems
    return [each.name for each in done.observations[-1].found.values]


def test_neighbours_and_values_keep_their_order(graphs_of_papers):
    with_order, without = graphs_of_papers
    papers = [f"Paper {each}" for each in [*IDS, "p5"]]
    assert seen(with_order, "Neighbour[Retrieve[Mira Belander], paper]") == papers, "the order of the inverse link"
    assert seen(with_order, "Neighbour[Retrieve[Paper p5], reference]") == papers[1:4]
    assert seen(with_order, "Feature[Retrieve[Paper p5], keywords]") == ["tides", "maps", "bridges"]
    assert seen(without, "Neighbour[Retrieve[Mira Belander], paper]") == sorted(papers)
    assert seen(without, "Feature[Retrieve[Paper p5], keywords]") == ["bridges", "maps", "tides"]
    several = "Neighbour[Neighbour[Retrieve[Paper p5], author], paper]"
    assert seen(with_order, several) == papers


@pytest.mark.parametrize("kept", [0, 1])
def test_degree_counts_the_ids_of_no_node_as_the_data_set_does(graphs_of_papers, kept):
    done = played(graphs_of_papers[kept], "Degree[Retrieve[Odo Renk], paper]", "Finish[5]")
    assert [each.number for each in done.observations[0].found.numbers] == [5]
    assert [each.name for each in done.answer.answers] == ["5"] and done.answer.query_class == "exact"
    assert "degree:author.paper" in done.answer.sparql
    done = played(graphs_of_papers[kept], "Degree[Retrieve[Mira Belander], paper]", "Finish[5]")
    assert "COUNT" in done.answer.sparql and done.answer.query_class == "exact"
