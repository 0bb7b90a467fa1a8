"""Template questions: random paths of one to three edges, worded with the names of their relations and types.

A ranker that learns from the questions of one data set learns its habits too, such as a preference for short paths.
Template questions over graphs and ontologies counteract this: their paths have all lengths, and each is compared with
paths that differ from it in one respect.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kgqa.errors import StoreTimeout
from kgqa.training.sources import MAX_EDGES, Source, Steps

EACH = 6
"""How many questions are made of the paths of one start."""
OTHERS = 100
"""How many random paths of the start a question's path is compared with, at most."""
NEAR = 20
"""How many longer paths, and how many paths with another last step, it is compared with, at most."""
FRAMES = ("what is {}?", "what are {}?", "which is {}?", "who is {}?", "name {}", "{}?", "tell me {}")
FORWARD = ("the {0} of {1}", "{1}'s {0}", "the {0} that {1} has", "{1} {0}")
BACKWARD = ("the {2} that has {1} as {0}", "the {2} whose {0} is {1}", "the {2} with {0} {1}", "what {1} is the {0} of")
STARTS = ("", "", "it", "the {}", "this {}")
"""The topic; its name is removed from questions, and only its type may remain."""


def templates(source: Source, count: int, draw: random.Random) -> Iterator[tuple[str, list[Steps]]]:
    """Yield at most `count` questions, each with distinct paths of which the first is its gold path.

    Raises:
        StoreError: The graph of the source cannot be read.
    """
    made = 0
    for start in source.starts(draw, count):
        try:
            pool = source.paths(start)
            by_length = {n: [path for path in pool if len(path) == n] for n in range(1, MAX_EDGES + 1)}
            for _ in range(EACH if len(pool) > 1 else 0):
                path, siblings = draw.choice(by_length[draw.randint(1, MAX_EDGES)] or pool), []
                further = [(*path, step) for step in source.onward(start, path)]
                if further and len(path) == MAX_EDGES and draw.random() < 0.5:
                    path, siblings = draw.choice(further), further
                    further = [(*path, step) for step in source.onward(start, path)]
                others = [each for paths, most in ((pool, OTHERS), (siblings, NEAR), (further, NEAR))
                          for each in draw.sample(paths, min(most, len(paths)))]  # fmt: skip
                yield question_of(path, source, draw), list(dict.fromkeys([path, *variants(path), *others]))
                made += 1
                if made == count:
                    return
        except StoreTimeout:
            continue


def question_of(path: Steps, source: Source, draw: random.Random) -> str:
    """Word a path as a question without the name of its topic."""
    type_ = source.type_words(path[0].reversed())
    text = draw.choice(STARTS if type_ else STARTS[:3]).format(type_)
    for step in path:
        forms = FORWARD if step.direction == "out" else BACKWARD
        text = draw.choice(forms).format(source.words(step.relation), text, source.type_words(step) or "thing")
    return " ".join(draw.choice(FRAMES).format(text).split())


def variants(path: Steps) -> list[Steps]:
    """Return paths with two neighbouring steps swapped, without the first or last step, or with a step turned round."""
    pairs = range(len(path) - 1)
    swapped = [(*path[:at], path[at + 1], path[at], *path[at + 2 :]) for at in pairs]
    shorter = [path[1:], path[:-1]] if pairs else []
    turned = [(*path[:at], step.reversed(), *path[at + 1 :]) for at, step in enumerate(path)]
    return [*swapped, *shorter, *turned]
