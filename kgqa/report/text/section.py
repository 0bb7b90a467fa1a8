"""Prepares the values of the sections that a question's page has for a method over text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.report.lenient_json import objects_of, text_of
from kgqa.report.text.evidence_graph import Edit, evidence_graph
from kgqa.report.text.graph_drawing import draw_graph
from kgqa.report.text.passages import chunk_of, quoted_passages
from kgqa.report.text.piece_texts import PieceTexts, kind_of
from kgqa.report.text.rounds import Draft, Entry, Plan, TextStep, rounds_of
from kgqa.text.words import counted
from kgqa.trace import DraftVerified, Event, LocalFact, PiecesKept, Retrieved, Stopped, SufficiencyJudged

MAX_PIECES = 40
MAX_SEARCHES = 12
MAX_CITED = 60
MAX_ITEMS = 60
_EXCERPT = 300


def text_section(
    trace: Sequence[Event],
    answer: Mapping[str, Any],
    texts: PieceTexts,
    support: Sequence[Collection[str]] = (),
    *,
    acting: bool = False,
) -> dict[str, Any] | None:
    """Return what the page shows of an answer over text; None if the trace has no event of such a method.

    Args:
        trace: The events of the question.
        answer: Its answer object (docs/answer-json.md).
        texts: The texts of the corpus.
        support: For each supporting passage of the data set, the IRIs of its pieces.
        acting: The method acts in turns, which are shown instead of rounds.
    """
    found = rounds_of(trace)
    citations = objects_of(answer.get("citations"))[:MAX_CITED]
    over_text = bool(citations) or any(isinstance(each, Retrieved) for each in trace)
    if not (over_text if acting else found.rounds):
        return None
    passages = quoted_passages(citations, texts)
    graph = evidence_graph(trace)
    names = [text_of(each.get("name")) for each in objects_of(answer.get("answers"))]
    supporting = frozenset(iri for passage in support for iri in passage)
    pieces = _Pieces(texts, text_of(answer.get("question")), supporting)
    numbered = [each for each in found.rounds if each.number is not None]
    return {
        "passages": passages,
        "without_texts": any(chunk_of(each) for each in citations) and not passages,
        "rounds": [
            {
                "title": f"Round {each.number}" if each.number is not None and len(numbered) > 1 else "",
                "entries": [_entry(entry, pieces, text_of(answer.get("response"))) for entry in each.entries],
            }
            for each in ([] if acting else found.rounds)
        ],
        "left_out": found.left_out,
        "support": _reached(trace, support),
        "drawing": draw_graph(graph.facts, answers=names),
        "edits": [_edit(number, each, texts) for number, each in enumerate(graph.edits[:MAX_ITEMS])],
        "edits_more": max(0, len(graph.edits) - MAX_ITEMS),
    }


@dataclass(frozen=True)
class _Pieces:
    """The texts of pieces, the question, and which pieces belong to supporting passages."""

    texts: PieceTexts
    question: str = ""
    supporting: frozenset[str] = frozenset()

    def shown(self, iris: Iterable[str]) -> list[dict[str, Any]]:
        """Describe the first pieces of a list."""
        return [{**_piece(iri, self.texts), "gold": iri in self.supporting} for iri in list(iris)[:MAX_PIECES]]


def _reached(trace: Sequence[Event], support: Sequence[Collection[str]]) -> dict[str, int]:
    """Count the supporting passages, those that were retrieved, and those that prompts showed; empty without any."""
    if not support:
        return {}
    retrieved = {iri for each in trace if isinstance(each, Retrieved) for iri in each.pieces}
    kept = {iri for each in trace if isinstance(each, PiecesKept) for iri in each.pieces}
    found = {"retrieved": retrieved, "kept": kept}
    return {name: sum(not iris.isdisjoint(each) for each in support) for name, iris in found.items()} | {
        "all": len(support)
    }


def _entry(entry: Entry, pieces: _Pieces, response: str) -> dict[str, Any]:
    if isinstance(entry, TextStep):
        return {"kind": "step", "step": _step(entry, pieces, response)}
    if isinstance(entry, Plan):
        steps = [_step(each, pieces, response) for each in entry.steps]
        return {"kind": "plan", "reasons": entry.reasons[:MAX_ITEMS], "steps": steps, "elsewhere": entry.elsewhere}
    if isinstance(entry, Draft):
        failed = set(entry.verified.failed) if entry.verified else set()
        claims = [(each.text, each.verified, number in failed) for number, each in enumerate(entry.drafted.claims, 1)]
        return {
            "kind": "draft",
            "channel": entry.drafted.channel,
            "text": entry.drafted.text,
            "claims": claims[:MAX_ITEMS],
            "verdict": _verdict(entry.verified) if entry.verified else "",
            "good": bool(entry.verified and entry.verified.verdict == "yes"),
        }
    if isinstance(entry, Stopped):
        return {"kind": "stopped", "text": entry.why}
    good = entry.accepted if isinstance(entry, SufficiencyJudged) else entry.verdict == "yes"
    return {"kind": "verdict", "text": _verdict(entry), "good": good, "missing": getattr(entry, "missing", "")}


def _verdict(event: DraftVerified | SufficiencyJudged) -> str:
    """Describe a verdict in words."""
    if isinstance(event, DraftVerified):
        words = {"yes": "The draft was accepted.", "no": "The draft was rejected."}
        return words.get(event.verdict, "The verdict on the draft could not be read, so the draft was not accepted.")
    if event.accepted:
        return "The evidence was judged sufficient, and the answer was accepted."
    words = {
        "yes": "The evidence was judged sufficient, but the answer has no verified quote, so it was not accepted.",
        "no": "The evidence was judged insufficient.",
    }
    return words.get(event.verdict, "The verdict could not be read, so the answer was not accepted.")


def _step(step: TextStep, pieces: _Pieces, response: str) -> dict[str, Any]:
    """Describe a step; `response`: that of the answer, which is not shown twice."""
    kept = step.kept or ()
    asked = {pieces.question} if not step.number else {step.text, *(each.text for each in step.grounded)}
    return {
        "number": step.number,
        "text": _title(step),
        "needs": [number for number in step.needs if number != step.number],
        "round": step.round,
        "later": step.above is not None and step.round != step.above.round,
        "grounded": [(each.text, each.filled) for each in step.grounded if each.text != step.text],
        "answered": [
            {
                "answers": each.answers,
                "response": "" if each.response == response else each.response,
                "read": each.read,
                "quotes": each.quotes,
                "verified": each.verified,
            }
            for each in step.answers
        ],
        "searches": [_search(each, asked, set(kept), pieces) for each in step.searches[:MAX_SEARCHES]],
        "found": len({iri for each in step.searches for iri in each.pieces}),
        "kept": None if step.kept is None else len(kept),
        "pieces": pieces.shown(kept),
        "pieces_more": max(0, len(kept) - MAX_PIECES),
        "below": [_step(each, pieces, response) for each in step.below],
    }


def _title(step: TextStep) -> str:
    if step.number:
        return step.text
    if step.final:
        return "The last answer, from everything that was found"
    return "The question itself" if step.searches or step.answers else "What the next prompt shows"


def _search(event: Retrieved, asked: Collection[str], kept: set[str], pieces: _Pieces) -> dict[str, Any]:
    """Describe a retrieval; the query is left out if it is what was asked. Paths have no texts and are only counted."""
    stored = [iri for iri in event.pieces if kind_of(iri) != "path"]
    return {
        "query": "" if event.query in asked else event.query,
        "channel": event.channel,
        "total": len(event.pieces),
        "pieces": [(piece, iri in kept) for piece, iri in zip(pieces.shown(stored), stored)],
        "more": max(0, len(stored) - MAX_PIECES),
    }


def _piece(iri: str, texts: PieceTexts) -> dict[str, str]:
    """Describe a piece by the title and the beginning of its chunk, or by its words; without texts by its IRI."""
    piece = texts.piece(iri)
    if piece is None:
        return {"kind": kind_of(iri), "title": "", "text": iri}
    text = piece.text if len(piece.text) <= _EXCERPT else piece.text[: _EXCERPT - 1] + "…"
    return {"kind": piece.kind, "title": piece.title or piece.source, "text": text}


def _edit(number: int, edit: Edit, texts: PieceTexts) -> dict[str, Any]:
    return {
        "colour": number % 8,
        "step": edit.step,
        "summary": ", ".join(_counts(edit)),
        "added": [_fact(each, texts) for each in edit.added[:MAX_ITEMS]],
        "added_more": max(0, len(edit.added) - MAX_ITEMS),
        "removed": [_removed(each, texts) for each in edit.removed[:MAX_ITEMS]],
        "removed_more": max(0, len(edit.removed) - MAX_ITEMS),
        "merged": edit.merged[:MAX_ITEMS],
        "refused": edit.refused,
    }


def _counts(edit: Edit) -> Iterator[str]:
    """Yield how many changes of each kind an edit made."""
    if edit.added:
        yield f"{counted(len(edit.added), 'fact')} added"
    if edit.merged:
        yield f"{counted(len(edit.merged), 'pair')} of names merged"
    if edit.removed:
        yield f"{len(edit.removed):,} removed"
    if edit.refused:
        yield f"{counted(edit.refused, 'proposal')} refused"


def _fact(fact: LocalFact, texts: PieceTexts) -> dict[str, str]:
    piece = texts.piece(fact.chunk) if fact.chunk else None
    title = (piece.title or piece.source) if piece else ""
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object, "quote": fact.quote,
            "title": title}  # fmt: skip


def _removed(text: str, texts: PieceTexts) -> str:
    if kind_of(text) == "piece":
        return text
    piece = _piece(text, texts)
    return f"{piece['kind']}: {piece['title'] if piece['kind'] == 'chunk' and piece['title'] else piece['text']}"
