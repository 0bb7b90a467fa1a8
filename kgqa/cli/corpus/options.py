"""Options and helpers that several commands of `kgqa corpus` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kgqa.cli.options import Number, check_usage, combined, say, setting_option, settings_from, verbosity_options
from kgqa.corpus.building.options import BuildOptions

if TYPE_CHECKING:
    from kgqa.corpus.building.tools import Tools

Command = TypeVar("Command", bound=Callable[..., Any])
EXIT_STOPPED = 3
"""Exit code of a build that is not complete: the limit on costs was reached, or chunks failed."""

CORPUS = click.argument("folder", metavar="CORPUS", type=click.Path(path_type=Path))
GRAPH = click.option(
    "--graph", "folder", required=True, metavar="CORPUS", type=click.Path(path_type=Path), help="folder of the corpus"
)

reading_options = combined(
    setting_option("corpus.extract"),
    setting_option("corpus.limit"),
    click.option(
        "--chunk",
        "chunks",
        metavar="SIZE/OVERLAP",
        help="length of chunks and of their overlap, in tokens of the embedding model, such as 400/50; in characters: "
        "2000/100chars. [1024/20]",
    ),
    click.option(
        "--vision", is_flag=True, help="send figures and image files to the language model, which must accept images"
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="PATTERN",
        help="files to leave out, as in a .gitignore file; repeat for several patterns",
    ),
    click.option("--hidden", is_flag=True, help="also read hidden files"),
    click.option("--keys", is_flag=True, help="also read files that look as if they contained keys or passwords"),
)
"""Options that say which files are read, and how."""

model_options = combined(
    setting_option("llm.model"),
    setting_option("llm.concurrency"),
    setting_option("llm.replay"),
    setting_option("llm.prompts"),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="value of any other setting, such as llm.timeout=300; repeat for several (see kgqa config show)",
    ),
)
"""Options of the language model."""

embedding_options = combined(setting_option("rank.embeddings"), setting_option("rank.model"))
"""Options of the embedding model."""

writing_options = combined(
    setting_option("corpus.resolve"),
    setting_option("corpus.summaries"),
    click.option("--max-cost", type=Number(0), metavar="USD", help="stop before model calls cost more than this"),
    click.option("--ray", metavar="ADDRESS", help="spread the work over a Ray cluster; `local` starts one here"),
    verbosity_options,
)
"""Options of the commands that read documents into a corpus."""


def build_options(options: dict[str, Any], **more: Any) -> BuildOptions:
    """Take the options of a build from those of the command."""
    if options.pop("vision"):
        options["corpus__images"] = "on"
    names = ("chunks", "ignore", "hidden", "keys")
    max_cost = options.pop("max_cost", None)
    check_usage((max_cost is not None and not isfinite(max_cost), "--max-cost must be a number of US dollars."))
    return BuildOptions(**{name: options.pop(name) for name in names}, max_cost=max_cost, **more)


@contextmanager
def opened_tools(options: dict[str, Any], *, models: bool = True, ray: str | None = None) -> Iterator[Tools]:
    """Open the embedding model, the cluster and, if `models`, the language model that the options name."""
    from kgqa.corpus.building.tools import open_tools
    from kgqa.virtuoso.corpus_server import corpus_server

    settings = settings_from(options)
    with ExitStack() as opened:
        cluster = None
        if ray is not None:
            from kgqa.cluster import open_cluster

            cluster = opened.enter_context(open_cluster(ray))
        tools = open_tools(settings, models=models, cluster=cluster, server_at=corpus_server, say=say)
        yield opened.enter_context(tools)
