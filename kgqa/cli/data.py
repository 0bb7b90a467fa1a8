"""`kgqa data`: which question sets can be read, where they are published, and whether one's own files are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.options import JSON

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.catalogue import Published, PublishedFile
    from kgqa.evaluation.datasets.checking import Check


@click.group("data")
def command() -> None:
    """List question sets and check files of them. docs/datasets.md describes the formats."""


@command.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@JSON
def list_(names: tuple[str, ...], as_json: bool) -> None:
    """Where question sets are published, under which licence, and what their files are called and hold.

    With NAMEs all that is known of these. What lies in the folder that KGQA_DATASETS names is marked.
    """
    from kgqa.answer_json import json_text
    from kgqa.errors import SettingsError
    from kgqa.evaluation.datasets.catalogue import published
    from kgqa.evaluation.datasets.checking import inventory

    known = published()
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"There is no question set {unknown[0]}. There are: {', '.join(known)}.")
    chosen = [known[name] for name in names or known]
    here = {(place.dataset, place.known.name): str(place.file) for place in inventory() if place.file}
    if as_json:
        print(json_text({"datasets": [_as_data(each, here) for each in chosen]}, indent=2))
        return
    for each in chosen:
        _describe(each, here, whole=bool(names))
    if not names:
        print(
            "\nMore of one: kgqa data list NAME. To use one: --dataset NAME:FILE. `demo`, `demo-cwq`, `demo-webqsp` and"
        )
        print("`demo-grailqa` are questions about the bundled demo graph, and need no file.")


def _describe(each: Published, here: dict[tuple[str, str], str], *, whole: bool) -> None:
    """A line for a set, or all that is known of it."""
    if not whole:
        parts = ", ".join(f"{file.split} {file.questions:,}{_mark(each, file, here)}" for file in each.files)
        print(f"{each.name:<17}{each.graph:<20}{parts}")
        return
    print(f"{each.name}: {each.title}\n  graph    {each.graph}\n  from     {each.url}\n  licence  {each.licence}")
    for file in each.files:
        print(f"  {file.split:<13}{file.questions:>8,}  {file.name}{'' if file.answers else ', without answers'}")
        if found := here.get((each.name, file.name)):
            from kgqa.words import clean

            print(f"               {'':>8}is in {clean(found)}")
    if each.note:
        print(f"  {each.note}")


def _mark(each: Published, file: PublishedFile, here: dict[tuple[str, str], str]) -> str:
    return " (here)" if (each.name, file.name) in here else ""


def _as_data(each: Published, here: dict[tuple[str, str], str]) -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(each)
    data["files"] = [{**asdict(file), "file": here.get((each.name, file.name))} for file in each.files]
    return data


@command.command("check")
@click.argument("sources", nargs=-1, metavar="[NAME:FILE]...")
@JSON
def check(sources: tuple[str, ...], as_json: bool) -> int:
    """Read files whole and say what they hold, whether it is all of it, and what is missing.

    A NAME:FILE such as cwq:ComplexWebQuestions_dev.json is what --dataset takes. Without any, all files in the folder
    that KGQA_DATASETS names are checked, and those that are not there are listed. Exit code 1: something is wrong.
    """
    from dataclasses import asdict

    from kgqa.answer_json import json_text
    from kgqa.errors import SettingsError
    from kgqa.evaluation.datasets.checking import check, inventory
    from kgqa.evaluation.datasets.registry import FOLDER_VARIABLE

    missing: list[tuple[str, str]] = []
    if not sources:
        places = inventory()
        sources = tuple(f"{place.dataset}:{place.file}" for place in places if place.file)
        missing = [(place.dataset, place.known.name) for place in places if not place.file]
        if not sources:
            raise SettingsError(
                f"No question file was found: give NAME:FILE, or set {FOLDER_VARIABLE} to a folder with files that are "
                "named as `kgqa data list NAME` says."
            )
    checks = []
    for source in sources:
        checks.append(check(source))
        if not as_json:
            _tell(checks[-1])
    if as_json:
        absent = [{"dataset": name, "file": file} for name, file in missing]
        print(json_text({"checks": [asdict(each) for each in checks], "missing": absent}, indent=2))
    elif missing:
        print("Not there:")
        for name in dict.fromkeys(name for name, _ in missing):
            print(f"  {name:<18} {', '.join(file for other, file in missing if other == name)}")
    return 1 if any(each.problems for each in checks) else 0


def _tell(found: Check) -> None:
    from kgqa.words import clean

    print(f"{'wrong' if found.problems else 'ok':<7}{clean(found.source)}")
    if found.questions:
        said = f"{found.questions:,} questions"
        if found.expected is not None:
            said += f" of {found.expected:,} ({found.split})"
        print(
            f"       {said}; {found.answers:,} with gold answers, {found.topics:,} with topics, "
            f"{found.queries:,} with a gold query; SHA-256 {found.hash}"
        )
    for text in (*found.problems, *found.notes):
        print(f"       {clean(text)}")
