"""The search for one question: its evidence graph and history, what prompts show, retrieval, the final answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np

from kgqa.corpus.retrieve.fused import fuse
from kgqa.llm.replies.quoted_answers import QuotedAnswer, quoted_reply
from kgqa.llm.replies.reply import Reply, reply_of
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import LIKELY, CheckedReply, Exhibits, shown_passages
from kgqa.methods.rounds import Rounds, RoundsOutcome, new_questions, outcome
from kgqa.methods.text.declarations import Tog3Settings
from kgqa.methods.text.path_pieces import PathRetriever
from kgqa.methods.text.searching import within_tokens
from kgqa.methods.tog3.replies import FINAL, NOT_SUFFICIENT, Refinement, Reflection, gap_reply
from kgqa.methods.tog3.subgraph import Subgraph, fact_line
from kgqa.model import Piece, PieceKind
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.trace import PiecesKept, StepAnswered, SubQuestion, SufficiencyJudged

T = TypeVar("T")
UNJUDGED = "No answer was judged sufficient; this one is from all evidence of the search."
UNREAD_FINAL = "The final reply of the language model could not be read; this is the last answer with verified quotes."
UNQUOTED_FINAL = "No answer was judged sufficient, and no quote of the last one was found in the passages."
INTERRUPTED = "The search was not finished. This is the last answer with verified quotes."
UNKNOWN = "Unknown"
PLANNING = ("evolve", "reflect")
"""Prompts of the stage `plan`; the others decide."""
MAX_STEPS = 12
"""Most claims of earlier answers in a prompt."""
KINDS: tuple[PieceKind, ...] = ("chunk", "statement", "community")
KEPT_TOKENS = 2048
"""About how many tokens the passages that are kept for one query have: two chunks of the published length."""
PATHS = 3
"""How many paths are kept for the question."""
PATH_POOL = 20
"""How many of the best paths are recorded."""
PATH_LIMITS = {"beam": 10, "walks": 10, "compared": 8}
"""Of the best three paths, 82% are those of the default limits, in 0.75 of the time (MuSiQue, 48 questions)."""
SUMMARIES = 1
"""How many summaries are kept for one query."""
WEIGHTS = (8.0, 1.0, 1.0, 1.0)
"""Weights in the ranking of passages: the retriever, the passages of facts, those of paths, similarity."""
RANK_K = 10
_DEPENDENT = ("rrf", "dense", "bm25")


@dataclass
class Exploration(Rounds):
    """The state of one question.

    Attributes:
        takes_likely: Whether what the last reply calls likely stands for an unknown answer.
        subgraph: The evidence graph.
        queries: The sub-questions that were asked.
        fruitless: Those that found nothing new.
        claims: Verified claims of answers, with their quotes.
        attempts: The answers of the rounds, and why they were not accepted.
        supported: The answers with a verified quote.
    """

    takes_likely: ClassVar[bool] = True
    subgraph: Subgraph = field(init=False)
    queries: list[str] = field(default_factory=list)
    fruitless: set[str] = field(default_factory=set)
    claims: dict[str, None] = field(default_factory=dict)
    attempts: list[str] = field(default_factory=list)
    supported: list[CheckedReply[Piece]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = self.resources.settings.of(Tog3Settings)
        self.kinds = [each.strip() for each in self.own.kinds.split(",")]
        self.subgraph = Subgraph(self.corpus, self.graph)

    @property
    def is_long(self) -> bool:
        """Whether a report is wanted."""
        return self.resources.settings.ask.answer_form == "long"

    def say(self, name: str, shown: Exhibits[Piece], form: Reply[T], **values: Any) -> T | None:
        """Return the reply to a prompt that shows evidence, the sub-questions so far, and the verified claims."""
        places = {piece.iri: number for number, piece in enumerate(shown.passages, 1)}
        asked = [f"{text} (nothing new was found)" if text in self.fruitless else text for text in self.queries]
        evidence = {
            "passages": shown_passages(shown.passages, self.corpus),
            "facts": [fact_line(fact, places) for fact in shown.facts],
            "same": [f"{first} is also called {second}" for first, second in self.subgraph.same],
            "summaries": [piece.text for piece in self.subgraph.summaries.values()],
            "asked": asked,
            "steps": list(self.claims)[-MAX_STEPS:],
        }
        return self.reply(f"tog3/{name}", "plan" if name in PLANNING else "decide", form, **evidence, **values)

    def recorded(self, number: int, read: QuotedAnswer | None, shown: Exhibits[Piece]) -> CheckedReply[Piece]:
        """Check the quotes of an answer, and keep what they verify."""
        reply = shown.check(read)
        self.supported += [reply] if reply.supported else []
        self.subgraph.cited |= {each.span.chunk: None for each in reply.quotes}
        self.claims |= {
            f'{each.claim} "{each.quote}"': None for each in reply.citations if each.verified and each.claim
        }
        self.attempts.append(f"Round {number}: {reply.words or UNKNOWN}")
        event = StepAnswered(
            question=self.question,
            answers=reply.answers,
            response=reply.response,
            read=read is not None,
            quotes=len(reply.citations),
            verified=reply.verified,
            round=number,
        )
        self.trace.record(event)
        return reply

    def judged(self, number: int, verdict: str, missing: str = "", *, accepted: bool) -> None:
        """Record a verdict."""
        self.trace.record(SufficiencyJudged(round=number, verdict=verdict, missing=missing, accepted=accepted))

    def evolved(self, shown: Exhibits[Piece]) -> Reflection:
        """Ask for sub-questions (equation 3)."""
        return self.say("evolve", shown, gap_reply(), most=self.own.subqueries) or NOT_SUFFICIENT

    def new_questions(self, reflection: Reflection) -> list[str]:
        """Return the sub-questions of a reply, at most `tog3.subqueries`, without those that were asked before."""
        given = [*dict.fromkeys(reflection.questions)][: self.own.subqueries]
        return new_questions(given, [self.question, *self.queries])

    def numbered(self, number: int, queries: Sequence[str]) -> list[int]:
        """Record the sub-questions of a round, and return their numbers."""
        steps = list(range(len(self.queries) + 1, len(self.queries) + 1 + len(queries)))
        self.queries += queries
        self.planned(map(SubQuestion, steps, queries), number)
        return steps

    def construct(self, asked: Sequence[tuple[int, Sequence[Piece], Sequence[Piece]]], *, quoted: bool) -> bool:
        """Ask for edits of the evidence graph (equation 4), all in one batch.

        Args:
            asked: The numbers of sub-questions, each with the facts and the passages that a prompt shows.
            quoted: Whether new facts need a quote.

        Returns:
            Whether anything was added or merged.
        """
        prompts = []
        for step, facts, passages in asked:
            shown = {"facts": [fact.text for fact in facts], "passages": shown_passages(passages, self.corpus)}
            values = {"sub_question": self.queries[step - 1], "number": step, "quoted": quoted, **shown}
            prompts.append(self.prompt("tog3/refine", "refine", reply_of(Refinement), **values))
        replies = self.ask(prompts)
        edits = [self.subgraph.edit(*each, read or Refinement(), quoted=quoted) for each, read in zip(asked, replies)]
        for edit in edits:
            self.trace.record(edit)
        return any(edit.added or edit.merged for edit in edits)

    def final(self, number: int, why: str, shown: Exhibits[Piece], *, accepted: bool = False) -> RoundsOutcome:
        """Ask for the answer from the whole trajectory (equation 6).

        If the reply can't be read, the last answer with a verified quote stands. An answer without a verified quote, or
        that the reply calls likely, is not accepted; it is left out if `ask.on_exhausted` is "none".

        Args:
            number: The round.
            why: Why the search ends.
            shown: The evidence.
            accepted: Whether an answer was accepted, so that only a report of it is wanted.
        """
        self.stopped(number, why)
        before = self.supported[-1:]
        form = quoted_reply(len(shown), FINAL, optional=("response",))
        read = self.say("final", shown, form, attempts=self.attempts, long=self.is_long)
        reply = self.recorded(number, read, shown)
        best = self.resources.settings.ask.on_exhausted == "best"
        if read is None:
            return outcome(before[0], UNREAD_FINAL) if before else RoundsOutcome(reason=UNREADABLE)
        if reply.likely and best and self.takes_likely:
            return outcome(reply.best, LIKELY, accepted=False)
        weak = bool(reply.answers) and not reply.supported
        if weak and not best:
            return RoundsOutcome(reason=UNQUOTED_FINAL)
        return outcome(reply, *([UNJUDGED] if reply.answers and not accepted else []), accepted=not weak)


def best(state: Exploration) -> RoundsOutcome:
    """Return the last answer with a verified quote."""
    return outcome(state.supported[-1], INTERRUPTED, accepted=False) if state.supported else RoundsOutcome()


@dataclass(frozen=True)
class FoundPieces:
    """What was found for a query, best first. `step`: its number. `new`: whether any of it was not known before."""

    step: int
    passages: Sequence[Piece]
    facts: Sequence[Piece]
    summaries: Sequence[Piece]
    new: bool

    def __bool__(self) -> bool:
        return bool(self.passages or self.facts or self.summaries)


def reworded(state: Exploration) -> list[str]:
    """Ask for other words, because nothing was found for the question; empty if none can help."""
    kinds = [kind for kind in KINDS if kind in state.kinds or (kind == "statement" and "path" in state.kinds)]
    if state.own.evolve_query == "off" or not any(map(state.count, kinds)):
        return []
    return state.new_questions(state.evolved(Exhibits(state.corpus)))


def retrieve(state: Exploration, queries: Sequence[str], steps: Sequence[int]) -> list[FoundPieces]:
    """Find the best passages, facts and summaries for each query, and keep them in the evidence graph.

    Raises:
        SettingsError: The index has no such retriever.
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is spent.
    """
    pieces = zip(*(pieces_of(state, kind, queries, steps) for kind in KINDS))
    # sub-questions name what was found last; their facts are found without paths
    paths = [_paths(state, query) if not any(steps) else [] for query in queries]
    found = []
    for query, step, (chunks, statements, communities), along in zip(queries, steps, pieces, paths):
        ranked = _ranked(state, query, chunks, statements, along)
        passages = within_tokens(ranked[: state.own.keep], KEPT_TOKENS)
        kept = (passages, [*statements, *along], communities[:SUMMARIES])
        state.trace.record(PiecesKept(step=step, pieces=tuple(piece.iri for piece in passages)))
        found.append(FoundPieces(step, *kept, new=state.subgraph.add(step, *kept)))
    return found


def pieces_of(state: Exploration, kind: PieceKind, queries: Sequence[str], steps: Sequence[int]) -> list[list[Piece]]:
    """Find the best pieces of one kind for each query; none if the kind is not among `tog3.kinds`."""
    if kind not in state.kinds or not state.count(kind):
        return [[] for _ in queries]
    name = state.own.retriever
    name = name if kind == "chunk" or name in _DEPENDENT else "best"
    channel = "" if kind == "chunk" else kind
    return state.search(queries, state.own.retrieve, kind=kind, retriever=name, steps=steps, channel=channel)


def _paths(state: Exploration, query: str) -> list[Piece]:
    """Return the best paths in the facts around the entities that the question names."""
    if "path" not in state.kinds or not state.count("statement"):
        return []
    encoder, index = state.resources.encoder, state.corpus.index
    retriever = PathRetriever(state.graph, index, encoder, trace=state.trace, **PATH_LIMITS)
    found = state.tolerant(lambda: retriever.search([query], PATH_POOL)[0])
    return state.record([query], [found], channel="path")[0][:PATHS]


def _ranked(
    state: Exploration, query: str, chunks: Sequence[Piece], statements: Sequence[Piece], paths: Sequence[Piece]
) -> list[Piece]:
    """Return the found chunks and those in which the found facts stand, as one ranking."""
    table = state.corpus.index.pieces("chunk")
    known = {piece.iri: piece for piece in chunks}
    rankings = [list(known), _chunks_of(statements), _chunks_of(paths)]
    known |= {iri: piece for iri in chain(*rankings) if iri not in known and (piece := table.get(iri))}
    rankings = [[iri for iri in ranking if iri in known] for ranking in rankings]
    if state.resources.encoder is not None:
        scores = text_similarity(state.resources.encoder)(query, [piece.text for piece in known.values()])
        rankings.append([list(known)[at] for at in np.argsort(-scores, kind="stable")])
    scored = [[(iri, -float(rank)) for rank, iri in enumerate(ranking)] for ranking in rankings]
    return [known[iri] for iri, _ in fuse(scored, WEIGHTS[: len(scored)], RANK_K)]


def _chunks_of(pieces: Iterable[Piece]) -> list[str]:
    return list(dict.fromkeys(span.chunk for piece in pieces for span in piece.spans if span.chunk))
