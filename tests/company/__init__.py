"""A company in plain RDF (`graph.ttl`: `rdf:type` and labels, no domains or ranges) and 40 questions about it.

The wording of many questions does not occur in the graph ("boss", `c:reportsTo`); the type of the answer decides them.
`questions.jsonl` is in kgqa's own format; `benchmarks/accuracy.py --table --set company` asks the questions.
"""

from pathlib import Path

GRAPH = Path(__file__).parent / "graph.ttl"
QUESTIONS = Path(__file__).parent / "questions.jsonl"
PREFIX = "http://example.org/company/"
