"""`kgqa report`: compare runs in a table, a paper's file or a site. `kgqa export`: write the queries of a run."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.options import JSON, print_result, say, verbosity, verbosity_options
from kgqa.text.words import clean, counted

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("report")
@click.argument("folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--html",
    "site",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a static website to this folder; open its index.html in a browser.",
)
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the tables as Markdown.")
@click.option("--csv", "csv_", type=_FILE, metavar="FILE", help="Write the numbers, one line per metric and run.")
@click.option("--latex", type=_FILE, metavar="FILE", help="Write the tables as LaTeX (booktabs).")
@click.option("--all-metrics", is_flag=True, help="Print all metrics, not only the main ones.")
@JSON
@verbosity_options
def command(
    folders: tuple[Path, ...],
    site: Path | None,
    markdown: Path | None,
    csv_: Path | None,
    latex: Path | None,
    all_metrics: bool,
    as_json: bool,
) -> None:
    """Compare runs: the main metrics with their 95% intervals.

    Files, sites and --json contain all metrics. With -q, only the table of metrics is printed.

    RUN is a run folder. A run with several methods gets one column per method. Unfinished runs are allowed. Each run is
    compared with the first run on the questions that both have answered.

    \b
    Examples:
      kgqa report runs/x
      kgqa report runs/x runs/y --html out/ --latex table.tex
    """
    # imported only here, because the module imports numpy and would slow down `kgqa report --help`
    from kgqa.evaluation.runs.run_files import open_runs
    from kgqa.report.comparison import compare
    from kgqa.report.files import write_file
    from kgqa.report.tables import as_csv, as_latex, as_markdown, as_object, as_text, main_metrics

    runs = [run for folder in folders for run in open_runs(folder)]
    comparison = compare(runs)
    for path, text in ((markdown, as_markdown), (csv_, as_csv), (latex, as_latex)):
        if path is not None:
            write_file(path, text(comparison))
            say(f"kgqa: wrote {path}")
    if site is not None:
        from kgqa.report.site.writing import write_site

        with StageBar(leave=False) as bar:
            index = write_site(
                runs, site, comparison=comparison, on_progress=lambda done, total: bar("pages", done, total)
            )
        say(f"kgqa: open {index.absolute().as_uri()}")
    shown = comparison if all_metrics else main_metrics(comparison, brief=verbosity() < 0)
    print_result(as_json, as_object(comparison), [as_text(shown)])
    if not as_json and len(shown.rows) < len(comparison.rows):
        say(f"kgqa: All {len(comparison.rows)} metrics: --all-metrics")


@click.command("export")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--sparql",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write index.csv and one .rq file per question to this folder.",
)
@JSON
@verbosity_options
def export(folder: Path, sparql: Path, as_json: bool) -> None:
    """Write the final SPARQL query of every question of a run to files, to explain or run these queries.

    Each query file has the question's id and text as comments. Questions without a query are only in index.csv.

    \b
    Examples:
      kgqa export runs/x --sparql queries/
      kgqa explain queries/00001-....rq
    """
    from kgqa.evaluation.runs.run_files import open_runs
    from kgqa.report.export import write_queries

    done = write_queries(open_runs(folder), sparql)
    found = [{"folder": str(d.folder), "questions": d.questions, "queries": d.queries} for d in done]
    lines = (
        f"{clean(str(d.folder))}: {counted(d.queries, 'query', 'queries')} for {counted(d.questions, 'question')}"
        for d in done
    )
    print_result(as_json, found, lines)
