"""Memory limits of RDF parsing: decompression bombs are refused, ordinary files are read."""

from __future__ import annotations

import gzip
import resource
from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.rdf.limits import MAX_DEPTH

RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">{}</rdf:RDF>'
ABOUT = '<rdf:Description rdf:about="{}"><p xmlns="http://e/">{}</p></rdf:Description>'
NESTED = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
BOMB = f'<!DOCTYPE rdf:RDF [<!ENTITY a0 "0123456789">{NESTED}]>' + RDF.format(ABOUT.format("http://e/1", "&a8;"))


def load(tmp_path: Path, name: str, content: str, **options) -> int:
    (tmp_path / name).write_text(content)
    return load_graph(tmp_path / "g", [tmp_path / name], **options).triples


def nested_json(levels: int) -> str:
    return '{"@id":"http://e/0","http://e/p":' * levels + '{"@id":"http://e/x"}' + "}" * levels


def nested_xml(levels: int) -> str:
    return RDF.format('<rdf:Description xmlns="http://e/"><p>' * levels + "</p></rdf:Description>" * levels)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bomb.rdf", BOMB, "entities that refer to other entities"),
        ("large.rdf", f'<!DOCTYPE x [<!ENTITY a "{"x" * 2000}">]>{RDF.format("")}', "one of more than"),
        ("parameter.rdf", f'<!DOCTYPE x [<!ENTITY % a "b">]>{RDF.format("")}', "entities that refer to other entities"),
        ("deep.rdf", nested_xml(5_000), "nested deeper than"),
        ("deep.jsonld", nested_json(20_000), "nested deeper than"),
    ],
)
def test_bombs_are_refused(tmp_path, name, content, message):
    with pytest.raises(LoadError, match=f"{name}: the .*{message}"):
        load(tmp_path, name, content, memory=1 << 30)


def test_namespace_entities_are_read(tmp_path):
    head = '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [\n  <!ENTITY owl "http://www.w3.org/2002/07/owl#" >\n  <!ENTITY e "http://e/">\n]>\n'
    assert load(tmp_path, "real.owl", head + RDF.format(ABOUT.format("&e;1", "a &amp; &owl;"))) == 1


def test_files_within_the_depth_are_read(tmp_path):
    assert load(tmp_path, "deep.jsonld", nested_json(MAX_DEPTH - 1)) == 2
    assert load(tmp_path, "deep.rdf", nested_xml(100)) == 2 + 100


@pytest.mark.parametrize("ending, text", [
    ("nt", "<urn:a> <urn:b> <urn:c> ."),
    ("ttl", "<urn:a> <urn:b> <urn:c> ."),
    ("rdf", RDF.format(ABOUT.format("urn:a", "c"))),
    ("jsonld", '{"@id": "urn:a", "urn:b": "c"}'),
    ("nt.gz", "<urn:a> <urn:b> <urn:c> ."),
])  # fmt: skip
def test_byte_order_mark_is_skipped(tmp_path, ending, text):
    data = text.encode("utf-8-sig")
    (tmp_path / f"bom.{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    assert load_graph(tmp_path / "g", [tmp_path / f"bom.{ending}"]).triples == 1


def test_memory_of_the_loading_process_is_limited(tmp_path):
    """The first block of the file exceeds the memory limit of the loading process."""
    big = "".join(f'<http://e/{n}> <http://e/p> "{"x" * 1000}" .\n' for n in range(40_000))
    with pytest.raises(LoadError, match="needs more than 80 MB of memory.*memory=MEGABYTES"):
        load(tmp_path, "big.nt", big, memory=80 << 20)
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY  # the calling process is not limited
    assert load_graph(tmp_path / "g", resume=True).triples == 40_000, "what was done by then is not lost"
