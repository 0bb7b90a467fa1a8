"""Files for tests: DOCX, PDF and images, made when they are needed."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from kgqa.corpus.documents.document import Document, Element

ENGLISH = (
    "Dr. Mara Quill was born in Alder Bay in 1902. She studied at the University of Tarn, e.g. botany. "
    "“Is it alive?” she asked. In 1931 she moved to St. Olm. "
)
CHINESE = "马拉在一九〇二年出生于桤木湾。她是一位植物学家！“它还活着吗？”她问道。后来她搬到了圣奥姆。"
ARABIC = "ولدت مارا كويل في خليج ألدر. درست علم النبات؟ ثم انتقلت إلى مدينة أولم."
EMOJI = "The 👩‍🔬 works. A family 👨‍👩‍👧‍👦 came! Flags 🇩🇪🇫🇷 and thumbs 👍🏽 too. Café e\u0301 n\u0303."
TEXTS = (ENGLISH, CHINESE, ARABIC, EMOJI)


def document(text: str, *, elements: Iterable[Element] = (), pages: tuple[int, ...] = ()) -> Document:
    """Return a document with a text."""
    return Document("folder/file.txt", "file", "text/plain", "0", text, pages, tuple(elements))


def words(document_: object, elements: Iterable[Element]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the kinds of elements, and the texts of their cells."""
    text = document_.text  # type: ignore[attr-defined]
    return [(each.kind, tuple(text[begin:end] for begin, end in each.cells)) for each in elements]


def png(size: int = 80, shade: int = 0) -> bytes:
    """Return a square image of one colour."""
    rows = (b"\0" + bytes([shade, 32, 48]) * size) * size
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def docx() -> bytes:
    """Return a DOCX file with a heading, a list, a table, a link, an image, and deleted and hidden text."""
    import docx as library
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    file = library.Document()
    file.core_properties.title = "The garden of Alder Bay"
    file.add_heading("The garden", 1)
    paragraph = file.add_paragraph("Mara Quill ")
    paragraph.add_run("founded").bold = True
    paragraph.add_run(" it in 1931 🌱.")
    hidden = paragraph.add_run("hidden")
    hidden.font.hidden = True
    namespace = nsdecls("w")
    paragraph._p.append(parse_xml(f"<w:del {namespace}><w:r><w:delText>deleted</w:delText></w:r></w:del>"))
    paragraph._p.append(parse_xml(f'<w:ins {namespace}><w:r><w:t xml:space="preserve"> Added.</w:t></w:r></w:ins>'))
    file.add_paragraph("Ferns", style="List Bullet")
    file.add_paragraph("Mosses", style="List Bullet")
    file.add_paragraph("Founder: Mara Quill")
    file.add_paragraph("Opened: 1931")
    table = file.add_table(3, 3)
    for row, cells in zip(table.rows, (("Plant", "Origin", "Year"), ("Fern", "Tarn", "1931"), ("Moss", "", "1932"))):
        for cell, text in zip(row.cells, cells):
            cell.text = text
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
    link = file.part.relate_to("https://garden.example/", kind, is_external=True)
    paragraph = file.add_paragraph("See ")
    paragraph._p.append(
        parse_xml(f'<w:hyperlink {nsdecls("w", "r")} r:id="{link}"><w:r><w:t>the site</w:t></w:r></w:hyperlink>')
    )
    file.add_picture(io.BytesIO(png()))
    output = io.BytesIO()
    file.save(output)
    return output.getvalue()


def changed_archive(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Return a ZIP archive in which each entry is replaced by `change(name, content)`."""
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return output.getvalue()


def pdf() -> bytes:
    """Return a PDF file of three pages; the second has fonts that need a ToUnicode table, the third an image."""
    import reportlab
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen.canvas import Canvas

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    pdfmetrics.registerFont(TTFont("Vera", str(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf")))
    output = io.BytesIO()
    page = Canvas(output)
    page.setTitle("The garden of Alder Bay")
    page.bookmarkPage("one")
    page.addOutlineEntry("The garden", "one", 0)
    for number, line in enumerate(("1 The garden", "Mara Quill founded the gar-", "den in 1931. It lies", "near")):
        page.drawString(72, 720 - 15 * number, line)
    page.showPage()
    page.setFont("Vera", 12)
    page.drawString(72, 720, "the Zürich Straße – naïve Ω.")
    page.setFont("STSong-Light", 12)
    page.drawString(72, 700, "马拉出生于桤木湾。")
    page.showPage()
    page.drawString(72, 720, "Figure 1: A fern")
    page.drawImage(ImageReader(io.BytesIO(png())), 72, 400, 100, 100)
    page.drawImage(ImageReader(io.BytesIO(png(8))), 72, 300, 10, 10)
    page.save()
    return output.getvalue()


def raw_pdf(*objects: bytes) -> bytes:
    """Return a PDF file with these objects; the first is the catalog."""
    output = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(output))
        output += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"trailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (size, len(output))
    return output + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer
