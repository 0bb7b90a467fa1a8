"""What a build would cost. No model is asked, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.corpus.building.extracting import request_digest
from kgqa.corpus.building.feeds import Feed, find_feeds
from kgqa.corpus.building.options import DEFAULT_CHUNKS, MODEL_MODES, BuildOptions, chunk_size, in_characters
from kgqa.corpus.building.reading import DocumentReader, ReadTask
from kgqa.corpus.building.report import Progress, no_progress
from kgqa.corpus.building.tools import Tools
from kgqa.corpus.extraction.requests import ExtractionRequest, extraction_requests
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.storage.database import Database
from kgqa.llm.models import read_prices
from kgqa.settings.values import Settings
from kgqa.storage.corpus_file import CorpusFile


@dataclass
class BuildEstimate:
    """An estimate.

    `known`: chunks whose results a corpus has. `skipped`: files that cannot be read. `calls`, `prompt_tokens`,
    `completion_tokens`: of the language model. `cost`: in USD; None if the price is unknown or nothing is asked.
    """

    documents: int = 0
    chunks: int = 0
    known: int = 0
    skipped: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


def estimate_build(
    paths: Sequence[Path | str],
    *,
    tools: Tools,
    options: BuildOptions = BuildOptions(),  # noqa: B008  immutable
    folder: Path | str | None = None,
    progress: Progress = no_progress,
) -> BuildEstimate:
    """Estimate what `build_corpus` would cost.

    Args:
        paths: Files and folders.
        tools: The settings and the embedding model; language models need not be open.
        options: How documents are read.
        folder: A corpus, whose results cost nothing again; None for a new one.
        progress: Called as documents are read.

    Raises:
        CorpusError: There is no such corpus.
        DocumentError: A path does not exist.
        SettingsError: An option is wrong.
    """
    from kgqa.corpus.extraction.estimates import estimate

    settings = tools.settings
    stored = CorpusFolder(folder).file if folder is not None else CorpusFile()
    mode: str = settings.corpus.extract
    if mode == "auto":
        mode = stored.extract or ("triples" if settings.llm.model not in (None, "none") else "rules")
    size = chunk_size(options.chunks or stored.chunks or DEFAULT_CHUNKS)
    if tools.encoder is None:
        size = in_characters(size)
    found = find_feeds(paths, ignore=options.ignore, hidden=options.hidden, keys=options.keys)
    reader = DocumentReader(ReadTask(size, None, tools.counter(size)), tools.cluster)
    result = BuildEstimate(skipped=sum(map(len, found.skipped.values())))
    feeds = [feed for of_root in found.feeds.values() for feed in of_root]
    asked = _requests(feeds, reader, result, progress)
    if folder is not None and stored.extractor:
        asked = _unknown(asked, Path(CorpusFolder(folder).database), stored.extractor[1], result)
    if mode not in MODEL_MODES:
        for _ in asked:
            pass
        return result
    price = read_prices(settings.llm.prices).get(model_name(settings))
    images = settings.corpus.images == "on"
    of_model = estimate(
        asked, mode=mode, prompts=tools.prompts, limit=settings.corpus.limit, price=price, images=images
    )
    result.calls, result.cost = of_model.calls, of_model.cost
    result.prompt_tokens, result.completion_tokens = of_model.prompt_tokens, of_model.completion_tokens
    return result


def model_name(settings: Settings) -> str:
    """Return the name of the language model for which a price may be known; "" if its server has to be asked."""
    name = (settings.llm.model or "").strip()
    kind, _, rest = name.partition(":")
    return name.partition("#")[2] if kind in ("http", "https") else str(rest)


def _requests(
    feeds: Sequence[Feed], reader: DocumentReader, result: BuildEstimate, progress: Progress
) -> Iterator[ExtractionRequest]:
    for _, read in reader.read(feeds):
        result.documents += len(read.documents)
        result.skipped += bool(read.error)
        progress("documents", result.documents, 0)
        for each in read.documents:
            requests = extraction_requests(each.document, each.chunks)
            result.chunks += len(requests)
            yield from requests


def _unknown(
    requests: Iterator[ExtractionRequest], database: Path, extractor: str, result: BuildEstimate
) -> Iterator[ExtractionRequest]:
    """Leave out the chunks whose result a corpus has."""
    with Database(database) as opened:
        for each in requests:
            name = request_digest(each)
            if opened.build.replies(extractor, [name]):
                result.known += 1
            else:
                yield each
