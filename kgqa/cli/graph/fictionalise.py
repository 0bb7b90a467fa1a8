"""`kgqa graph fictionalise`: a graph whose facts contradict the world, and its questions asked anew."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, say, setting_option, verbosity, verbosity_options


@click.command("fictionalise")
@click.argument("places", nargs=-1, metavar="[GRAPH | RDF FILES]")
@click.option(
    "--questions",
    "source",
    metavar="FILE",
    help="Questions with gold queries or gold paths, as --dataset of kgqa eval run takes them. [those of the demo graph]",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder of the new graph, which is made here."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another world.")
@click.option(
    "--invented", is_flag=True, help="Begin with an invented world and its questions instead of a graph of yours."
)
@setting_option("graph.schema", "--schema", metavar="NAME|FILE")
@setting_option("graph.walks", "--walks")
@JSON
@verbosity_options
def fictionalise(
    places: tuple[str, ...],
    source: str | None,
    out: Path,
    seed: int,
    invented: bool,
    graph__schema: str | None,
    graph__walks: Any,
    as_json: bool,
) -> None:
    """Rewire a graph so that its facts contradict the world, and ask its gold queries anew.

    Schema, types, names, degrees, inverse relations and whole mediators stay. A model that answers from memory fails on
    the result; one that reads the graph does not. Without a graph the bundled demo graph is rewired.

    The folder is a graph, with questions.jsonl, left_out.jsonl (which questions have no new answer, and why),
    facts.nt.gz and fictional.json in it besides.

    \b
    Examples:
      kgqa graph fictionalise mygraph/ --questions q.jsonl --out fiction/
      kgqa graph fictionalise --invented --out fiction/
      kgqa eval run --graph fiction/ --dataset fiction/questions.jsonl --out runs/fiction
    """
    from kgqa.evaluation.datasets.registry import dataset_questions
    from kgqa.evaluation.fictional.fictionalise import check_free
    from kgqa.evaluation.fictional.fictionalise import fictionalise as rewired
    from kgqa.evaluation.fictional.world import QUESTIONS, world_folder
    from kgqa.graph.opening import open_graph
    from kgqa.methods.ask import cache_of
    from kgqa.settings import resolve

    if invented and (places or source):
        raise click.UsageError("--invented brings a graph and questions of its own: give neither.")
    check_free(out)
    cache = cache_of(resolve())
    bar = _Bar()
    with ExitStack() as opened:
        opened.callback(bar.close)
        try:
            place: str | Path | None = world_folder(cache) if invented else _place(places, opened)
            if invented:
                source = str(Path(str(place)) / QUESTIONS)
            elif place is None and source is None:
                source = "demo"
            questions = dataset_questions(source) if source else []
            graph = opened.enter_context(open_graph(place, schema=graph__schema, walks=graph__walks, cache=cache))
            found = rewired(graph, questions, out, seed=seed, cache=cache, progress=bar)
        except KeyboardInterrupt:
            bar.close()
            say(f"\nkgqa: Stopped. {out} was not made.")
            raise KeyboardInterrupt("said") from None
    _print(found, out, as_json)


def _place(places: tuple[str, ...], opened: ExitStack) -> str | Path | None:
    """A graph as it is named, or RDF files loaded into a folder that goes when the work is done."""
    from kgqa.graph.embedded.loading import load_graph

    if not places:
        return None
    files = [place for place in places if Path(place).is_file()]
    if not files:
        if len(places) > 1:
            raise click.UsageError("Give one graph, or RDF files.")
        return places[0]
    if len(files) < len(places):
        raise click.UsageError("Give one graph, or RDF files, not both.")
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-"))) / "graph"
    load_graph(folder, files)
    return folder


def _print(found: Any, out: Path, as_json: bool) -> None:
    from kgqa.answer_json import json_text
    from kgqa.model import to_json
    from kgqa.words import clean

    if as_json:
        print(json_text({"folder": str(out), **to_json(found)}, indent=2))
        return
    share = 100 * found.rewired / max(1, found.facts)
    print(
        f"{clean(str(out))}: {found.triples:,} triples. Of {found.facts:,} that are neither schema, types nor names nor "
        f"part of a mediator, {found.rewired:,} are not what they were ({share:.0f}%)."
    )
    for shape, counts in found.shapes.items():
        if counts["asked"]:
            kept = 100 * counts["kept"] / counts["asked"]
            print(f"  {shape + 's':<14} {counts['kept']:>6,} of {counts['asked']:,} have new answers ({kept:.0f}%)")
    for reason, count in found.left_out.items():
        print(f"  left out       {count:>6,} {clean(reason)}")
    if found.questions:
        print(f"Ask them: kgqa eval run --graph {clean(str(out))} --dataset {clean(str(out / 'questions.jsonl'))}")


class _Bar:
    """A progress bar for each stage, on a terminal only."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if verbosity() < 0:
            return
        if stage != self._stage:
            from tqdm import tqdm

            self.close()
            self._stage = stage
            self._bar = tqdm(total=total or None, desc=stage, disable=None, file=sys.stderr, leave=False)
        self._bar.update(max(0, done - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
