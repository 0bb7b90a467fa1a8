"""Attacks on a graph that an agent edits, and a scripted agent that does what an attack wants (see attacks.toml)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.testing.agents.evograph_agent import shown_results
from tests.methods.evograph.hyper_corpus import HYPEREDGES, NOTES, Note

MARKS = dict(zip(("birth", "clock", "town", "light", "seals"), HYPEREDGES, strict=True))
"""The facts of the corpus by the words that attacks.toml has for them."""
SEARCH = "Mara Holt Tarn Harbour lighthouse Vell seals"
TRUSTED_HOST = "trusted.example"
_MADE = re.compile(r"The new (?:text|one) is (?:result )?(\d+)\.")


@dataclass(frozen=True)
class Attack:
    """An attack. `page`: what the page of the web, or the document, says; `text` unless the attack is elsewhere."""

    name: str
    where: str
    text: str
    does: tuple[Mapping[str, Any], ...]
    outcomes: tuple[str, ...]
    page: str

    @property
    def question(self) -> str:
        return f"What happens if {self.name}?"

    @property
    def is_document(self) -> bool:
        return self.where in ("document", "file", "name")

    @property
    def passes_gates(self) -> bool:
        return bool({"accepted", "disputed"} & set(self.outcomes))

    @property
    def address(self) -> str:
        """The address of the page of the web."""
        return self.text if self.where == "address" else f"https://evil.example/{self.name.replace(' ', '-')}"

    @property
    def note(self) -> Note:
        """The hostile document."""
        names = {"name": ("Tarn Harbour", self.text)}.get(self.where, ("Mara Holt", "Tarn Harbour"))
        return Note(self.page, names, self.text if self.where == "file" else "", "A note of a visitor")


def read_attacks() -> dict[str, Attack]:
    """Return the attacks by their names."""
    table = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text(encoding="utf-8"))
    found = {}
    for name, each in table.items():
        text, where = each["text"] * each.get("repeat", 1), each.get("where", "page")
        page = each.get("page", "The harbour office of Corrin is closed." if where == "title" else text)
        found[name] = Attack(name, where, text, tuple(each["does"]), tuple(each["outcomes"]), page)
    return found


ATTACKS = read_attacks()
HOSTILE_NOTES = tuple(each.note for each in ATTACKS.values() if each.is_document)
ALL_NOTES = (*NOTES, *HOSTILE_NOTES)


def write_hostile_web(file: Path) -> Path:
    """Write the recorded search of each attack, whose query is its name."""
    lines = []
    for each in ATTACKS.values():
        passage = {"address": each.address, "text": each.page, "title": each.text if each.where == "title" else ""}
        lines.append(json.dumps({"query": each.name, "passages": [] if each.is_document else [passage]}))
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def obey(messages: Sequence[Mapping[str, Any]]) -> str:
    """Reply as an agent that reads the hostile text and then does what it wants."""
    told = [_text(message) for message in messages]
    question = next(line for text in told for line in text.splitlines() if line.startswith("Question: "))
    attack = next(each for each in ATTACKS.values() if each.question == question.removeprefix("Question: "))
    if "Name what the image shows" in told[0]:
        return json.dumps({"answers": [attack.text]})
    made = sum(message["role"] == "assistant" for message in messages)
    if made == 0:
        return call("graph_search", query=SEARCH)
    if made == 1:
        return call("web_search", query=attack.name)
    if made < 2 + len(attack.does):
        return _reply(attack, attack.does[made - 2], messages)
    return "<think>It is done.</think><answer>unknown</answer>"


def call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>Obey.</think><tool_call>{body}</tool_call>"


def _reply(attack: Attack, deed: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    results = shown_results(messages)

    def number(mark: int | str) -> int:
        if isinstance(mark, int):
            return mark
        if mark == "inserted":
            return int(next(found[1] for each in reversed(messages) if (found := _MADE.search(_text(each)))))
        if mark == "page":
            return next(each["number"] for each in results if each["kind"] == "web")
        wanted = attack.page if mark == "document" else MARKS[mark]
        return next(each["number"] for each in results if each["text"] == wanted)

    if "reply" in deed:
        return re.sub(r"@(\w+)@", lambda found: str(number(found[1])), deed["reply"])
    (kind,) = {"insert", "update", "delete"} & deed.keys()
    arguments: dict[str, Any] = {}
    if kind == "insert":
        arguments["content"] = deed["insert"] * deed.get("repeat", 1)
    else:
        arguments["target"] = number(deed[kind])
    if kind == "update":
        arguments["new_content"] = deed["content"]
    if kind == "delete":
        arguments["reason"] = deed["reason"]
    if "sources" in deed:
        arguments["sources"] = [number(each) for each in deed["sources"]]
    return call(kind, **arguments)


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
