"""The judge: a language model that reads the rows of the best paths and says which path answers the question, and how.

Its verdict ends the search, adds conditions or an operation to a path, or lets the search go one hop on. It extends the
last decision of System 2 (thesis, section 4.2, step 6), which accepts or rejects one path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.path_verdicts import PathVerdict, VerdictKind, read_path_verdict
from kgqa.llm.replies.reply import Reply
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.replied_conditions import UnknownPart, replied_candidate
from kgqa.methods.tournament.shown_paths import ShownPaths
from kgqa.model import Candidate
from kgqa.model.conditions import Operation
from kgqa.search.conditions.rows import PathRows, read_rows
from kgqa.search.tolerance import TOLERATED
from kgqa.trace import Judged
from kgqa.trace.trace import Trace

MOST_PATHS = 5
"""Most paths in one prompt."""
MOST_PROMPTS = 4
"""Most prompts of the judge per question."""
MOST_EXTENSIONS = 2
"""Most hops beyond the depth of the search, along a path that leads towards the answer."""

Extend = Callable[[Candidate], list[Candidate]]
"""Returns the best extensions of a path by one hop."""


class Judge:
    """The judge of one question.

    Args:
        graph: The graph.
        view: The question as the language model sees it.
        resources: The resources of the run.
        trace: Records the verdicts.

    Attributes:
        accepted: The path that answers the question, with conditions and operation; None if there is none so far.
        focus: The path that leads towards the answer, according to the last verdict; None if there is none.
    """

    def __init__(self, graph: KnowledgeGraph, view: PromptView, resources: Resources, trace: Trace) -> None:
        self._graph = graph
        self._view = view
        self._resources = resources
        self._trace = trace
        self._asked: set[object] = set()
        self._rejected: set[object] = set()
        self.accepted: Candidate | None = None
        self.focus: Candidate | None = None

    def judge(self, candidates: Sequence[Candidate]) -> VerdictKind | None:
        """Ask about the best of the paths that were not rejected before.

        Returns:
            The verdict; None if there is nothing to ask about, or the reply cannot be used.

        Raises:
            BudgetExhausted: The question's budget is spent.
            ModelUnavailable: The language model failed.
            StoreError: The graph failed.
        """
        new = [each for each in candidates if each.identity not in self._rejected][:MOST_PATHS]
        key = tuple(each.identity for each in new)
        if not new or key in self._asked or len(self._asked) >= MOST_PROMPTS:
            return None
        self._asked.add(key)
        rows = _with_different_ends(read_rows(self._graph, new, self._trace))
        shown = ShownPaths(self._graph, self._view, rows, self._resources.encoder)
        if not shown.paths:
            return None
        form = Reply(partial(read_path_verdict, size=len(shown.paths))).then(partial(self._checked, shown=shown))
        prompt = self._resources.prompts.prompt(
            "top/judge",
            "decide",
            form,
            question=self._view.question,
            masked=self._view.masks,
            paths=[each.prompt for each in shown.paths],
        )
        verdict, chosen = self._resources.ask([prompt], self._trace)[0] or (None, None)
        self.focus = chosen if verdict == "missing" else None
        self.accepted = chosen if verdict == "complete" else None
        if verdict == "wrong":
            self._rejected |= {each.identity for each in new}
        self._trace.record(
            Judged(
                paths=tuple(each.candidate.words for each in shown.paths),
                verdict=verdict or "unparsed",
                path=chosen.words if chosen else None,
                conditions=len(chosen.conditions) if chosen else 0,
                operation=chosen.operation.kind if chosen and chosen.operation else None,
            )
        )
        return verdict

    def finish(self, candidates: Sequence[Candidate], extend: Extend) -> list[Candidate]:
        """Ask until a path is accepted or nothing is left to ask, and return the paths, best first.

        Args:
            candidates: The best paths of the search, best first.
            extend: Called with a path that leads towards the answer.
        """
        ranked = list(candidates)
        extensions = 0
        while self.accepted is None:
            pool = ranked
            if self.focus is not None:
                if extensions == MOST_EXTENSIONS:
                    break
                extensions += 1
                longer = extend(self.focus)
                ranked = list(dict.fromkeys([*longer, *ranked]))
                pool = longer or ranked
            if self.judge(pool) is None:
                break
        return ranked

    def _checked(self, verdict: PathVerdict, *, shown: ShownPaths) -> tuple[VerdictKind, Candidate | None]:
        """Return a verdict with its path; an `UnknownPart` is what is wrong with the reply."""
        if verdict.kind == "wrong":
            return "wrong", None
        chosen = replied_candidate(shown.paths[verdict.path or 0], verdict, self._view.topics_asked)
        if verdict.kind == "complete" and not self._has_answers(chosen):
            raise UnknownPart("No row meets all of these conditions; give others, or fewer.")
        return verdict.kind, chosen

    def _has_answers(self, chosen: Candidate) -> bool:
        """Return whether a path with new conditions has an answer; a question for a number or yes or no always has."""
        operation = chosen.operation
        if not chosen.conditions or (operation and operation.kind not in Operation.returns_ends):
            return True
        try:
            return bool(self._graph.paths.ends([chosen], limit=1)[0].values)
        except TOLERATED:
            return False


def _with_different_ends(every: Sequence[PathRows]) -> list[PathRows]:
    """Leave out paths with the same ends as a better path; of paths with more ends than were read, all stay."""
    found: dict[object, PathRows] = {}
    for each in every:
        found.setdefault(frozenset(each.ends) if each.complete else each.candidate.identity, each)
    return list(found.values())
