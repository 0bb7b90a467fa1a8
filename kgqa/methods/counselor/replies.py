"""Readers of the replies to Graph Counselor's prompts. They accept any text and never raise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from kgqa.llm.replies.action_lines import Call, read_action_line
from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part
from kgqa.llm.replies.reply import Form, schema_of
from kgqa.text.words import clean, safe_text

CallReader = Callable[[str], Reading[tuple[Call, ...]]]
MAX_LINE = 800
"""Most characters of a plan or a need that are kept."""
MAX_REFLECTION = 6_000
FORM = '{"plan": "...", "need": "...", "actions": "..."}'
_LABEL = r"[\s*_#>-]{0,8}(?:%s)[ \t]{0,3}[0-9]{0,3}[\s*_]{0,4}:[\s*_]{0,4}"
_NEXT = re.compile(r"\n" + _LABEL % "plan|need|thought|action|seen|observation|question", re.IGNORECASE)
_OWN = {label: re.compile(_LABEL % label, re.IGNORECASE) for label in ("plan", "need")}
_ACTION = re.compile(r"(?:^|\n)" + _LABEL % "actions?", re.IGNORECASE)
_FINISH = re.compile(r"\W*Finish *\[", re.IGNORECASE)
_WORD = re.compile(r"\w")
_JUDGED = re.compile(
    r"(?:^|\n|[.;!?]\s)[\s*_#>-]{0,8}judge?ment[\s*_]{0,4}[:=-][\s*_\"'\[(]{0,6}([^\n]*)", re.IGNORECASE
)
_YES_NO = re.compile(r"(yes|no)\b[\s*_\"'\])`]{0,8}(?:[.!]|$)[\s*_\"'\])`]{0,8}$", re.IGNORECASE)


@dataclass(frozen=True)
class _Turn:
    plan: Annotated[str, Form(optional=True)]
    need: str
    actions: str


TURN_SCHEMA = schema_of(_Turn)
"""The JSON schema of a reply with plan, need and actions."""


@dataclass(frozen=True, slots=True)
class Actions:
    """The calls of a reply, and its plan and missing fact if it has them."""

    calls: tuple[Call, ...]
    plan: str = ""
    need: str = ""


@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict on an answer, and the reasons."""

    verdict: Literal["yes", "no"]
    text: str = ""


def read_sentences(text: str, label: str) -> Reading[str]:
    """Read a plan or a need: the reply without its label, up to a line that only another turn may write."""
    rest = last_part(text).strip()
    own = _OWN[label].match(rest)
    rest = _NEXT.split(rest[own.end() :] if own else rest, maxsplit=1)[0]
    line = clean(rest)[:MAX_LINE]
    return Reading(line) if _WORD.search(line) else Reading(None, problem="It has no sentence.")


def read_plan(text: str) -> Reading[str | Call]:
    """Read a plan, or the call of a reply that begins with `Finish[`."""
    rest = last_part(text).strip()
    own = _OWN["plan"].match(rest)
    rest = rest[own.end() :] if own else rest
    finish = (read_action_line(rest).value or ()) if _FINISH.match(rest) else ()
    if len(finish) == 1 and finish[0].name == "Finish":
        return Reading(finish[0])
    sentences = read_sentences(text, "plan")
    return Reading(sentences.value, sentences.repaired, sentences.problem)


def read_turn(text: str, read_calls: CallReader = read_action_line) -> Reading[Actions]:
    """Read a reply with plan, need and actions: a JSON object, or else the line of the actions."""
    rest = last_part(text)
    for found in reversed(json_values(rest)):
        known, value = (
            find_key(found.value, ("actions", "action", "calls")) if isinstance(found.value, dict) else (0, 0)
        )
        if not known:
            continue
        line = ", ".join(each for each in value if isinstance(each, str)) if isinstance(value, list) else value
        read = read_calls(line if isinstance(line, str) else "")
        if read.value is None:
            return Reading(None, problem=f"Its actions cannot be run. {read.problem}")
        plan, need = (
            clean(text)[:MAX_LINE] if known and isinstance(text, str) else ""
            for known, text in (find_key(found.value, (key,)) for key in ("plan", "need"))
        )
        return Reading(Actions(read.value, plan, need), found.repaired or read.repaired)
    labelled = list(_ACTION.finditer(rest))
    read = read_calls(rest[labelled[-1].end() :] if labelled else rest)
    if read.value is None:
        return Reading(None, problem=f"It is not of the form {FORM}. {read.problem}")
    return Reading(Actions(read.value), repaired=True)


def read_judgment(text: str) -> Reading[Judgment]:
    """Read the last line `Judgment: yes` or `Judgment: no`; a last line of nothing but yes or no counts, too.

    A judgment that says anything else, such as "yes or no", is not read.
    """
    rest = last_part(text).strip()
    judged = list(_JUDGED.finditer(rest))
    last = judged[-1][1] if judged else rest.rpartition("\n")[2].strip("*_#>`\"'[]() \t")
    said = _YES_NO.match(last.strip())
    if said is None:
        return Reading(None, problem='Its last line must be "Judgment: yes" or "Judgment: no".')
    return Reading(Judgment("yes" if said[1].casefold() == "yes" else "no", clean(rest)[:MAX_LINE]), not judged)


def read_reflection(text: str) -> Reading[str]:
    """Read a reflection: the reply, with its lines."""
    rest = safe_text("\n".join(last_part(text).strip().splitlines()))[:MAX_REFLECTION].strip()
    return Reading(rest) if _WORD.search(rest) else Reading(None, problem="It has no text.")
