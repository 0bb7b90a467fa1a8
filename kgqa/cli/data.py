"""`kgqa data`: lists published question sets and checks local question files."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from kgqa.cli.options import JSON, print_json
from kgqa.errors import SettingsError
from kgqa.plugins import plugin_names
from kgqa.words import clean

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.catalogue import PublishedDataset
    from kgqa.evaluation.datasets.checking import FileCheck


@click.group("data")
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
    if as_json:
        data = [
            {
                **asdict(each),
                "files": [{**asdict(file), "file": here.get((each.name, file.name))} for file in each.files],
            }
            for each in chosen
        ]
        print_json({"datasets": data})
        return
    for each in chosen:
        _describe(each, here, whole=bool(names))
    if not names:
        print(
            "\nDetails: kgqa data list NAME. To use a question set: --dataset NAME:FILE. `demo`, `demo-cwq`, "
            "`demo-webqsp` and\n`demo-grailqa` are questions about the bundled demo graph and need no file."
        )
        if others := plugin_names("dataset"):
            print(f"Question sets of other packages: {', '.join(others)}.")


def _describe(each: PublishedDataset, here: dict[tuple[str, str], str], *, whole: bool) -> None:
    """Print one line about a question set; with `whole`, print all details."""
    if not whole:
        parts = ", ".join(
            f"{file.split} {file.questions:,}{' (here)' if (each.name, file.name) in here else ''}"
            for file in each.files
        )
        print(f"{each.name:<17}{each.graph:<20}{parts}")
        return
    print(f"{each.name}: {each.title}\n  graph    {each.graph}\n  from     {each.url}\n  licence  {each.licence}")
    for file in each.files:
        print(f"  {file.split:<13}{file.questions:>8,}  {file.name}{'' if file.answers else ', without answers'}")
        if found := here.get((each.name, file.name)):
            print(f"               {'':>8}local: {clean(found)}")
    if each.note:
        print(f"  {each.note}")


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
            _print_check(checks[-1])
    if as_json:
        absent = [{"dataset": name, "file": file} for name, file in missing]
        print_json({"checks": [asdict(each) for each in checks], "missing": absent})
    elif missing:
        print("Missing:")
        for name in dict.fromkeys(name for name, _ in missing):
            print(f"  {name:<18} {', '.join(file for other, file in missing if other == name)}")
    return 1 if any(each.problems for each in checks) else 0


def _print_check(found: FileCheck) -> None:

    print(f"{'wrong' if found.problems else 'ok':<7}{clean(found.source)}")
    if found.questions:
        count = f"{found.questions:,} questions"
        if found.expected is not None:
            count += f" of {found.expected:,} ({found.split})"
        print(
            f"       {count}; {found.answers:,} with gold answers, {found.topics:,} with topics, "
            f"{found.queries:,} with a gold query; SHA-256 {found.hash}"
        )
    for text in (*found.problems, *found.notes):
        print(f"       {clean(text)}")
