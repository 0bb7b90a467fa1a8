"""Cleans a dump one block of lines at a time, with a fast path for plain lines; `LineJudge` decides on other lines.

A line is plain if three conditions hold: its subject matches a pattern or equals the subject of the line before, its
predicate is known, and a regular expression matches the text after the predicate. The fast path must decide in the same
way as `LineJudge`.
"""

from __future__ import annotations

import re
from collections import Counter

from kgqa.virtuoso.freebase.dump.judge import NOT_UTF8, LineJudge
from kgqa.virtuoso.freebase.dump.rules import Cleaning
from kgqa.virtuoso.freebase.dump.tally import EXAMPLES, Tally
from kgqa.virtuoso.freebase.dump.terms import MAX_IRI_BYTES, PLAIN_IRI, PLAIN_TAG
from kgqa.virtuoso.freebase.dump.values import form_of

_CHARS = rb'[^"\\\x00-\x08\x0b-\x1f\x7f]*+'
# escape sequences, except those for surrogates and control characters
_ESCAPE = rb'\\(?:[tnr"\\]|u(?!00[01]|007[fF]|[dD][89a-fA-F])[0-9A-Fa-f]{4})'
_TEXT = rb'"' + _CHARS + rb"(?:" + _ESCAPE + _CHARS + rb')*+"'
_DATES = form_of("date", "gYear", "gYearMonth", "dateTime")
_plain_subject = re.compile(PLAIN_IRI).fullmatch
# the group of this expression is the language tag; it is empty in literals without a tag
_plain_rest = re.compile(rb"(?:%s|%s(?:@(%s))?|%s)\t\." % (PLAIN_IRI, _TEXT, PLAIN_TAG, _DATES)).fullmatch
# marks a line that `LineJudge` has to check
_UNKNOWN = "unknown"


class BlockJudge:
    """Cleans blocks of lines and counts them; caches decisions on predicates and language tags.

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
        if block[: block.find(b"\n")].endswith(b"\r"):  # if the first line ends with \r, the others probably do
            block = block.replace(b"\r\n", b"\n")
        lines = block.split(b"\n")
        lines.pop()
        tally = Tally(lines=len(lines))
        judge, unknown, longest = self._judge, _UNKNOWN, MAX_IRI_BYTES
        verdict_of, verdict_of_tag = judge.predicates.get, judge.tags.get
        plain_subject, plain_rest = _plain_subject, _plain_rest
        kept: list[bytes] = []
        reasons: list[str] = []
        repairs: list[str] = []
        keep, drop = kept.append, reasons.append
        last_subject = b""
        for line in lines:
            verdict = None
            try:
                subject, predicate, rest = line.split(b"\t", 2)
            except ValueError:
                pass
            else:
                reason = verdict_of(predicate, unknown)
                if reason is None:
                    reason = unknown
                    if len(line) < longest and (subject == last_subject or plain_subject(subject)):
                        last_subject = subject
                        match = plain_rest(rest)
                        if match is None:
                            verdict = judge.rest(subject, predicate, rest)
                        elif match.lastindex is None:
                            keep(line)
                            continue
                        else:
                            reason = verdict_of_tag(match[1], unknown)
                            if reason is None:
                                keep(line)
                                continue
                if reason is not unknown:
                    drop(reason)
                    continue
            kept_line, reason, repair = verdict or judge.line(line)
            if kept_line is None:
                drop(reason)
                self._show(reason, line, lines, first_line, tally)
            else:
                keep(kept_line)
                if repair:
                    repairs.append(repair)
        keep(b"")
        data, unreadable = _readable(b"\n".join(kept))  # the fast path does not check the encoding
        for line in unreadable:
            drop(NOT_UTF8)
            self._show(NOT_UTF8, line, lines, first_line, tally)
        tally.kept = len(kept) - 1 - len(unreadable)
        tally.dropped, tally.repaired = Counter(reasons), Counter(repairs)
        return data, tally

    def _show(self, reason: str, line: bytes, lines: list[bytes], first_line: int, tally: Tally) -> None:
        if self._examples[reason] < EXAMPLES:
            self._examples[reason] += 1
            tally.show(reason, first_line + lines.index(line), line)


def _readable(block: bytes) -> tuple[bytes, list[bytes]]:
    """Split a block into a block of the lines that are valid UTF-8, and a list of the lines that are not."""
    view, parts, unreadable, begin = memoryview(block), [], [], 0
    while True:
        try:
            str(view[begin:], "utf-8")
        except UnicodeDecodeError as error:
            wrong = begin + error.start
            start, end = block.rfind(b"\n", 0, wrong) + 1, block.index(b"\n", wrong)
            parts.append(view[begin:start])
            unreadable.append(block[start:end])
            begin = end + 1
        else:
            return (b"".join([*parts, view[begin:]]) if parts else block), unreadable
