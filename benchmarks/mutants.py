"""Mutation testing: measures the share of small faults (mutants) that the tests of a room notice.

A room is a subpackage of kgqa. A mutant is one change at one place in one module, such as a different comparison, `or`
in place of `and`, a number that is one larger or smaller, or a removed statement. Strings, docstrings, annotations and
log calls are not changed. The mutants are drawn at random with a seed. Each mutant is written into a copy of the
checkout; then the tests of the room run there until one fails.

    python benchmarks/mutants.py --out before.jsonl                                      draw and run
    python benchmarks/mutants.py --again before.jsonl --before OLD --out after.jsonl     run the same mutants here

After an interruption the same command continues: mutants with a result in --out are not run again. With --again, the
mutants that were drawn from an older checkout OLD are run in this checkout. Each mutant is found by the most similar
function, and by its position among the mutants of that function, so modules, functions and variables may have been
renamed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from common import print_table

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 60.0
"""Time limit in seconds for the tests of one mutant; it is higher if they take over a third of it on unchanged code."""

SLOW = "test_derived test_graph_tables test_embedded test_store test_both_stores test_rescoring"
"""Test files that take long and rarely notice a mutant that no other test notices."""
LOGGING = {"log", "logger", "logging", "warnings"}
PAIRS: list[tuple[type, type]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.LShift, ast.RShift)),
    *((ast.And, ast.Or), (ast.BitAnd, ast.BitOr)),
]
OPPOSITES = {ast.Div: ast.Mult, **dict(PAIRS), **{second: first for first, second in PAIRS}}


@dataclass(frozen=True)
class Group:
    """Names of modules in one room and of test files that use them indirectly, both current and earlier names."""

    room: str
    modules: str
    tests: str = ""


GROUPS = {
    "tournament": Group("rank", "tournament listwise pointwise pairwise voting", "test_memo test_caching"),
    "export": Group("graph", "export"),
    "verdict": Group("graph", "verdict reply_errors", "test_json_results"),
    "run folder": Group("evaluation", "run_folder records", "test_runner"),
    "reply reading": Group(
        "llm",
        "parse choice_reply number_reply json_reply answers scores choices indices json_values",
        "test_chooser test_model_chooser",
    ),
    "masking": Group("explore", "masking", "test_linking"),
    "generations": Group("graph", "folder atomic_files", "test_loading"),
    "metrics": Group("evaluation", "metrics measures keys scores", "test_metrics test_scores"),
}


@dataclass(frozen=True)
class Point:
    """A mutation: replaces the bytes from `start` to `end`, whose content is `before`, by `text`."""

    function: str
    kind: str
    ordinal: int
    line: int
    start: int
    end: int
    before: str
    text: str
    shape: str


def shape(node: ast.AST) -> str:
    """Return a node's syntax tree as text, without names and strings."""
    value = repr(node.value) if isinstance(node, ast.Constant) and not isinstance(node.value, str) else ""
    return f"({type(node).__name__}{value}{''.join(map(shape, ast.iter_child_nodes(node)))})"


def changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the mutations of one node: kind and new text."""

    def swapped(**fields: Any) -> str:
        return f"({ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), **fields}))})"

    match node:
        case ast.Compare(ops=[operator, *others]):
            yield "comparison", swapped(ops=[OPPOSITES[type(operator)](), *others])
        case ast.BoolOp(op=operator):
            yield "boolean", swapped(op=OPPOSITES[type(operator)]())
        case ast.BinOp(op=operator, left=left, right=right) if type(operator) in OPPOSITES:
            if not any(is_text(side) for side in (left, right)):
                yield "arithmetic", swapped(op=OPPOSITES[type(operator)]())
        case ast.Constant(value=bool(value)):
            yield "true/false", str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "number+1", f"({value + 1})"
            yield "number-1", f"({value - 1})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", f"({ast.unparse(operand)})"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", "return None"
        case ast.Slice(lower=lower, upper=upper, step=step) if lower or upper:
            yield "slice", ast.unparse(ast.Slice(upper, lower, step))
        case ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign() | ast.Delete() | ast.Assert():
            yield "removed", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Expr(value=ast.Call() | ast.Await()):
            yield "removed", "pass"


def is_text(node: ast.AST) -> bool:
    """Tell whether a node is a string."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_logging(node: ast.AST) -> bool:
    """Tell whether a statement calls a logger."""
    words = re.match(r"[\w.]+", ast.unparse(node)) if isinstance(node, ast.Expr) else None
    return bool(words) and words[0].split(".")[0] in LOGGING


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that may contain mutants: no annotations, decorators, f-strings or imports for types."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_params"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not is_logging(child):
                    yield child


def points(source: bytes) -> list[Point]:
    """Return all mutation points of a module, in source order."""
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    found: list[Point] = []
    counts: Counter[tuple[str, str]] = Counter()

    def visit(node: ast.AST, function: str) -> None:
        for kind, text in changes(node):
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            ordinal = counts[function, kind]
            counts[function, kind] += 1
            found.append(
                Point(
                    function,
                    kind,
                    ordinal,
                    node.lineno,
                    start,
                    end,
                    source[start:end].decode(),
                    text,
                    f"{kind}{shape(node)}",
                )
            )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        for child in children(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return found


@cache
def functions(path: Path) -> dict[str, list[str]]:
    """Return the words of every function and class in a module, and of the module itself (key ""), for comparison."""
    found: dict[str, list[str]] = defaultdict(list)

    def visit(node: ast.AST, function: str) -> None:
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
        value = repr(node.value)[:40] if isinstance(node, ast.Constant) else ""
        found[function].append(f"{type(node).__name__} {name or ''}{value}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        for child in children(node):
            visit(child, function)

    visit(ast.parse(path.read_bytes()), "")
    return dict(found)


def find_function(old: Path, name: str, new: Path) -> tuple[Path, str] | None:
    """Find the function in the package `new` that is most similar to the function `name` in the old module `old`."""
    words = functions(old)[name]
    best: tuple[float, Path, str] = (0.6, old, "")
    for path in sorted(new.rglob("*.py")):
        for other, others in functions(path).items():
            same = (other == name, other.split(".")[-1] == name.split(".")[-1], path.name == old.name)
            bonus = 0.2 * sum(same)
            matcher = SequenceMatcher(None, words, others, autojunk=False)
            if matcher.real_quick_ratio() + bonus > best[0] and matcher.quick_ratio() + bonus > best[0]:
                best = max(best, (matcher.ratio() + bonus, path, other))
    return best[1:] if best[2] or best[0] > 0.6 else None


def find_point(mutant: dict[str, Any], old: Path, new: Path) -> tuple[Path, Point] | None:
    """Find a mutant from package `old` in package `new`: at the same position in the most similar function."""
    source = old / mutant["module"]
    place = find_function(source, mutant["function"], new)
    if place is None:
        return None
    before = [point for point in points(source.read_bytes()) if point.function == mutant["function"]]
    after = [point for point in points(place[0].read_bytes()) if point.function == place[1]]
    matcher = SequenceMatcher(None, [p.shape for p in before], [p.shape for p in after], autojunk=False)
    for operation, low, high, start, end in matcher.get_opcodes():
        for one, other in zip(before[low:high], after[start:end], strict=False):
            same = operation == "equal" or (high - low == end - start and one.kind == other.kind)
            if same and (one.kind, one.ordinal) == (mutant["kind"], mutant["ordinal"]):
                return place[0], other
    return None


def module_files(package: Path, group: Group) -> list[Path]:
    """Return the module files of a group, in the order of the names in `group.modules`."""
    return [path for name in group.modules.split() for path in sorted((package / group.room).rglob(f"{name}.py"))]


def draw(package: Path, seed: int, count: int) -> list[dict[str, Any]]:
    """Draw `count` mutants of a package, spread evenly over the groups and, as far as possible, over the kinds."""
    drawn = []
    for index, (name, group) in enumerate(GROUPS.items()):
        pool = [(path, point) for path in module_files(package, group) for point in points(path.read_bytes())]
        share = count // len(GROUPS) + (index < count % len(GROUPS))
        random.Random(f"{seed} {name}").shuffle(pool)
        turns: Counter[str] = Counter()
        order = []
        for path, point in pool:
            turns[point.kind] += 1
            order.append((turns[point.kind], len(order), path, point))
        for _, _, path, point in sorted(order, key=lambda item: item[:2])[:share]:
            module = str(path.relative_to(package))
            place = {"function": point.function, "kind": point.kind, "ordinal": point.ordinal}
            drawn.append({"group": name, "module": module, **place})
    return drawn


def copy_checkout(checkout: Path, into: Path) -> Path:
    """Copy a checkout and its environment; return a Python that imports the copy and the installed requirements."""
    left_out = shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", ".*_cache")
    shutil.copytree(checkout, into, ignore=left_out, symlinks=True)
    subprocess.run([checkout / ".venv/bin/python", "-m", "venv", "--without-pip", into / ".venv"], check=True)
    [installed] = (checkout / ".venv").glob("lib/python*/site-packages")
    [own] = (into / ".venv").glob("lib/python*/site-packages")
    for path in [*installed.glob("*.pth"), *installed.glob("__editable__*.py")]:
        (own / path.name).write_text(path.read_text().replace(str(checkout), str(into)))
    (own / "zz_requirements.pth").write_text(f"{installed}\n")
    script = (checkout / ".venv/bin/kgqa").read_text().replace(str(checkout), str(into))
    (into / ".venv/bin/kgqa").write_text(script)
    (into / ".venv/bin/kgqa").chmod(0o755)
    return into / ".venv/bin/python"


def test_files(copy: Path, group: Group, module: Path, others: set[str]) -> list[str]:
    """Return the tests for a module: its own file, files of the modules `others` in its group, files that import it."""
    package = ".".join(module.parent.relative_to(copy).parts)
    imports = re.compile(rf"{package}\.{module.stem}\b|from {package} import [^#\n]*\b{module.stem}\b")
    ranks = {}
    for path in sorted((copy / "tests" / group.room).rglob("test_*.py")):
        if path.stem == f"test_{module.stem}":
            ranks[path] = 0
        elif path.stem.removeprefix("test_") in others:
            ranks[path] = 1
        elif path.stem in group.tests.split() or (imports.search(path.read_text()) and path.stem not in SLOW.split()):
            ranks[path] = 2
    return [str(path.relative_to(copy)) for path in sorted(ranks, key=lambda path: ranks[path])]


def run_tests(python: Path, copy: Path, tests: Sequence[str], limit: float) -> tuple[str, float, str]:
    """Run tests until one fails; return "killed", "survived" or "timed out", the seconds, and the failed test."""
    data = {"KGQA_DATA": os.environ.get("KGQA_DATA", str(ROOT.parent / "shared/data"))}
    command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--basetemp={copy.parent}/tmp", *tests]
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=copy, env={**os.environ, **data}, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "timed out", time.monotonic() - started, ""
        output.seek(0)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read(), re.MULTILINE)
    return "killed" if code else "survived", time.monotonic() - started, failed[1] if failed else ""


def main() -> None:
    """Draw mutants, or find those of an earlier run; run the tests of each, and print the share of killed mutants."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the code and tests to run (default: this one)")
    parser.add_argument("--out", type=Path, required=True, help="results, one JSON line per mutant")
    parser.add_argument("--again", type=Path, help="run the mutants of these results instead of new ones")
    parser.add_argument("--before", type=Path, help="with --again: the checkout that its mutants were drawn from")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this group (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests and run nothing")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    if options.again and not options.before:
        parser.error("--again needs --before")
    old = (options.before or checkout).resolve() / "kgqa"
    lines = options.again.read_text().splitlines() if options.again else []
    mutants = [json.loads(line) for line in lines] or draw(old, options.seed, options.count)
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    names = ("group", "module", "function", "kind", "ordinal")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        python = copy_checkout(checkout, copy)
        limits: dict[tuple[str, ...], float] = {}
        places = [find_point(mutant, old, copy / "kgqa") for mutant in mutants]
        modules = defaultdict(set)
        for mutant, place in zip(mutants, places, strict=True):
            if place:
                modules[mutant["group"]].add(place[0].stem)
        for number, (mutant, place) in enumerate(zip(mutants, places, strict=True), 1):
            if options.group and mutant["group"] not in options.group:
                continue
            key = {name: mutant[name] for name in names}
            if any(key.items() <= line.items() for line in done):
                continue
            result: dict[str, Any] = key if place else {**key, "outcome": "not found"}
            if place:
                tests = tuple(test_files(copy, GROUPS[mutant["group"]], place[0], modules[mutant["group"]]))
                result |= {"path": str(place[0].relative_to(copy)), "line": place[1].line, "now": place[1].function}
                result |= {"was": place[1].before, "is": place[1].text}
                result |= {"tests": tests} if options.list else try_mutant(*place, copy, python, tests, limits)
            print(f"{number}/{len(mutants)} {json.dumps(result)}", file=sys.stderr)
            if not options.list:
                with options.out.open("a") as out:
                    print(json.dumps(result), file=out)
                done.append(result)
    if not options.list:
        print_shares(done)


def print_shares(results: Sequence[dict[str, Any]]) -> None:
    """Print the share of killed mutants by group; a mutant counts as killed if its tests time out."""
    outcomes = ["killed", "timed out", "survived", "not found"]
    rows = []
    for name in [*GROUPS, "all"]:
        counts = Counter(result["outcome"] for result in results if name in (result["group"], "all"))
        killed, run = counts["killed"] + counts["timed out"], counts.total() - counts["not found"]
        rows.append([name, *map(counts.__getitem__, outcomes), 100 * killed / max(run, 1)])
    print_table(["group", *outcomes, "killed, %"], rows)


def try_mutant(
    path: Path, point: Point, copy: Path, python: Path, tests: tuple[str, ...], limits: dict[tuple[str, ...], float]
) -> dict[str, Any]:
    """Write one mutant into the copy, run its tests and restore the module; return the outcome."""
    if tests not in limits:
        outcome, seconds, failed = run_tests(python, copy, tests, 10 * LIMIT)
        print(f"unchanged: {outcome} {failed} in {seconds:.0f} s: {' '.join(tests)}", file=sys.stderr)
        if outcome != "survived":
            sys.exit(f"The unchanged code fails {failed or 'its tests'}. Mend it or the list of tests first.")
        limits[tests] = max(LIMIT, 3 * seconds)
    source = path.read_bytes()
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_bytes(source[: point.start] + point.text.encode() + source[point.end :])
        compiled.unlink(missing_ok=True)
        outcome, seconds, failed = run_tests(python, copy, tests, limits[tests])
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)
    return {"outcome": outcome, "seconds": round(seconds, 1), "test": failed}


if __name__ == "__main__":
    main()
