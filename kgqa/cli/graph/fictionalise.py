"""`kgqa graph fictionalise`: makes a graph with facts that contradict the real world, and questions about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from kgqa.cli.bars import StageBar
from kgqa.cli.options import JSON, check_usage, print_result, setting_option, stop_message, verbosity_options, whole
from kgqa.text.words import clean, counted


@click.command("fictionalise")
@click.argument("inputs", nargs=-1, metavar="[GRAPH | RDF FILES]")
@click.option(
    "--questions",
    "source",
    metavar="FILE",
    help="questions with gold queries or gold paths, written as for kgqa eval run --dataset [demo]",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="folder for the new graph")
@click.option("--seed", type=whole(), default=0, show_default=True, help="seed of the random rewiring")
@click.option(
    "--invented", is_flag=True, help="generate an invented world with questions; no GRAPH or --questions needed"
)
@setting_option("graph.schema")
@setting_option("graph.walks")
@JSON
@verbosity_options
def fictionalise(
    inputs: tuple[str, ...],
    source: str | None,
    out: Path,
    seed: int,
    invented: bool,
    graph__schema: str | None,
    graph__walks: Any,
    as_json: bool,
) -> None:
    """Rewire a graph so that its facts contradict the real world, and run the gold queries on the new graph.

    Schema, types, names, degrees, inverse relations and whole mediators are kept. A language model that answers from
    memory fails on the new graph; a language model that reads the graph does not. Without GRAPH the bundled demo graph
    is rewired.

    The new graph folder also contains questions.jsonl (questions with new answers), left_out.jsonl (questions without
    new answers, and the reason), facts.nt.gz and fictional.json.

    \b
    Examples:
      kgqa graph fictionalise mygraph/ --questions q.jsonl --out fiction/
      kgqa graph fictionalise --invented --out fiction/
      kgqa eval run --graph fiction/ --dataset fiction/questions.jsonl --out runs/fiction
    """
    from kgqa.evaluation.fictional.fictionalise import make_fiction

    files = [each for each in inputs if Path(each).is_file()]
    check_usage(
        (
            invented and (inputs or source),
            "--invented has its own graph and questions. Leave out GRAPH, RDF files and --questions.",
        ),
        (len(inputs) > 1 and not files, "Only one graph can be rewired. Give one GRAPH, or RDF files."),
        (
            files and len(files) < len(inputs),
            "A graph and RDF files cannot be combined. Give one GRAPH, or RDF files.",
        ),
    )
    with stop_message(f"{out} was not created."), StageBar(leave=False) as bar:
        found = make_fiction(
            out,
            inputs[0] if inputs and not files else None,
            rdf_files=files,
            invented=invented,
            questions=source,
            seed=seed,
            schema=graph__schema,
            walks=graph__walks,
            progress=bar,
        )
    print_result(as_json, {"folder": str(out), **to_builtins(found)}, _lines(found, clean(str(out))))


def _lines(found: Any, folder: str) -> Iterator[str]:
    share = 100 * found.rewired / max(1, found.facts)
    yield (
        f"{folder}: {counted(found.triples, 'triple')}. {found.rewired:,} of {found.facts:,} facts that may "
        f"change were changed ({share:.0f}%); schema, types, names and some edges of mediators are kept."
    )
    yield from (
        f"  {shape + 's':<14} {kept:>6,} of {asked:,} have new answers ({100 * kept / asked:.0f}%)"
        for shape, kept, asked in ((shape, counts["kept"], counts["asked"]) for shape, counts in found.shapes.items())
        if asked
    )
    yield from (f"  left out       {count:>6,} {clean(reason)}" for reason, count in found.left_out.items())
    if found.questions:
        yield f"Ask the new questions: kgqa eval run --graph {folder} --dataset {folder}/questions.jsonl"
