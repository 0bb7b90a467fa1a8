"""Writes the demo questions in the formats of three published data sets.

    python -m scripts.demo_formats            write cwq.json, webqsp.json and grailqa.json from questions.jsonl
    python -m scripts.demo_formats --check    exit 1 if one of them is out of date

The files have the formats of ComplexWebQuestions, WebQuestionsSP and GrailQA, but contain kgqa's own demo questions.
The kind and the level of a question depend only on its number of hops.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from scripts.demo_graph import DEMO_FOLDER, Facts, read_facts, values

Question = Mapping[str, Any]
_KINDS = {1: "simple", 2: "composition", 3: "composition"}
_LEVELS = {1: "i.i.d.", 2: "compositional", 3: "zero-shot"}
_PREFIXES = (
    "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    "PREFIX : <http://rdf.freebase.com/ns/> \n"
)


def demo_questions() -> list[Question]:
    """Return the questions in questions.jsonl."""
    text = (DEMO_FOLDER / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def contents() -> dict[str, str]:
    """Return a map from the name of each file to its content."""
    questions, facts = demo_questions(), read_facts()
    aliases = {node: values(row.get("alias", "")) for _, node, row in facts.rows}
    made = {
        "cwq.json": [_cwq(question, aliases) for question in questions],
        "webqsp.json": {
            "Version": "1.0",
            "FreebaseVersion": "demo",
            "Questions": [_webqsp(question) for question in questions],
        },
        "grailqa.json": [_grailqa(question, facts) for question in questions],
    }
    return {name: json.dumps(data, ensure_ascii=False, indent=1) + "\n" for name, data in made.items()}


def _cwq(question: Question, aliases: Mapping[str, list[str]]) -> dict[str, Any]:
    answers = []
    for answer in question["answers"]:
        known = aliases.get(answer.get("id", ""), [])
        named = {"answer": answer.get("name") or answer["value"], "answer_id": answer.get("id") or answer["value"]}
        answers.append({"aliases": known, **named})
    return {
        "ID": question["id"],
        "answers": answers,
        "composition_answer": None,
        "compositionality_type": _KINDS[question["hops"]],
        "created": "2026-01-01T00:00:00",
        "machine_question": question["question"],
        "question": question["question"],
        "sparql": question["sparql"],
        "webqsp_ID": question["id"],
        "webqsp_question": question["question"],
    }


def _webqsp(question: Question) -> dict[str, Any]:
    (topic,) = question["topic_entities"]
    path = question["path"]
    parse = {
        "ParseId": f"{question['id']}.P0",
        "AnnotatorId": 0,
        "AnnotatorComment": {
            "ParseQuality": "Complete",
            "QuestionQuality": "Good",
            "Confidence": "Normal",
            "FreeFormComment": "",
        },
        "Sparql": question["sparql"],
        "PotentialTopicEntityMention": topic["name"] if topic["name"] in question["question"] else None,
        "TopicEntityName": topic["name"],
        "TopicEntityMid": topic["id"],
        # This format cannot express inverse steps.
        "InferentialChain": None if any(step.startswith("^") for step in path) else path,
        "Constraints": [],
        "Time": None,
        "Order": None,
        "Answers": [
            {
                "AnswerType": "Entity" if "id" in answer else "Value",
                "AnswerArgument": answer.get("id") or answer["value"],
                "EntityName": answer.get("name"),
            }
            for answer in question["answers"]
        ],
    }
    return {
        "QuestionId": question["id"],
        "RawQuestion": question["question"],
        "ProcessedQuestion": question["question"].rstrip("?").lower(),
        "Parses": [parse],
    }


def _grailqa(question: Question, facts: Facts) -> dict[str, Any]:
    (topic,) = question["topic_entities"]
    path = question["path"]
    steps = [(step.removeprefix("^"), step.startswith("^")) for step in path]
    # As in GrailQA, the question node has number 0 and the topic has the highest number.
    numbers = [len(steps) - place for place in range(len(steps) + 1)]
    nodes, edges = [], []
    expression = topic["id"]
    for place, (relation, backwards) in enumerate(steps):
        here, there = numbers[place], numbers[place + 1]
        known = facts.relations[relation]
        kinds = (known.range, known.domain) if backwards else (known.domain, known.range)
        if place == 0:
            nodes.append(_node(here, "entity", topic["id"], kinds[0], topic["name"]))
        nodes.append(_node(there, "class", kinds[1], kinds[1], facts.type_names[kinds[1]]))
        start, end = (there, here) if backwards else (here, there)
        name = relation.rpartition(".")[2].replace("_", " ").capitalize()
        edges.append({"start": start, "end": end, "relation": relation, "friendly_name": name})
        expression = f"(JOIN {relation if backwards else f'(R {relation})'} {expression})"
    kind = nodes[-1]["id"]
    return {
        "qid": question["id"],
        "question": question["question"],
        "answer": [
            {
                "answer_type": "Entity" if "id" in answer else "Value",
                "answer_argument": answer.get("id") or answer["value"],
                **({"entity_name": answer["name"]} if "id" in answer else {}),
            }
            for answer in question["answers"]
        ],
        "function": "none",
        "num_node": len(nodes),
        "num_edge": len(edges),
        "graph_query": {"nodes": sorted(nodes, key=lambda node: node["nid"]), "edges": edges},
        "sparql_query": _grailqa_query(topic["id"], kind, edges, literal="id" not in question["answers"][0]),
        "domains": sorted({relation.partition(".")[0] for relation, _ in steps}),
        "level": _LEVELS[question["hops"]],
        "s_expression": f"(AND {kind} {expression})",
    }


def _node(number: int, kind: str, ident: str, class_: str, name: str) -> dict[str, Any]:
    return {
        "nid": number,
        "node_type": kind,
        "id": ident,
        "class": class_,
        "friendly_name": name,
        "question_node": int(number == 0),
        "function": "none",
    }


def _grailqa_query(topic: str, kind: str, edges: list[dict[str, Any]], *, literal: bool) -> str:
    last = len(edges)
    lines = [] if literal else [f"?x0 :type.object.type :{kind} . "]
    lines.append(f"VALUES ?x{last} {{ :{topic} }} ")
    lines += [f"?x{edge['start']} :{edge['relation']} ?x{edge['end']} . " for edge in edges]
    lines.append(f"FILTER ( ?x0 != ?x{last}  )")
    body = "\n".join(lines)
    return f"{_PREFIXES}SELECT (?x0 AS ?value) WHERE {{\nSELECT DISTINCT ?x0  WHERE {{ \n{body}\n}}\n}}"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.demo_formats", description="Write the demo questions.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if a file is out of date")
    options = parser.parse_args(arguments)
    status = 0
    for name, text in contents().items():
        path, data = DEMO_FOLDER / name, text.encode()
        if not options.check:
            path.write_bytes(data)
        elif not path.is_file() or path.read_bytes() != data:
            sys.stderr.write(f"{path} is out of date: run python -m scripts.demo_formats\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
