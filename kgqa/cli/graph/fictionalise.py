"""`kgqa graph fictionalise`: makes a graph with facts that contradict the real world, and questions about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.options import JSON, print_json, say, setting_option, verbosity_options
from kgqa.model_json import to_json
from kgqa.words import clean


@click.command("fictionalise")
@click.argument("inputs", nargs=-1, metavar="[GRAPH | RDF FILES]")
@click.option(
    "--questions",
    "source",
    metavar="FILE",
    help="questions with gold queries or gold paths, written as for kgqa eval run --dataset [demo]",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="folder for the new graph")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the random rewiring")
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

    if invented and (inputs or source):
        raise click.UsageError(
            "--invented has its own graph and questions. Leave out GRAPH, RDF files and --questions."
        )
    files = [each for each in inputs if Path(each).is_file()]
    if len(inputs) > 1 and not files:
        raise click.UsageError("Only one graph can be rewired. Give one GRAPH, or RDF files.")
    if files and len(files) < len(inputs):
        raise click.UsageError("A graph and RDF files cannot be combined. Give one GRAPH, or RDF files.")
    try:
        with StageBar(leave=False) as bar:
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
    except KeyboardInterrupt:
        say(f"\nkgqa: Stopped. {out} was not created.")
        raise KeyboardInterrupt("reported") from None
    _print(found, out, as_json)


def _print(found: Any, out: Path, as_json: bool) -> None:

    if as_json:
        print_json({"folder": str(out), **to_json(found)})
        return
    share = 100 * found.rewired / max(1, found.facts)
    print(
        f"{clean(str(out))}: {found.triples:,} triples. {found.rewired:,} of {found.facts:,} facts that may "
        f"change were changed ({share:.0f}%); schema, types, names and some edges of mediators are kept."
    )
    for shape, counts in found.shapes.items():
        if counts["asked"]:
            kept = 100 * counts["kept"] / counts["asked"]
            print(f"  {shape + 's':<14} {counts['kept']:>6,} of {counts['asked']:,} have new answers ({kept:.0f}%)")
    for reason, count in found.left_out.items():
        print(f"  left out       {count:>6,} {clean(reason)}")
    if found.questions:
        source = clean(str(out / "questions.jsonl"))
        print(f"Ask the new questions: kgqa eval run --graph {clean(str(out))} --dataset {source}")
