"""The retrievers that settings of methods over text name."""

from __future__ import annotations

from collections.abc import Mapping

RETRIEVERS: Mapping[str, tuple[str, ...]] = {
    "best": (),
    "paths": (),
    "pagerank": ("pagerank",),
    "rrf": ("bm25", "dense"),
    "dense": ("dense",),
    "bm25": ("bm25",),
}
"""The channels of each retriever; empty for the best of the index (see `open_retriever`)."""
RETRIEVERS_HELP = (
    "how passages are found: bm25: by shared words; dense: by embeddings; rrf: by both; pagerank: by PageRank over the "
    "facts, from what both find; best: pagerank if there are at least 3 facts per passage, else rrf; paths: as best, "
    "and along paths from the entities of the question"
)
