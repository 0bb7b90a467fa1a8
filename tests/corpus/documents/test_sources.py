"""Which files are found, and why the others are left out."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from kgqa.corpus.documents.limits import Limits
from kgqa.corpus.documents.reading import read_source
from kgqa.corpus.documents.sources import Source, find_sources
from kgqa.errors import DocumentError, SettingsError
from tests.corpus.documents.samples import png


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with one file that can be read."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.txt").write_text("A text.")
    return root


def names(found):
    return [each.name for each in found.sources]


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_files_are_found_in_the_same_order_each_time(folder):
    for name in ("z.md", "sub/b.html", "sub/deep/c.pdf", "B.TXT", "README", "sub-2.jsonl.gz", "image.PNG"):
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"content")
    found = find_sources([folder])
    assert names(found) == sorted(names(found))
    assert [(each.name, each.file_type.format) for each in found.sources] == [
        ("docs/B.TXT", "plain_text"),
        ("docs/README", "plain_text"),
        ("docs/a.txt", "plain_text"),
        ("docs/image.PNG", "images"),
        ("docs/sub-2.jsonl.gz", "json_records"),
        ("docs/sub/b.html", "html"),
        ("docs/sub/deep/c.pdf", "pdf"),
        ("docs/z.md", "markdown"),
    ]
    assert find_sources([folder]) == found


def test_names_are_relative_to_a_folder(folder, monkeypatch):
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("B.")
    assert names(find_sources([folder / "sub" / "b.txt"])) == ["b.txt"]
    assert names(find_sources([folder / "sub" / "b.txt"], names_from=folder.parent)) == ["docs/sub/b.txt"]
    assert names(find_sources([folder, folder / "a.txt"], names_from=folder)) == ["a.txt", "sub/b.txt"]
    monkeypatch.chdir(folder)
    assert names(find_sources(["."])) == ["docs/a.txt", "docs/sub/b.txt"]


def test_files_with_the_same_name_are_not_mixed_up(folder, tmp_path):
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    (other / "a.txt").write_text("Another text.")
    found = find_sources([folder, other])
    assert names(found) == ["docs/a.txt"]
    assert found.skipped == (("docs/a.txt", f"another file has the same name in the corpus: {folder / 'a.txt'}"),)


def test_patterns_hidden_files_and_other_corpora(folder):
    write(folder, draft__x="", **{"b.log": "log", "sub__keep.log": "log", "sub__c.txt": "c", "sub__d.tmp.txt": "d"})
    write(
        folder,
        **{".kgqaignore": "*.log\n/draft/\n", ".hidden.txt": "h", "corpus__corpus.sqlite": "", "corpus__x.txt": "x"},
    )
    (folder / "sub" / ".kgqaignore").write_text("!keep.log\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("g")
    found = find_sources([folder], ignore=["*.tmp.*"])
    assert names(found) == ["docs/a.txt", "docs/sub/c.txt", "docs/sub/keep.log"]
    assert dict(found.skipped) == {
        "docs/.git/": "hidden",
        "docs/.hidden.txt": "hidden",
        "docs/b.log": "it matches an ignore pattern",
        "docs/corpus/": "a corpus of kgqa",
        "docs/draft/": "it matches an ignore pattern",
        "docs/sub/d.tmp.txt": "it matches an ignore pattern",
    }
    assert "docs/.git/config.txt" in names(find_sources([folder], hidden=True))
    assert names(find_sources([folder / "a.txt"], ignore=["a.*"])) == []
    with pytest.raises(SettingsError, match="not valid"):
        find_sources([folder], ignore=["!"])


def test_keys_are_left_out_unless_asked_for(folder):
    write(
        folder,
        id_rsa="key",
        **{
            "server.pem": "key",
            "prod.env": "A=1",
            "notes.txt": "Log in with password = 'Tr0ub4dor&3x9zQ' there.",
            "key.md": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n",
            "late.txt": "word " * 20_000 + "AKIAIOSFODNN7EXAMPLE",
        },
    )
    found = find_sources([folder])
    assert names(found) == ["docs/a.txt", "docs/late.txt"]
    assert dict(found.skipped) == {
        "docs/id_rsa": "it looks like a file with keys or passwords",
        "docs/server.pem": "it looks like a file with keys or passwords",
        "docs/prod.env": "it looks like a file with keys or passwords",
        "docs/notes.txt": "it contains a password or token (“password = '…”)",
        "docs/key.md": "it contains a private key",
    }
    with pytest.raises(DocumentError, match="docs/late.txt cannot be read: it contains an access token"):
        list(read_source(found.sources[1]))
    (document,) = read_source(found.sources[1], keys=True)
    assert document.text.endswith("EXAMPLE")
    assert "docs/id_rsa" in names(find_sources([folder], keys=True))
    assert not any("Tr0ub4dor" in reason or "AKIAIO" in reason for _, reason in found.skipped)


def test_links_pipes_devices_and_odd_names(folder, tmp_path):
    (tmp_path / "outside.txt").write_text("outside")
    (folder / "out.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in.txt").symlink_to(folder / "a.txt")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    os.mkfifo(folder / "pipe.txt")
    odd = os.fsencode(folder) + b"/odd\xff\n\x1b[31m.txt"
    Path(os.fsdecode(odd)).write_text("odd")
    found = find_sources([folder])
    assert names(found) == ["docs/a.txt", "docs/odd\\xff\\x0a\\x1b[31m.txt"]
    assert next(read_source(found.sources[1])).text == "odd"
    assert dict(found.skipped) == {
        "docs/in.txt": "a link to a file or folder that is read under its own name",
        "docs/loop.txt": "a link that leads nowhere",
        "docs/out.txt": "a link out of the folder",
        "docs/pipe.txt": "not a regular file",
        "docs/up": "a link out of the folder",
    }
    assert names(find_sources([folder / "out.txt"])) == ["outside.txt"]  # the user names it
    assert find_sources(["/dev/zero"]).skipped == (("zero", "not a regular file"),)


def test_sizes_types_and_files_that_cannot_be_read(folder, monkeypatch):
    with (folder / "big.txt").open("w") as file:
        file.truncate(1 << 30)  # a sparse file
    with (folder / "big.jsonl").open("w") as file:
        file.truncate(1 << 30)
    (folder / "empty.md").touch()
    (folder / "binary.txt").write_bytes(b"\x7fELF\0")
    (folder / "program.exe").write_bytes(b"MZ")
    (folder / "secret").mkdir()
    (folder / "denied.txt").write_text("denied")
    opened, scanned = Path.open, os.scandir
    monkeypatch.setattr(Path, "open", lambda path, mode: denied(path, lambda path: opened(path, mode), "denied.txt"))
    monkeypatch.setattr(os, "scandir", lambda path: denied(path, scanned, "secret"))
    found = find_sources([folder])
    assert names(found) == ["docs/a.txt"]
    assert dict(found.skipped) == {
        "docs/big.txt": "larger than 67,108,864 bytes",
        "docs/big.jsonl": "not a text file",
        "docs/empty.md": "the file is empty",
        "docs/binary.txt": "not a text file",
        "docs/program.exe": "unknown type .exe",
        "docs/secret/": "permission denied",
        "docs/denied.txt": "permission denied",
    }
    assert find_sources([folder / "a.txt"], max_bytes=3).skipped == (("a.txt", "larger than 3 bytes"),)
    with pytest.raises(DocumentError, match="permission denied"):
        Source("denied.txt", folder / "denied.txt", 6).digest()
    with pytest.raises(DocumentError, match="more than 0 files"):
        find_sources([folder], limits=Limits(files=0))
    with pytest.raises(DocumentError, match="no such file"):
        find_sources([folder / "missing"])


def denied(path, function, name):
    if Path(path).name == name:
        raise PermissionError(13, "Permission denied")
    return function(path)


def test_the_digest_of_a_source_is_that_of_its_document(folder):
    (source,) = find_sources([folder]).sources
    (document,) = read_source(source)
    assert document.digest == source.digest()
    (folder / "a.txt").write_text("Another text.")
    assert source.digest() != document.digest
    assert (document.source, document.title, document.media_type) == ("docs/a.txt", "a", "text/plain")


RECORDS = b"""{"id": 7, "title": "One", "text": "First \\ud800 text."}
{"id": "7", "title": "Again", "text": "Second text."}
{"id": "b", "text": "Third text."}

not JSON
{"title": "No text"}
["list"]
{"id": 1.5, "text": "x"}
{"text": "No id."}
{"text": "No id."}
{"text": "token ghp_16C7e42F292c6912E7710c838347Ae178B4a"}
\xff\xfe
{"id": "last", "text": "Last text."}"""


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_records_of_json_lines(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(RECORDS) if name.endswith(".gz") else RECORDS)
    reports = []
    (source,) = find_sources([path]).sources
    found = list(read_source(source, report=lambda place, reason: reports.append((place, reason))))
    prefix = name
    assert [(each.source.removeprefix(prefix), each.title, each.text) for each in found] == [
        ("#7", "One", "First \ufffd text."),
        ("#b", "b", "Third text."),
        (f"#{found[2].digest}", "a", "No id."),
        ("#last", "last", "Last text."),
    ]
    assert [(place.removeprefix(f"{prefix}, "), reason) for place, reason in reports] == [
        ("line 2", "the id 7 occurs twice"),
        ("line 5", "not valid JSON"),
        ("line 6", 'not an object with a string "text"'),
        ("line 7", 'not an object with a string "text"'),
        ("line 8", '"id" must be a string or a whole number, "title" a string'),
        ("line 10", "the record occurs twice"),
        ("line 11", "it contains an access token (ghp_…)"),
        ("line 12", "not valid UTF-8"),
    ]
    longest = Limits(record_bytes=40)
    assert [each.title for each in read_source(source, limits=longest)] == ["b", "a", "last"]


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (b'\xef\xbb\xbf[{"title": "A", "text": "x"}, 5, {"title": "B", "text": "y"}]', ["A", "B"]),
        (b'{"title": "A",\n "text": "x"}\n', ["A"]),
        (b'{"title": "A", "text": "x"}\n{"title": "B", "text": "y"}', ["A", "B"]),
    ],
)
def test_json_lists_and_objects(tmp_path, content, titles):
    (tmp_path / "a.json").write_bytes(content)
    (source,) = find_sources([tmp_path / "a.json"]).sources
    assert [each.title for each in read_source(source)] == titles


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b'[{"text": "x"}, {"text"', "damaged after object 1"),
        ("a.json", b"[" * 5000, "damaged after object 0"),
        ("a.json.gz", gzip.compress(b'[{"text": "x"}]', mtime=0)[:-9], "damaged"),
        ("a.jsonl.gz", b"not gzip", "damaged"),
        ("a.jsonl.gz", gzip.compress(b"0" * 3_000_000, mtime=0), "too large after decompression"),
    ],
)
def test_damaged_collections(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    (source,) = find_sources([tmp_path / name]).sources
    with pytest.raises(DocumentError, match=reason):
        list(read_source(source, limits=Limits(stream_bytes=2_000_000)))


def test_a_compressed_file_that_grows_too_much(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 30_000_000))
    (source,) = find_sources([path]).sources
    with pytest.raises(DocumentError, match="too large after decompression"):
        list(read_source(source, limits=Limits(file_bytes=1_000_000)))


def test_image_files(tmp_path):
    (tmp_path / "fern.png").write_bytes(png())
    (tmp_path / "fake.jpg").write_bytes(b"not an image")
    fake, fern = find_sources([tmp_path]).sources
    (document,) = read_source(fern)
    assert (document.title, document.media_type, document.text) == ("fern", "image/png", "")
    assert [(each.data, each.media_type) for each in document.figures] == [(png(), "image/png")]
    with pytest.raises(DocumentError, match="not a PNG, JPEG, WebP or GIF image"):
        list(read_source(fake))
    with pytest.raises(DocumentError, match="larger than 10 bytes"):
        list(read_source(fern, limits=Limits(figure_bytes=10)))
