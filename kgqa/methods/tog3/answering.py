"""ToG-3 over a text corpus, with fewer prompts than published and answers whose quotes are checked.

A round asks for an answer with quotes, and then for a verdict and sub-questions in one prompt. What the sub-questions
find is refined by one prompt for each of them, all in one batch. Calls, without those that are asked again, if s
prompts refine the graph: 2r + s if an answer is accepted in round r, one less in the last round, whose only prompt is
the final one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgqa.llm.replies.reply import reply_of
from kgqa.methods.evidence import CheckedReply, Exhibits, shown_passages
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, Outcome, answer_in_rounds, in_rounds
from kgqa.methods.tog3.exploration import Exploration, best, outcome
from kgqa.methods.tog3.replies import (
    NOTHING_SAID,
    Refinement,
    Reflection,
    answer_reply,
    sufficient_reply,
    turn_reply,
)
from kgqa.methods.tog3.retrieval import Found, reworded, search
from kgqa.methods.tog3.subgraph import shown_evidence
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.text.words import normalise
from kgqa.trace import PiecesKept
from kgqa.trace.trace import Trace

REPEATED = "The answer was given twice with verified quotes; no further evidence was searched for."
UNCHANGED = "The report does not answer the question; this is the answer that was accepted before."


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by ToG-3; arguments and errors as in `top.answer`.

    Topics are ignored. If the budget is spent, the last answer with a verified quote is returned.
    """
    return answer_in_rounds("tog3", Search(question, resources, trace), run, best)


@dataclass
class Search(Exploration):
    """The state of one question.

    Attributes:
        refined: The passages that a prompt for edits of the graph has shown.
        reflection: The verdict that came with the last answer.
        accepted: The accepted answer, why the search ends with it, and a note.
    """

    refined: set[str] = field(default_factory=set)
    reflection: Reflection | None = None
    accepted: tuple[CheckedReply[Piece], str, str] | None = None

    @property
    def shown(self) -> Exhibits[Piece]:
        """The evidence as prompts show it."""
        pieces = shown_evidence(self.subgraph, tokens=self.own.context, passages="chunk" in self.kinds)
        return Exhibits(self.corpus, pieces)


def run(state: Search) -> Outcome:
    """Ask in rounds until an answer is accepted or nothing new is found; then for a final answer."""
    if not any(retrieve(state, [state.question], [0])):
        queries = reworded(state)
        if not queries or not any(retrieve(state, queries, state.numbered(0, queries))):
            state.stopped(1, "nothing was found")
            return Outcome(reason=NOTHING_FOUND)
    number, why = in_rounds(state, range(1, state.own.rounds), respond, judge, evolve)
    if state.accepted is None:
        return state.final(number, why or "the last round", state.shown)
    reply, why, note = state.accepted
    notes = [note] if note else []
    if state.is_long:  # a report counts if it proves an answer
        final = state.final(number, why, state.shown, accepted=True)
        proven = final.reply is not None and final.reply.supported and final.accepted
        return final if proven else outcome(reply, *notes, UNCHANGED)
    state.stopped(number, why)
    return outcome(reply, *notes)


def retrieve(state: Search, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
    """Search for queries, and keep what is best; `new` says what the graph did not contain."""
    found = []
    for step, each in zip(steps, search(state, queries, steps)):
        state.trace.record(PiecesKept(step=step, pieces=tuple(piece.iri for piece in each.passages)))
        new = state.subgraph.add(step, each.passages, each.facts, each.summaries)
        found.append(replace(each, new=bool(new)))
    return found


def respond(state: Search, number: int) -> CheckedReply[Piece]:
    """Ask for an answer; with `tog3.judge=with-answer`, the reply contains the verdict and sub-questions, too."""
    shown = state.shown
    if state.own.judge == "separate":
        prompt = state.shows("answer", shown, answer_reply(len(shown)), attempts=state.attempts)
        (read,) = state.ask([prompt])
        return state.recorded(number, read, shown)
    (turn,) = state.ask([state.shows("turn", shown, turn_reply(len(shown)), most=state.own.subqueries)])
    read, said = turn or (None, NOTHING_SAID)
    reply = state.recorded(number, read, shown)
    state.reflection = said if reply.supported else replace(said, verdict="NO")
    state.judged(number, "unparsed" if turn is None else said.verdict.lower(), state.reflection)
    return reply


def judge(state: Search, number: int, reply: CheckedReply[Piece]) -> Reflection | None:
    """Return what is missing; None if the answer holds, or was given before."""
    before = state.supported[-2] if reply.supported and len(state.supported) > 1 else None
    if before is not None and _same(before, reply):
        state.accepted = reply, "the same answer with verified quotes again", REPEATED
        return None
    reflection = reflect(state, number, reply) if state.reflection is None else state.reflection
    if reflection.sufficient:
        state.accepted = reply, "the answer was judged sufficient", ""
        return None
    if reflection.missing:
        state.attempts[-1] += f" (not accepted: {reflection.missing})"
    return reflection


def _same(first: CheckedReply[Piece], second: CheckedReply[Piece]) -> bool:
    return {*map(normalise, first.answers)} == {*map(normalise, second.answers)}


def reflect(state: Search, number: int, reply: CheckedReply[Piece]) -> Reflection:
    """Ask whether the answer holds and what is missing; an answer without a verified quote is not judged."""
    evolving = state.own.evolve_query == "on"
    if not reply.supported:
        return state.evolved(state.shown) if evolving else NOTHING_SAID
    words = reply.words
    given = reply.response or words
    answer = f"{words} ({given})" if given != words else words
    orders = _orders(state.shown, state.own.votes)
    form, more = (reply_of(Reflection), {"most": state.own.subqueries}) if evolving else (sufficient_reply(), {})
    name = "reflect" if evolving else "sufficient"
    read = state.ask([state.shows(name, each, form, answer=answer, **more) for each in orders])
    sufficient = 2 * sum(each is not None and each.sufficient for each in read) > len(read)
    against = next((each for each in read if each is not None and not each.sufficient), NOTHING_SAID)
    reflection = Reflection(verdict="YES") if sufficient else against
    state.judged(number, "yes" if sufficient else "no" if any(read) else "unparsed", reflection)
    return reflection


def _orders(shown: Exhibits[Piece], votes: int) -> list[Exhibits[Piece]]:
    """Return the evidence for each vote: the passages as they are, reversed, and with their halves exchanged."""
    passages, half = shown.passages, len(shown.passages) // 2
    orders = (passages, passages[::-1], passages[half:] + passages[:half])
    return [Exhibits(shown.corpus, [*order, *shown.facts]) for order in orders[:votes]]


def evolve(state: Search, number: int, reflection: Reflection) -> str:
    """Search by the sub-questions and refine what they find; return why the search ends, "" if it goes on."""
    queries = [state.question]
    if state.own.evolve_query == "on":
        queries = state.new_questions(reflection)
    if not queries:
        return "all sub-questions were asked before" if reflection.questions else "there was no sub-question"
    steps = state.numbered(number, queries)
    found = retrieve(state, queries, steps)
    state.fruitless.update(query for query, each in zip(queries, found) if not each.new)
    edited = state.own.evolve_graph == "on" and construct(state, queries, steps, found)
    return "" if edited or any(each.new for each in found) else "nothing new was found"


def construct(state: Search, queries: Sequence[str], steps: Sequence[int], found: Sequence[Found]) -> bool:
    """Ask for edits of the evidence graph, one prompt for each sub-question with passages that none has shown.

    Returns:
        Whether anything was added or merged.
    """
    asked, prompts = [], []
    for query, step, each in zip(queries, steps, found):
        passages = [piece for piece in each.passages if piece.iri not in state.refined]
        state.refined.update(piece.iri for piece in passages)
        if not passages:
            continue
        held = {normalise(fact.text): fact for fact in each.facts if fact.iri in state.subgraph.facts}
        asked.append((step, list(held.values()), passages))
        shown = {"passages": shown_passages(passages, state.corpus), "facts": [fact.text for fact in held.values()]}
        values = {"sub_question": query, "number": step, "quoted": True, **shown}
        prompts.append(state.prompt("tog3/refine", "refine", reply_of(Refinement), **values))
    replies = state.ask(prompts)
    edits = [
        state.subgraph.edit(step, read or Refinement(), facts, passages)
        for (step, facts, passages), read in zip(asked, replies)
    ]
    for edit in edits:
        state.trace.record(edit)
    return any(edit.added or edit.merged for edit in edits)
