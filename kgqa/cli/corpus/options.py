"""Options and helpers that several commands of `kgqa corpus` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kgqa.cli.options import combined, say, setting_option, settings_from, verbosity_options
from kgqa.corpus.building.options import EXTRACT_MODES, BuildOptions
from kgqa.settings import Settings

if TYPE_CHECKING:
    from kgqa.cache import Cache
    from kgqa.llm.models import Models
    from kgqa.llm.prompts import Prompts
    from kgqa.rank.embedding.encoder import CachedEncoder

Command = TypeVar("Command", bound=Callable[..., Any])
EXIT_STOPPED = 3
"""Exit code of a build that is not complete: the limit on costs was reached, or chunks failed."""

CORPUS = click.argument("folder", metavar="CORPUS", type=click.Path(path_type=Path))
GRAPH = click.option(
    "--graph", "folder", required=True, metavar="CORPUS", type=click.Path(path_type=Path), help="folder of the corpus"
)

reading_options = combined(
    click.option(
        "--extract",
        type=click.Choice(EXTRACT_MODES),
        help="what is extracted: triples, hyperedges or openie (by a language model), rules (tables, key-value lines, "
        "links, definitions, dates), none. [triples with --llm, else rules]",
    ),
    click.option(
        "--chunk",
        "chunks",
        metavar="SIZE/OVERLAP",
        help="length of chunks and of their overlap, in tokens of the embedding model, such as 400/50; in characters: "
        "2000/100chars. [1024/20]",
    ),
    click.option("--vision", is_flag=True, default=None, help="send figures and image files to the language model too"),
    click.option(
        "--ignore",
        multiple=True,
        metavar="PATTERN",
        help="files to leave out, as in a .gitignore file; repeat for several patterns",
    ),
    click.option("--hidden", is_flag=True, help="also read hidden files, and files that look like keys or passwords"),
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

embedding_options = combined(
    setting_option("rank.embeddings"), setting_option("rank.model"), setting_option("rank.precision")
)
"""Options of the embedding model."""

writing_options = combined(
    click.option(
        "--max-cost", type=click.FloatRange(0), metavar="USD", help="stop before model calls cost more than this"
    ),
    click.option("--ray", metavar="ADDRESS", help="spread the work over a Ray cluster; `local` starts one here"),
    verbosity_options,
)
"""Options of the commands that read documents into a corpus."""


def build_options(options: dict[str, Any], *, prune: bool = True) -> BuildOptions:
    """Return the options of a build from those of the command."""
    return BuildOptions(
        extract=options.pop("extract"),
        chunks=options.pop("chunks"),
        vision=options.pop("vision"),
        ignore=options.pop("ignore"),
        hidden=options.pop("hidden"),
        max_cost=options.pop("max_cost", None),
        prune=prune,
    )


@dataclass(frozen=True)
class Tools:
    """The models and the cache that a command uses."""

    settings: Settings
    cache: Cache
    encoder: CachedEncoder | None
    models: Models | None
    prompts: Prompts


@contextmanager
def open_tools(options: dict[str, Any]) -> Iterator[Tools]:
    """Open the embedding model and the language model that the options name."""
    from kgqa.llm.models import open_models
    from kgqa.llm.prompts import Prompts
    from kgqa.methods.ask import cache_of
    from kgqa.rank.embedding.encoder import open_encoder

    settings = settings_from(options)
    cache = cache_of(settings)
    encoder = None
    if settings["rank.embeddings"] == "auto":
        encoder = open_encoder(
            cache,
            model=settings["rank.model"],
            url=settings["rank.model_url"],
            query_prompt=settings["rank.query_prompt"],
            precision=settings["rank.precision"],
            say=say,
        )
    prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
    with ExitStack() as closing:
        models = open_models(settings)
        if models is not None:
            closing.callback(models.close)
        yield Tools(settings, cache, encoder, models, prompts)
