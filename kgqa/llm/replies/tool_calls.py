"""Reader of replies of one thought and one tool call, or one thought and an answer.

    <think>...</think><tool_call>{"name": "graph_search", "arguments": {"query": "..."}}</tool_call>
    <think>...</think><answer>...</answer>

A call is compared with the JSON schemas of the tools; nothing is called, imported or evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgqa.llm.replies.json_values import MAX_READ_CHARS, Reading, json_values
from kgqa.text.words import safe_text

MAX_ANSWER_CHARS = 2_000
MAX_THOUGHT_CHARS = 8_000
MAX_NUMBERS = 50
"""Most members of a list in the arguments of a call."""
ANSWER_FORM = "<think>...</think> and then <answer>...</answer>"
FORM = '<think>...</think> and then <tool_call>{"name": "...", "arguments": {...}}</tool_call> or <answer>...</answer>'
_THOUGHT = re.compile(
    r"\s{0,100}(?:(?:<think>)?(.*?)</think>|<think>(.*?)(?=<tool_call>|<answer>|\Z))", re.DOTALL | re.IGNORECASE
)
_OPENED = re.compile(r"<(tool_call|answer)>", re.IGNORECASE)
_INVENTED = re.compile(r"<(?:tool_response|information|observation|results?)>|<\|im_(?:start|end)\|>", re.IGNORECASE)
_NEXT_TAG = re.compile(r"</?(?:answer|think|tool_call)>", re.IGNORECASE)
_INTEGER = re.compile(r"\s?\[?([0-9]{1,6})\]?\s?")
_NAME_KEYS, _ARGUMENT_KEYS = ("name", "tool"), ("arguments", "args")
_WORDS = {"string": "a text", "integer": "the number of a result", "array": "a list of numbers of results"}


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a reply says: a call, or an answer.

    Attributes:
        thought: What the model thought first; "" if the reply has no thought.
        name: The tool that is called; "" for an answer.
        arguments: The arguments of the call, as its schema says.
        answer: The answer; None for a call.
        ignored: Whether further calls and answers follow the call, which are not read.
    """

    thought: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: str | None = None
    ignored: bool = False


def read_tool_reply(text: str, *, schemas: Sequence[Mapping[str, Any]]) -> Reading[ToolReply]:
    """Read the first call or answer after the thought of a reply.

    Results of tools that the model invented, and all after them, are not read.

    Args:
        text: The reply, with its thought.
        schemas: The tools that may be called: tables with `name` and `parameters`, a JSON schema of an object. Empty if
            only an answer is allowed.

    Returns:
        No value if there is neither a call nor an answer, or the call does not fit the schema of its tool. Never
        raises, whatever the text.
    """
    text = text[: 2 * MAX_READ_CHARS]
    match = _THOUGHT.match(text)
    thought, rest = (match[1] or match[2] or "", text[match.end() :]) if match else ("", text)
    try:
        reply, exact = _act(rest[:MAX_READ_CHARS], schemas)
    except ValueError as wrong:
        return Reading(None, problem=str(wrong))
    is_closed = match is None or match[1] is not None
    reply = replace(reply, thought=safe_text(thought[:MAX_THOUGHT_CHARS]).strip())
    return Reading(reply, not (is_closed and exact) or reply.ignored)


def _act(text: str, schemas: Sequence[Mapping[str, Any]]) -> tuple[ToolReply, bool]:
    """Return the first call or answer of a text, and whether it has exactly the form that was asked for."""
    expected = FORM if schemas else ANSWER_FORM
    form = f"It must be {expected}."
    opened, invented = _OPENED.search(text), _INVENTED.search(text)
    if opened and invented and invented.start() < opened.start():
        raise ValueError(f"It invents the result of a tool. {form}")
    if opened and opened[1].lower() == "answer":
        tag = _NEXT_TAG.search(text, opened.end())
        answer = safe_text(text[opened.end() : tag.start() if tag else None][:MAX_ANSWER_CHARS]).strip()
        if not answer:
            raise ValueError(f"Its answer is empty. {form}")
        return ToolReply(answer=answer), tag is not None and tag[0].lower() == "</answer>"
    body = text[opened.end() :] if opened else text[: invented.start() if invented else None]
    closing = body.lower().find("</tool_call>") if opened else -1
    values = [each for each in json_values(body) if closing < 0 or each.start < closing]
    if not opened:
        values = [each for each in values if isinstance(each.value, dict) and _first(each.value, _NAME_KEYS)][:1]
    if not values:
        raise ValueError(f"Its call has no JSON object. {form}" if opened else f"It is not of the form {expected}.")
    first = values[0]
    calls = first.value if isinstance(first.value, list) else [first.value]
    if not schemas or not calls or not isinstance(calls[0], dict):
        raise ValueError(f"{'Its call has no JSON object' if schemas else 'No tool can be called any more'}. {form}")
    name, arguments = _first(calls[0], _NAME_KEYS), _first(calls[0], _ARGUMENT_KEYS) or {}
    schema = next((each for each in schemas if each["name"] == name), None)
    if schema is None:
        names = ", ".join(str(each["name"]) for each in schemas)
        raise ValueError(f"There is no tool {_shown(name)}. The tools are {names}.")
    given = json_values(arguments)[:1] if isinstance(arguments, str) else []
    checked, changed = checked_arguments(given[0].value if given else arguments, schema)
    ignored = len(values) > 1 or len(calls) > 1 or _OPENED.search(body, first.end) is not None
    exact = closing >= 0 and not (first.repaired or changed or given)
    return ToolReply(name=str(name), arguments=checked, ignored=ignored), exact


def checked_arguments(arguments: Any, schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the arguments of a call as the schema of its tool has them, and whether one was converted.

    Args:
        arguments: The arguments.
        schema: A table with `name` and `parameters`.

    Raises:
        ValueError: The arguments do not fit; the message says why.
    """
    name, properties = schema["name"], schema["parameters"]["properties"]
    takes = ", ".join(properties)
    if not isinstance(arguments, dict):
        raise ValueError(f"The arguments of {name} are not an object with {takes}.")
    if unknown := [key for key in arguments if key not in properties]:
        raise ValueError(f"{name} has no argument {_shown(unknown[0])}. It takes {takes}.")
    if missing := [key for key in schema["parameters"].get("required", ()) if key not in arguments]:
        raise ValueError(f"{name} needs the argument {missing[0]}. It takes {takes}.")
    found = {}
    for key, value in arguments.items():
        try:
            found[key] = _converted(value, properties[key])
        except ValueError:
            words = " or ".join(_WORDS[each] for each in _types(properties[key]))
            raise ValueError(f"The argument {key} of {name} must be {words}.") from None
    return found, found != arguments


def _converted(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value as its schema has it; "3" is 3 where a number is asked for."""
    types = _types(schema)
    listed = value if isinstance(value, list) else [value]
    if "array" in types and len(listed) <= MAX_NUMBERS:
        return [_converted(each, schema["items"]) for each in listed]
    number = _INTEGER.fullmatch(str(value)) if isinstance(value, str | int) else None
    if "integer" in types and number:
        return int(number[1])
    text = safe_text(value[:MAX_READ_CHARS]).strip() if isinstance(value, str) else ""
    if "string" in types and text:
        return text
    raise ValueError("another type")


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


def _first(table: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((table[key] for key in keys if key in table), None)


def _shown(value: Any) -> str:
    return safe_text(str(value)[:40]).strip() if isinstance(value, str) else "of this name"
