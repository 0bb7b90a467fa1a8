"""Writes `kgqa/schemas/freebase_mediators.txt`, which lists the mediator types of Freebase and the relations to them.

    python -m scripts.freebase_mediators ONTOLOGY            write the list
    python -m scripts.freebase_mediators ONTOLOGY --check    exit 1 if the list is out of date

ONTOLOGY is a folder with the files `fb_roles` and `cvt_types` of https://github.com/dki-lab/GrailQA, each also as .gz.
Only ids are written: first the types, then the relations whose range is one of these types. Ids that the schema ignores
as noise, such as those of users' own domains, are left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kgqa.schema import Schema, bundled_schema
from kgqa.training.sources import read_ontology

LIST = Path(__file__).resolve().parents[1] / "kgqa" / "schemas" / "freebase_mediators.txt"
HEAD = """\
# Mediator types of Freebase, and after the empty line the relations that lead to them. Licence and source:
# freebase_mediators.LICENSE.md. Written by scripts/freebase_mediators.py.
"""


def list_text(ontology: Path, schema: Schema) -> str:
    """Return the text of the list for the ontology in a folder."""
    found = read_ontology(ontology, schema)
    types = found.mediators
    relations = (relation for relation, (_, range_) in found.ends.items() if range_ in types)
    parts = ([iri for iri in iris if not schema.is_noise(iri)] for iris in (types, relations))
    ids = ["".join(f"{iri.removeprefix(schema.id_base)}\n" for iri in sorted(part)) for part in parts]
    return HEAD + "\n".join(ids)


def main(arguments: list[str] | None = None) -> int:
    """Write or check the list; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.freebase_mediators", description="List the mediators of Freebase."
    )
    parser.add_argument("ontology", type=Path, help="folder with fb_roles and cvt_types")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if the list is out of date")
    options = parser.parse_args(arguments)
    text = list_text(options.ontology, bundled_schema("freebase"))
    if not options.check:
        LIST.write_text(text, encoding="utf-8")
        return 0
    if not LIST.is_file() or LIST.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{LIST} is out of date: run python -m scripts.freebase_mediators {options.ontology}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
