"""A process that writes three documents to a corpus and kills itself on the way: `FOLDER change|addition NUMBER`.

`change N` ends it before its N-th change of a file in the folder (see `tests.kill_at_write`), `addition N` while the
N-th addition is being committed. 0 kills never. The same command again does what is left to do.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from tests.corpus.small_corpus import TIME, read_document
from tests.kill_at_write import _watch

DOCUMENTS = {
    "one.txt": ("Ada wrote notes", "Ada knew Babbage/person"),
    "two.txt": ("Babbage/person designed engine", "Ada described engine London/city"),
    "three.txt": ("Dora wrote letters",),
}


def write(path: Path, addition: int) -> None:
    folder = CorpusFolder(path)
    if not folder.exists:
        folder.create()
    left = [addition]

    def counted(additions):
        for each in additions:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            yield each

    with Editor(folder, now=lambda: TIME) as editor:
        editor.publish()
        for source, facts in DOCUMENTS.items():
            additions, texts = read_document(source, *facts)
            if not editor.database.edits_of_document(additions[0].document):
                editor.apply("insert", counted(additions), agent="reader", texts=texts)
            if source != "two.txt":
                editor.publish()


if __name__ == "__main__":
    path, kind, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    changes = _watch(number if kind == "change" else 0, str(path))
    write(path, number if kind == "addition" else 0)
    print(changes[0])
