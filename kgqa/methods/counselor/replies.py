"""Readers of the replies to Graph Counselor's prompts. They accept any text and never raise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kgqa.llm.replies.action_lines import Call, read_action_line
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.llm.replies.reply import Form, reply_of
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


def _joined(value: Any) -> str:
    """Return a line of calls, which may be a list of calls."""
    line = ", ".join(each for each in value if isinstance(each, str)) if isinstance(value, list) else value
    if not isinstance(line, str):
        raise ValueError("no text")
    return line


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """A plan, what is missing and a line of calls in one reply."""

    plan: Annotated[str, Form(optional=True, chars=MAX_LINE)] = ""
    need: Annotated[str, Form(chars=MAX_LINE)] = ""
    actions: Annotated[str, Form(keys=("action", "calls"), read=_joined)]


TURN = reply_of(TurnReply)


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


def read_turn(text: str, read_calls: CallReader = read_action_line) -> Reading[tuple[TurnReply, tuple[Call, ...]]]:
    """Read a reply with plan, need and actions: a JSON object, or else the line of the actions."""
    turn, rest = TURN.read(text), last_part(text)
    labelled = list(_ACTION.finditer(rest))
    line = turn.value.actions if turn.value else rest[labelled[-1].end() :] if labelled else rest
    calls = read_calls(line)
    if calls.value is None:
        wrong = "Its actions cannot be run." if turn.value else f"It is not of the form {FORM}."
        return Reading(None, problem=f"{wrong} {calls.problem}")
    repaired = turn.value is None or turn.repaired or calls.repaired
    return Reading((turn.value or TurnReply(actions=line), calls.value), repaired)


def read_judgment(text: str) -> Reading[Judgment]:
    """Read the last line `Judgment: yes` or `Judgment: no`; a last line of nothing but yes or no counts, too.

    A judgment that says anything else, such as "yes or no", is not read.
    """
    rest = last_part(text).strip()
    judged = list(_JUDGED.finditer(rest))
    last = judged[-1][1] if judged else rest.rpartition("\n")[2].strip("*_#>`\"'[]() \t")
    word = _YES_NO.match(last.strip())
    if word is None:
        return Reading(None, problem='Its last line must be "Judgment: yes" or "Judgment: no".')
    return Reading(Judgment("yes" if word[1].casefold() == "yes" else "no", clean(rest)[:MAX_LINE]), not judged)


def read_reflection(text: str) -> Reading[str]:
    """Read a reflection: the reply, with its lines."""
    rest = safe_text("\n".join(last_part(text).strip().splitlines()))[:MAX_REFLECTION].strip()
    return Reading(rest) if _WORD.search(rest) else Reading(None, problem="It has no text.")
