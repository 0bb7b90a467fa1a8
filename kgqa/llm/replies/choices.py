"""Reader of a choice: it finds the option that a reply selects. An ambiguous reply selects none.

1. The last decision in one of these forms counts: JSON, a label ("Answer: B"), an option alone on a line, or clear
   words ("I choose [B]", "[B] is better").
2. If there is no such decision, an option in brackets in a sentence counts.
3. If there is no such option, an option at the beginning of the reply counts ("Yes, ...").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.llm.replies.choice_patterns import (
    BUT,
    DECIDES,
    GOES_ON,
    IF,
    INSTEAD,
    LINE,
    NEGATIVE,
    NOT_BEFORE,
    PROVIDED,
    REASON,
    SENTENCE,
    UNDECIDED,
    UNSURE,
    Options,
    known_options,
)
from kgqa.llm.replies.json_values import (
    OBJECT,
    JsonValue,
    Reading,
    find_key,
    last_part,
    without_objects,
)

_KEYS = (
    "final answer",
    "choice",
    "verdict",
    "decision",
    "answer",
    "selected",
    "preferred",
    "winner",
    "better",
    "result",
)
_LABELS = (
    "final answer|final|answer|choice|verdict|decision|conclusion|judge?ment|preferred|winner|better|result|output"
)
_SUFFICIENCY = ("sufficient", "answerable", "enough", "accept", "accepted")


@dataclass(frozen=True, slots=True)
class _Decision:
    position: int
    option: str | None  # None for an ambiguous decision
    repaired: bool = True


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
    reading = _choice(text, known_options(tuple(options)), keys=_KEYS, labels=_LABELS)
    if reading is not None and reading.value is not None:
        return reading
    wanted = " or ".join(f"[{option}]" for option in options)
    return Reading(None, problem=f"The reply does not decide for one option; end it with exactly one of {wanted}.")


def read_verdict(text: str) -> Literal["yes", "no", "unparsed"]:
    """Read whether a reply means yes or no, by the rules of `read_choice`. Never raises, whatever the text.

    A verdict on sufficiency (`{"sufficient": true}`, "Answerable: no") has priority over a label "Answer:". In
    such replies, this label often gives the answer to the question.
    """
    known = known_options(("YES", "NO"))
    stated = _choice(text, known, keys=_SUFFICIENCY, labels="|".join(_SUFFICIENCY), only_stated=True)
    reading = stated or _choice(text, known, keys=_KEYS, labels=_LABELS, free=True)
    value = reading.value if reading is not None else None
    return "yes" if value == "YES" else "no" if value == "NO" else "unparsed"


def _choice(
    text: str, known: Options, *, keys: tuple[str, ...], labels: str, only_stated: bool = False, free: bool = False
) -> Reading[str] | None:
    """Read a choice; return None if there is no decision.

    Args:
        text: The reply.
        known: The options.
        keys: JSON keys that hold a decision.
        labels: Words before a decision, as a regular expression.
        only_stated: Whether only JSON and labels count.
        free: Whether a label or key may hold a text that is not a decision.
    """
    raw = last_part(text).strip()
    exact = known.get(raw)
    if exact is not None and not only_stated:
        return Reading(exact, repaired=raw != exact)
    text, objects = without_objects(raw)
    text = known.without_negated(text)
    decisions = list(_json_decisions(objects, known, keys, free=free))
    decisions += _labelled(text, known, labels, free=free)
    if not only_stated:
        decisions += [*_alone(text, known), *_in_clear_words(text, known)]
    if decisions:
        last = max(decisions, key=lambda each: each.position)
        if last.option is None or NOT_BEFORE.search(text[max(0, last.position - 20) : last.position]):
            return Reading(None)
        return Reading(last.option, last.repaired)
    return None if only_stated else _marked(text, known) or _opening(text, known)


def _json_decisions(
    objects: list[tuple[int, JsonValue]], known: Options, keys: tuple[str, ...], *, free: bool
) -> Iterator[_Decision]:
    for position, found in objects:
        there, value = find_key(found.value, keys)
        option = _json_option(value, known)
        if option is not None and found.repaired and _others_quoted(found.text, option, known):
            option = None
        if there and (option is not None or not free or _undecided(value)):
            yield _Decision(position, option, found.repaired)


def _json_option(value: Any, known: Options) -> str | None:
    if isinstance(value, bool):
        return known.get("yes" if value else "no")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and known.get("yes") and value.strip().casefold() in ("true", "false"):
        return known.get("yes" if value.strip().casefold() == "true" else "no")
    return known.get(value.strip(" \t\n[](){}<>*_`\"'.!")) if isinstance(value, str) else None


def _undecided(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(UNDECIDED.fullmatch(value[:LINE]) or not value.strip()))


def _others_quoted(piece: str, option: str, known: Options) -> bool:
    """Return whether invalid JSON names a second option, which may have been lost when the JSON was repaired."""
    quoted = re.findall(r"""["'\[]\s?([\w -]{1,40}?)\s?["'\]](?!\s?:)""", piece)
    return any(known.get(each) not in (None, option) for each in quoted)


def _labelled(text: str, known: Options, labels: str, *, free: bool) -> Iterator[_Decision]:
    for label in re.finditer(rf"\b(?:{labels})\b(?: \w+){{0,2}}?[*_`\"']* ?(:|=|\bis\b)", text, re.IGNORECASE):
        rest = text[label.end() : label.end() + LINE].lstrip(" \n*_`\"'")
        before = SENTENCE.split(text[max(0, label.start() - 80) : label.start()])[-1]
        if rest.startswith(OBJECT) or (label.group(1) == "is" and IF.search(before)):
            continue
        decision = _statement(rest, known, label.start())
        line = rest.split("\n")[0]
        if decision is not None:
            yield decision
        elif not line.rstrip().endswith("?") and label.group(1) != "is":
            marked = _decided(SENTENCE.split(line)[0], known, only=False)
            if marked is not None:
                yield _Decision(label.start(), marked, repaired=False)
            elif line and (
                not free or UNDECIDED.fullmatch(line) or known.first.match(line) or known.marker.search(line)
            ):
                yield _Decision(label.start(), None)


def _alone(text: str, known: Options) -> Iterator[_Decision]:
    at, above = 0, None
    for line in text.split("\n"):
        option = None
        if len(line) <= LINE and line[-1:] not in (":", "?"):
            first = known.first.match(line)
            if UNDECIDED.fullmatch(line):
                yield _Decision(at, None)
            elif first and not line[first.end() :].strip(" .,!"):
                option = known.get(first.group(1))  # two lines with different options are a list of the options
                yield _Decision(at, option if above in (None, option) else None, known.marker.search(line) is None)
            elif (
                first
                and (joined := known.joined.match(line, first.end()))
                and not line[joined.end() :].strip(" .,!]})*_`\"'")
            ):
                yield _Decision(at, None)
        at, above = at + len(line) + 1, option


def _in_clear_words(text: str, known: Options) -> Iterator[_Decision]:
    for verb in known.chosen.finditer(text):
        if not IF.search(SENTENCE.split(text[max(0, verb.start() - 80) : verb.start()])[-1]):
            decision = _statement(text[verb.end() : verb.end() + LINE], known, verb.start())
            if decision is not None:
                yield decision
    for better in known.better.finditer(text):
        before = SENTENCE.split(text[max(0, better.start() - 80) : better.start()])[-1]
        after = SENTENCE.split(text[better.end() : better.end() + LINE])[0]
        if (
            not IF.search(before)
            and not BUT.search(after)
            and not after.endswith("?")
            and not known.marker.search(before)
        ):
            yield _Decision(better.start(), known.get(better.group(1)), repaired=False)


def _statement(rest: str, known: Options, position: int) -> _Decision | None:
    """Read the decision in a text that begins with an option; return None for a question or any other text."""
    first = known.first.match(rest)
    if first is None:
        return None
    line = rest[first.end() :].split("\n")[0]
    bracketed = bool(known.marker.search(first.group()))
    sentence = SENTENCE.split(line)[0]
    if sentence.rstrip().endswith("?") or GOES_ON.match(line):
        return None
    ended = (
        not line
        or line[0] in ".,;:!)-\u2013\u2014"
        or first.group(2).strip()
        or REASON.match(line)
        or INSTEAD.match(line)
    )
    if not bracketed and not ended:
        return None
    joined = known.joined.match(line.lstrip("."))
    other = joined is not None and known.get(joined.group(1)) != known.get(first.group(1))
    if other and line.startswith("."):  # "Answer: A. B is worse" is decided, "Yes. No." is not
        other = not line.lstrip(".")[joined.end() :].strip(" .,!") if joined else False
    if other or UNSURE.search(sentence) or PROVIDED.match(line) or (not bracketed and BUT.search(sentence)):
        return _Decision(position, None)
    return _Decision(position, known.get(first.group(1)), not bracketed)


def _marked(text: str, known: Options) -> Reading[str] | None:
    """Read the decision in the last sentence that contains a marker (an option in brackets).

    If that sentence selects no option, the result has no value. Return None if the text has no markers.
    """
    sentences = [each for each in SENTENCE.split(text) if known.marker.search(each) and not each.rstrip().endswith("?")]
    if not sentences:
        return None
    only = len({known.get(each.group(1)) for each in known.marker.finditer(text)}) == 1
    return Reading(_decided(sentences[-1], known, only=only))


def _decided(sentence: str, known: Options, *, only: bool) -> str | None:
    """Return the option that the markers in a sentence select; `only`: whether the reply marks just one option."""
    markers = list(known.marker.finditer(sentence))
    options = {known.get(each.group(1)) for each in markers}
    if len(options) != 1 or UNSURE.search(sentence):
        return None
    before, after = sentence[: markers[0].start()], sentence[markers[-1].end() :].strip()
    opens = not before.strip(" *_`-#>")
    if only and opens and (not after or REASON.match(after) or after[0].isupper() or after[0] in ".,;:!-\u2013\u2014"):
        return options.pop()  # in "[NO] The triples do not say it", the words after the marker are the reason
    if NEGATIVE.search(before if REASON.match(after) else known.marker.sub(" ", sentence)):
        return None
    ends = not after.strip(" .,!:*_`") or bool(REASON.match(after))
    return options.pop() if only or ends or DECIDES.search(sentence) else None


def _opening(text: str, known: Options) -> Reading[str] | None:
    """Read the option that begins a reply ("Yes, ..."), unless the reply later names another option or is unsure."""
    decision = _statement(text[:LINE], known, 0)
    if decision is None or decision.option is None or BUT.search(text) or UNSURE.search(text):
        return None
    starts = (known.first.match(each) for each in SENTENCE.split(text))
    if any(start and known.get(start.group(1)) != decision.option for start in starts):
        return None
    return Reading(decision.option, repaired=True)
