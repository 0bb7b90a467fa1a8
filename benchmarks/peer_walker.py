"""A small substitute for a public program, to test peer.py: it explores as Think-on-Graph does (Sun et al. 2024).

The language model scores the relations of an entity, then the entities at the ends of the best relations; then it
decides whether the triples suffice. The program uses plain HTTP, specifies no graph in its queries, and sends one
request at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

WIDTH, DEPTH, MOST = 3, 3, 20
NS = "http://rdf.freebase.com/ns/"
NAME = f"<{NS}type.object.name>"
_RATED = re.compile(r"\{\s*([^{}()]+?)\s*\(Score:\s*([\d.]+)\)\}")
RELATIONS = """Pick the {width} relations that help most and rate them with scores that sum to 1.

Q: Who founded the maker of the Solo 5?
Topic Entity: Solo 5
Relations: company.product.maker; company.product.weight
A: 1. {{company.product.maker (Score: 1.0)}}: the maker is asked for.

Q: {question}
Topic Entity: {entity}
Relations: {relations}
A: """
ENTITIES = """Give every entity a score for its help with the question; the scores sum to 1.

Q: {question}
Relation: {relation}
Entities: {entities}
Score: """
ENOUGH = """Do the triples together with what you know answer the question? Say Yes or No in braces, then the answer.

Q: Who founded the maker of the Solo 5?
Knowledge Triplets: Solo 5, company.product.maker, Halden Works
A: {{No}}. The founder is missing.

Q: {question}
Knowledge Triplets: {triples}
A: """
LAST = """Answer the question with the triples and with what you know, the answer in braces.

Q: {question}
Knowledge Triplets: {triples}
A: """


class Walker:
    """Answers one question."""

    def __init__(self, sparql: str, llm: str, question: str) -> None:
        self._sparql, self._llm, self._question = sparql, llm, question
        self.triples: list[str] = []

    def answer(self, topics: dict[str, str]) -> str:
        frontier = dict(topics)
        for _ in range(DEPTH):
            frontier = self._hop(frontier)
            if not frontier:
                break
            reply = self._ask(ENOUGH, triples="\n".join(self.triples))
            if reply.casefold().startswith("{yes}"):
                return reply
        return self._ask(LAST, triples="\n".join(self.triples))

    def _hop(self, frontier: dict[str, str]) -> dict[str, str]:
        found: list[tuple[float, str, str]] = []
        for entity, name in frontier.items():
            out = self._select(f"SELECT DISTINCT ?x WHERE {{ <{NS}{entity}> ?x ?y }}")
            back = self._select(f"SELECT DISTINCT ?x WHERE {{ ?y ?x <{NS}{entity}> }}")
            ways = {**dict.fromkeys(back, True), **dict.fromkeys(out, False)}
            named = {r.removeprefix(NS): way for r, way in ways.items() if r.startswith(NS) and "type.object" not in r}
            if not named:
                continue
            reply = self._ask(RELATIONS, width=WIDTH, entity=name, relations="; ".join(sorted(named)))
            for relation, score in _RATED.findall(reply)[:WIDTH]:
                if relation in named:
                    found += self._ends(entity, name, relation, named[relation], float(score))
        return {end: name for _, end, name in sorted(found, reverse=True)[:WIDTH]}

    def _ends(self, entity: str, name: str, relation: str, back: bool, score: float) -> list[tuple[float, str, str]]:
        ends = f"?x <{NS}{relation}> <{NS}{entity}>" if back else f"<{NS}{entity}> <{NS}{relation}> ?x"
        values = self._select(f"SELECT DISTINCT ?x WHERE {{ {ends} }}")[:MOST]
        names = {value.removeprefix(NS): self._name(value) for value in values}
        triples = [f"{end}, {relation}, {name}" if back else f"{name}, {relation}, {end}" for end in names.values()]
        if len(names) > 1:
            text = self._ask(ENTITIES, relation=relation, entities="; ".join(names.values()))
            shares = [float(number) for number in re.findall(r"\d+\.\d+", text)]
            shares = shares if len(shares) == len(names) else [1 / len(names)] * len(names)
        else:
            shares = [1.0] * len(names)
        kept = [place for place, share in enumerate(shares) if share > 0]
        self.triples += [triples[place] for place in kept]
        return [(score * shares[place], *list(names.items())[place]) for place in kept if values[place].startswith(NS)]

    def _name(self, value: str) -> str:
        if not value.startswith(NS):
            return value
        english = 'FILTER(lang(?x) IN ("en", ""))'
        found = self._select(f"SELECT ?x WHERE {{ <{value}> {NAME} ?x {english} }} LIMIT 1")
        return found[0] if found else value.removeprefix(NS)

    def _select(self, query: str) -> list[str]:
        fields = {"query": query, "format": "application/sparql-results+json"}
        rows = _json(Request(f"{self._sparql}?{urlencode(fields)}", headers={"Accept": fields["format"]}))
        return [row["x"]["value"] for row in rows["results"]["bindings"]]

    def _ask(self, prompt: str, **values: Any) -> str:
        content = prompt.format(question=self._question, **values)
        body = {"model": "oracle", "messages": [{"role": "user", "content": content}]}
        headers = {"Content-Type": "application/json"}
        reply = _json(Request(f"{self._llm}/chat/completions", json.dumps(body).encode(), headers))
        return reply["choices"][0]["message"]["content"]


def _json(request: Request) -> Any:
    with urlopen(request, timeout=300) as reply:
        return json.load(reply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--questions", required=True, metavar="FILE")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--no-marks", action="store_true", help="do not mark the start of a question")
    options = parser.parse_args()
    sparql, llm, mark = (os.environ[name] for name in ("SPARQL_ENDPOINT", "OPENAI_BASE_URL", "PEER_QUESTION_URL"))
    with open(options.out, "w") as out:
        for line in Path(options.questions).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if not options.no_marks:
                urlopen(mark + quote(row["id"], safe="")).close()
            reply = Walker(sparql, llm, row["question"]).answer(row["topics"])
            out.write(json.dumps({"question": row["question"], "results": reply}) + "\n")


if __name__ == "__main__":
    main()
