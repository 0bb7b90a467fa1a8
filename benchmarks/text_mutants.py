"""Checks that the tests and benchmarks of the methods over text notice the faults that would matter most.

    python benchmarks/text_mutants.py [--only NAME ...] [--work /tmp/retrieval] [--list] [--json]

Each fault is one change of one module, such as sub-questions that are not grounded, or an unread verdict that counts as
yes. It is written into a copy of the checkout; the tests of the method run there until one fails. With --work, the
faults that no test notices are tried with `text_methods.py --check` on the corpora in that folder. Exits with 1 if a
fault goes unnoticed, or if the code that it changes is not there any more.

`mutants.py` draws random faults instead, for the rooms that it knows.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import print_json, print_table
from mutants import ROOT, copy_checkout, run_tests

LIMIT = 600.0
"""Time limit in seconds for the tests of one fault."""
TOG3 = ("tests/methods/tog3", "tests/methods/text/test_faults.py", "tests/end_to_end/test_graph_and_text.py")
GRAPHSEARCH = ("tests/methods/graphsearch", "tests/methods/text/test_faults.py")
SHARED = ("tests/methods/text", "tests/methods/tog3", "tests/methods/graphsearch")


@dataclass(frozen=True)
class Fault:
    """A fault: `before` in a module of kgqa is replaced by `after`. `tests`: what should notice it."""

    name: str
    module: str
    before: str
    after: str
    tests: Sequence[str]

    @property
    def parts(self) -> Sequence[str]:
        """The parts of `text_methods.py` that may notice the fault."""
        return ("tog3", "weak") if "tog3" in self.module else ("graphsearch",)


def tog3(name: str, module: str, before: str, after: str) -> Fault:
    return Fault(f"tog3: {name}", f"methods/tog3/{module}.py", before, after, TOG3)


def graphsearch(name: str, module: str, before: str, after: str) -> Fault:
    return Fault(f"graphsearch: {name}", f"methods/graphsearch/{module}.py", before, after, GRAPHSEARCH)


FAULTS = (
    tog3(
        "the question is searched again instead of sub-questions",
        "rounds",
        "if not self._evolving:\n            queries",
        "if True:\n            queries",
    ),
    tog3(
        "the next prompt does not show the edits", "evidence", "list(reversed(subgraph.local)) if facts else []", "[]"
    ),
    tog3(
        "an unread verdict is a yes",
        "rounds",
        "each is not None and each.sufficient for",
        "each is None or each.sufficient for",
    ),
    tog3(
        "an answer without a verified quote is accepted",
        "outcome",
        "return bool(self.read.answers) and self.verified > 0",
        "return bool(self.read.answers)",
    ),
    tog3("quotes of new facts are not checked", "subgraph", "if quoted and not stands:", "if False:"),
    tog3(
        "names of new facts are not checked",
        "subgraph",
        "if not all(self._is_known(name, passage) for name in names):",
        "if False:",
    ),
    tog3("an empty list of facts to keep removes all", "replies", "Refinement(keep or None,", "Refinement(keep,"),
    tog3(
        "removed facts come back",
        "subgraph",
        "if fact.iri not in self.facts and normalise(fact.text) not in self._dropped:",
        "if fact.iri not in self.facts:",
    ),
    tog3(
        "pieces of earlier rounds are dropped",
        "subgraph",
        "        new = []\n",
        "        new = []\n        self.passages.clear()\n",
    ),
    tog3("names of different types are merged", "subgraph", "return not (types[0] and types[1]) or", "return True or"),
    tog3("a spent budget loses the supported answer", "answering", "if rounds.supported is not None:", "if False:"),
    tog3(
        "questions are asked again",
        "rounds",
        "distinct_questions(reflection.questions, [self.question, *self._asked])",
        "list(reflection.questions)",
    ),
    tog3(
        "passages are refined again",
        "rounds",
        "if piece.iri not in self._refined_passages]",
        "if piece.iri]",
    ),
    tog3("sub-questions may refer to others", "replies", "if each and not _REFERENCE.search(each)]", "if each]"),
    tog3(
        "the last round is judged, too",
        "rounds",
        "for number in range(1, most):",
        "for number in range(1, most + 1):",
    ),
    graphsearch(
        "sub-questions are not grounded", "sub_queries", "fill(query.text, values), patterns", "query.text, patterns"
    ),
    graphsearch(
        "the order of the levels is reversed",
        "sub_queries",
        "    return found\n\n\ndef ground(",
        "    return found[::-1]\n\n\ndef ground(",
    ),
    graphsearch(
        "forward references are kept",
        "sub_queries",
        "if int(match[1]) in range(1, number) or",
        "if int(match[1]) > 0 or",
    ),
    graphsearch("several answers do not fan out", "sub_queries", "if total > most:", "if total > 1:"),
    graphsearch(
        "an unread verdict is a yes", "ours", "accepted = yes * 2 > len(verdicts)", "accepted = yes * 2 >= len(read)"
    ),
    graphsearch(
        "a claim without its quote is accepted",
        "drafts",
        " and all(c.verified for c in citations)",
        "",
    ),
    graphsearch("the gate is inverted", "ours", '"reject": not self.accepted', '"reject": self.accepted'),
    graphsearch(
        "a yes beside failed claims is a yes", "replies", ' == "yes" and not failed else "no"', ' == "yes" else "no"'
    ),
    graphsearch("the first of several verdicts counts", "replies", "said[-1].casefold()", "said[0].casefold()"),
    graphsearch(
        "answers of earlier sub-questions are forgotten",
        "history",
        "found.setdefault(step.query.number, {}).update(dict.fromkeys(step.answers))",
        "found.setdefault(step.query.number, {})",
    ),
    graphsearch("expansions go on though nothing is new", "ours", " - self.history.retrieved():", " - frozenset():"),
    graphsearch(
        "the relational channel finds nothing", "channels", 'if source in ("graph", "all") and', "if False and"
    ),
    Fault(
        "quotes are not checked",
        "methods/text/pieces.py",
        "support.quote, span is not None)",
        "support.quote, True)",
        SHARED,
    ),
    Fault(
        "a quote is found wherever its words are",
        "methods/text/pieces.py",
        "if chunk is not None and (place := find_quote(chunk.text, quote)):",
        "if chunk is not None and (place := find_quote(chunk.text, quote) or (0, len(chunk.text))):",
        SHARED,
    ),
    Fault(
        "an unquoted answer is grounded in the text",
        "methods/text/pieces.py",
        'return "model", (UNQUOTED,)',
        'return "text", ()',
        SHARED,
    ),
)


def try_fault(fault: Fault, copy: Path, python: Path, work: Path | None) -> dict[str, str]:
    """Write one fault into the copy, run what should notice it, and restore the module."""
    path = copy / "kgqa" / fault.module
    source = path.read_text(encoding="utf-8")
    if source.count(fault.before) != 1:
        return {"fault": fault.name, "outcome": "not found", "noticed by": ""}
    tests = [each for each in fault.tests if (copy / each).exists()]
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_text(source.replace(fault.before, fault.after), encoding="utf-8")
        compiled.unlink(missing_ok=True)
        outcome, _, by = run_tests(python, copy, tests, LIMIT)
        if outcome == "survived" and work is not None:
            command = [python, copy / "benchmarks/text_methods.py", "--work", work, "--check", "--only", *fault.parts]
            data = {"KGQA_DATA": os.environ.get("KGQA_DATA", str(ROOT.parent / "shared/data"))}
            done = subprocess.run(
                command, check=False, cwd=copy, capture_output=True, text=True, env={**os.environ, **data}
            )
            missed = [line for line in done.stdout.splitlines() if line.startswith("missed: ")]
            outcome, by = ("killed" if done.returncode else "survived"), "; ".join(missed[:1])
    finally:
        path.write_text(source, encoding="utf-8")
        compiled.unlink(missing_ok=True)
    return {"fault": fault.name, "outcome": outcome, "noticed by": by}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORDS", help="only faults whose name contains these")
    parser.add_argument("--work", type=Path, help="folder with the corpora of text_methods.py")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = [each for each in FAULTS if not options.only or any(words in each.name for words in options.only)]
    if options.list:
        missing = [each for each in chosen if (ROOT / "kgqa" / each.module).read_text().count(each.before) != 1]
        print("\n".join(f"{each.name}{' (not found)' if each in missing else ''}" for each in chosen))
        sys.exit(bool(missing))
    results = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        python = copy_checkout(ROOT, copy)
        for fault in chosen:
            results.append(try_fault(fault, copy, python, options.work))
            print(f"{results[-1]['outcome']}: {fault.name} {results[-1]['noticed by']}", file=sys.stderr)
    if options.json:
        print_json(results)
    else:
        print_table(["fault", "outcome", "noticed by"], [tuple(each.values()) for each in results])
    if any(each["outcome"] in ("survived", "not found") for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
