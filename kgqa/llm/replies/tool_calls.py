"""Reader of replies of one thought and one tool call, or one thought and an answer.

    <think>...</think><tool_call>{"name": "graph_search", "arguments": {"query": "..."}}</tool_call>
    <think>...</think><answer>...</answer>

A call is compared with the JSON schemas of the tools; nothing is called, imported or evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.llm.replies.json_values import MAX_READ_CHARS, JsonValue, Reading, json_values
from kgqa.text.words import safe_text

MAX_ANSWER_CHARS = 2_000
MAX_THOUGHT_CHARS = 8_000
MAX_NUMBERS = 50
"""Most members of a list in the arguments of a call."""
FORM = '<think>...</think> and then <tool_call>{"name": "...", "arguments": {...}}</tool_call> or <answer>...</answer>'
ANSWER_FORM = "<think>...</think> and then <answer>...</answer>"
_THOUGHT = re.compile(r"\s{0,100}(?:<think>)?(.*?)</think>", re.DOTALL | re.IGNORECASE)
_UNCLOSED = re.compile(r"\s{0,100}<think>", re.IGNORECASE)
_OPENED = re.compile(r"<(tool_call|answer)>", re.IGNORECASE)
_INVENTED = re.compile(r"<(?:tool_response|information|observation|results?)>|<\|im_(?:start|end)\|>", re.IGNORECASE)
_NEXT_TAG = re.compile(r"</?(?:answer|think|tool_call)>", re.IGNORECASE)
_NAME_KEYS, _ARGUMENT_KEYS = ("name", "tool"), ("arguments", "args")


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
    thought, rest, repaired = _parted(text)
    rest = rest[:MAX_READ_CHARS]
    opened = _OPENED.search(rest)
    invented = _INVENTED.search(rest)
    if opened is not None and invented is not None and invented.start() < opened.start():
        return Reading(None, problem=f"It invents the result of a tool. It must be {_form(schemas)}.")
    if opened is None:
        call = _bare_call(rest[: invented.start()] if invented else rest)
        if call is None:
            return Reading(None, problem=f"It is not of the form {_form(schemas)}.")
        return _called(thought, [call.value], 0, schemas, repaired=True)
    if opened[1].lower() == "answer":
        found, end, closed = _inside(rest, opened.end())
        answer = safe_text(found[:MAX_ANSWER_CHARS]).strip()
        if not answer:
            return Reading(None, problem=f"Its answer is empty. It must be {_form(schemas)}.")
        further = _further(rest[end:])
        return Reading(ToolReply(thought, answer=answer, ignored=further), repaired or not closed or bool(further))
    return _tagged_call(thought, rest, opened.end(), schemas, repaired=repaired)


def _tagged_call(
    thought: str, rest: str, begin: int, schemas: Sequence[Mapping[str, Any]], *, repaired: bool
) -> Reading[ToolReply]:
    body = rest[begin:]
    closing = body.lower().find("</tool_call>")
    limit = len(body) if closing < 0 else closing
    values = [each for each in json_values(body) if each.start < limit]
    if not values:
        return Reading(None, problem=f"Its call has no JSON object. It must be {_form(schemas)}.")
    first = values[0]
    calls = first.value if isinstance(first.value, list) else [first.value]
    further = len(values) - 1 + _further(body[first.end :])
    return _called(thought, calls, further, schemas, repaired=repaired or first.repaired or closing < 0)


def _parted(text: str) -> tuple[str, str, bool]:
    """Return the thought of a reply, the rest, and whether the end of the thought is missing."""
    if not isinstance(text, str):
        return "", "", False
    text = text[: 2 * MAX_READ_CHARS]
    if match := _THOUGHT.match(text):
        return _thought(match[1]), text[match.end() :], False
    unclosed = _UNCLOSED.match(text)
    if unclosed is None:
        return "", text, False
    opened = _OPENED.search(text)
    end = opened.start() if opened else len(text)
    return _thought(text[unclosed.end() : end]), text[end:], True


def _thought(text: str) -> str:
    return safe_text(text[:MAX_THOUGHT_CHARS]).strip()


def _inside(text: str, begin: int) -> tuple[str, int, bool]:
    """Return the text up to the next tag of a reply, where it ends, and whether that is the end of an answer."""
    tag = _NEXT_TAG.search(text, begin)
    if tag is None:
        return text[begin:], len(text), False
    return text[begin : tag.start()], tag.end(), tag[0].lower() == "</answer>"


def _further(text: str) -> int:
    return sum(1 for _ in _OPENED.finditer(text))


def _bare_call(text: str) -> JsonValue | None:
    """Return the first JSON object that names a tool, in a reply without tags."""
    for each in json_values(text):
        if isinstance(each.value, dict) and any(key in each.value for key in _NAME_KEYS):
            return each
    return None


def _called(
    thought: str, calls: Sequence[Any], further: int, schemas: Sequence[Mapping[str, Any]], *, repaired: bool
) -> Reading[ToolReply]:
    call = calls[0] if calls else None
    if not schemas:
        return Reading(None, problem=f"No tool can be called any more. It must be {ANSWER_FORM}.")
    if not isinstance(call, dict):
        return Reading(None, problem=f"Its call has no JSON object. It must be {_form(schemas)}.")
    if wrong := _unknown(call, (*_NAME_KEYS, *_ARGUMENT_KEYS)):
        return Reading(None, problem=f"Its call has the unknown key {wrong}. It must be {_form(schemas)}.")
    name = next((call[key] for key in _NAME_KEYS if key in call), None)
    arguments: Any = next((call[key] for key in _ARGUMENT_KEYS if key in call), {})
    schema = next((each for each in schemas if each["name"] == name), None)
    if schema is None:
        names = ", ".join(str(each["name"]) for each in schemas)
        return Reading(None, problem=f"There is no tool {_shown(name)}. The tools are {names}.")
    if isinstance(arguments, str):
        arguments, repaired = _object_of(arguments), True
    checked, problem, changed = checked_arguments(arguments, schema)
    if problem:
        return Reading(None, problem=problem)
    further += len(calls) - 1
    reply = ToolReply(thought, str(name), checked, ignored=further)
    return Reading(reply, repaired or changed or bool(further))


def checked_arguments(arguments: Any, schema: Mapping[str, Any]) -> tuple[dict[str, Any], str, bool]:
    """Compare the arguments of a call with the schema of its tool.

    Args:
        arguments: The arguments.
        schema: A table with `name` and `parameters`.

    Returns:
        The arguments as the schema has them, what is wrong with them, and whether one was converted.
    """
    name, parameters = schema["name"], schema["parameters"]
    properties = parameters["properties"]
    if not isinstance(arguments, dict):
        return {}, f"The arguments of {name} are not an object with {_keys(properties)}.", False
    if wrong := _unknown(arguments, properties):
        return {}, f"{name} has no argument {wrong}. It takes {_keys(properties)}.", False
    if missing := [key for key in parameters.get("required", ()) if key not in arguments]:
        return {}, f"{name} needs the argument {missing[0]}. It takes {_keys(properties)}.", False
    found, changed = {}, False
    for key, value in arguments.items():
        converted, fits = _converted(value, properties[key])
        if not fits:
            return {}, f"The argument {key} of {name} must be {_type_words(properties[key])}.", False
        changed = changed or converted != value
        found[key] = converted
    return found, "", changed


def _converted(value: Any, schema: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return a value as its schema has it, and whether it fits; "3" is 3 where a number is asked for."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "array" in types:
        listed = value if isinstance(value, list) else [value]
        members = [_converted(each, schema["items"]) for each in listed[:MAX_NUMBERS]]
        return [each for each, _ in members], len(listed) <= MAX_NUMBERS and all(fits for _, fits in members)
    if isinstance(value, int) and not isinstance(value, bool) and "integer" in types:
        return value, 0 <= value < 10**6
    if isinstance(value, str) and "integer" in types and re.fullmatch(r"\s?\[?[0-9]{1,6}\]?\s?", value):
        return int(value.strip(" []\n\t")), True
    if isinstance(value, str) and "string" in types:
        text = safe_text(value[:MAX_READ_CHARS]).strip()
        return text, bool(text)
    return value, False


def _object_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unknown(given: Mapping[Any, Any], known: Iterable[str]) -> str:
    names = set(known)
    return next((_shown(key) for key in given if key not in names), "")


def _shown(value: Any) -> str:
    return safe_text(str(value)[:40]).strip() if isinstance(value, str) else "of this name"


def _keys(properties: Mapping[str, Any]) -> str:
    return ", ".join(properties)


def _type_words(schema: Mapping[str, Any]) -> str:
    words = {"string": "a text", "integer": "the number of a result", "array": "a list of numbers of results"}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(words[each] for each in types)


def _form(schemas: Sequence[Mapping[str, Any]]) -> str:
    return FORM if schemas else ANSWER_FORM
