"""Reader of replies that list who and what takes part in numbered sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part
from kgqa.text.quotes import find_name
from kgqa.text.words import clean

MAX_PARTICIPANTS = 12
MAX_NAME_CHARS = 200
MAX_WORD_CHARS = 60
FORM = '{"participants": [{"sentence": 1, "name": "...", "type": "...", "role": "..."}]}'


@dataclass(frozen=True, slots=True)
class ReadParticipant:
    """Somebody or something that takes part in a sentence; `type` and `role` may be empty."""

    name: str
    type: str = ""
    role: str = ""


def read_participants(text: str, *, sentences: Sequence[str]) -> Reading[tuple[tuple[ReadParticipant, ...], ...]]:
    """Read the participants of sentences, numbered from 1 in the prompt.

    A participant whose name the sentence does not contain is left out.

    Returns:
        The participants of each sentence. No value if the reply has no list of participants. Never raises, whatever the
        text.
    """
    for found in reversed(json_values(last_part(text))):
        known, value = find_key(found.value, ("participants",)) if isinstance(found.value, dict) else (False, None)
        if not known or not isinstance(value, list):
            continue
        rows: list[dict[ReadParticipant, None]] = [{} for _ in sentences]
        kept = 0
        for each in value[: len(sentences) * MAX_PARTICIPANTS * 2]:
            number, participant = _row(each)
            if participant is not None and 1 <= number <= len(sentences):
                row = rows[number - 1]
                if len(row) < MAX_PARTICIPANTS and find_name(sentences[number - 1], participant.name):
                    row[participant] = None
                    kept += 1
        return Reading(tuple(tuple(row) for row in rows), found.repaired or kept < len(value))
    return Reading(None, problem=f"It is not of the form {FORM}.")


def _row(value: Any) -> tuple[int, ReadParticipant | None]:
    if not isinstance(value, dict):
        return 0, None
    values = {key_name(key): each for key, each in value.items()}
    number = values.get("sentence")
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:6])
    name = values.get("name")
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(name, str):
        return 0, None
    name = clean(name[:MAX_NAME_CHARS])
    words = (values.get("type"), values.get("role"))
    kind, role = (clean(word[:MAX_WORD_CHARS]) if isinstance(word, str) else "" for word in words)
    return number, ReadParticipant(name, kind, role) if name else None
