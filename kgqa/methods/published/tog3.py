"""ToG-3 as published (Wu et al. 2025, algorithm 2 and appendix A).

Pieces of all kinds are found in one ranking; keywords name entities whose facts are found, too. Two pieces, of old and
new ones, are kept per round. Answer, verdict, sub-question, keywords and the edits of the graph are a prompt each, and
the final answer always is one more. Calls, without those that are asked again: 5r - 1 if an answer is accepted in round
r, 5K + 2 after K rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kgqa.corpus.snapshot import statement_iri
from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support
from kgqa.llm.replies.reply import Reply, reply_of
from kgqa.methods.evidence import CheckedReply, Exhibits, shown_passages
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, Outcome, answer_in_rounds, in_rounds
from kgqa.methods.text.searching import within_tokens
from kgqa.methods.tog3.exploration import UNKNOWN, Exploration, best
from kgqa.methods.tog3.replies import (
    Keywords,
    Refinement,
    Reflection,
    read_plain_answer,
    sufficient_reply,
)
from kgqa.methods.tog3.retrieval import KINDS, is_searchable, pieces_of
from kgqa.methods.tog3.subgraph import fact_line
from kgqa.model import Answer, Entity, Piece, Question
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.text.quotes import find_name
from kgqa.text.words import normalise
from kgqa.trace import PiecesKept
from kgqa.trace.trace import Trace

NO_CROSS_ENCODER = "Pieces were reranked by similarity, because there is no cross-encoder."
KEYWORDS = 10
"""Most keywords of a query; the number of LlamaIndex, on which the public code is built."""
NEIGHBOURS = 30
"""Most facts of the entities that keywords name."""


@dataclass
class Trajectory(Exploration):
    """The state of one question.

    Attributes:
        step: The number of the last sub-question.
        pool: All pieces that were found.
        kept: Those that a round has kept.
        keywords: The keywords of each query.
        accepted: Whether an answer was judged sufficient.
    """

    step: int = 0
    pool: dict[str, Piece] = field(default_factory=dict)
    kept: dict[Piece, None] = field(default_factory=dict)
    keywords: dict[str, tuple[str, ...]] = field(default_factory=dict)
    accepted: bool = False
    shown: Exhibits[Piece] = field(init=False)


def answer(question: Question, *, resources: Resources, trace: Trace) -> Answer:
    """Answer by ToG-3 as published; see `tog3.answering.answer`."""
    return answer_in_rounds("tog3", Trajectory(question, resources, trace), run, best)


def run(state: Trajectory) -> Outcome:
    """Answer in rounds until the evidence is judged sufficient; then synthesise the final answer."""
    if not retrieve(state, state.question):
        queries: list[str] = []
        if state.own.evolve_query == "on" and is_searchable(state):
            queries = state.new_questions(state.evolved(Exhibits(state.corpus)))
        state.step = state.numbered(0, queries)[0] if queries else 0
        if not queries or not retrieve(state, queries[0]):
            state.stopped(1, "nothing was found")
            return Outcome(reason=NOTHING_FOUND)
    number, why = in_rounds(state, range(1, state.own.rounds + 1), respond, judge, evolve)
    why = "the answer was judged sufficient" if state.accepted else why or "the last round"
    show(state, _live(state, state.kept))
    final = state.final(min(number, state.own.rounds), why, state.shown, accepted=state.accepted)
    notes = (NO_CROSS_ENCODER,) if state.own.rerank == "similarity" else ()
    return replace(final, notes=(*final.notes, *notes), accepted=True)


def retrieve(state: Trajectory, query: str) -> list[Piece]:
    """Find the best pieces of all kinds, and facts of entities that keywords name (Retriever); return the new ones."""
    kinds = [kind for kind in KINDS if kind != "path"]
    found = [
        piece for kind in kinds for (pieces,) in (pieces_of(state, kind, [query], [state.step]),) for piece in pieces
    ]
    found = sorted(found, key=lambda piece: (-piece.score, piece.iri))[: state.own.retrieve]
    if "statement" in state.kinds and state.search.count("statement"):
        if query not in state.keywords:
            form = reply_of(Keywords)
            (read,) = state.ask([state.prompt("tog3/keywords", "plan", form, question=query, most=KEYWORDS)])
            state.keywords[query] = read.keywords[:KEYWORDS] if read else ()
        found += facts_of(state, state.keywords[query], query)
    new = [piece for piece in dict.fromkeys(found) if piece.iri not in state.pool]
    state.pool |= {piece.iri: piece for piece in new}
    state.subgraph.add(state.step, (), [piece for piece in new if piece.kind == "statement"])
    return new


def facts_of(state: Trajectory, names: Sequence[str], query: str) -> list[Piece]:
    """Return the facts of the entities with the given names, at most `NEIGHBOURS`."""
    if not names:
        return []
    graph, table = state.search.graph, state.corpus.index.pieces("statement")
    wanted = [normalise(name) for name in names]
    matches = graph.names.exact(wanted)
    found: dict[str, Piece] = {}
    for entity in dict.fromkeys(match.entity for name in wanted for match in matches.get(name, ())):
        for step, value in graph.paths.neighbours(entity, limit=NEIGHBOURS):
            subject, end = (entity, value) if step.direction == "out" else (value, entity)
            if isinstance(subject, Entity) and len(found) < NEIGHBOURS:
                piece = table.get(statement_iri(subject.iri, step.relation, end))
                found |= {piece.iri: piece} if piece is not None else {}
    return state.search.record([query], [list(found.values())], [state.step], "keywords")[0]


def rerank(state: Trajectory) -> None:
    """Keep the best of all pieces and facts found so far, compared with the question (Reranker)."""
    nodes = [*state.subgraph.local.values(), *_live(state, state.pool.values())]
    if state.own.rerank == "similarity":
        texts = [fact_line(each, {}) for each in nodes]
        scores = text_similarity(state.resources.encoder)(state.question, texts)
        nodes = [nodes[at] for at in np.argsort(-scores, kind="stable")]
    kept = nodes[: state.own.keep]
    state.kept |= dict.fromkeys(kept)
    state.trace.record(PiecesKept(step=state.step, pieces=tuple(each.iri for each in kept)))
    show(state, kept)


def _live(state: Trajectory, pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces without the stored facts that an edit has removed."""
    added = {*state.subgraph.local.values()}
    return [p for p in pieces if p.kind != "statement" or p in added or p.iri in state.subgraph.facts]


def show(state: Trajectory, pieces: Sequence[Piece]) -> None:
    """Show pieces in the next prompts."""
    chunks = within_tokens([piece for piece in pieces if piece.kind == "chunk"], state.own.context)
    state.subgraph.summaries = {piece.iri: piece for piece in pieces if piece.kind == "community"}
    state.shown = Exhibits(state.corpus, [*chunks, *(piece for piece in pieces if piece.kind == "statement")])


def respond(state: Trajectory, number: int) -> CheckedReply[Piece]:
    """Ask for an answer in free text (Responser); if it stands in a passage, its sentence becomes its quote."""
    rerank(state)
    form = Reply(read_plain_answer)
    (read,) = state.ask([state.shows("plain_answer", state.shown, form, attempts=state.attempts)])
    if read is not None:
        passages = [each["sentences"] for each in shown_passages(state.shown.passages, state.corpus)]
        read = QuotedAnswer(read.answers, read.response, tuple(_quotes(read, passages)))
    return state.recorded(number, read, state.shown)


def _quotes(read: QuotedAnswer, passages: Sequence[Sequence[str]]) -> Iterator[Support]:
    """Yield the first sentence that contains each answer."""
    for name in read.answers:
        places = ((at, sentence) for at, sentences in enumerate(passages) for sentence in sentences)
        if found := next(((at, sentence) for at, sentence in places if find_name(sentence, name)), None):
            yield Support(read.response, *found)


def judge(state: Trajectory, number: int, reply: CheckedReply[Piece]) -> bool | None:
    """Ask whether the evidence suffices (Reflector, equation 2); it never does for an unknown answer."""
    words = reply.response if reply.answers else UNKNOWN
    (read,) = state.ask([state.shows("sufficient", state.shown, sufficient_reply(), answer=words)])
    state.accepted = read is not None and read.sufficient and words != UNKNOWN
    verdict = Reflection(verdict="YES" if state.accepted else "NO")
    state.judged(number, "unparsed" if read is None else read.verdict.lower(), verdict)
    return None if state.accepted else False


def evolve(state: Trajectory, number: int, _: bool) -> str:
    """Evolve the query (equation 3), retrieve by it, and evolve the graph (equation 4)."""
    queries = [state.question]
    if state.own.evolve_query == "on":
        queries = state.new_questions(state.evolved(state.shown))
    if not queries:
        return "there was no new sub-question"
    (state.step,) = state.numbered(number, queries)
    new = retrieve(state, queries[0])
    if state.own.evolve_graph == "on":
        construct(state, queries[0], new)
    return ""


def construct(state: Trajectory, query: str, new: Sequence[Piece]) -> None:
    """Ask for edits of the facts found by a sub-question (Constructor), from new passages, or else the kept ones."""
    facts = [each for each in dict.fromkeys((*new, *state.kept)) if each.iri in state.subgraph.facts]
    chunks = [each for each in new if each.kind == "chunk"] or [each for each in state.kept if each.kind == "chunk"]
    if not facts and not chunks:
        return
    shown = {"facts": [fact.text for fact in facts], "passages": shown_passages(chunks, state.corpus)}
    values = {"sub_question": query, "number": state.step, "quoted": False, **shown}
    (read,) = state.ask([state.prompt("tog3/refine", "refine", reply_of(Refinement), **values)])
    state.trace.record(state.subgraph.edit(state.step, read or Refinement(), facts, chunks, quoted=False))
