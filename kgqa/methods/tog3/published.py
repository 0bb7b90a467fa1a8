"""The rounds of ToG-3 as published (algorithm 2, appendix A).

Pieces of all kinds are found in one ranking; keywords name entities whose facts are found, too. Two pieces, of old and
new ones, are kept per round. Answer, verdict, sub-question, keywords and the edits of the graph are a prompt each, and
the final answer always is one more. Calls, without those that are asked again: 5r - 1 if an answer is accepted in round
r, 5K + 2 after K rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from kgqa.llm.replies.quoted_answers import QuotedAnswer, Support
from kgqa.methods.text.pieces import shown_passages
from kgqa.methods.text.searching import within_tokens
from kgqa.methods.tog3.evidence import Shown, fact_line
from kgqa.methods.tog3.exploration import NOTHING_FOUND, Exploration
from kgqa.methods.tog3.outcome import Outcome
from kgqa.methods.tog3.replies import (
    Refinement,
    Reflection,
    distinct_questions,
    read_keywords,
    read_plain_answer,
    read_refinement,
    read_verdict,
)
from kgqa.model import Piece
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.text.quotes import find_name
from kgqa.trace import LocalFact, PiecesKept

NO_CROSS_ENCODER = "Pieces were reranked by similarity, because there is no cross-encoder."
Node = Piece | LocalFact


class PublishedRounds(Exploration):
    """The rounds of one question as published."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pool: dict[str, Piece] = {}
        self._kept: dict[Node, None] = {}
        self._seen_keywords: dict[str, tuple[str, ...]] = {}

    def run(self) -> Outcome:
        """Ask in rounds until the evidence is judged sufficient; then for the final answer."""
        most = self._own.rounds
        query, step = self.question, 0
        if not self._retrieved(query, step):
            queries = self._reworded()[:1]
            if queries:
                query, (step,) = queries[0], self._planned(0, queries)
            if not queries or not self._retrieved(query, step):
                self._stopped(1, "nothing was found")
                return Outcome(reason=NOTHING_FOUND)
        for number in range(1, most + 1):
            shown = self._reranked(step)
            words = self._answered(number, shown)
            if self._sufficient(number, shown, words):
                return self._concluded(number, "the answer was judged sufficient", accepted=True)
            queries = self._next(shown)
            if not queries:
                return self._concluded(number, "there was no new sub-question")
            query, (step,) = queries[0], self._planned(number, queries)
            new = self._retrieved(query, step)
            if self._refining:
                self._refined(query, step, new)
        return self._concluded(most, "the last round")

    def _answered(self, number: int, shown: Shown) -> str:
        """Ask for an answer in free text, and return it; "Unknown" if there is none.

        If it stands in a passage, the sentence that contains it becomes its quote.
        """
        prompt = self._prompt("plain_answer", shown, attempts=self._attempts)
        read: QuotedAnswer | None
        (read,) = self._ask([prompt], read_plain_answer)
        if read is not None:
            passages = [each["sentences"] for each in shown_passages(shown.passages, self._corpus)]
            read = QuotedAnswer(read.answers, read.response, tuple(_quotes(read, passages)))
        reply = self._recorded(number, read, shown)
        return reply.read.response if reply.read.answers else "Unknown"

    def _sufficient(self, number: int, shown: Shown, words: str) -> bool:
        """Ask whether the evidence suffices; it never does for an unknown answer."""
        (read,) = self._ask([self._prompt("sufficient", shown, answer=words)], read_verdict)
        accepted = bool(read) and words != "Unknown"
        self._judged(number, "unparsed" if read is None else "yes" if read else "no", Reflection(accepted))
        return accepted

    def _next(self, shown: Shown) -> list[str]:
        """Return the queries of the next round: one sub-question, or the question itself without evolving queries."""
        if not self._evolving:
            return [self.question]
        return distinct_questions(self._evolved(shown).questions, [self.question, *self._asked])[:1]

    def _retrieved(self, query: str, step: int) -> list[Piece]:
        """Find the best pieces of all kinds, and the facts of the entities that keywords name; return the new ones."""
        found = [*self._search.nodes(query, step), *self._search.facts_of(self._keywords(query), query, step)]
        new = [piece for piece in dict.fromkeys(found) if piece.iri not in self._pool]
        self._pool.update((piece.iri, piece) for piece in new)
        self.subgraph.add(step, (), [piece for piece in new if piece.kind == "statement"])
        return new

    def _keywords(self, query: str) -> tuple[str, ...]:
        """Ask for keywords of a query, once."""
        most = self._own.keywords
        if not most or "statement" not in self._kinds or not self._search.text.count("statement"):
            return ()
        if query not in self._seen_keywords:
            prompt = self.resources.prompts.prompt("tog3/keywords", "plan", question=query, most=most)
            (read,) = self._ask([prompt], partial(read_keywords, most=most))
            self._seen_keywords[query] = read or ()
        return self._seen_keywords[query]

    def _reranked(self, step: int) -> Shown:
        """Keep the best of all pieces and facts found so far, compared with the question."""
        stored = [
            piece for piece in self._pool.values() if piece.kind != "statement" or piece.iri in self.subgraph.facts
        ]
        nodes: list[Node] = [*self.subgraph.local, *stored]
        if self._own.rerank == "similarity":
            texts = [fact_line(each, {}) if isinstance(each, LocalFact) else each.text for each in nodes]
            scores = text_similarity(self.resources.encoder)(self.question, texts)
            nodes = [nodes[at] for at in np.argsort(-scores, kind="stable")]
        best = nodes[: self._own.keep]
        self._kept.update(dict.fromkeys(best))
        iris = tuple(each.chunk if isinstance(each, LocalFact) else each.iri for each in best)
        self.trace.record(PiecesKept(step=step, pieces=iris))
        return self._shown(best)

    def _shown(self, nodes: Iterable[Node]) -> Shown:
        listed = list(nodes)
        pieces = [each for each in listed if isinstance(each, Piece)]
        chunks = [piece for piece in pieces if piece.kind == "chunk"]
        facts = tuple(each for each in listed if isinstance(each, LocalFact) or each.kind == "statement")
        summaries = tuple(piece for piece in pieces if piece.kind == "community")
        same = tuple(self.subgraph.same)
        return Shown(tuple(within_tokens(chunks, self._own.context)), facts, summaries, same)

    def _refined(self, query: str, step: int, new: Sequence[Piece]) -> None:
        """Ask for edits of the facts found by a sub-question; new passages, or else the kept ones, are shown."""
        found = [piece for piece in self._kept if isinstance(piece, Piece)]
        facts = [each for each in dict.fromkeys((*new, *found)) if each.iri in self.subgraph.facts]
        chunks = [each for each in new if each.kind == "chunk"] or [each for each in found if each.kind == "chunk"]
        if not facts and not chunks:
            return
        prompt = self.resources.prompts.prompt(
            "tog3/refine",
            "refine",
            question=self.question,
            sub_question=query,
            number=step,
            facts=[fact.text for fact in facts],
            passages=shown_passages(chunks, self._corpus),
            quoted=False,
        )
        (read,) = self._ask([prompt], partial(read_refinement, facts=len(facts), passages=len(chunks)))
        self.trace.record(self.subgraph.edit(step, read or Refinement(), facts, chunks, quoted=False))

    def _concluded(self, number: int, why: str, *, accepted: bool = False) -> Outcome:
        """Ask for the final answer from all pieces that were kept."""
        kept = [
            each
            for each in self._kept
            if isinstance(each, LocalFact) or each.kind != "statement" or each.iri in self.subgraph.facts
        ]
        outcome = self._final(number, why, self._shown(kept), accepted=accepted)
        notes = (NO_CROSS_ENCODER,) if self._own.rerank == "similarity" else ()
        return Outcome(outcome.reply, outcome.reason, (*outcome.notes, *notes))


def _quotes(read: QuotedAnswer, passages: Sequence[Sequence[str]]) -> Iterator[Support]:
    """Yield the first sentence that contains each answer."""
    for name in read.answers:
        places = ((at, sentence) for at, sentences in enumerate(passages) for sentence in sentences)
        found = next(((at, sentence) for at, sentence in places if find_name(sentence, name)), None)
        if found is not None:
            yield Support(read.response, *found)
