"""Reader of short answers that cite numbered results, such as `London [2]; Paris [3, 5]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgqa.llm.replies.answers import is_no_answer
from kgqa.text.words import clean

MAX_ANSWERS = 20
MAX_NAME_CHARS = 500
_NUMBERS = re.compile(
    r"[\[【](\s{0,5}(?:result\s{1,5})?\d{1,6}(?:\s{0,5}[,;–-]\s{0,5}\d{1,6}){0,50}\s{0,5})[\]】]", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,6}")
_LABEL = re.compile(r"(?:the )?(?:final )?answers?(?: is| are)?: ?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """A short answer, and the numbers of the results that it cites."""

    name: str
    numbers: tuple[int, ...] = ()


def read_cited_answers(text: str, *, split: bool = True) -> tuple[CitedAnswer, ...]:
    """Read short answers separated by semicolons or line breaks; empty if the text says that there is none.

    An answer without numbers cites what the next one cites, so `Ada; Mary [2]` cites result 2 twice.

    Args:
        text: the text of an answer.
        split: whether the text may contain several answers.
    """
    protected = _NUMBERS.sub(lambda match: f"[{','.join(_NUMBER.findall(match[1]))}]", text)
    parts = re.split(r"[;\n]", protected) if split else [protected]
    found: list[CitedAnswer] = []
    for part in parts[: 2 * MAX_ANSWERS]:
        numbers = tuple(dict.fromkeys(int(n) for match in _NUMBERS.finditer(part) for n in _NUMBER.findall(match[1])))
        name = _LABEL.sub("", clean(_NUMBERS.sub(" ", part)).strip(" -*•"), count=1)[:MAX_NAME_CHARS].strip()
        name = name[:-1].rstrip() if name.endswith(".") and name.count(".") == 1 and not name[-2:-1].isupper() else name
        if not name and found and numbers:
            found[-1] = CitedAnswer(found[-1].name, tuple(dict.fromkeys((*found[-1].numbers, *numbers))))
        elif name and not is_no_answer(name):
            found.append(CitedAnswer(name, numbers))
    return tuple(_completed(found[:MAX_ANSWERS]))


def _completed(found: list[CitedAnswer]) -> list[CitedAnswer]:
    following: tuple[int, ...] = ()
    for at in range(len(found) - 1, -1, -1):
        following = found[at].numbers or following
        found[at] = CitedAnswer(found[at].name, following)
    return found
