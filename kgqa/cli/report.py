"""`kgqa report`: compare runs in a table, a file for a paper, or a site with one page per question."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.options import JSON, print_result, say, verbosity_options

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
@JSON
@verbosity_options
def command(
    folders: tuple[Path, ...],
    site: Path | None,
    markdown: Path | None,
    csv_: Path | None,
    latex: Path | None,
    as_json: bool,
) -> None:
    """Compare runs: every metric with its 95% interval.

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
    from kgqa.report.tables import as_csv, as_latex, as_markdown, as_object, as_text

    runs = [run for folder in folders for run in open_runs(folder)]
    comparison = compare(runs)
    for path, text in ((markdown, as_markdown), (csv_, as_csv), (latex, as_latex)):
        if path is not None:
            write_file(path, text(comparison))
            say(f"kgqa: wrote {path}")
    if site is not None:
        from kgqa.report.site import write_site

        with StageBar(leave=False) as bar:
            index = write_site(
                runs, site, comparison=comparison, on_progress=lambda done, total: bar("pages", done, total)
            )
        say(f"kgqa: open {index.absolute().as_uri()}")
    print_result(as_json, as_object(comparison), [as_text(comparison)])
