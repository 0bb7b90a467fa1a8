"""Records what kgqa answers, and compares two records: nothing that it can do is lost while it is rebuilt.

    python benchmarks/golden.py record FOLDER [--only answers,corpus]
    python benchmarks/golden.py compare BEFORE AFTER [--only answers,corpus]
    python benchmarks/golden.py check [--first] [--only answers,corpus]

`record` writes a file of canonical JSON for each section into FOLDER, without times, versions and paths. `compare`
prints the differences by kind, each with its number and three examples; it exits with 1 if there is a difference that
`golden_allowed.toml` does not list, or if a record is too small to be trusted. `check` (`make golden`) does both: it
records the commit in `golden.commit` (--first: the first one that was named there) with an environment of its own, once,
then the present tree, and compares.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import golden_records
from golden_compare import compare
from golden_tree import BUILD, recorded, reference

SECTIONS = {
    "answers": "golden_records",
    "virtuoso": "golden_records",
    "methods": "golden_methods",
    "corpus": "golden_corpora",
    "dump": "golden_corpora",
    "metrics": "golden_corpora",
}
"""The module of each section; its function has the name of the section."""


def record(folder: Path, only: list[str]) -> None:
    """Record the sections; a section that was recorded before is replaced."""
    folder = folder.resolve()
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith("KGQA_") and name != "KGQA_DATA"]:
        del os.environ[name]
    os.environ |= {"KGQA_CACHE_FOLDER": str(folder / "cache"), "XDG_CONFIG_HOME": str(work / "config")}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "KGQA_DATA": str(golden_records.DATA)}
    os.chdir(work)  # without a kgqa.toml

    from golden_adapter import embedder

    (folder / "embedder.json").write_text(json.dumps(embedder()))
    for section in only:
        started, spent = time.monotonic(), Counter[str]()
        of_section: Callable[[Path], Iterator[Any]] = getattr(import_module(SECTIONS[section]), section)
        records, last = [], started
        for each in of_section(work):
            records.append(each)
            last, before = time.monotonic(), last
            spent[each[0]] += last - before
        write(folder / f"{section}.jsonl.gz", records, work)
        counts = Counter(kind for kind, _, _ in records)
        print(f"{section}: {len(records)} records in {time.monotonic() - started:.0f} s", file=sys.stderr)
        for kind, count in counts.items():
            print(f"    {kind}: {count} in {spent[kind]:.0f} s", file=sys.stderr)


def write(file: Path, records: list[Any], work: Path) -> None:
    """Write records, sorted by what they are about and by key, one a line."""
    with gzip.open(file, "wt", encoding="utf-8") as out:
        for each in sorted(records, key=lambda each: each[:2]):
            out.write(canonical(json.dumps(each, ensure_ascii=False, sort_keys=True), work) + "\n")


def canonical(text: str, work: Path) -> str:
    """Return a text without paths and ports."""
    for path, name in ((work, "WORK"), (golden_records.DATA, "DATA"), (golden_records.CHECKOUT, "CHECKOUT")):
        text = text.replace(str(path), name)
    return re.sub(r"\b(127\.0\.0\.1|localhost):\d+", "SERVER", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for_record, for_compare, for_check = map(commands.add_parser, ("record", "compare", "check"))
    for_record.add_argument("folder", type=Path)
    for_compare.add_argument("before", type=Path)
    for_compare.add_argument("after", type=Path)
    for_check.add_argument("--first", action="store_true", help="compare with the first commit")
    for each in (for_record, for_compare, for_check):
        each.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas [all]")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := set(only) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}. Sections: {', '.join(SECTIONS)}")
    if options.command == "record":
        record(options.folder, only)
        return
    if options.command == "check":
        options.before, options.after = recorded(reference(first=options.first), only), BUILD / "now"
        shutil.rmtree(options.after, ignore_errors=True)
        record(options.after, only)
    if not compare(options.before, options.after, only):
        sys.exit(1)


if __name__ == "__main__":
    main()
