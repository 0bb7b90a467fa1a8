"""Answer composition, the last step of System 1 (thesis, sections 3.3.1 and 4.1).

A language model composes the answer from all retained paths, or answers from its own knowledge. The answer counts as
grounded in the graph only if every item in the answer is an end node of a path.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.reply import Reply
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.tournament.asked import AskedQuestion
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_model, nodes_named
from kgqa.methods.tournament.shown_paths import ShownPath
from kgqa.model import Answer, Candidate, Named, Value
from kgqa.search.conditions.rows import read_rows
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import relation_words
from kgqa.trace import Composed

MOST_PATHS = 12
MOST_ENTITIES = 20
"""Most entities shown per path; the model's answers are looked up among all end nodes of the path."""
MOST_TRIPLES = 6
COUNTED = 1000
MOST_WITH_ROWS = 5
"""Most paths whose ends are shown with their fields."""


Retained = tuple[Candidate, tuple[Named, ...]]
"""A path for the answer prompt, with all its end nodes."""


def compose(asked: AskedQuestion, empty: Answer, candidates: Sequence[Candidate]) -> Answer:
    """Let the language model compose the answer from the paths kept in all hops.

    Args:
        asked: The question.
        empty: An answer without results, which provides the question, the topics and the notes.
        candidates: The paths, best first; at most `MOST_PATHS` are shown.

    Raises:
        BudgetExhausted: The question's budget is spent.
        ModelUnavailable: The language model failed.
        StoreError: The graph failed.
    """
    retained = _retained(asked, candidates, empty)[:MOST_PATHS]
    numbered = [item for _, ends in retained for item in ends[:MOST_ENTITIES]]
    replied = _ask(asked, retained, len(numbered))
    if not replied:
        unknown = "The language model found no answer in the paths, and knew no answer itself."
        return replace(empty, reason=UNREADABLE if replied is None else unknown)
    chosen = [numbered[each] for each in replied if isinstance(each, int)]
    texts = [each for each in replied if isinstance(each, str)]
    named = nodes_named(texts, (end for _, ends in retained for end in ends))
    asked.trace.record(Composed(said=replied[:50], resolved=named is not None))
    if named is None:
        texts = [numbered[each].name if isinstance(each, int) else each for each in replied]
        return answer_of_model(empty, texts, "Answered from the language model's own knowledge, not from the graph.")
    found = {item.value: item for item in (*chosen, *named)}
    # the path that leads to most of the answers comes first; among equals, the path with the fewest other end nodes
    fittest = sorted(retained, key=lambda each: (-len(found.keys() & {item.value for item in each[1]}), len(each[1])))
    paths = (candidate for candidate, _ in fittest)
    return answer_of_entities(asked.graph, empty, list(found.values()), paths, asked.trace)


def _retained(asked: AskedQuestion, candidates: Sequence[Candidate], empty: Answer) -> list[Retained]:
    """Return the candidates with paths that lead to nodes other than the question's topics."""
    ends_of = asked.graph.paths.ends(candidates, limit=COUNTED, tolerated=TOLERATED)
    every = without_failures(candidates, ends_of, asked.trace, worded=lambda each: each.words)
    topics = {topic.value for topic in empty.topics}
    found: list[tuple[Candidate, list[Value]]] = [
        (candidate, [value for value in ends.values if value not in topics - {candidate.path.topic}])
        for candidate, ends in every
    ]
    names = {item.value: item for item in asked.graph.named(value for _, values in found for value in values)}
    return [(candidate, tuple(names[value] for value in values)) for candidate, values in found if values]


def _ask(asked: AskedQuestion, retained: Sequence[Retained], size: int) -> tuple[int | str, ...] | None:
    """Return the model's answers, each an entity's number (from 0) or a name; None if the reply is unreadable."""
    view = asked.shown
    notes = {} if view.published else _notes_on_ends(asked, retained[:MOST_WITH_ROWS])
    paths: list[dict[str, Any]] = [
        {
            "path": " ".join(view.elements(candidate)),
            "entities": [
                view.name(item.value, item.name) + notes.get((candidate.identity, item.value), "")
                for item in ends[:MOST_ENTITIES]
            ],
            "more": max(len(ends) - MOST_ENTITIES, 0),
            "triples": _triples(asked, candidate) if view.published else [],
        }
        for candidate, ends in retained
    ]
    view.texts.update(text for path in paths for text in (*path["entities"], *path["triples"]))
    form = Reply(partial(read_numbered_answers, size=size))
    prompt = asked.resources.prompts.prompt("top/answer", "decide", form, question=view.question, paths=paths)
    return asked.resources.ask([prompt], asked.trace)[0]


def _notes_on_ends(asked: AskedQuestion, retained: Sequence[Retained]) -> dict[tuple[Hashable, Value], str]:
    """Return the fields that touch the question, as a judge sees them, by path and end."""
    rows = read_rows(asked.graph, [candidate for candidate, _ in retained], asked.trace)
    return {
        (each.candidate.identity, end): f" ({note})"
        for each in rows
        for end, note in ShownPath(asked.graph, asked.shown, each, asked.resources.encoder).notes.items()
        if note
    }


def _triples(asked: AskedQuestion, candidate: Candidate) -> list[str]:
    """Return some triples along the path, in words."""
    graph, view = asked.graph, asked.shown
    (walks,) = graph.paths.walks([candidate], limit=MOST_TRIPLES, seconds=5.0, tolerated=TOLERATED)
    if isinstance(walks, TOLERATED):
        return []
    nodes = dict.fromkeys(node for walk in walks for node in (candidate.path.topic, *walk))
    names = {item.value: view.name(item.value, item.name) for item in graph.named(nodes)}
    texts = dict.fromkeys(
        f"{names.get(first, '?')}; {relation_words(relation, graph.schema, graph.tables.relation_labels)}; "
        f"{names.get(second, '?')}"
        for walk in walks
        for first, relation, second in candidate.path.triples_along(walk)
    )
    return list(texts)[:MOST_TRIPLES]
