"""Readers of the replies to Graph Counselor's prompts. They accept any text and never raise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from kgqa.llm.replies.action_lines import MAX_DEPTH, Call, read_action_line
from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part
from kgqa.text.words import clean, safe_text

Verdict = Literal["yes", "no"]
MAX_LINE = 800
"""Most characters of a plan or a need that are kept."""
MAX_REFLECTION = 6_000
_LABEL = r"[\s*_#>-]{0,8}(?:%s)[ \t]{0,3}[0-9]{0,3}[\s*_]{0,4}:[\s*_]{0,4}"
_NEXT = re.compile(r"\n" + _LABEL % "plan|need|thought|action|seen|observation|question", re.IGNORECASE)
_OWN = {label: re.compile(_LABEL % label, re.IGNORECASE) for label in ("plan", "need", "judgment")}
_ACTION = re.compile(r"(?:^|\n)" + _LABEL % "actions?", re.IGNORECASE)
_WORD = re.compile(r"\w")
_JUDGED = re.compile(
    r"(?:^|\n|[.;!?]\s)[\s*_#>-]{0,8}judge?ment[\s*_]{0,4}[:=-][\s*_\"'\[(]{0,6}([^\n]*)", re.IGNORECASE
)
_YES_NO = re.compile(r"(yes|no)\b[\s*_\"'\])`]{0,8}(?:[.!]|$)[\s*_\"'\])`]{0,8}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ActionReply:
    """A reply with actions. `text`: the whole reply. `plan`, `need`: of a reply that has all three, else empty."""

    text: str
    calls: tuple[Call, ...]
    plan: str = ""
    need: str = ""


@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict on an answer, and the reasons."""

    verdict: Verdict
    text: str = ""


def read_sentences(text: str, label: str) -> Reading[str]:
    """Read a plan or a need: the reply without its label, up to a line that only another turn may write."""
    rest = last_part(text).strip()
    own = _OWN[label].match(rest)
    rest = _NEXT.split(rest[own.end() :] if own else rest, maxsplit=1)[0]
    line = clean(rest)[:MAX_LINE]
    if not _WORD.search(line):
        return Reading(None, problem="It has no sentence.")
    return Reading(line)


def read_actions(text: str, *, depth: int = MAX_DEPTH, published: bool = False) -> Reading[ActionReply]:
    """Read one line of calls; see `read_action_line`."""
    read = read_action_line(text, depth=depth, published=published)
    if read.value is None:
        return Reading(None, problem=read.problem)
    return Reading(ActionReply(text, read.value), read.repaired)


def read_turn(text: str, *, depth: int = MAX_DEPTH, published: bool = False) -> Reading[ActionReply]:
    """Read a reply with plan, need and actions: a JSON object, or else the line of the actions."""
    rest = last_part(text)
    calls_of = partial(read_action_line, depth=depth, published=published)
    for found in reversed(json_values(rest)):
        known, value = (
            find_key(found.value, ("actions", "action", "calls")) if isinstance(found.value, dict) else (0, 0)
        )
        if not known:
            continue
        line = ", ".join(each for each in value if isinstance(each, str)) if isinstance(value, list) else value
        read = calls_of(line if isinstance(line, str) else "")
        if read.value is None:
            return Reading(None, problem=f"Its actions cannot be run. {read.problem}")
        plan, need = _text_of(found.value, "plan"), _text_of(found.value, "need")
        return Reading(ActionReply(text, read.value, plan, need), found.repaired or read.repaired)
    labelled = list(_ACTION.finditer(rest))
    read = calls_of(rest[labelled[-1].end() :] if labelled else rest)
    if read.value is None:
        return Reading(
            None, problem=f'It is not of the form {{"plan": "...", "need": "...", "actions": "..."}}. {read.problem}'
        )
    return Reading(ActionReply(text, read.value), repaired=True)


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
    verdict: Verdict = "yes" if said[1].casefold() == "yes" else "no"
    return Reading(Judgment(verdict, clean(rest)[:MAX_LINE]), repaired=not judged)


def read_published_judgment(text: str) -> Reading[Judgment]:
    """Read a verdict as the published code does: no if the reply contains `[No]`, else yes."""
    rest = last_part(text)
    return Reading(Judgment("no" if "[no]" in rest.casefold() else "yes", clean(rest)[:MAX_LINE]))


def read_reflection(text: str) -> Reading[str]:
    """Read a reflection: the reply, with its lines, without lines that only a turn may write."""
    rest = safe_text("\n".join(last_part(text).strip().splitlines()))[:MAX_REFLECTION].strip()
    return Reading(rest) if _WORD.search(rest) else Reading(None, problem="It has no text.")


def _text_of(value: Any, key: str) -> str:
    known, text = find_key(value, (key,))
    return clean(text)[:MAX_LINE] if known and isinstance(text, str) else ""
