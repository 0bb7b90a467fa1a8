"""`kgqa prompts`: lists and shows the prompts that are sent to language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, print_result
from kgqa.settings.values import resolve
from kgqa.text.words import clean, safe_text

if TYPE_CHECKING:
    from kgqa.llm.prompts import Prompts


@click.group("prompts", cls=HelpfulGroup)
def command() -> None:
    """List and show the prompts that are sent to language models, to adapt them."""


_FOLDER = click.option(
    "--prompts",
    "folder",
    type=click.Path(path_type=Path),
    help="folder with your own prompt files, which replace the packaged ones [llm.prompts]",
)


@command.command("list")
@_FOLDER
@JSON
def list_(folder: Path | None, as_json: bool) -> None:
    """List all prompts with their purpose."""
    prompts = _prompts(folder)
    found = [prompts.get(name) for name in prompts.names()]
    width = max(len(each.name) for each in found)
    data = [{"name": each.name, "about": each.about} for each in found]
    print_result(as_json, data, (f"{each.name:<{width}}  {clean(each.about)}" for each in found))


@command.command("show")
@click.argument("name")
@_FOLDER
@JSON
@click.option("--source", is_flag=True, help="print the template, to copy and change it")
def show(name: str, folder: Path | None, as_json: bool, source: bool) -> None:
    """Show the prompt NAME (for example top/compare), rendered with example data.

    To change a prompt, put a file with the same name into a folder of your own, and give that folder to --prompts:

    \b
      mkdir -p mine/top
      kgqa prompts show top/compare --source > mine/top/compare.j2
      kgqa ask "..." --llm openai:gpt-4.1-mini --prompts mine
    """
    prompts = _prompts(folder)
    template = prompts.get(name)
    if source and not as_json:
        print(safe_text(template.source), end="")
        return
    messages = prompts.render(name, **template.example)
    data = {
        "name": name,
        "about": template.about,
        "values": dict(template.values),
        "reply": template.reply,
        "messages": [{"role": each.role, "content": each.text} for each in messages],
        **({"source": template.source} if source else {}),
    }
    head = f"# {clean(template.about)}\n# reply: {clean(template.reply or '-')}"
    print_result(as_json, data, [head, *(f"\n[{each.role}]\n{safe_text(each.text)}" for each in messages)])


def _prompts(folder: Path | None) -> Prompts:
    from kgqa.llm.prompts import Prompts  # imports jinja2, which would slow down `kgqa prompts --help`

    chosen = folder or resolve().llm.prompts
    return Prompts(Path(chosen) if chosen else None)
