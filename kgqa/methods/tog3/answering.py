"""ToG-3 over a text corpus, with fewer prompts than published and answers whose quotes are checked.

A round asks for an answer with quotes, and then for a verdict and sub-questions in one prompt. What the sub-questions
find is refined by one prompt for each of them, all in one batch. Calls, without those that are asked again, if s
prompts refine the graph: 2r + s if an answer is accepted in round r, one less in the last round, whose only prompt is
the final one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.llm.replies.reply import reply_of
from kgqa.methods.evidence import CheckedReply, Exhibits
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, RoundsOutcome, answer_in_rounds, in_rounds, outcome
from kgqa.methods.tog3.exploration import Exploration, FoundPieces, best, retrieve, reworded
from kgqa.methods.tog3.replies import ANSWER, NOT_SUFFICIENT, Reflection, sufficient_reply, turn_reply
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.text.words import normalise
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
    return answer_in_rounds("tog3", Tog3Search(resources, trace, question), run, best)


@dataclass
class Tog3Search(Exploration):
    """The state of one question.

    Attributes:
        refined: The passages that a prompt for edits of the graph has shown.
        reflection: The verdict that came with the last answer.
        accepted: The accepted answer, why the search ends with it, and notes.
    """

    refined: set[str] = field(default_factory=set)
    reflection: Reflection | None = None
    accepted: tuple[CheckedReply[Piece], str, tuple[str, ...]] | None = None

    @property
    def shown(self) -> Exhibits[Piece]:
        """The evidence as prompts show it."""
        return Exhibits(self.corpus, self.subgraph.shown(self.own.context, passages="chunk" in self.kinds))


def run(state: Tog3Search) -> RoundsOutcome:
    """Ask in rounds until an answer is accepted or nothing new is found; then for a final answer."""
    if not any(retrieve(state, [state.question], [0])):
        queries = reworded(state)
        if not queries or not any(retrieve(state, queries, state.numbered(0, queries))):
            state.stopped(1, "nothing was found")
            return RoundsOutcome(reason=NOTHING_FOUND)
    number, why = in_rounds(state, range(1, state.own.rounds), respond, judge, evolve)
    if state.accepted is None:
        return state.final(number, why or "the last round", state.shown)
    reply, why, notes = state.accepted
    if state.is_long:  # a report counts if it proves an answer
        final = state.final(number, why, state.shown, accepted=True)
        proven = final.reply is not None and final.reply.supported and final.accepted
        return final if proven else outcome(reply, *notes, UNCHANGED)
    state.stopped(number, why)
    return outcome(reply, *notes)


def respond(state: Tog3Search, number: int) -> CheckedReply[Piece]:
    """Ask for an answer; with `tog3.judge=with-answer`, the reply contains the verdict and sub-questions, too."""
    shown = state.shown
    if state.own.judge == "separate":
        read = state.say("answer", shown, quoted_reply(len(shown), ANSWER), attempts=state.attempts)
        return state.recorded(number, read, shown)
    turn = state.say("turn", shown, turn_reply(len(shown)), most=state.own.subqueries)
    read, reflection = turn or (None, NOT_SUFFICIENT)
    reply = state.recorded(number, read, shown)
    state.reflection = reflection if reply.supported else replace(reflection, verdict="NO")
    verdict = "unparsed" if turn is None else reflection.verdict.lower()
    state.judged(number, verdict, reflection.missing, accepted=state.reflection.sufficient)
    return reply


def judge(state: Tog3Search, number: int, reply: CheckedReply[Piece]) -> Reflection | None:
    """Return what is missing; None if the answer holds, or was given before."""
    before = state.supported[-2:-1] if reply.supported else []
    if before and {*map(normalise, before[0].answers)} == {*map(normalise, reply.answers)}:
        state.accepted = reply, "the same answer with verified quotes again", (REPEATED,)
        return None
    reflection = state.reflection or reflect(state, number, reply)
    if reflection.sufficient:
        state.accepted = reply, "the answer was judged sufficient", ()
        return None
    if reflection.missing:
        state.attempts[-1] += f" (not accepted: {reflection.missing})"
    return reflection


def reflect(state: Tog3Search, number: int, reply: CheckedReply[Piece]) -> Reflection:
    """Ask whether the answer holds and what is missing; an answer without a verified quote is not judged."""
    evolving = state.own.evolve_query == "on"
    if not reply.supported:
        return state.evolved(state.shown) if evolving else NOT_SUFFICIENT
    words = reply.words
    answer = f"{words} ({reply.response})" if reply.response not in ("", words) else words
    if evolving:
        read = state.say("reflect", state.shown, reply_of(Reflection), answer=answer, most=state.own.subqueries)
    else:
        read = state.say("sufficient", state.shown, sufficient_reply(), answer=answer)
    reflection = read or NOT_SUFFICIENT
    missing = "" if reflection.sufficient else reflection.missing
    state.judged(number, reflection.verdict.lower() if read else "unparsed", missing, accepted=reflection.sufficient)
    return reflection


def evolve(state: Tog3Search, number: int, reflection: Reflection) -> str:
    """Search by the sub-questions and refine what they find; return why the search ends, "" if it goes on."""
    queries = [state.question]
    if state.own.evolve_query == "on":
        queries = state.new_questions(reflection)
    if not queries:
        return "all sub-questions were asked before" if reflection.questions else "there was no sub-question"
    found = retrieve(state, queries, state.numbered(number, queries))
    state.fruitless.update(query for query, each in zip(queries, found) if not each.new)
    edited = state.own.evolve_graph == "on" and construct(state, found)
    return "" if edited or any(each.new for each in found) else "nothing new was found"


def construct(state: Tog3Search, found: Sequence[FoundPieces]) -> bool:
    """Refine what sub-questions found in passages that no prompt for edits has shown; return whether this did more."""
    asked = []
    for each in found:
        passages = [piece for piece in each.passages if piece.iri not in state.refined]
        state.refined.update(piece.iri for piece in passages)
        held = {normalise(fact.text): fact for fact in each.facts if fact.iri in state.subgraph.facts}
        asked += [(each.step, list(held.values()), passages)] if passages else []
    return state.construct(asked, quoted=True)
