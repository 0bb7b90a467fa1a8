"""Compares two records of `golden.py`: differences by kind, each with its number and three examples."""

from __future__ import annotations

import gzip
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any

ALLOWED = Path(__file__).with_name("golden_allowed.toml")
EXAMPLES = 3
SHOWN_CHARS = 200
MISSING = "(nothing)"
LEAST = {"answers": 1600, "virtuoso": 60, "methods": 400, "corpus": 10_000, "dump": 2, "metrics": 900}
"""How many records a section has at least."""
SHARES = {"answered": 0.8, "unsupported": 0.01, "no_answer": 0.005, "failed": 0.01}
"""The least shares of statuses among the offline answers."""
Records = dict[tuple[str, str], Any]


@dataclass(frozen=True)
class Difference:
    """A difference: its kind (section, what is recorded, field), the record, where in it, and both values."""

    kind: str
    key: str
    place: str
    before: str
    after: str


def read_records(file: Path) -> Records:
    """Return the records of a section."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return {(kind, key): value for kind, key, value in map(json.loads, lines)}


def differences(section: str, before: Records, after: Records) -> Iterator[Difference]:
    """Yield the differences of two records: the first one of each field of each record."""
    for kind, key in sorted(before.keys() | after.keys()):
        name = f"{section}: {kind}"
        if (kind, key) not in before or (kind, key) not in after:
            gone = (kind, key) not in after
            yield Difference(f"{name}: {'lost' if gone else 'new'}", key, "", *_pair(gone))
            continue
        old, new = before[kind, key], after[kind, key]
        if not (isinstance(old, dict) and isinstance(new, dict)):
            old, new = {"value": old}, {"value": new}
        old, new = comments_apart(old), comments_apart(new)
        for field in sorted(old.keys() | new.keys()):
            one, two = old.get(field, MISSING), new.get(field, MISSING)
            if one != two:
                yield Difference(f"{name}: {field}", key, *first_difference(one, two))


def comments_apart(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record in which a query and its comments are two fields, so that new comments hide no other query."""
    if not isinstance(record.get("sparql"), str):
        return record
    lines = record["sparql"].split("\n")
    query = [line.partition("  # ")[0].rstrip() for line in lines if not line.startswith("#")]
    comments = [line.partition("# ")[2] for line in lines if "# " in line]
    return {**record, "sparql": "\n".join(query), "comments": "\n".join(comments)}


def _pair(gone: bool) -> tuple[str, str]:
    return ("recorded", MISSING) if gone else (MISSING, "recorded")


def first_difference(before: Any, after: Any, place: str = "") -> tuple[str, str, str]:
    """Return the place and the values of the first difference inside two values that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
        return first_difference(before.get(keys[0], MISSING), after.get(keys[0], MISSING), f"{place}.{keys[0]}")
    if isinstance(before, list) and isinstance(after, list):
        pairs = enumerate(zip_longest(before, after, fillvalue=MISSING))
        number, (one, two) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
        return first_difference(one, two, f"{place}[{number}]")
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        return first_difference(before.split("\n"), after.split("\n"), f"{place} line ")
    return place, *(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in (before, after))


def is_allowed(difference: Difference, rules: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a rule allows it: patterns for kind and key, texts that the values contain."""
    return any(
        fnmatchcase(difference.kind, rule["kind"])
        and fnmatchcase(difference.key, rule.get("key", "*"))
        and rule.get("before", "") in difference.before
        and rule.get("after", "") in difference.after
        for rule in rules
    )


def blindness(folder: Path, only: Sequence[str], records: Mapping[str, Records]) -> Iterator[str]:
    """Yield what makes a record too poor to show a difference."""
    if not json.loads((folder / "embedder.json").read_text()):
        yield "no embedding model was in use"
    for section in only:
        if section == "virtuoso" and not records[section]:
            print(f"{folder} has no answers on Virtuoso, which was not installed")
        elif len(records[section]) < LEAST.get(section, 1):
            yield f"{section} has {len(records[section])} records, not {LEAST.get(section, 1)}"
    if "answers" in only:
        statuses = Counter(answer["status"] for answer in records["answers"].values())
        for status, share in SHARES.items():
            if statuses[status] < share * statuses.total():
                yield f"{statuses[status]} of {statuses.total()} answers are {status}, not {100 * share:.0f}%"


def compare(before: Path, after: Path, only: Sequence[str], allowed: Path = ALLOWED) -> bool:
    """Print the differences of two records; return whether all are allowed, and both records can be trusted."""
    rules = tomllib.loads(allowed.read_text(encoding="utf-8")).get("allowed", [])
    good = True
    read: dict[Path, dict[str, Records]] = {before: {}, after: {}}
    for section in only:
        for folder, records in read.items():
            file = folder / f"{section}.jsonl.gz"
            records[section] = read_records(file) if file.exists() else {}
    embedders = [json.loads((folder / "embedder.json").read_text()) for folder in read]
    if len(set(embedders)) > 1:
        print(f"The embedding models differ: {' and '.join(embedders)}")
        good = False
    for folder, records in read.items():
        for why in blindness(folder, only, records):
            print(f"{folder} shows too little: {why}")
            good = False
    for section in only:
        old, new = read[before][section], read[after][section]
        found = list(differences(section, old, new))
        refused = [each for each in found if not is_allowed(each, rules)]
        good = good and not refused
        print(f"{section}: {len(old)} and {len(new)} records, {len(found)} differences", end="")
        print(f", {len(found) - len(refused)} of them allowed" if found else "")
        for kind, count in sorted(Counter(each.kind for each in refused).items()):
            print(f"\n  {kind}: {count}")
            for each in [each for each in refused if each.kind == kind][:EXAMPLES]:
                print(f"    {each.key} {each.place}\n      - {_short(each.before)}\n      + {_short(each.after)}")
    print(f"Embedding model: {embedders[-1]}. {'Equal.' if good else 'NOT equal.'}")
    return good


def _short(text: str) -> str:
    return ascii(text)[1:-1] if len(text) <= SHOWN_CHARS else f"{ascii(text[:SHOWN_CHARS])[1:-1]}..."
