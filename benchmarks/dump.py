"""Measures the speed of cleaning a Freebase dump, compared with decompressing it.

Both programs run on two cores, on a synthetic dump (dump_sample.py) of 5 million lines, 2% of them malformed. The wall
time is measured in seconds:

- zcat: `zcat dump > /dev/null`.
- kgqa: `kgqa freebase clean dump --out FOLDER` reads and decompresses the dump, checks and counts every line, and
  writes chunk files. The time includes the start of kgqa's processes, but not the start of the calling interpreter.

zcat and kgqa run alternately, and their order changes from round to round, so that other work on the machine slows down
both. One round before the measurement reads the files into the disk cache. By the medians, the throughput of kgqa must
be at least 0.3 times that of zcat. A second dump, of 1 million lines with 20% malformed lines, shows what malformed
lines cost; it has no bound. The kept and the dropped lines must add up to the lines of the dump.


    python benchmarks/dump.py [--rounds 5] [--lines 5000000] [--work FOLDER] [--json]

Exits with 1 if the bound is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import machine, print_json, print_table
from dump_sample import write_dump

LIMIT = 0.3
CORES = 2
BROKEN, MANY_BROKEN = 0.02, 0.2
REAL_LINES = 3.13e9
SIDES = ("zcat", "kgqa")


def unpack(dump: Path) -> dict[str, float]:
    """Return the seconds that zcat takes."""
    started = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        subprocess.run(["zcat", dump], stdout=nowhere, check=True)
    return {"seconds": time.perf_counter() - started}


def clean(dump: Path, work: Path) -> dict[str, float]:
    """Return the seconds that cleaning takes, and its counts."""
    from kgqa.virtuoso.freebase.cleaning import clean_dump
    from kgqa.virtuoso.freebase.judge import Cleaning

    out = work / "out"
    started = time.perf_counter()
    try:
        tally = clean_dump(dump, Cleaning(), out, workers=CORES)
        seconds = time.perf_counter() - started
        written = sum(file.stat().st_size for file in out.iterdir())
    finally:
        shutil.rmtree(out, ignore_errors=True)
    dropped = sum(tally.dropped.values())
    if tally.lines != tally.kept + dropped:
        sys.exit(f"{tally.kept:,} lines kept and {dropped:,} dropped are not {tally.lines:,}.")
    noise = sum(count for reason, count in tally.dropped.items() if reason.startswith(("noise", "other language")))
    return {
        "seconds": seconds,
        "lines": tally.lines,
        "kept": tally.kept,
        "broken": dropped - noise,
        "bytes_written": written,
    }


def sample(work: Path, lines: int, broken: float) -> Path:
    """Return the path of the synthetic dump in `work`; write the dump if it does not exist."""
    dump = work / f"dump-{lines}-{broken:g}.gz"
    if not dump.is_file():
        print(f"making {dump} ...", file=sys.stderr)
        write_dump(dump, lines, broken=broken)
    return dump


def measure(dump: Path, work: Path, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Run zcat and kgqa alternately and return all measurements, in order."""
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):
        for side in SIDES if number % 2 else reversed(SIDES):
            run = unpack(dump) if side == "zcat" else clean(dump, work)
            if number:  # The first round only fills the disk cache.
                runs[side].append(run)
    return runs


def summary(runs: dict[str, list[dict[str, float]]], unpacked: int) -> dict[str, Any]:
    """Return the medians, their ratio, and whether the ratio is within the bound.

    Args:
        unpacked: size of the decompressed dump in bytes.
    """
    seconds = {side: median(run["seconds"] for run in runs[side]) for side in SIDES}
    paired = [theirs["seconds"] / ours["seconds"] for theirs, ours in zip(runs["zcat"], runs["kgqa"])]
    lines = runs["kgqa"][0]["lines"]
    return {
        "lines": lines,
        "kept": runs["kgqa"][0]["kept"],
        "broken": runs["kgqa"][0]["broken"],
        "median_seconds": seconds,
        "megabytes_a_second": {side: unpacked / seconds[side] / 1e6 for side in SIDES},
        "lines_a_second": {side: lines / seconds[side] for side in SIDES},
        "ratio": seconds["zcat"] / seconds["kgqa"],
        "ratio_lowest": min(paired),
        "ratio_highest": max(paired),
        "hours_for_the_real_dump": {side: REAL_LINES / lines * seconds[side] / 3600 for side in SIDES},
    }


def unpacked_bytes(dump: Path) -> int:
    with subprocess.Popen(["zcat", dump], stdout=subprocess.PIPE) as process:
        assert process.stdout
        return sum(len(block) for block in iter(lambda: process.stdout.read(1 << 20), b""))


def show(name: str, result: dict[str, Any], runs: dict[str, list[dict[str, float]]]) -> None:
    print(f"{name}: {result['lines']:,} lines, {result['kept']:,} kept, {result['broken']:,} broken")
    rows = [
        [
            side,
            result["median_seconds"][side],
            min(run["seconds"] for run in runs[side]),
            max(run["seconds"] for run in runs[side]),
            result["megabytes_a_second"][side],
            result["lines_a_second"][side] / 1e6,
            result["hours_for_the_real_dump"][side],
        ]
        for side in SIDES
    ]
    print_table(["", "median s", "fastest", "slowest", "MB/s", "M lines/s", "h for 3.13 G lines"], rows)
    print(
        f"kgqa / zcat: {result['ratio']:.2f} of its throughput (round by round {result['ratio_lowest']:.2f} to "
        f"{result['ratio_highest']:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each side (default 5)")
    parser.add_argument("--lines", type=int, default=5_000_000, help="lines of the dump (default 5,000,000)")
    parser.add_argument("--work", type=Path, help="folder for dumps, which are kept there, and chunks")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.rounds < 1 or options.lines < 1:
        parser.error("--rounds and --lines must be at least 1")
    if not shutil.which("zcat"):
        sys.exit("zcat is not installed. Install gzip.")
    # Both sides use the same two cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])

    with tempfile.TemporaryDirectory(prefix="kgqa-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        cases = {"usual": (options.lines, BROKEN), "many broken": (max(1, options.lines // 5), MANY_BROKEN)}
        results, all_runs = {}, {}
        for name, (lines, broken) in cases.items():
            dump = sample(work, lines, broken)
            all_runs[name] = measure(dump, work, options.rounds)
            results[name] = summary(all_runs[name], unpacked_bytes(dump))

    within = results["usual"]["ratio"] >= LIMIT
    if options.json:
        data = {
            "machine": machine(),
            "cores_used": CORES,
            "limit": LIMIT,
            "within": within,
            **results,
            "runs": all_runs,
        }
        print_json(data)
    else:
        for name, result in results.items():
            show(name, result, all_runs[name])
            print()
        verdict = "holds" if within else "MISSED"
        print(f"At least {LIMIT:g} of zcat's throughput with the usual dump: {verdict}")
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
