"""`kgqa graph convert`: converts the graphs of a benchmark to RDF files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from kgqa.cli.bars import StageBar
from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, print_result, stop_message, verbosity_options
from kgqa.text.words import clean, counted


@click.group("convert", cls=HelpfulGroup)
def convert() -> None:
    """Convert the graphs of a benchmark to RDF files, which `kgqa graph load` reads."""


@convert.command("grbench")
@click.argument("place", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="the new RDF file, .nt or .nt.gz")
@click.option("--name", default="", metavar="NAME", help="name of the graph in IRIs. [that of FOLDER]")
@click.option(
    "--keep-order",
    is_flag=True,
    help="write the order of neighbours and values too, as lists; scores such as Rouge-L depend on it",
)
@JSON
@verbosity_options
def grbench(place: Path, out: Path, name: str, keep_order: bool, as_json: bool) -> None:
    """Convert a graph of GRBench to an RDF file.

    FOLDER contains graph.json or graph.json.gz. Nodes are read one at a time: memory grows by 8 bytes per node. The
    file is written completely or not at all. What is left out is listed: ids of no node, ids that a list repeats, and
    edges that only one of two nodes lists.

    \b
    Examples:
      kgqa graph convert grbench processed_data/legal --out legal.nt.gz
      kgqa graph load legal.nt.gz --schema grbench --into legal/
    """
    from kgqa.evaluation.datasets.grbench.conversion import convert as convert_graph

    with stop_message(f"{out} was not written."), StageBar(unit="B", unit_scale=True, leave=False) as bar:
        report = convert_graph(place, out, name=name, keep_order=keep_order, progress=bar)
    print_result(as_json, {"file": str(out), **to_builtins(report)}, _lines(report, out))


def _lines(report: Any, out: Path) -> Iterator[str]:
    nodes = ", ".join(f"{count:,} {clean(type_)}" for type_, count in report.nodes.items())
    yield f"{out}: {counted(report.triples, 'triple')} in {report.seconds:.1f} s. Nodes: {nodes}."
    for each in report.links:
        left_out = [
            f"{count:,} {what}"
            for count, what in (
                (each.dangling, "to no node"),
                (each.duplicates, "repeated"),
                (each.without_prefix, "with ids that lack a prefix"),
            )
            if count
        ]
        other = [f"only here {each.only_here:,}"] if each.only_here else []
        other += [f"added {each.added:,}"] if each.added else []
        other += [f"left out: {', '.join(left_out)}"] if left_out else []
        of = f" of {clean(each.of)}" if each.of else ""
        unknown = "" if each.known else ", not in the tables of kgqa"
        more = f"; {'; '.join(other)}" if other else ""
        yield f"  {clean(each.link)} ({each.role}{of}{unknown}): {counted(each.edges, 'edge')}{more}"
    yield from (f"  no such node: {clean(example)}" for example in report.dangling_examples)
    if report.shared_ids:
        examples = ", ".join(map(clean, report.shared_examples))
        yield f"  {counted(report.shared_ids, 'node')} with the id of a node of another type, such as {examples}"
    if report.cut_values:
        yield f"  {counted(report.cut_values, 'value')} cut, because too long"
    if report.unordered_lists:
        yield f"  {counted(report.unordered_lists, 'list')} too long to keep the order"
    if out.suffix and not out.is_dir():
        yield f"Load it: kgqa graph load {clean(str(out))} --schema grbench --into {clean(report.graph)}/"
