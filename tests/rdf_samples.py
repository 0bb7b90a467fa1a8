"""One small graph as a file in every RDF format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyoxigraph as ox

TURTLE = """
@prefix : <http://e/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p [ :q [ :r 1 ] ; :s (1 2) ] ; :name "A"@en , "A"@en-GB , "Ä \\"quoted\\" \\\\ tab\\there \U0001f600" , "" .
:b :age 041 ; :born "1983-02-01"^^xsd:date , "-0044-03-15"^^xsd:date ; :since "1983"^^xsd:gYear ; :true true .
:c :height 1.50 ; :size 1.5E10 ; :text "漢字\\u2028new\\nline \\u0001" ; :at "2001-02-03T04:05:06Z"^^xsd:dateTime .
:ö :is <http://e/it's?x={}#y> ; :kind "x"^^:kind .
:load :service "SERVICE <http://x> } } ; DROP ALL ; LOAD # \\u0022 \\\\u0041 define ''' ?x" .
""".replace("={}", "=&'")


def files_of_each_format(folder: Path) -> list[Path]:
    """Write the same triples in every format, without those a format cannot hold."""
    turtle = folder / "same.ttl"
    turtle.write_text(TURTLE, encoding="utf-8")
    # RDF/XML cannot hold every character
    quads = [
        quad
        for quad in ox.parse(TURTLE, format=ox.RdfFormat.TURTLE)
        if "\u0001" not in getattr(quad.object, "value", "")
    ]
    by_engine = {
        "nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "trig": ox.RdfFormat.TRIG, "n3": ox.RdfFormat.N3,
        "rdf": ox.RdfFormat.RDF_XML, "jsonld": ox.RdfFormat.JSON_LD,
    }  # fmt: skip
    files = [turtle]
    for ending, format in by_engine.items():
        files.append(folder / f"same.{ending}")
        files[-1].write_bytes(ox.serialize(quads, format=format))
    files.append(folder / "packed.ttl.gz")
    files[-1].write_bytes(gzip.compress(turtle.read_bytes()))
    return files
