"""Measures the cost of a report of 3,531 questions: writing it (time and memory), and using it in Chromium (time).

In Chromium the time to open the index, to filter it and to open a question's page is measured. The records are the demo
questions, answered without a language model and repeated under new ids.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import CHECKOUT, machine, percentile, print_json, print_table

from kgqa import open_resources
from kgqa.evaluation.datasets.questions import read_questions
from kgqa.evaluation.runs.asking import ask_question
from kgqa.evaluation.runs.records import Record
from kgqa.report.site.writing import write_site
from kgqa.settings.values import resolve

LIMIT_SECONDS = 2.0
"""Maximum seconds to open the index."""


@dataclass
class Repeated:
    """A run with the given number of questions; it repeats the records in `found` under new ids."""

    name: str
    found: list[Record]
    many: int
    folder: Path = Path("nowhere")

    @property
    def manifest(self) -> dict[str, Any]:
        return {"topics": "gold", "dataset": {"source": "demo", "questions": self.many}}

    def records(self) -> Iterator[Record]:
        for number in range(self.many):
            each = self.found[number % len(self.found)]
            yield replace(each, id=f"{each.id}-{number}", kind=f"type {number % 4}")

    def metrics(self) -> dict[str, Any]:
        return {}


def demo_records() -> list[Record]:
    questions = read_questions(CHECKOUT / "kgqa" / "demo" / "questions.jsonl")
    with open_resources(settings=resolve({"rank.embeddings": "off"})) as resources:
        return [ask_question(each, resources, topics="gold", losses=True) for each in questions]


def resident() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def opened(index: Path, times: int) -> dict[str, list[float]]:
    """Return the seconds of each repetition by action."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.browser import open_browser

    found: dict[str, list[float]] = {"open the index": [], "filter it": [], "open a page": []}
    page = next(iter(sorted(index.parent.glob("run-1/*.html"))))
    with tempfile.TemporaryDirectory() as folder, open_browser(Path(folder)) as browser:
        for _ in range(times):
            browser.go(Path("/dev/null"))
            start = time.perf_counter()
            browser.go(index)
            assert browser.wait_for("document.querySelectorAll('#questions tbody tr').length") == 200
            found["open the index"].append(time.perf_counter() - start)
            script = (
                "const start = performance.now(); const box = document.getElementById('find'); box.value = 'capital';"
                "box.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - start"
            )
            found["filter it"].append(browser.run(script) / 1000)
            start = time.perf_counter()
            browser.go(page)
            found["open a page"].append(time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=3531)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    records = demo_records()
    report: dict[str, Any] = {"machine": machine(), "questions": arguments.questions, "runs": arguments.runs}
    with tempfile.TemporaryDirectory() as place:
        sizes = []
        for many in (min(500, arguments.questions), arguments.questions):
            runs = [Repeated(f"method {number}", records, many) for number in range(arguments.runs)]
            start = time.perf_counter()
            index = write_site(runs, Path(place) / str(many))
            seconds = time.perf_counter() - start
            pages = many * arguments.runs
            total = sum(each.stat().st_size for each in index.parent.rglob("*.html"))
            sizes.append(
                {
                    "pages": pages,
                    "seconds": seconds,
                    "ms a page": 1000 * seconds / pages,
                    "peak MiB": resident(),
                    "index kB": index.stat().st_size / 1000,
                    "kB a page": total / pages / 1000,
                }
            )
        report["written"] = sizes
        report["browser"] = {name: percentile(found, 0.5) for name, found in opened(index, arguments.times).items()}
    print_table(list(sizes[0]), [list(each.values()) for each in sizes])
    print_table(["in the browser", "seconds (median)"], [[name, value] for name, value in report["browser"].items()])
    report["within the limit"] = report["browser"]["open the index"] < LIMIT_SECONDS
    print_json(report)


if __name__ == "__main__":
    main()
