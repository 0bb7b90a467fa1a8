"""`kgqa prompts`: what language models are asked, as it is sent."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import JSON


@click.group("prompts")
def command() -> None:
    """Look at the prompts, or take them as a start for your own."""


_FOLDER = click.option(
    "--prompts", "folder", type=click.Path(path_type=Path), help="Folder whose files stand in for ours [llm.prompts]."
)


@command.command("list")
@_FOLDER
@JSON
def list_(folder: Path | None, as_json: bool) -> None:
    """All prompts, and what each is for."""
    from kgqa.answer_json import json_text
    from kgqa.words import clean

    prompts = _prompts(folder)
    found = [prompts.get(name) for name in prompts.names()]
    if as_json:
        print(json_text([{"name": each.name, "about": each.about} for each in found], indent=2))
        return
    width = max(len(each.name) for each in found)
    for each in found:
        print(f"{each.name:<{width}}  {clean(each.about)}")


@command.command("show")
@click.argument("name")
@_FOLDER
@JSON
@click.option("--source", is_flag=True, help="Print the template instead, to be copied and changed.")
def show(name: str, folder: Path | None, as_json: bool, source: bool) -> None:
    """The prompt NAME (for example top/compare), rendered with example data.

    To change a prompt, put a file of the same name into a folder of your own and name that folder:

    \b
      mkdir -p mine/top
      kgqa prompts show top/compare --source > mine/top/compare.j2
      kgqa ask "..." --llm openai:gpt-4.1-mini --prompts mine
    """
    from kgqa.answer_json import json_text
    from kgqa.words import clean, safe_text

    prompts = _prompts(folder)
    template = prompts.get(name)
    if source and not as_json:
        print(safe_text(template.source), end="")
        return
    messages = prompts.render(name, **template.example)
    if as_json:
        data = {
            "name": name,
            "about": template.about,
            "values": dict(template.values),
            "reply": template.reply,
            "messages": [{"role": each.role, "content": each.content} for each in messages],
        }
        if source:
            data["source"] = template.source
        print(json_text(data, indent=2))
        return
    print(f"# {clean(template.about)}\n# reply: {clean(str(template.reply.get('form', '-')))}")
    for each in messages:
        print(f"\n[{each.role}]\n{safe_text(each.content)}")


def _prompts(folder: Path | None):
    from kgqa.llm.prompts import Prompts
    from kgqa.settings import resolve

    chosen = folder or resolve()["llm.prompts"]
    return Prompts(Path(chosen) if chosen else None)
