"""A scripted agent for EvoGraph-R1: it knows the right facts and repairs the graph where it lacks or misstates them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.text.quotes import find_name

_LAST = ("No tool can be called any more", "This is your last reply")
"""How a message says that an answer is wanted."""


@dataclass(frozen=True)
class FactGold:
    """What a question needs.

    Attributes:
        query: What is searched.
        fact: The right sentence, as a page of the web states it.
        answer: The answer, a part of the fact.
        wrong: A part of what the graph says in place of the fact; "" if it says nothing.
        kind: How the graph is repaired: insert, update or delete.
    """

    query: str
    fact: str
    answer: str
    wrong: str = ""
    kind: str = "insert"


@dataclass
class EvographAgent:
    """Replies for `ScriptedServer`, made only of what the messages show.

    The agent searches the graph, then the web; repairs the graph; and answers as soon as a result contains the answer.

    Args:
        table: map from each question to what it needs.
    """

    table: Mapping[str, FactGold] = field(default_factory=dict)

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        question = next(
            (line[10:] for line in _user_text(messages[1]).splitlines() if line.startswith("Question: ")), ""
        )
        gold = self.table.get(question.strip())
        if gold is None:
            return _final("unknown")
        results = shown_results(messages)
        made = [name for message in messages if message["role"] == "assistant" for name in _called(message["content"])]
        last = any(words in _user_text(messages[-1]) for words in _LAST)
        right = [each for each in results if find_name(each["text"], gold.answer) and gold.fact in each["text"]]
        in_graph = [each for each in right if each["kind"] != "web"]
        if in_graph or last or gold.kind in made:
            numbers = [each["number"] for each in in_graph or right]
            return _final(f"{gold.answer} {numbers}" if numbers else "unknown")
        if "graph_search" not in made:
            return _call("graph_search", query=gold.query)
        if "web_search" not in made:
            return _call("web_search", query=gold.query)
        sources = [each["number"] for each in right]
        target = next((each["number"] for each in results if gold.wrong and gold.wrong in each["text"]), None)
        if not sources:
            return _final("unknown")
        if gold.kind == "insert" or target is None:
            return _call("insert", content=gold.fact, sources=sources)
        if gold.kind == "update":
            return _call("update", target=target, new_content=gold.fact, sources=sources)
        return _call("delete", target=target, reason="The web says otherwise.", sources=sources)


def shown_results(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the results that the messages of the user show, in their order."""
    shown = [_user_text(message) for message in messages if message["role"] == "user"]
    return [json.loads(line) for text in shown for line in text.splitlines() if line.startswith('{"number": ')]


def _user_text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _called(text: str) -> list[str]:
    _, opened, body = text.partition("<tool_call>")
    return [json.loads(body.partition("</tool_call>")[0])["name"]] if opened else []


def _call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>The next step.</think><tool_call>{body}</tool_call>"


def _final(text: str) -> str:
    return f"<think>This is known.</think><answer>{text}</answer>"
