"""Queries are parsed by many threads at once."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
from concurrent.futures import ThreadPoolExecutor
from kgqa.graph.query.parsing import parse_query
query = "SELECT ?x (COUNT(?y) AS ?n) WHERE { ?x <http://e/p>/<http://e/q> ?y . FILTER(?y != 'a'@en) } GROUP BY ?x"
with ThreadPoolExecutor(4) as pool:
    print({each.algebra.name for each in pool.map(parse_query, [query] * 40)})
"""


def test_the_first_queries_of_a_process_may_come_from_many_threads():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{'SelectQuery'}\n", done.stderr
