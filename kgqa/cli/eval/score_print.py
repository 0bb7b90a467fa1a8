"""Formats the output of `kgqa score` as text or JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kgqa.words import clean


def as_data(found: Any) -> dict[str, Any]:
    """Convert the scores of a file to plain JSON data."""
    data: dict[str, Any] = {"n": found.n}
    for side in ("ours", "theirs"):
        means = getattr(found, side).items()
        data[side] = {n: {"value": _plain(m.value), "low": _plain(m.low), "high": _plain(m.high)} for n, m in means}
    data["reasons"] = [asdict(each) for each in found.reasons]
    for name in ("unmatched", "unanswered", "repeated", "without_gold", "lists"):
        data[name] = getattr(found, name)
    data["constants"] = dict(found.constants)
    return data


def as_lines(found: Any, *, aliases: bool) -> list[str]:
    """Format the scores of a file and the reasons for differences between the metrics."""
    lines = []
    for count, text in (
        (found.unmatched, "predictions left out: question not in the data set"),
        (found.without_gold, "predictions left out: no gold answers"),
        (found.unanswered, "questions of the data set have no prediction"),
        (found.repeated, "predictions replaced by a later prediction with the same id"),
        (found.lists, "predictions in prose that were read as a list, because the list scores better"),
    ):
        if count:
            lines.append(f"  {count:,} {text}")
    lines += ["", f"our metrics: whole answers, normalised{', aliases accepted' if aliases else ''}"]
    lines += [f"  {name:<16}{_points(value)}" for name, value in found.ours.items()]
    if found.theirs:
        lines += ["", "the project's own metrics"]
        lines += [f"  {name:<16}{_points(value)}" for name, value in found.theirs.items()]
    means = {name: value.value for side in (found.ours, found.theirs) for name, value in side.items()}
    last = None
    for each in found.reasons:
        if (each.theirs, each.ours) != last:
            last = (each.theirs, each.ours)
            left, right = (f"{name} {100 * means[name]:.1f}" for name in last)
            lines += ["", f"{left} -> {right}, because"]
        lines.append(f"  {each.points:+6.1f}  {each.questions:>5,}  {each.reason}")
    constants = ", ".join(f'"{text}" {100 * value:.1f}' for text, value in found.constants.items())
    return [*lines, "", f"tog_em of constant answers with these gold answers: {constants}"]


def judged_lines(judged: Mapping[str, Any]) -> list[str]:
    """Format each judge's mean over its readable verdicts, and the share of its verdicts that are unreadable."""
    lines = []
    for name, part in judged.items():
        lines += ["", f"judge: {name}, {part['n']:,} judged, {_percent(part['unparsed'])} of the verdicts unreadable"]
        lines += [f"  {key:<20}{_value(value)}" for key, value in part.items() if isinstance(value, dict)]
        lines += [f"  stopped: {clean(part['stopped'])}"] if part["stopped"] else []
    return lines


def against_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the win rates against the second file of predictions."""
    lines = ["", f"against the other file: {found['judged']:,} of {found['pairs']:,} pairs, each in both orders"]
    for name, part in found["dimensions"].items():
        elo = "-" if part["elo"] is None else f"{part['elo']:.0f}"
        lines.append(
            f"  {name:<20}{_percent(part['rate'])} won ({part['wins']} won, {part['ties']} tied, "
            f"{part['losses']} lost), Elo {elo}; {_percent(part['unparsed'])} unreadable, "
            f"{_percent(part['contradictory'])} changed with the order"
        )
    return lines + ([f"  stopped: {clean(found['stopped'])}"] if found["stopped"] else [])


def _points(value: Any) -> str:
    interval = f"  [{100 * value.low:.1f}, {100 * value.high:.1f}]" if math.isfinite(value.low) else ""
    return f"{100 * value.value:>6.1f}{interval}"


def _value(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return "     -"
    interval = "" if value["low"] is None else f"  [{value['low']:.2f}, {value['high']:.2f}]"
    return f"{value['value']:>6.2f}{interval}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
