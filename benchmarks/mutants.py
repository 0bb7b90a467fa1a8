"""Mutation testing: measures the share of small faults (mutants) that the tests of a room notice.

A mutant is one change at one place in one module, such as a different comparison, `or` in place of `and`, a number that
is one larger or smaller, or a removed statement. Strings, docstrings, annotations and log calls are not changed. The
mutants of a room are drawn at random with a seed. Each is written into a copy of the checkout; then the quick tests of
its room run there until one fails: first those that import the module, at most 8 files of the room.

    python benchmarks/mutants.py base --count 150 --out after.jsonl
    python benchmarks/mutants.py base --count 150 --checkout OLD --out before.jsonl

After an interruption the same command continues: mutants with a result in --out are not run again. The shares of two
checkouts can be compared; the mutants cannot, because rebuilt code has other places.
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
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import print_table

ROOT = Path(__file__).resolve().parent.parent
BASE = ("model", "settings", "trace", "storage", "net", "text", "events")
"""The rooms that together are called base, with the modules directly in kgqa/; `events` was one of them."""
LIMIT = 60.0
"""Time limit in seconds for the tests of one mutant; it is higher if they take over a third of it on unchanged code."""
MOST_FILES = 8
"""How many test files run for one mutant."""
QUICK = "not server and not slow and not cli and not soak"
LOGGING = {"log", "logger", "logging", "warnings"}
PAIRS: list[tuple[type, type]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.LShift, ast.RShift)),
    *((ast.And, ast.Or), (ast.BitAnd, ast.BitOr)),
]
OPPOSITES = {ast.Div: ast.Mult, **dict(PAIRS), **{second: first for first, second in PAIRS}}


@dataclass(frozen=True)
class Point:
    """A mutation: replaces the bytes from `start` to `end`, whose content is `before`, by `text`."""

    kind: str
    line: int
    start: int
    end: int
    before: str
    text: str


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

    def visit(node: ast.AST) -> None:
        for kind, text in changes(node):
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            found.append(Point(kind, node.lineno, start, end, source[start:end].decode(), text))
        for child in children(node):
            visit(child)

    visit(ast.parse(source))
    return found


def modules_of(package: Path, room: str) -> list[Path]:
    """Return the modules of a room; the room `base` has the modules directly in the package and several folders."""
    if room != "base":
        return sorted((package / room).rglob("*.py"))
    return sorted([*package.glob("*.py"), *(path for name in BASE for path in (package / name).rglob("*.py"))])


def draw(package: Path, room: str, seed: int, count: int) -> list[tuple[Path, Point]]:
    """Draw `count` mutants of a room, spread as evenly over their kinds as these are found."""
    pool = [(path, point) for path in modules_of(package, room) for point in points(path.read_bytes())]
    random.Random(f"{seed} {room}").shuffle(pool)
    turns: Counter[str] = Counter()
    order = []
    for number, (path, point) in enumerate(pool):
        turns[point.kind] += 1
        order.append((turns[point.kind], number, path, point))
    return [(path, point) for _, _, path, point in sorted(order, key=lambda item: item[:2])[:count]]


def tests_of(copy: Path, room: str, module: Path) -> tuple[str, ...]:
    """Return at most `MOST_FILES` test files of the room, first the one of the module's name and those that import it."""
    parts = module.relative_to(copy).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    name = ".".join(parts)
    imports = re.compile(
        rf"{re.escape(name)}\b|from {re.escape('.'.join(parts[:-1]))} import [^#\n]*\b{parts[-1]}\b", re.ASCII
    )
    tests = copy / "tests"
    folders = [tests / each for each in BASE] if room == "base" else [tests / room]
    paths = [path for folder in folders for path in folder.rglob("test_*.py")]
    paths += tests.glob("test_*.py") if room == "base" else []

    def rank(path: Path) -> tuple[int, int, str]:
        text = path.read_text(encoding="utf-8")
        is_near = path.parent.name == parts[-2] or (len(parts) > 2 and f"from {'.'.join(parts[:-1])} import" in text)
        near = (path.stem == f"test_{parts[-1]}", bool(imports.search(text)), is_near, True)
        return near.index(True), path.stat().st_size, str(path)

    return tuple(str(path.relative_to(copy)) for path in sorted(paths, key=rank)[:MOST_FILES])


def copy_checkout(checkout: Path, into: Path) -> Path:
    """Copy a checkout and its environment; return a Python that imports the copy and the installed requirements."""
    left_out = shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", ".*_cache")
    shutil.copytree(checkout, into, ignore=left_out, symlinks=True)
    subprocess.run([checkout / ".venv/bin/python", "-m", "venv", "--without-pip", into / ".venv"], check=True)
    [installed] = (checkout / ".venv").glob("lib/python*/site-packages")
    [own] = (into / ".venv").glob("lib/python*/site-packages")
    for path in [*installed.glob("*.pth"), *installed.glob("__editable__*.py")]:
        if path.stem == "distutils-precedence":  # its module is not copied
            continue
        (own / path.name).write_text(path.read_text().replace(str(checkout), str(into)))
    (own / "zz_requirements.pth").write_text(f"{installed}\n")
    script = (checkout / ".venv/bin/kgqa").read_text().replace(str(checkout), str(into))
    (into / ".venv/bin/kgqa").write_text(script)
    (into / ".venv/bin/kgqa").chmod(0o755)
    (into / ".venv/.installed").touch()  # so that `make` installs nothing
    return into / ".venv/bin/python"


def run_tests(python: Path, copy: Path, tests: Sequence[str], limit: float) -> tuple[str, float, str]:
    """Run tests until one fails; return "killed", "survived" or "timed out", the seconds, and the failed test."""
    data = {"KGQA_DATA": os.environ.get("KGQA_DATA", str(ROOT.parent / "shared/data"))}
    command = [
        python,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={copy.parent}/tmp",
        "-m",
        QUICK,
    ]
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*command, *tests],
            cwd=copy,
            env={**os.environ, **data},
            stdout=output,
            stderr=output,
            start_new_session=True,
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


def try_mutant(
    path: Path, point: Point, copy: Path, python: Path, tests: tuple[str, ...], limits: dict[tuple[str, ...], float]
) -> dict[str, Any]:
    """Write one mutant into the copy, run its tests and restore the module; return the outcome."""
    if tests not in limits:
        outcome, seconds, failed = run_tests(python, copy, tests, 10 * LIMIT)
        print(f"unchanged: {outcome} {failed} in {seconds:.0f} s: {' '.join(tests)}", file=sys.stderr)
        if outcome != "survived":
            sys.exit(f"The unchanged code fails {failed or 'its tests'}. Mend it first.")
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


def print_shares(results: Sequence[dict[str, Any]]) -> None:
    """Print the share of killed mutants by room and kind; a mutant counts as killed if its tests time out."""
    rows = []
    for key in ("room", "kind"):
        for name in sorted({result[key] for result in results}):
            counts = Counter(result["outcome"] for result in results if result[key] == name)
            killed = counts["killed"] + counts["timed out"]
            rows.append(
                [name, counts["killed"], counts["timed out"], counts["survived"], 100 * killed / counts.total()]
            )
    print_table(["", "killed", "timed out", "survived", "killed, %"], rows)


def main() -> None:
    """Draw mutants, run the tests of each, and print the share of killed mutants."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="+", metavar="ROOM", help="folder of kgqa/, or base")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the code and tests to run (default: this one)")
    parser.add_argument("--out", type=Path, required=True, help="results, one JSON line per mutant")
    parser.add_argument("--count", type=int, default=150, help="mutants of all rooms together (default: 150)")
    parser.add_argument("--seed", type=int, default=15)
    options = parser.parse_args()
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        python = copy_checkout(options.checkout.resolve(), copy)
        sizes = {
            room: sum(len(points(path.read_bytes())) for path in modules_of(copy / "kgqa", room))
            for room in options.rooms
        }
        limits: dict[tuple[str, ...], float] = {}
        for room, size in sizes.items():
            share = round(options.count * size / sum(sizes.values()))
            for path, point in draw(copy / "kgqa", room, options.seed, share):
                mutant = {"room": room, "module": str(path.relative_to(copy)), "line": point.line, "kind": point.kind}
                mutant |= {"was": point.before, "is": point.text}
                if any(mutant.items() <= line.items() for line in done):
                    continue
                result = mutant | try_mutant(path, point, copy, python, tests_of(copy, room, path), limits)
                print(json.dumps(result), file=sys.stderr)
                with options.out.open("a") as out:
                    print(json.dumps(result), file=out)
                done.append(result)
    print_shares(done)


if __name__ == "__main__":
    main()
