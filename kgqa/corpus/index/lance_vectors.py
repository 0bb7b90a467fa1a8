"""Vectors in a LanceDB database, in a folder or at the URI of an object store; for more vectors than fit into memory.

A database may serve several corpora, each with a prefix of its own. The tables of a corpus:

    <prefix>_<size>_<kind>     a row for each vector of each piece: IRI, digest, window, vector
    <prefix>_<size>_pending    the vectors that were put since the last version

LanceDB keeps old versions of a table, so a version of the store names a version of each table. Up to `INDEXED_FROM`
vectors of a kind are compared one by one, as in `kgqa.corpus.index.vector_files`; then an index is searched (IVF with
HNSW), and the best of what it finds are compared exactly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np

from kgqa.corpus.index.vector_store import VectorRows
from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.model import PieceKind
from kgqa.text.hints import Install, Option

INDEXED_FROM = 1_000_000
EDGES, EXPLORED = 16, 100
"""Parameters of HNSW. LanceDB's own, 20 and 300, take three times as long."""
NPROBES, REFINE = 40, 4
KEPT = timedelta(hours=1)
"""Versions that are younger stay, because other processes may read them."""
PENDING = "pending"
_TAG = "current"
_DIGEST_BYTES = 16
_DECIMALS = 6
_AT_ONCE = 500
_SCAN_FROM = 5_000
"""For more digests, reading all of a table takes less time than looking them up."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SCHEMES = ("file", "s3", "gs", "az", "abfs", "abfss", "memory")
_VERSION = re.compile(r"(?:[a-z]+:[0-9]{1,12}(?:,[a-z]+:[0-9]{1,12})*)?\Z")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")


class LanceVectors:
    """A `VectorStore` in a LanceDB database. One process may write.

    Args:
        uri: A folder, or a URI such as s3://BUCKET/FOLDER. Logins are read from the environment, as LanceDB does.
        size: The length of a vector.
        prefix: Begins the names of the tables; different for different corpora.

    Raises:
        SettingsError: LanceDB is not installed, or this is not a URI that it can use.
        StoreUnavailable: The database cannot be opened.
    """

    def __init__(self, uri: str, size: int, *, prefix: str = "kgqa") -> None:
        scheme = _SCHEME.match(uri)
        if (scheme and scheme[1].lower() not in _SCHEMES) or not _PREFIX.match(prefix):
            raise SettingsError(
                f"{uri!r:.200} is not the URI of a LanceDB database.",
                "Give a folder, or s3://BUCKET/FOLDER: ",
                Option("vectors"),
            )
        os.environ.setdefault("LANCEDB_LOG", "error")  # its warnings are for those who configure it
        try:
            import lancedb
        except ImportError as error:
            raise SettingsError("LanceDB is not installed.", f"Install it: {Install('lancedb')}") from error
        self.location = uri
        self._size = size
        self._prefix = f"{prefix}_{size}_"
        with _errors(uri):
            self._database = lancedb.connect(uri)
        self._open: dict[str, Any] = {}

    def known(self, digests: Sequence[str]) -> set[str]:
        """Return those digests whose vectors were put."""
        wanted, found = set(digests), set[str]()
        with _errors(self.location):
            for table in self._tables().values():
                found |= {each.hex() for each in self._digests(table, wanted - found)} & wanted
        return found

    def put(self, vectors: Sequence[tuple[str, np.ndarray]]) -> None:
        """Keep vectors. They are stored when this returns."""
        rows = [
            ("", bytes.fromhex(digest), part, len(parts), vector)
            for digest, each in vectors
            for parts in [np.asarray(each, dtype=np.float32).reshape(-1, self._size)]
            for part, vector in enumerate(parts)
        ]
        if rows:
            with _errors(self.location):
                self._table(PENDING, create=True).add(self._arrow(rows))

    def publish(self, rows: VectorRows) -> str:
        """Make a new version; see `VectorStore`. Only the vectors of changed pieces are written."""
        versions = []
        with _errors(self.location):
            # a text that has moved from one kind to another is taken from the table that it leaves
            changes = {kind: self._change(kind, dict(entries)) for kind, entries in rows.items()}
            for kind, (_, new) in changes.items():
                self._add(kind, new)
            for kind, (gone, new) in changes.items():
                table = self._table(kind, create=True)
                for batch in _batches(sorted(gone.keys() - new.keys())):
                    table.delete(f"iri IN ({', '.join(map(_text, batch))})")
                for iri in sorted(gone.keys() & new.keys()):
                    table.delete(f"iri = {_text(iri)} AND digest = {_bytes(gone[iri])}")
                if gone or new:
                    self._arrange(table)
                versions.append(f"{kind}:{table.version}")
        return ",".join(versions)

    def snapshot(self, version: str) -> LanceSnapshot:
        """Open a published version; see `VectorStore`."""
        if not _VERSION.match(version):
            raise ValueError(f"{version!r:.80} is not a version of the vectors")
        tables = {}
        for kind, _, number in (each.partition(":") for each in version.split(",") if each):
            with _errors(self.location):
                table = self._table(kind, fresh=True)
                if table is None:
                    raise ValueError(f"there is no table of the vectors of the kind {kind}")
                table.checkout(int(number))
                tables[kind] = table
        return LanceSnapshot(tables, self._size, self.location)

    def discard(self, keep: str) -> None:
        """Remove all other versions that are older than `KEPT`, and what was put since."""
        with _errors(self.location):
            for kind, _, number in (each.partition(":") for each in keep.split(",") if each):
                table = self._table(kind)
                if table is not None:
                    with suppress(ValueError, RuntimeError):
                        table.tags.delete(_TAG)
                    table.tags.create(_TAG, int(number))  # a version with a tag is not removed
                    table.optimize(cleanup_older_than=KEPT)
            if self._table(PENDING) is not None:
                self._open.pop(PENDING, None)
                self._database.drop_table(self._prefix + PENDING)

    def close(self) -> None:
        self._open = {}

    # --- tables

    def _tables(self) -> dict[str, Any]:
        """Return the tables of this corpus that exist, by kind."""
        names = [name for name in self._names() if name.startswith(self._prefix)]
        found = {name.removeprefix(self._prefix): self._table(name.removeprefix(self._prefix)) for name in names}
        return {kind: table for kind, table in found.items() if table is not None}

    def _names(self) -> Iterator[str]:
        token = None
        while True:
            page = self._database.list_tables(page_token=token, limit=1000)
            yield from page.tables
            token = page.page_token
            if not token:
                return

    def _table(self, kind: str, *, create: bool = False, fresh: bool = False) -> Any:
        """Return the table of a kind; None if there is none. `fresh`: an object of its own."""
        table = None if fresh else self._open.get(kind)
        if table is None:
            try:
                table = self._database.open_table(self._prefix + kind)
            except ValueError:  # there is none
                if not create:
                    return None
                table = self._database.create_table(self._prefix + kind, schema=self._schema())
            if not fresh:
                self._open[kind] = table
        return table

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.schema(
            [
                ("iri", pa.string()),
                ("digest", pa.binary(_DIGEST_BYTES)),
                ("part", pa.int32()),
                ("parts", pa.int32()),
                ("vector", pa.list_(pa.float32(), self._size)),
            ]
        )

    def _arrow(self, rows: Sequence[tuple[str, bytes, int, int, np.ndarray]]) -> Any:
        import pyarrow as pa

        schema = self._schema()
        columns = list(zip(*rows))
        arrays = [pa.array(column, field.type) for column, field in zip(columns[:4], schema)]
        vectors = pa.array(np.concatenate(columns[4]).astype(np.float32), pa.float32())
        return pa.Table.from_arrays([*arrays, pa.FixedSizeListArray.from_arrays(vectors, self._size)], schema=schema)

    # --- differences

    def _digests(self, table: Any, wanted: set[str]) -> Iterator[bytes]:
        if len(wanted) > _SCAN_FROM:
            for batch in table.search().select(["digest"]).to_batches():
                yield from batch["digest"].to_pylist()
        else:
            for part in _batches(sorted(wanted)):
                test = f"digest IN ({', '.join(_bytes(bytes.fromhex(each)) for each in part)})"
                yield from table.search().where(test).select(["digest"]).to_arrow()["digest"].to_pylist()

    def _change(self, kind: str, entries: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the pieces whose vectors have to go and those whose vectors are missing, with their digests."""
        gone: dict[str, bytes] = {}
        new = {iri: bytes.fromhex(digest) for iri, digest in entries.items()}
        table = self._table(kind)
        if table is None:
            return gone, new
        known: dict[str, set[bytes]] = {}
        for batch in table.search().select(["iri", "digest"]).to_batches():
            for iri, digest in zip(batch["iri"].to_pylist(), batch["digest"].to_pylist()):
                known.setdefault(iri, set()).add(digest)
        for iri, digests in known.items():
            if digests == {new.get(iri)}:
                del new[iri]
            else:  # more than one, if a writer was killed
                gone[iri] = min(digests)
        return gone, new

    def _add(self, kind: str, new: Mapping[str, bytes]) -> None:
        """Add the vectors of pieces to the table of a kind."""
        pieces: dict[bytes, list[str]] = {}
        for iri, digest in new.items():
            pieces.setdefault(digest, []).append(iri)
        tables = self._tables()
        for name in sorted(tables, key=lambda each: each != PENDING):
            if pieces:
                self._copy(tables[name], kind, pieces)
        if pieces:
            raise ValueError(f"the vectors of some pieces of the kind {kind} were not put")

    def _copy(self, source: Any, kind: str, pieces: dict[bytes, list[str]]) -> None:
        """Copy vectors from one table to the pieces with their digests; remove from `pieces` what was copied."""
        target, rows = self._table(kind, create=True), []
        left: dict[bytes, set[int]] = {}
        for digest, part, parts, vector in self._vectors_of(source, pieces):
            seen = left.setdefault(digest, set(range(parts)))
            if part in seen:
                seen.remove(part)
                rows += [(iri, digest, part, parts, vector) for iri in pieces[digest]]
            if len(rows) >= 20_000:
                target.add(self._arrow(rows))
                rows = []
        if rows:
            target.add(self._arrow(rows))
        for digest, seen in left.items():
            if not seen:
                del pieces[digest]

    def _vectors_of(self, table: Any, digests: Mapping[bytes, object]) -> Iterator[tuple[bytes, int, int, np.ndarray]]:
        columns = ["digest", "part", "parts", "vector"]
        if len(digests) > _SCAN_FROM:
            queries = [table.search()]
        else:
            tests = [f"digest IN ({', '.join(map(_bytes, part))})" for part in _batches(sorted(digests))]
            queries = [table.search().where(test) for test in tests]
        for query in queries:
            for batch in query.select(columns).to_batches():
                vectors = _matrix(batch["vector"], self._size)
                values = zip(*(batch[name].to_pylist() for name in columns[:3]))
                for row, (digest, part, parts) in enumerate(values):
                    if digest in digests:
                        yield digest, part, parts, vectors[row]

    def _arrange(self, table: Any) -> None:
        """Merge small files, and bring the index up to date; create it if the table is large enough."""
        if table.count_rows() >= INDEXED_FROM and not table.list_indices():
            from lancedb.index import IvfHnswSq

            table.create_index("vector", config=IvfHnswSq(distance_type="dot", m=EDGES, ef_construction=EXPLORED))
        else:
            table.optimize(cleanup_older_than=timedelta(days=36_500))


class LanceSnapshot:
    """One version of the vectors."""

    def __init__(self, tables: Mapping[str, Any], size: int, location: str) -> None:
        self._tables = dict(tables)
        self._size = size
        self._location = location
        self._counts = {kind: table.count_rows() for kind, table in tables.items()}
        self._is_indexed = {kind: bool(table.list_indices()) for kind, table in tables.items()}

    def search(self, kind: PieceKind, queries: np.ndarray, k: int) -> list[list[tuple[str, float]]]:
        """Find the closest pieces; see `VectorSnapshot`."""
        if not self._counts.get(kind) or k < 1:
            return [[] for _ in queries]
        with _errors(self._location):
            return [self._closest(kind, np.asarray(query, dtype=np.float32), k) for query in queries]

    def _closest(self, kind: str, query: np.ndarray, k: int) -> list[tuple[str, float]]:
        count = self._counts[kind]
        limit = min(count, 2 * k + 10)
        while True:
            search = self._tables[kind].search(query, vector_column_name="vector").distance_type("dot")
            if self._is_indexed[kind]:
                search = search.nprobes(NPROBES).refine_factor(REFINE)
            found = search.limit(limit).select(["iri", "vector", "_distance"]).to_arrow()
            cosines = np.round(_matrix(found["vector"].combine_chunks(), self._size) @ query, _DECIMALS)
            best: dict[str, float] = {}
            for iri, cosine in zip(found["iri"].to_pylist(), cosines.tolist()):
                best[iri] = max(cosine, best.get(iri, -2.0))
            ordered = sorted(best.items(), key=lambda each: (-each[1], each[0]))[:k]
            # windows of one piece, and ties, may hide a piece that belongs to the best
            if len(cosines) < limit or limit == count or (len(ordered) == k and ordered[-1][1] > cosines.min()):
                return ordered
            limit = min(count, 2 * limit)

    def vectors(self, kind: PieceKind) -> tuple[Sequence[str], np.ndarray]:
        """Return all vectors of one kind; see `VectorSnapshot`."""
        if not self._counts.get(kind):
            return [], np.empty((0, 0), dtype=np.float32)
        with _errors(self._location):
            found = self._tables[kind].search().select(["iri", "part", "vector"]).to_arrow()
        found = found.sort_by([("iri", "ascending"), ("part", "ascending")])
        return found["iri"].to_pylist(), _matrix(found["vector"].combine_chunks(), self._size)

    def close(self) -> None:
        self._tables, self._counts = {}, {}


def _matrix(vectors: Any, size: int) -> np.ndarray:
    """Return a column of vectors as an array of shape (rows, size)."""
    values: np.ndarray = vectors.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, size)


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _bytes(digest: bytes) -> str:
    return f"X'{digest.hex()}'"


def _text(iri: str) -> str:
    quoted = iri.replace("'", "''")
    return f"'{quoted}'"


@contextmanager
def _errors(uri: str) -> Iterator[None]:
    """Convert what LanceDB raises if it cannot read or write."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise StoreUnavailable(f"The vectors at {uri} cannot be used: {reason}") from error
