"""`kgqa data`: lists published question sets and checks local question files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, print_result
from kgqa.errors import SettingsError
from kgqa.plugins import plugin_names
from kgqa.text.words import clean, counted

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.checking import FileCheck


@click.group("data", cls=HelpfulGroup)
def command() -> None:
    """List published question sets and check question files. See docs/datasets.md for the formats."""


@command.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@JSON
def list_(names: tuple[str, ...], as_json: bool) -> None:
    """List published question sets with their graph, splits and sizes.

    With NAME also shows the licence, the download address and the file names. Files that are in the folder
    KGQA_DATASETS are marked.
    """
    from kgqa.evaluation.datasets.catalogue import published_datasets
    from kgqa.evaluation.datasets.checking import inventory

    known = published_datasets()
    if unknown := [name for name in names if name not in known]:
        if unknown[0] in plugin_names("dataset"):
            hint = f"Check a file: kgqa data check {unknown[0]}:FILE"
            raise SettingsError(f"{unknown[0]} is a reader of another package.", hint)
        raise SettingsError(f"There is no question set {unknown[0]!r}.", f"Choose from: {', '.join(known)}")
    chosen = [known[name] for name in names or known]
    here = {(entry.dataset, entry.known.name): str(entry.file) for entry in inventory() if entry.file}
    data = [
        {**asdict(each), "files": [{**asdict(file), "file": here.get((each.name, file.name))} for file in each.files]}
        for each in chosen
    ]
    others = ", ".join(plugin_names("dataset"))
    help_lines = (
        "\nDetails: kgqa data list NAME. To use a question set: --dataset NAME:FILE. `demo`, "
        "`demo-conditions`,\n`demo-cwq`, `demo-webqsp` and `demo-grailqa` are questions about the bundled demo graph "
        "and need no file.",
        *([f"Question sets of other packages: {others}."] if others else ()),
    )
    lines = [line for each in data for line in _details(each)] if names else [*map(_line, data), *help_lines]
    print_result(as_json, {"datasets": data}, lines)


def _line(each: dict[str, Any]) -> str:
    parts = (f"{file['split']} {_size(file)}{' (here)' if file['file'] else ''}" for file in each["files"])
    return f"{each['name']:<17}{each['graph']:<20}{', '.join(parts)}"


def _details(each: dict[str, Any]) -> Iterator[str]:
    yield f"{each['name']}: {each['title']}\n  graph    {each['graph']}"
    yield f"  from     {each['url']}\n  licence  {each['licence']}"
    for file in each["files"]:
        without = "" if file["answers"] else ", without answers"
        yield f"  {file['split']:<13}{_size(file):>8}  {file['name']}{without}"
        yield from [f"               {'':>8}local: {clean(file['file'])}"] if file["file"] else ()
    yield from [f"  {each['note']}"] if each["note"] else ()


@command.command("check")
@click.argument("sources", nargs=-1, metavar="[NAME:FILE]...")
@JSON
def check(sources: tuple[str, ...], as_json: bool) -> int:
    """Check whether question files are readable, complete and of the expected version.

    NAME:FILE is written as for --dataset, for example cwq:ComplexWebQuestions_dev.json. Without NAME:FILE, all files in
    the folder KGQA_DATASETS are checked, and missing files are listed. Exit code 1: a file has a problem.
    """
    from kgqa.evaluation.datasets.checking import check, inventory
    from kgqa.evaluation.datasets.registry import FOLDER_VARIABLE

    missing: list[tuple[str, str]] = []
    if not sources:
        entries = inventory()
        sources = tuple(f"{entry.dataset}:{entry.file}" for entry in entries if entry.file)
        missing = [(entry.dataset, entry.known.name) for entry in entries if not entry.file]
        if not sources:
            raise SettingsError(
                "No question file was found.",
                "Give a question file as NAME:FILE, or set the environment variable "
                f"{FOLDER_VARIABLE} to a folder with question files. See the file names with: kgqa data list NAME",
            )
    checks = []
    for source in sources:
        checks.append(check(source))
        if not as_json:
            print(_check_text(checks[-1]))
    absent = [{"dataset": name, "file": file} for name, file in missing]
    lines = (
        f"  {name:<18} {', '.join(file for _, file in files)}" for name, files in groupby(missing, key=lambda e: e[0])
    )
    data = {"checks": [asdict(each) for each in checks], "missing": absent}
    print_result(as_json, data, ["Missing:", *lines] if missing else ())
    return 1 if any(each.problems for each in checks) else 0


def _check_text(found: FileCheck) -> str:
    of = "" if found.expected is None else f" of {found.expected:,} ({found.split})"
    counts = (
        f"{counted(found.questions, 'question')}{of}; {found.answers:,} with gold answers, "
        f"{found.topics:,} with topics, {found.queries:,} with a gold query; SHA-256 {found.hash}"
    )
    notes = [*([counts] if found.questions else ()), *found.problems, *found.notes]
    return f"\n{'':7}".join([f"{'wrong' if found.problems else 'ok':<7}{clean(found.source)}", *map(clean, notes)])


def _size(file: dict[str, Any]) -> str:
    """Return the number of questions of a file as text; `?` if it is unknown."""
    return f"{file['questions']:,}" if file["questions"] else "?"
