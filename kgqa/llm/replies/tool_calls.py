"""Reader of replies of one thought and one tool call, or one thought and an answer.

    <think>...</think><tool_call>{"name": "graph_search", "arguments": {"query": "..."}}</tool_call>
    <think>...</think><answer>...</answer>

A call is compared with the JSON schemas of the tools; nothing is called, imported or evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.llm.replies.json_values import MAX_READ_CHARS, Reading, json_values
from kgqa.text.words import safe_text

MAX_ANSWER_CHARS = 2_000
MAX_THOUGHT_CHARS = 8_000
MAX_NUMBERS = 50
"""Most members of a list in the arguments of a call."""
ANSWER_FORM = "<think>...</think> and then <answer>...</answer>"
FORM = '<think>...</think> and then <tool_call>{"name": "...", "arguments": {...}}</tool_call> or <answer>...</answer>'
_THOUGHT = re.compile(r"\s{0,100}(?:<think>)?(.*?)</think>", re.DOTALL | re.IGNORECASE)
_UNCLOSED = re.compile(r"\s{0,100}<think>", re.IGNORECASE)
_OPENED = re.compile(r"<(tool_call|answer)>", re.IGNORECASE)
_INVENTED = re.compile(r"<(?:tool_response|information|observation|results?)>|<\|im_(?:start|end)\|>", re.IGNORECASE)
_NEXT_TAG = re.compile(r"</?(?:answer|think|tool_call)>", re.IGNORECASE)
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
        ignored: Number of further calls and answers in the reply, which are not read.
    """

    thought: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: str | None = None
    ignored: int = 0


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
    thought, rest, repaired = _parted(text[: 2 * MAX_READ_CHARS] if isinstance(text, str) else "")
    rest = rest[:MAX_READ_CHARS]
    form = FORM if schemas else ANSWER_FORM
    try:
        opened, invented = _OPENED.search(rest), _INVENTED.search(rest)
        if opened is not None and invented is not None and invented.start() < opened.start():
            raise _Wrong("It invents the result of a tool.")
        if opened is not None and opened[1].lower() == "answer":
            tag = _NEXT_TAG.search(rest, opened.end())
            end = tag.start() if tag else len(rest)
            answer = safe_text(rest[opened.end() : end][:MAX_ANSWER_CHARS]).strip()
            if not answer:
                raise _Wrong("Its answer is empty.")
            ignored = len(_OPENED.findall(rest, tag.end() if tag else end))
            closed = tag is not None and tag[0].lower() == "</answer>"
            return Reading(ToolReply(thought, answer=answer, ignored=ignored), repaired or not closed or bool(ignored))
        body = rest[opened.end() :] if opened else rest[: invented.start() if invented else None]
        closing = body.lower().find("</tool_call>") if opened else -1
        values = [each for each in json_values(body) if closing < 0 or each.start < closing]
        if opened is None:
            values = [each for each in values if isinstance(each.value, dict) and _first(each.value, _NAME_KEYS)][:1]
        if not values:
            raise _Wrong("Its call has no JSON object.") if opened else ValueError(f"It is not of the form {form}.")
        ignored = len(values) - 1 + len(_OPENED.findall(body, values[0].end))
        repaired = repaired or closing < 0 or values[0].repaired
        calls = values[0].value if isinstance(values[0].value, list) else [values[0].value]
        name, arguments, changed = _call(calls[0] if calls else None, schemas)
    except _Wrong as wrong:
        return Reading(None, problem=f"{wrong} It must be {form}.")
    except ValueError as wrong:
        return Reading(None, problem=str(wrong))
    ignored += len(calls) - 1
    return Reading(ToolReply(thought, name, arguments, ignored=ignored), repaired or changed or bool(ignored))


class _Wrong(Exception):
    """What is wrong with the form of a reply."""


def _parted(text: str) -> tuple[str, str, bool]:
    """Return the thought of a reply, the rest, and whether the end of the thought is missing."""
    if match := _THOUGHT.match(text):
        return safe_text(match[1][:MAX_THOUGHT_CHARS]).strip(), text[match.end() :], False
    unclosed = _UNCLOSED.match(text)
    if unclosed is None:
        return "", text, False
    opened = _OPENED.search(text)
    end = opened.start() if opened else len(text)
    return safe_text(text[unclosed.end() : end][:MAX_THOUGHT_CHARS]).strip(), text[end:], True


def _call(call: Any, schemas: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any], bool]:
    """Return the name and the arguments of a call, and whether they were converted."""
    if not schemas:
        raise _Wrong("No tool can be called any more.")
    if not isinstance(call, dict):
        raise _Wrong("Its call has no JSON object.")
    if unknown := [key for key in call if key not in (*_NAME_KEYS, *_ARGUMENT_KEYS)]:
        raise _Wrong(f"Its call has the unknown key {_shown(unknown[0])}.")
    name, arguments = _first(call, _NAME_KEYS), _first(call, _ARGUMENT_KEYS) or {}
    schema = next((each for each in schemas if each["name"] == name), None)
    if schema is None:
        names = ", ".join(str(each["name"]) for each in schemas)
        raise ValueError(f"There is no tool {_shown(name)}. The tools are {names}.")
    values = json_values(arguments) if isinstance(arguments, str) else []
    given = values[0].value if values else arguments
    checked, changed = checked_arguments(given, schema)
    return str(name), checked, changed or given is not arguments


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
        types = _types(properties[key])
        try:
            found[key] = _converted(value, properties[key])
        except ValueError:
            words = " or ".join(_WORDS[each] for each in types)
            raise ValueError(f"The argument {key} of {name} must be {words}.") from None
    return found, found != arguments


def _converted(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value as its schema has it; "3" is 3 where a number is asked for."""
    types = _types(schema)
    if "array" in types:
        listed = value if isinstance(value, list) else [value]
        if len(listed) > MAX_NUMBERS:
            raise ValueError("too many")
        return [_converted(each, schema["items"]) for each in listed]
    if "integer" in types and type(value) is int and 0 <= value < 10**6:
        return value
    if "integer" in types and isinstance(value, str) and re.fullmatch(r"\s?\[?[0-9]{1,6}\]?\s?", value):
        return int(value.strip(" []\n\t"))
    if "string" in types and isinstance(value, str) and (text := safe_text(value[:MAX_READ_CHARS]).strip()):
        return text
    raise ValueError("another type")


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


def _first(table: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((table[key] for key in keys if key in table), None)


def _shown(value: Any) -> str:
    return safe_text(str(value)[:40]).strip() if isinstance(value, str) else "of this name"
