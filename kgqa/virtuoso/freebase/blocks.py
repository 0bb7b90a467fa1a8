"""Cleans a dump one block of lines at a time, with a fast path for plain lines, and counts the lines.

A line is plain if three conditions hold: its subject matches a pattern or equals the subject of the line before, its
predicate is known, and a regular expression matches the text after the predicate. `LineJudge` decides
on other lines, and the fast path must decide in the same way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kgqa.virtuoso.freebase.judge import NOT_UTF8, UNSURE, Cleaning, Dropped, LineJudge, is_utf8
from kgqa.virtuoso.freebase.terms import MAX_IRI_BYTES, PLAIN_IRI, PLAIN_TAG, form_of

EXAMPLES = 3

_CHARS = rb'[^"\\\x00-\x08\x0b-\x1f\x7f]*+'
# escape sequences, except those for surrogates and control characters
_ESCAPE = rb'\\(?:[tnr"\\]|u(?!00[01]|007[fF]|[dD][89a-fA-F])[0-9A-Fa-f]{4})'
_TEXT = rb'"' + _CHARS + rb"(?:" + _ESCAPE + _CHARS + rb')*+"'
_DATES = form_of("date", "gYear", "gYearMonth", "dateTime")
_plain_subject = re.compile(PLAIN_IRI).fullmatch
# the group of this expression is the language tag; it is empty in literals without a tag
_plain_rest = re.compile(rb"(?:%s|%s(?:@(%s))?|%s)\t\." % (PLAIN_IRI, _TEXT, PLAIN_TAG, _DATES)).fullmatch


@dataclass
class Tally:
    """Counts of lines, with `lines == kept + sum(dropped.values())`.

    Attributes:
        dropped: number of dropped lines for each reason.
        repaired: number of repaired lines for each kind of repair; these lines are also counted as kept.
        examples: the first EXAMPLES lines for each reason, as `{"line": number (from 1), "text": first 200
            bytes of the line}`.
    """

    lines: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.lines += other.lines
        self.kept += other.kept
        self.dropped = Counter(self.dropped) + Counter(other.dropped)
        self.repaired = Counter(self.repaired) + Counter(other.repaired)
        for reason, examples in other.examples.items():
            self.show(reason, examples)

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object, most frequent reason first; `Tally(**data)` restores the tally."""
        dropped, repaired = (
            dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            for counts in (self.dropped, self.repaired)
        )
        examples = dict(sorted(self.examples.items()))
        return {"lines": self.lines, "kept": self.kept, "dropped": dropped, "repaired": repaired, "examples": examples}

    def show(self, reason: str, examples: Iterable[dict[str, Any]]) -> None:
        """Keep the first EXAMPLES lines among these examples of a reason and those that are already kept."""
        merged = [*self.examples.get(reason, ()), *examples]
        self.examples[reason] = sorted(merged, key=lambda example: (example["line"], example["text"]))[:EXAMPLES]


class BlockJudge:
    """Cleans blocks of lines and counts them; remembers decisions on predicates and language tags.

    Args:
        cleaning: which lines to keep.
    """

    def __init__(self, cleaning: Cleaning) -> None:
        self._judge = LineJudge(cleaning)
        self._examples: Counter[str] = Counter()

    def block(self, block: bytes, first_line: int = 1) -> tuple[bytes, Tally]:
        r"""Clean a block of whole lines, each with a newline at its end.

        Args:
            block: the lines.
            first_line: number of the first line in the dump, used for the examples.

        Returns:
            The kept lines, each as `<s>\t<p>\t<o>\t.` and a newline; and the counts, with the first examples for each
            reason.
        """
        lines = block.split(b"\n")
        lines.pop()
        tally = Tally(lines=len(lines))
        judge, unsure, longest = self._judge, UNSURE, MAX_IRI_BYTES
        reason_of, reason_of_tag = judge.predicates.get, judge.tags.get
        kept: list[bytes] = []
        reasons: list[str] = []
        repairs: list[str] = []
        keep, drop = kept.append, reasons.append
        last_subject = b""
        for line in lines:
            try:
                subject, predicate, rest = line.split(b"\t", 2)
                reason = reason_of(predicate, unsure)
            except ValueError:
                reason = unsure
            if reason is None:
                match = None
                if len(line) < longest and (subject == last_subject or _plain_subject(subject)):
                    last_subject = subject
                    match = _plain_rest(rest)
                reason = unsure if match is None else reason_of_tag(match[1], unsure) if match[1] else None
            if reason is None:
                keep(line)
            elif reason:
                drop(reason)
            else:
                try:
                    cleaned, repair = judge.line(line)
                    keep(cleaned)
                    if repair:
                        repairs.append(repair)
                except Dropped as dropped:
                    drop(str(dropped))
                    self._show(str(dropped), line, lines, first_line, tally)
        data = b"\n".join([*kept, b""])
        if not is_utf8(data):  # the fast path does not check the encoding
            for line in [line for line in kept if not is_utf8(line)]:
                kept.remove(line)
                drop(NOT_UTF8)
                self._show(NOT_UTF8, line, lines, first_line, tally)
            data = b"\n".join([*kept, b""])
        tally.kept, tally.dropped, tally.repaired = len(kept), Counter(reasons), Counter(repairs)
        return data, tally

    def _show(self, reason: str, line: bytes, lines: list[bytes], first_line: int, tally: Tally) -> None:
        if self._examples[reason] < EXAMPLES:
            self._examples[reason] += 1
            text = line[:200].decode("utf-8", "replace")
            tally.show(reason, [{"line": first_line + lines.index(line), "text": text}])
