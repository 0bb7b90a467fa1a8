"""Which questions a run asks: those of its data set, or a sample of them, or one part of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.runs.manifest import Plan
from kgqa.evaluation.runs.run_files import RunError

_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")


def chosen_questions(plan: Plan) -> tuple[list[GoldQuestion], list[GoldQuestion]]:
    """The questions of a plan, and those of all its parts; ids are made distinct, because answers are kept by them.

    Raises:
        QuestionFileError: they cannot be read. RunError: there is no such part.
    """
    from kgqa.evaluation.datasets.registry import dataset_questions, iter_dataset
    from kgqa.evaluation.datasets.sampling import Ids, sample_of, shard

    if plan.sample is None:
        whole = distinct(dataset_questions(plan.dataset))
    else:
        ids = Ids()
        whole = sample_of(ids.noted(iter_dataset(plan.dataset)), plan.sample, plan.seed)
        if ids.repeated():
            whole = sample_of(ids.made_distinct(iter_dataset(plan.dataset)), plan.sample, plan.seed)
    questions = shard(whole, *part_of(plan.shard)) if plan.shard else whole
    if not questions:
        raise RunError(f"{plan.dataset} leaves no question to ask.")
    return questions, whole


def part_of(shard: str) -> tuple[int, int]:
    """`1/4` as numbers.

    Raises:
        RunError: it is no part.
    """
    match = _SHARD.fullmatch(shard)
    if not match or int(match[1]) > int(match[2]):
        raise RunError(f"{shard} is no part: --shard 1/4 is the first of four.")
    return int(match[1]), int(match[2])


def distinct(questions: Sequence[GoldQuestion]) -> list[GoldQuestion]:
    """The same questions, a number added to an id that came before."""
    seen: Counter[str] = Counter()
    taken = {question.id for question in questions}
    found = []
    for question in questions:
        seen[question.id] += 1
        ident, number = question.id, seen[question.id]
        while number > 1 and ident in taken:
            ident, number = f"{question.id}#{number}", number + 1
        taken.add(ident)
        found.append(question if ident == question.id else replace(question, id=ident))
    return found
