"""Reader of one line of calls, such as `Neighbour[Retrieve[Tom Hanks], film]`, and the text of a call.

A line is read by counting brackets and looking up names in a fixed table. The texts inside are data: they are searched
for calls only where an argument is a call as a whole, and `Retrieve` and `Finish` take all the text inside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from kgqa.llm.replies.json_values import MAX_READ_CHARS, Reading, without_reasoning

MAX_DEPTH = 4
MAX_CALLS = 64
FORMS = {
    "Retrieve": "Retrieve[text]",
    "Neighbour": "Neighbour[node, type]",
    "Feature": "Feature[node, key]",
    "Degree": "Degree[node, type]",
    "Intersect": "Intersect[nodes, nodes]",
    "Without": "Without[nodes, nodes]",
    "Count": "Count[nodes]",
    "Most": "Most[nodes, type]",
    "Finish": "Finish[answer]",
}
"""The form of each function's call."""
WHOLE_TEXT = frozenset({"Retrieve", "Finish"})
"""The functions that take all the text inside as their only argument."""
SETS = frozenset({"Intersect", "Without", "Count", "Most"})
"""The functions on sets of nodes, which the published method does not have."""
_SPELLINGS = {name.casefold(): name for name in FORMS} | {
    "neighbor": "Neighbour",
    "neighbours": "Neighbour",
    "neighbors": "Neighbour",
    "features": "Feature",
}
_NAME = rf"(?<!\w)(?P<name>{'|'.join(sorted(_SPELLINGS, key=len, reverse=True))})[ \t]?"
_OPENED = re.compile(_NAME + r"\[", re.IGNORECASE)
_LABEL = re.compile(r"[\W_]{0,10}actions?[ \t]{0,3}[0-9]{0,4}[\W_]{0,3}[:.][\W_]{0,10}", re.IGNORECASE)
_INVENTED = re.compile(r"(?<!\w)(?:seen|observation|obs)[ \t]{0,3}[0-9]{0,4}[ \t]{0,3}:", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[\s,;.`*]|(?<!\w)(?:and|then|actions?)(?!\w)|[0-9:])*", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_LIST_MARK = re.compile(r"\s*(?:[-*\u2022]|[0-9]{1,3}[.)])\s+")
_PLACEHOLDER = re.compile(r"\W*(?:(?:the |your |my |final ){0,2}answers?\W*|\.\.\.\W*|\u2026)", re.IGNORECASE)
"""What stands in `Finish` where the form of the call is quoted."""
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_PUBLISHED_NESTED = re.compile(
    _NAME + r"\[[ \t]?" + _NAME.replace("<name>", "<inner>") + r"\[(?P<text>[^\[\]]*)\][ \t]?,?(?P<rest>[^\]]*)\]",
    re.IGNORECASE,
)
_PUBLISHED_PLAIN = re.compile(_NAME + r"\[(?P<text>[^\]]*)\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function. `name`: a key of `FORMS`. `arguments`: texts, or calls whose results are the argument."""

    name: str
    arguments: tuple[str | Call, ...] = ()

    @property
    def calls(self) -> int:
        """Number of calls, with those in the arguments."""
        return 1 + sum(each.calls for each in self.arguments if isinstance(each, Call))


def read_action_line(
    text: str, *, depth: int = MAX_DEPTH, calls: int = MAX_CALLS, published: bool = False
) -> Reading[tuple[Call, ...]]:
    """Read the calls in the first line of a reply, in order.

    Only the first `MAX_READ_CHARS` characters after the reasoning are read, up to the first line break or to an
    observation that the model invented. A bracket that is not closed ends with the line, unless the lines of a list
    follow that close `Finish`. A `Finish` in which only the word "answer" stands quotes the form, and is no call.

    Args:
        text: The reply.
        depth: Most calls inside each other.
        calls: Most calls, with those inside other calls; further calls are ignored.
        published: Whether to read as the published code does: at most two calls inside each other, of which the
            arguments end at the first closing bracket; if there are such calls, those beside them are ignored.

    Returns:
        The calls; no value if there is none, or if calls are nested deeper than allowed. Never raises, whatever the
        text.
    """
    line, following = _action_line(text)
    if published:
        found = _read_as_published(line, depth)
        return _limited(found, calls, repaired=False) if found else Reading(None, problem=_no_call(line))
    found, repaired, at = [], False, 0
    line = _with_list(line, following)
    while opened := _OPENED.search(line, at):
        gap = line[at : opened.start()]
        if _INVENTED.search(gap):
            break
        repaired = repaired or not _BETWEEN.fullmatch(gap)
        inside, at = _inside(line, opened.end())
        if opened["name"].casefold() == "finish":
            if (tail := line[at:]).count("]") > tail.count("[") and not _OPENED.search(tail):  # brackets in a name
                inside, at = line[opened.end() : line.rindex("]")], line.rindex("]") + 1
            if _PLACEHOLDER.fullmatch(inside):
                repaired = True
                continue
        call = _call(opened, inside, depth)
        if call is None:
            return Reading(None, problem=f"Its calls are nested more than {depth} deep; use several steps.")
        found.append(call)
        if len(found) > calls:
            break
    if not found:
        return Reading(None, problem=_no_call(line))
    rest = _INVENTED.split(line[at:], maxsplit=1)[0]
    return _limited(found, calls, repaired=repaired or not _BETWEEN.fullmatch(rest.rstrip("\u2026 ")))


def call_text(call: Call) -> str:
    """Return a call as text that `read_action_line` reads as the same call, unless a text has unpaired brackets."""
    whole = call.name in WHOLE_TEXT
    return f"{call.name}[{', '.join(_argument_text(each, whole=whole) for each in call.arguments)}]"


def without_quotes(text: str) -> str:
    """Return a text without blanks and a pair of quotes around it."""
    text = text.strip()
    inner = text[1:-1]
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing or text[0] in inner or closing in inner:
        return text
    return inner.strip()


def top_level_parts(text: str) -> list[str]:
    """Split a text at its commas outside of brackets, of parentheses and of double quotes."""
    parts, level, quoted, start = [], 0, False, 0
    quotes_count = text.count('"') % 2 == 0
    opening, closing = ("[(", "])") if text.count("(") == text.count(")") else ("[", "]")
    for at, char in enumerate(text):
        if char == '"' and quotes_count:
            quoted = not quoted
        elif char in opening:
            level += 1
        elif char in closing:
            level = max(0, level - 1)
        elif char == "," and not level and not quoted:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _action_line(text: str) -> tuple[str, list[str]]:
    """Return the first line that has more than a label or a code fence, without its label, and the lines after it."""
    lines = without_reasoning(text)[:MAX_READ_CHARS].splitlines()
    for number, line in enumerate(lines, 1):
        label = _LABEL.match(line)
        rest = line[label.end() :] if label else line
        if rest.strip(" \t*_#>-") and not rest.lstrip().startswith("```"):
            return rest.strip(), lines[number:]
    return "", []


def _with_list(line: str, following: list[str]) -> str:
    """Return a line together with the lines of a list that close its `Finish`."""
    opened = [found for found in _OPENED.finditer(line) if found["name"].casefold() == "finish"][-1:]
    level = 1 + line.count("[", opened[0].end()) - line.count("]", opened[0].end()) if opened else 0
    joined = [line]
    for each in following if level > 0 else ():
        if _INVENTED.match(each) or _LABEL.match(each):
            break
        item = _LIST_MARK.sub("", each, count=1).strip().rstrip(",;")
        level += item.count("[") - item.count("]")
        joined += [item] if joined[-1].endswith("[") or item.startswith("]") or not item else ["; ", item]
        if level <= 0:
            return "".join(joined)
    return line


def _no_call(line: str) -> str:
    """Return what is wrong with a line without a call."""
    named = re.match(r"\W{0,3}(\w{1,30}) ?[\[(]", line)
    unknown = named is not None and named[1].casefold() not in _SPELLINGS
    wrong = f"There is no function {named[1]}" if named is not None and unknown else "It has no call"
    return f"{wrong}. Write one line of calls, such as {FORMS['Retrieve']}, {FORMS['Neighbour']} or {FORMS['Finish']}."


def _limited(found: list[Call], calls: int, *, repaired: bool) -> Reading[tuple[Call, ...]]:
    totals = accumulate(call.calls for call in found)
    kept = tuple(call for call, total in zip(found, totals, strict=True) if total <= calls)
    if not kept:
        return Reading(None, problem="It has too many calls inside each other; use several steps.")
    return Reading(kept, repaired=repaired or len(kept) < len(found))


def _inside(line: str, start: int) -> tuple[str, int]:
    """Return the text inside the bracket that was opened before `start`, and the position after it."""
    level = 1
    for bracket in _BRACKET.finditer(line, start):
        level += 1 if bracket[0] == "[" else -1
        if not level:
            return line[start : bracket.start()], bracket.end()
    return _INVENTED.split(line[start:], maxsplit=1)[0], len(line)


def _call(opened: re.Match[str], inside: str, depth: int) -> Call | None:
    """Return the call of the name that was matched, with its arguments; None if it is nested too deep."""
    if depth < 1:
        return None
    name = _SPELLINGS[opened["name"].casefold()]
    arguments: list[str | Call] = []
    for part in _parts(name, inside):
        nested = None if name in WHOLE_TEXT else _OPENED.match(part)
        text, end = _inside(part, nested.end()) if nested else ("", 0)
        if nested is None or part[end:].strip():  # a text, or more than a call
            arguments.append(part.strip() if name == "Finish" else without_quotes(part))
            continue
        call = _call(nested, text, depth - 1)
        if call is None:
            return None
        arguments.append(call)
    return Call(name, tuple(each for each in arguments if each))


def _parts(name: str, inside: str) -> list[str]:
    if name in WHOLE_TEXT or name == "Count":
        return [inside.strip()]
    parts = [part.strip() for part in top_level_parts(inside)]
    if len(parts) > 2 and name in ("Intersect", "Without") and _OPENED.match(parts[0]):  # else a name with a comma
        return parts if all(map(_OPENED.match, parts)) else [parts[0], ", ".join(parts[1:])]
    return [", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts


def _read_as_published(line: str, depth: int) -> list[Call]:
    line = line[: line.rfind("]") + 1]  # what follows is in no call, and would be searched for every name
    nested = _PUBLISHED_NESTED.finditer(line) if depth > 1 else ()
    calls = [_plain(each["name"], each["rest"], _plain(each["inner"], each["text"])) for each in nested]
    return calls or [_plain(each["name"], each["text"]) for each in _PUBLISHED_PLAIN.finditer(line)]


def _plain(name: str, text: str, *inner: Call) -> Call:
    known = _SPELLINGS[name.casefold()]
    parts = map(without_quotes, [text] if inner else _parts(known, text))
    return Call(known, (*inner, *filter(None, parts)))


def _argument_text(argument: str | Call, *, whole: bool) -> str:
    if isinstance(argument, Call):
        return call_text(argument)
    plain = whole or "," not in argument or '"' in argument
    return argument if plain else f'"{argument}"'
