"""Runs one method of kgqa for peer.py in the same way as other programs, and marks the start of each question."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from kgqa.methods.ask import ask, open_resources
from kgqa.model import Question
from kgqa.settings.values import resolve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sparql", required=True, metavar="URL")
    parser.add_argument("--graph-iri", metavar="IRI")
    parser.add_argument("--llm", required=True, metavar="URL")
    parser.add_argument(
        "--mark", required=True, metavar="URL", help="URL that, followed by an id, marks the start of a question"
    )
    parser.add_argument("--questions", required=True, metavar="FILE")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--settings", default="{}", metavar="JSON", help="settings of kgqa by name")
    options = parser.parse_args()
    given = {"llm.model": f"{options.llm}#oracle", **json.loads(options.settings)}
    if options.graph_iri:
        given["graph.iri"] = options.graph_iri
    with open_resources(options.sparql, settings=resolve(given)) as resources, open(options.out, "w") as out:
        # So the tables of the whole graph and the index of names do not count towards a question.
        resources.graph.tables.prepare()
        resources.graph.search("name", limit=1)
        for line in Path(options.questions).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            urlopen(options.mark + quote(row["id"], safe="")).close()
            answer = ask(Question(row["question"], id=row["id"]), topics=list(row["topics"]), resources=resources)
            names = [text for each in answer.answers for text in (each.name, each.id) if text]
            out.write(json.dumps({"id": row["id"], "answers": names, "status": answer.status}) + "\n")
            out.flush()
        urlopen(options.mark).close()


if __name__ == "__main__":
    main()
