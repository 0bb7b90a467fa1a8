"""Reader of a choice: it finds the option that a reply selects. An ambiguous reply selects none.

The last decision in one of these forms counts: a JSON object, a label ("Answer: B"), an option alone on a line, or an
option in brackets that begins or ends a line. A reply without such a decision may begin with an option ("Yes, ...").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from kgqa.llm.replies.json_values import JsonValue, Reading, find_key, last_part, without_objects
from kgqa.llm.replies.reply import Reply

LINE = 300
"""Number of characters of a line that are read; a longer text is not an option."""
_KEYS = (
    *("final answer", "choice", "verdict", "decision", "answer"),
    *("selected", "preferred", "winner", "better", "result"),
)
_LABEL = re.compile(
    r"\b(?:final answer|final|answer|choice|verdict|decision|conclusion|judge?ment|preferred|winner|better|result|"
    r"output)\b(?: \w+){0,2}?[*_`\"']* ?(:|=|\bis\b)",
    re.IGNORECASE,
)
_OPEN, _CLOSE = r"""(?:\\boxed|\\text|[\[({<"'`*_ $]){0,12}""", r"""[\])}>"'`*_ $]{0,12}"""
_NOUN = r"(?:(?:relation )?path|option|choice|candidate|answer)"
_UNDECIDED = re.compile(
    r"\W*(?:(?:both|neither|either|none)(?: of (?:them|these|the \w+))?(?: (?:is|are) \w+)?|tie|equal(?:ly)?(?: \w+)?|"
    r"unknown|null|n/a|undecided|not sure|unsure|unclear|uncertain)\W*",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:not (?:\w+ )?(?:sure|certain|clear|decided)|unsure|uncertain|unclear|maybe|perhaps|possibly|undecided|"
    r"can ?not|can't|unable|hard to|depends?|idea|doubt|but|however|although|though|except|if|unless|provided|"
    r"assuming)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|unless|whether|while|not|never|neither|nor|cannot|hardly)\b|n't\b", re.IGNORECASE)
_NEGATIVE = re.compile(
    _CONDITION.pattern + r"|\b(?:no|without|wrong|incorrect|irrelevant|unrelated|worse|worst|less|reject\w*|exclud\w+|"
    r"eliminat\w+|discard\w*|rule[sd]? out|unlikely|than|over|unlike|insufficient|or|instead)\b",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(r"(?<!or )\b(?:not|non|never|isn't)(?:[^\w.!?;]|_)*$", re.IGNORECASE)
_AROUND = " \t\n[](){}<>*_`\"'.!"
_SENTENCE = re.compile(r"(?<=[.!?;]) ")
_ENDED = re.compile(r" ?(?:$|[.,;:!)\u2013\u2014-](?! ?\d| [A-Z]\.)|(?:because|since|as it|due to|over|rather than)\b)")
_BEFORE_MARKER = re.compile(r"(?:^|[.!?:;,]) ?[*_`#> -]*$")
_AFTER_MARKER = re.compile(r"[*_` ]*(?:$|[.,;:!\u2013\u2014-]| ?[A-Z]|\s*because\b|\s*since\b)")

_Decision = tuple[int, str | None, bool]
"""The position of a decision in the text, the option (None if ambiguous), and whether the reply was repaired."""


class _Options:
    """The patterns of a few options. An option does not match inside a longer option or inside a word."""

    def __init__(self, options: Sequence[str]) -> None:
        self._named = {_name(option): option for option in options if _name(option)}
        names = sorted(self._named, key=len, reverse=True)
        words = "|".join(r"[ _-]{1,2}".join(map(re.escape, name.split())) for name in names) or r"(?!)"
        option = rf"(?<![\w-])(?<!not )(?<!not_)({words})(?!\w|-\w|'\w)"
        self.marker = re.compile(
            rf"[\[{{]{_OPEN}(?:{_NOUN}[ :]{{1,2}})?{option}{_CLOSE}[\]}}]+[*_`\"')]*", re.IGNORECASE
        )
        self.first = re.compile(rf"{_OPEN}(?:{_NOUN} )?{_OPEN}{option}{_CLOSE}", re.IGNORECASE)
        # a small "a" is an article rather than an option
        letters = all(len(name) == 1 for name in names)
        self._mention = re.compile(option.replace(words, words.upper()) if letters else f"(?i:{option})")

    def get(self, text: Any) -> str | None:
        """Return the option that the whole text names; None if the text is not an option."""
        return self._named.get(_name(text)) if isinstance(text, str) and len(text) <= LINE else None

    def others(self, text: str, option: str | None) -> bool:
        """Return whether a text mentions an option other than the given one."""
        found = (self.get(each[1]) for pattern in (self._mention, self.marker) for each in pattern.finditer(text))
        return any(each != option for each in found)


def _name(option: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", option).casefold().split())


def choice(options: Sequence[str], *, enforced: bool = True) -> Reply[str]:
    """Return the form of a reply that selects an option; with `enforced`, servers hold the model to the options."""
    return Reply(partial(read_choice, options=options), choices=tuple(options) if enforced else ())


def read_choice(text: str, *, options: Sequence[str]) -> Reading[str]:
    """Read which option a reply selects; the result is spelled as in `options`.

    Args:
        text: A reply, of any length and content.
        options: The options, such as ("A", "B") or ("RELEVANT", "NOT RELEVANT"). Upper and lower case are the
            same, and so are spaces, hyphens and underscores between words.

    Returns:
        The option; `repaired` is False if the option was in brackets, in valid JSON, or the whole reply. No value if
        the reply selects no option or several. Never raises, whatever the text.
    """
    known = _Options(options)
    last = last_part(text).strip()
    exact = known.get(last)
    if exact is not None:
        return Reading(exact, repaired=last != exact)
    text, objects = without_objects(last)
    decisions = [*_in_json(objects, known), *_labelled(text, known), *_lines(text, known)]
    if decisions:
        position, option, repaired = max(decisions, key=lambda each: each[0])
        if option and not _NOT_BEFORE.search(text[max(0, position - 20) : position]):
            return Reading(option, repaired=repaired)
    elif not known.marker.match(text) and (option := _beginning(" ".join(text[: 4 * LINE].split("\n")), known)):
        return Reading(option, repaired=True)  # the reply begins with an option ("Yes, ...")
    wanted = " or ".join(f"[{option}]" for option in options)
    return Reading(None, problem=f"The reply does not decide for one option; end it with exactly one of {wanted}.")


def _in_json(objects: list[tuple[int, JsonValue]], known: _Options) -> Iterator[_Decision]:
    for position, found in objects:
        there, value = find_key(found.value, _KEYS)
        option = _option_of(value, known)
        quoted = re.findall(r"""["'\[]\s?([\w -]{1,40}?)\s?["'\]](?!\s?:)""", found.text) if found.repaired else []
        if there:  # a repair may have lost a second option
            one = all(known.get(each) in (None, option) for each in quoted)
            yield position, option if one else None, found.repaired


def _option_of(value: Any, known: _Options) -> str | None:
    text = str(value).strip(_AROUND) if isinstance(value, str | bool) else ""
    return known.get({"true": "yes", "false": "no"}.get(text.casefold(), text))


def _labelled(text: str, known: _Options) -> Iterator[_Decision]:
    for label in _LABEL.finditer(text):
        before = _SENTENCE.split(text[max(0, label.start() - 80) : label.start()].split("\n")[-1])[-1]
        rest = text[label.end() : label.end() + LINE].lstrip(" \n").split("\n")[0]
        if label[1] == "is" and _CONDITION.search(before):
            continue
        option = _beginning(rest, known)
        if option:
            yield label.start(), option, not known.marker.search(_SENTENCE.split(rest)[0])
        elif option == "" or _UNDECIDED.fullmatch(rest) or (rest and label[1] != "is" and rest[-1] != "?"):
            yield label.start(), None, True


def _lines(text: str, known: _Options) -> Iterator[_Decision]:
    """Yield the lines that are an option, and the options in brackets at the beginning or end of a line."""
    at, above = 0, None
    framed: list[_Decision] = []
    for line in text.split("\n"):
        option, first = None, known.first.match(line) if len(line) <= LINE else None
        if _UNDECIDED.fullmatch(line[:LINE]) and not known.get(line.strip(_AROUND)):
            yield at, None, True
        elif first and not line[first.end() :].strip(" .,!"):
            option = known.get(first[1])  # two lines with different options are a list of the options
            yield at, option if above in (None, option) else None, known.marker.search(line) is None
        else:
            for marker in known.marker.finditer(line):
                before, after = line[: marker.start()], line[marker.end() :]
                begun = _SENTENCE.split(before)[-1]
                ends = not after.strip(" .!*_`") and not _NEGATIVE.search(begun)
                if ends or (_BEFORE_MARKER.search(before) and _AFTER_MARKER.match(after)):
                    sentence = begun + marker[0] + _SENTENCE.split(after)[0]
                    option = _decided(sentence, known.get(marker[1]), known)
                    framed.append((at + marker.start(), option, False))
        at, above = at + len(line) + 1, option
    if len({option for _, option, _ in framed}) > 1:
        yield framed[-1][0], None, True  # the reply goes through the options
    else:
        yield from framed


def _beginning(line: str, known: _Options) -> str | None:
    """Return the option that begins a line; "" if the line is ambiguous, None if it begins with another text."""
    first = known.first.match(line)
    if first is None or not (_ENDED.match(line[first.end() :]) or known.marker.match(line)):
        return None
    return _decided(line, known.get(first[1]), known) or ""


def _decided(line: str, option: str | None, known: _Options) -> str | None:
    """Return the option unless the line expresses doubt, is a question or mentions another option."""
    return None if line.rstrip().endswith("?") or _DOUBT.search(line) or known.others(line, option) else option
