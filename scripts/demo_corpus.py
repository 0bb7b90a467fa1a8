"""Writes the PDF file of the demo corpus, `kgqa/demo/corpus/harbours.pdf`; its other files are written by hand.

python -m scripts.demo_corpus            write the file
python -m scripts.demo_corpus --check    exit 1 if the file is out of date
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from scripts.demo_graph import DEMO_FOLDER

FILE = DEMO_FOLDER / "corpus" / "harbours.pdf"
PAGES = (
    (
        "Harbours of Varn",
        "Deepest harbour: Kirkwick",
        "Harbour master of Kirkwick: Signe Holm",
        "Harbour master of Dunmouth: Olaf Brandt",
        "Depth of Kirkwick at low tide: 4 m",
        "Depth of Dunmouth at low tide: 1 m",
    ),
    (
        "Notes",
        "The harbour of Kirkwick was deepened in 1931 and is now the only one",
        "that ships can enter at low tide. Its harbour master lives in the old",
        "pilot house, above the slip. Dunmouth lies on the lee side of Sandrey.",
        "In a north wind the ferry waits there, sometimes for days.",
    ),
)
"""The lines of each page; the first one is the heading."""


def content() -> bytes:
    """Return the content of the file; it is always the same."""
    from reportlab.lib.pagesizes import A5
    from reportlab.pdfgen.canvas import Canvas

    data = io.BytesIO()
    canvas = Canvas(data, pagesize=A5, invariant=1, pageCompression=0)
    canvas.setTitle(PAGES[0][0])
    for heading, *lines in PAGES:
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(40, 540, heading)
        canvas.setFont("Helvetica", 10)
        for number, line in enumerate(lines):
            canvas.drawString(40, 510 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return data.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    found = content()
    if parser.parse_args(arguments).check:
        same = FILE.exists() and FILE.read_bytes() == found
        print(f"{FILE.name} is up to date" if same else f"{FILE.name} is out of date: python -m scripts.demo_corpus")
        return 0 if same else 1
    FILE.write_bytes(found)
    print(f"{FILE}: {len(found):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
