"""`kgqa corpus estimate`: show what a build would cost, without any model call."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.corpus.options import (
    build_options,
    embedding_options,
    model_options,
    opened_tools,
    reading_options,
)
from kgqa.cli.options import JSON, GroupedCommand, print_result, verbosity_options
from kgqa.text.words import counted


@click.command("estimate", cls=GroupedCommand, heading="Documents")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--into",
    "folder",
    type=click.Path(path_type=Path),
    metavar="CORPUS",
    help="a corpus; what it contains already costs nothing",
)
@reading_options
@model_options
@embedding_options
@JSON
@verbosity_options
def estimate(paths: tuple[Path, ...], folder: Path | None, as_json: bool, **options: Any) -> None:
    """Estimate the model calls, tokens and cost of reading the documents in PATHS. No model is asked.

    The cost is known for models with a price (see llm.prices in `kgqa config show`).

    \b
    Example:
      kgqa corpus estimate docs/ --llm openai:gpt-4.1-mini
    """
    from kgqa.corpus.building.estimating import estimate_build

    chosen = build_options(options)
    with opened_tools(options, models=False) as tools, StageBar(leave=False) as bar:
        found = estimate_build(paths, options=chosen, tools=tools, folder=folder, progress=bar)
    cost = "unknown (no price of the model)" if found.cost is None else f"{found.cost:.2f} USD"
    lines = [
        f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}"
        + (f"; results known already: {found.known:,}" if found.known else ""),
        f"Model calls: {found.calls:,}",
        f"Tokens: {found.prompt_tokens:,} in prompts, {found.completion_tokens:,} in replies",
        f"Cost: {cost}" if found.calls else "Cost: none; no language model is asked",
    ]
    print_result(as_json, asdict(found), lines)
