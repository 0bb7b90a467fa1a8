"""Options that `kgqa eval run` and `kgqa eval resume` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kgqa.cli.options import JSON, setting_option, verbosity_options
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY

_OPTIONS = (
    click.option(
        "--concurrency",
        type=click.IntRange(1, 512),
        help=f"number of questions answered at the same time [{DEFAULT_CONCURRENCY}]",
    ),
    setting_option("llm.concurrency", "--model-concurrency"),
    click.option(
        "--budget", type=click.FloatRange(0), metavar="USD", help="maximum cost of all runs of this command together"
    ),
    click.option("--keep-going", is_flag=True, help="continue if the graph or the language model stops replying"),
    JSON,
    verbosity_options,
)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
