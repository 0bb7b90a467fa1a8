"""Opens the folder of a corpus for a build, and finds out how it was built before.

The size of chunks and the kind of extraction are kept in corpus.json. A later build that does not name them goes on
with them, and can run without the language model as long as no text has to be read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.corpus.building.options import (
    DEFAULT_CHUNKS,
    MODEL_MODES,
    BuildOptions,
    chunk_size,
    chunk_text,
    in_characters,
)
from kgqa.corpus.building.report import Progress, no_progress
from kgqa.corpus.building.tools import ManagedServer, Tools
from kgqa.corpus.corpus import Corpus, vectors_of
from kgqa.corpus.documents.chunks import ChunkSize, CountTokens
from kgqa.corpus.editor import Editor
from kgqa.corpus.extraction.requests import Extractor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import digest, slug
from kgqa.corpus.rdf.vocabulary import KC
from kgqa.errors import CorpusError, SettingsError
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import open_endpoint
from kgqa.graph.store import Store, is_address
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.storage.corpus_file import GRAPH_FOLDER, CorpusFile, VectorDatabase
from kgqa.text.hints import Command, Hint, Option
from kgqa.text.words import clean

_INDEXED = "names indexed"
"""The key under which the database keeps up to which edit the names are in the index of the server."""
"""Keys of corpus.json: the size of chunks, the kind of extraction, what extracted, what counts tokens."""


@dataclass(frozen=True)
class Preparation:
    """How documents are read in this build.

    Attributes:
        size: The size of chunks.
        extractor: The extractor; None if nothing is extracted, or if `missing` is set.
        key: Hash of what results depend on, beside the documents.
        missing: What is missing to read documents; "" if they can be read.
        hint: What to do about it.
        stored: What is written to corpus.json: fields of `CorpusFile`.
        counter: Opens what counts tokens; None if chunks are measured in characters.
        notes: What a user should know.
    """

    size: ChunkSize
    extractor: Extractor | None
    key: str
    missing: str = ""
    hint: Hint | str = ""
    stored: dict[str, Any] | None = None
    counter: Callable[[], CountTokens] | None = None
    notes: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise SettingsError if documents have to be read and something is missing."""
        if self.missing:
            raise SettingsError(self.missing, self.hint)


def open_folder(
    path: Path | str, *, must_exist: bool = False, graph_url: str | None = None, vectors: str | None = None
) -> CorpusFolder:
    """Open the folder of a corpus, or create it.

    Raises:
        CorpusError: It has to exist and does not, or cannot be created.
        SettingsError: The graph of the corpus is elsewhere than `graph_url`, or its vectors elsewhere than `vectors`.
    """
    folder = CorpusFolder(path)
    if vectors is not None and "://" not in vectors:
        vectors = str(Path(vectors).resolve())
    if folder.exists and vectors is not None and vectors_of(folder) != vectors:
        where = vectors_of(folder) or folder.index
        raise SettingsError(
            f"The vectors of {folder.path} are at {clean(str(where))}.",
            "Build another corpus, or leave out ",
            Option("vectors"),
        )
    if folder.exists:
        if graph_url and folder.file.url != graph_url:
            where = folder.file.url or folder.graph
            raise SettingsError(
                f"The graph of {folder.path} is at {clean(str(where))}.",
                "Build another corpus, or leave out ",
                Option("graph-url"),
            )
        return folder
    if must_exist:
        raise CorpusError(
            f"There is no corpus at {folder.path}.", "Build it: ", Command("corpus build", "FILES", into=folder.path)
        )
    if graph_url and not is_address(graph_url):
        raise SettingsError(
            f"{clean(graph_url)} is not the URL of a server.", "Give ", Option("graph-url", "http://HOST:PORT/sparql")
        )
    # several corpora may share a server or a database, so each has names of its own there
    name = f"{slug(folder.path.resolve().name) or 'corpus'}-{secrets.token_hex(4)}"
    base = f"{KC}{name}:" if graph_url else ""
    database = VectorDatabase(vectors, name) if vectors else None
    folder.create(graph=graph_url or GRAPH_FOLDER, base=base, vectors=database)
    return folder


@contextmanager
def opened_corpus(
    folder: CorpusFolder, tools: Tools, progress: Progress = no_progress, *, trusted: bool = False
) -> Iterator[Corpus]:
    """Open a corpus for writing, with the server that holds its graph, if it is on one.

    Args:
        folder: Its folder.
        tools: The models, settings and cache.
        progress: Called as texts are embedded.
        trusted: Whether the user, not only the folder, names the server.

    Raises:
        CorpusError: Another process is writing to it, or it is damaged.
        SettingsError: The user's login would be sent to a server that only the folder names.
    """
    with ExitStack() as closing:
        store = server = bulk_load = None
        if folder.file.url:
            options = EndpointOptions.of(tools.settings)
            if not trusted:
                options.check_login(folder.file, writing=True)
            server = tools.server_at(folder.file.url)
            if server is not None and not options.access.user:
                user, password = server.login()
                options = replace(options, access=replace(options.access, user=user, password=password))
            store = open_endpoint(
                folder.file.url,
                options,
                cache=tools.cache,
                timeout=tools.settings.graph.timeout,
                writable=sorted(folder.graphs.values()),
            )
            closing.callback(store.close)
            bulk_load = None if server is None else partial(server.load, store)
        editor = Editor(folder, store=store, bulk_load=bulk_load)
        corpus = Corpus(
            folder,
            editor=editor,
            cache=tools.cache,
            encoder=tools.index_encoder,
            progress=partial(progress, "embedding"),
        )
        yield closing.enter_context(corpus)
        if store is not None and server is not None:
            _index_names(editor, store, server)


def _index_names(editor: Editor, store: Store, server: ManagedServer) -> None:
    """Let the names of a corpus be found on its server, if there may be new ones."""
    state, seq = editor.database.build, str(editor.database.seq)
    if state.state(_INDEXED) != seq:
        server.index_names(store, [editor.folder.graphs[view] for view in ("facts", "hyper")])
        state.put_state(_INDEXED, seq)


def prepared(folder: CorpusFolder | None, options: BuildOptions, tools: Tools) -> Preparation:
    """Find out how documents are read: as given, or as in the last build, or by default.

    Args:
        folder: The corpus; None for a new one.
        options: The options of the build.
        tools: The models; and the settings, among them the kind of extraction, `corpus.extract`.

    Raises:
        SettingsError: The options contradict each other.
    """
    settings, encoder, models = tools.settings, tools.encoder, tools.models
    known = folder.file if folder is not None else CorpusFile()
    notes: list[str] = []
    size, token_key, missing, hint = _chunks(options.chunks, known, encoder, notes)
    mode: str = settings.corpus.extract
    if mode == "auto":
        mode = known.extract or ("triples" if models is not None else "rules")
    extractor, extractor_key = None, mode
    stored_extractor: tuple[str, str] | None = known.extractor
    if mode in MODEL_MODES and models is None:
        who, extractor_key = known.extractor or (mode, "")
        if known.extract != mode:
            raise SettingsError(
                f"Extraction of {mode} needs a language model.",
                *("Add ", Option("llm", "MODEL"), ", or ", Option("extract", "rules")),
            )
        missing = missing or f"The facts of this corpus are extracted by a language model ({clean(who)})."
        add_model = ("To read new text, add ", Option("llm", "MODEL"))
        hint = hint or Hint(*add_model, "; to extract all facts anew by rules, add ", Option("extract", "rules"))
    else:
        extractor = _opened(mode, options, tools)
        if extractor is not None:
            extractor_key = extractor.key
        stored_extractor = (extractor.name if extractor else "", extractor_key)
    stored: dict[str, Any] = {
        "chunks": chunk_text(size),
        "extract": mode,
        "tokens": token_key,
        "extractor": stored_extractor,
    }
    hyper = mode in ("hyperedges", "segments")
    if hyper or known.default:
        stored["default"] = ("facts", "hyper") if hyper else ("facts",)
    key = digest(chunk_text(size), token_key, extractor_key)
    return Preparation(size, extractor, key, missing, hint, stored, tools.counter(size), tuple(notes))


def _opened(mode: str, options: BuildOptions, tools: Tools) -> Extractor | None:
    from kgqa.corpus.extraction.rules.extractor import RuleExtractor

    if mode in ("rules", "none"):
        return RuleExtractor() if mode == "rules" else None
    from kgqa.corpus.extraction.opening import open_extractor

    settings = replace(tools.settings, values={**tools.settings.values, "corpus.extract": mode})
    return open_extractor(settings, tools.models, tools.prompts, max_cost=options.max_cost)


def _chunks(
    given: str | None, known: CorpusFile, encoder: CachedEncoder | None, notes: list[str]
) -> tuple[ChunkSize, str, str, Hint | str]:
    """Return the size of chunks, what counts their tokens, and what is missing for it."""
    size = chunk_size(given or known.chunks or DEFAULT_CHUNKS)
    if size.unit == "characters":
        return size, "", "", ""
    if encoder is not None:
        return size, encoder.name, "", ""
    if given or known.chunks:
        missing = "Chunks are measured in tokens of an embedding model, and none is in use."
        return size, known.tokens, missing, Hint("Measure them in characters: ", Option("chunk", "4000/80chars"))
    notes.append("Without an embedding model, chunks are measured in characters.")
    return in_characters(size), "", "", ""
