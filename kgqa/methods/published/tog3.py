"""ToG-3 as published (Wu et al. 2025, algorithm 2 and appendix A).

Pieces of all kinds are found in one ranking; keywords name entities whose facts are found, too. Of all that was found,
the two passages closest to the last sub-question are shown, with the facts that they state, added ones among them.
Answer, verdict, sub-question, keywords and the edits of the graph are a prompt each, and the final answer, from the
pieces, sub-questions and answers of all rounds, always is one more. Calls, without those that are asked again: 5r - 1
if an answer is accepted in round r, 5K + 2 after K rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from kgqa.corpus.snapshot import statement_iri
from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support
from kgqa.llm.replies.reply import Reply, reply_of
from kgqa.methods.evidence import CheckedReply, Exhibits, shown_passages
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, RoundsOutcome, answer_in_rounds, in_rounds
from kgqa.methods.tog3.exploration import KINDS, UNKNOWN, Exploration, best, pieces_of, reworded
from kgqa.methods.tog3.replies import Keywords, read_plain_answer, sufficient_reply
from kgqa.model import Answer, Entity, Named, Piece, Question, Value
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.text.quotes import find_name
from kgqa.text.words import normalise
from kgqa.trace import PiecesKept
from kgqa.trace.trace import Trace

NO_CROSS_ENCODER = "Pieces were reranked by similarity, because there is no cross-encoder."
KEYWORDS = 10
"""Most keywords of a query; the number of LlamaIndex, on which the public code is built."""
SUMMARIES = 1
"""How many summaries of communities are shown beside the passages."""
NEIGHBOURS = 30
"""Most facts of the entities that keywords name."""


@dataclass
class PublishedExploration(Exploration):
    """The state of one question.

    Attributes:
        step: The number of the last sub-question.
        query: That sub-question; at first the question.
        pool: All pieces that were found.
        kept: Those that a round has kept.
        keywords: The keywords of each query.
        accepted: Whether an answer was judged sufficient.
    """

    takes_likely: ClassVar[bool] = False
    step: int = 0
    query: str = ""
    pool: dict[str, Piece] = field(default_factory=dict)
    kept: dict[Piece, None] = field(default_factory=dict)
    keywords: dict[str, tuple[str, ...]] = field(default_factory=dict)
    accepted: bool = False
    shown: Exhibits[Piece] = field(init=False)


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by ToG-3 as published; arguments and errors as in `top.answer`. Topics are ignored."""
    return answer_in_rounds("tog3", PublishedExploration(resources, trace, question), run, best)


def run(state: PublishedExploration) -> RoundsOutcome:
    """Answer in rounds until the evidence is judged sufficient; then synthesise the final answer."""
    if not retrieve(state, state.question):
        queries = reworded(state)
        state.step = state.numbered(0, queries)[0] if queries else 0
        if not queries or not retrieve(state, queries[0]):
            state.stopped(1, "nothing was found")
            return RoundsOutcome(reason=NOTHING_FOUND)
    number, why = in_rounds(state, range(1, state.own.rounds + 1), respond, judge, evolve)
    why = "the answer was judged sufficient" if state.accepted else why or "the last round"
    held = {*state.subgraph.facts.values(), *state.subgraph.local.values()}
    show(state, [each for each in state.kept if each.kind != "statement" or each in held])
    final = state.final(min(number, state.own.rounds), why, state.shown, accepted=state.accepted)
    return replace(final, notes=(*final.notes, NO_CROSS_ENCODER))


def retrieve(state: PublishedExploration, query: str) -> list[Piece]:
    """Find the best pieces of all kinds, and facts of entities that keywords name (Retriever); return the new ones."""
    state.query = query
    every = [pieces_of(state, kind, [query], [state.step])[0] for kind in KINDS]
    found = sorted(chain.from_iterable(every), key=lambda piece: (-piece.score, piece.iri))[: state.own.retrieve]
    if "statement" in state.kinds and state.count("statement"):
        if query not in state.keywords:
            read = state.reply("tog3/keywords", "plan", reply_of(Keywords), question=query, most=KEYWORDS)
            state.keywords[query] = read.keywords[:KEYWORDS] if read else ()
        found += facts_of(state, state.keywords[query], query)
    new = [piece for piece in dict.fromkeys(found) if piece.iri not in state.pool]
    state.pool |= {piece.iri: piece for piece in new}
    state.subgraph.add(state.step, (), [piece for piece in new if piece.kind == "statement"])
    return new


def facts_of(state: PublishedExploration, names: Sequence[str], query: str) -> list[Piece]:
    """Return the facts of the entities with the given names, at most `NEIGHBOURS`."""
    if not names:
        return []
    graph, table = state.graph, state.corpus.index.pieces("statement")
    wanted = [normalise(name) for name in names]
    matches = graph.names.exact(wanted)
    found: dict[str, Piece] = {}
    for entity in dict.fromkeys(match.entity for name in wanted for match in matches.get(name, ())):
        for step, value in graph.paths.neighbours(entity, limit=NEIGHBOURS):
            subject, end = (entity, value) if step.direction == "out" else (value, entity)
            if isinstance(subject, Entity) and len(found) < NEIGHBOURS:
                piece = table.get(statement_iri(subject.iri, step.relation, end))
                found |= {piece.iri: piece} if piece is not None else {}
    return state.record([query], [list(found.values())], [state.step], "keywords")[0]


def rerank(state: PublishedExploration) -> None:
    """Keep the passages closest to the last query, by their text or one of their facts, with these (Reranker)."""
    stated: dict[str, list[Piece]] = {}
    for fact in (*state.subgraph.local.values(), *state.subgraph.facts.values()):
        for chunk in dict.fromkeys(span.chunk for span in fact.spans if span.chunk):
            stated.setdefault(chunk, []).append(fact)
    chunks = [iri for iri, piece in state.pool.items() if piece.kind == "chunk"]
    table = state.corpus.index.pieces("chunk")
    passages = [piece for iri in dict.fromkeys((*chunks, *stated)) if (piece := table.get(iri))]
    groups = [[piece, *stated.get(piece.iri, ())] for piece in passages]
    kept = list(dict.fromkeys(chain.from_iterable(_closest(state, groups)[: state.own.keep])))
    communities = [[piece] for piece in state.pool.values() if piece.kind == "community"]
    kept += chain.from_iterable(_closest(state, communities)[:SUMMARIES])
    state.kept |= dict.fromkeys(kept)
    state.trace.record(PiecesKept(step=state.step, pieces=tuple(dict.fromkeys(each.iri for each in kept))))
    show(state, kept)


def _closest(state: PublishedExploration, groups: list[list[Piece]]) -> list[list[Piece]]:
    """Return groups of pieces in the order of the piece of each that is most similar to the query."""
    if not groups:
        return []
    texts = [piece.text for piece in chain.from_iterable(groups)]
    scores = iter(text_similarity(state.resources.encoder)(state.query, texts))
    best = [max(next(scores) for _ in group) for group in groups]
    return [groups[at] for at in np.argsort(-np.array(best), kind="stable")]


def show(state: PublishedExploration, pieces: Sequence[Piece]) -> None:
    """Show pieces in the next prompts."""
    state.subgraph.summaries = {piece.iri: piece for piece in pieces if piece.kind == "community"}
    chunks = [piece for piece in pieces if piece.kind == "chunk" and "chunk" in state.kinds]
    state.shown = Exhibits(state.corpus, [*chunks, *(piece for piece in pieces if piece.kind == "statement")])


def respond(state: PublishedExploration, number: int) -> CheckedReply[Piece]:
    """Ask for an answer in free text (Responser); if it stands in a passage, its sentence becomes its quote."""
    rerank(state)
    read = state.say("plain_answer", state.shown, Reply(read_plain_answer), attempts=state.attempts)
    if read is not None:
        passages = [each["sentences"] for each in shown_passages(state.shown.passages, state.corpus)]
        read = QuotedAnswer(read.answers, read.response, tuple(_quotes(read, passages)))
    reply = state.recorded(number, read, state.shown)
    state.attempts[-1] = f"Round {number}, {state.query} {reply.response or UNKNOWN}"
    return reply


def _quotes(read: QuotedAnswer, passages: Sequence[Sequence[str]]) -> Iterator[Support]:
    """Yield the first sentence that contains each answer."""
    for name in read.answers:
        places = ((at, sentence) for at, sentences in enumerate(passages) for sentence in sentences)
        if found := next(((at, sentence) for at, sentence in places if find_name(sentence, name)), None):
            yield Support(read.response, *found)


def judge(state: PublishedExploration, number: int, reply: CheckedReply[Piece]) -> bool | None:
    """Ask whether the evidence suffices (Reflector, equation 2); it never does for an unknown answer."""
    words = reply.response if reply.answers else UNKNOWN
    read = state.say("sufficient", state.shown, sufficient_reply(), answer=words)
    state.accepted = read is not None and read.sufficient and words != UNKNOWN
    state.judged(number, "unparsed" if read is None else read.verdict.lower(), accepted=state.accepted)
    if state.accepted:
        return None
    state.attempts[-1] += " (not sufficient)"
    return False


def evolve(state: PublishedExploration, number: int, _: bool) -> str:
    """Evolve the query (equation 3), retrieve by it, and evolve the graph (equation 4)."""
    queries = [state.question]
    if state.own.evolve_query == "on":
        queries = state.new_questions(state.evolved(state.shown))
    if not queries:
        return "there was no new sub-question"
    (state.step,) = state.numbered(number, queries)
    new = retrieve(state, queries[0])
    if state.own.evolve_graph == "on":
        construct(state, new)
    return ""


def construct(state: PublishedExploration, new: Sequence[Piece]) -> None:
    """Ask for edits of the facts found by a sub-question (Constructor), from new passages, or else the kept ones."""
    facts = [each for each in dict.fromkeys((*new, *state.kept)) if each.iri in state.subgraph.facts]
    chunks = [each for each in new if each.kind == "chunk"] or [each for each in state.kept if each.kind == "chunk"]
    if facts or chunks:
        state.construct([(state.step, facts, chunks)], quoted=False)
