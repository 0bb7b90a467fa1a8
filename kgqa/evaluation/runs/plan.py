"""What a run asks: the plan given by the user, and the questions it selects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import get_args

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.registry import dataset_questions, iter_dataset
from kgqa.evaluation.datasets.sampling import QuestionIds, sample_of, shard
from kgqa.evaluation.runs.run_files import RunError

Topics = OneOf["gold", "linked"]
DEFAULT_CONCURRENCY = 8
_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")


@dataclass(frozen=True)
class RunPlan:
    """What a run is asked to do, apart from its settings.

    `dataset`: a question file or a name, as for --dataset; `topics`: `gold` gives the topic entities of the data set,
    `linked` finds them in the question; `sample`: number of questions drawn with `seed`; `shard`: `1/4` for the first
    of four parts; `concurrency`: questions in flight, 8 by default; `losses`: also find out where right answers were
    lost; `budget`: USD for all runs started together; `keep_going`: continue although graph or model no longer reply.

    Raises:
        SettingsError: a value is not one of these.
    """

    dataset: str
    topics: Topics = "gold"
    sample: int | None = None
    seed: int = 0
    shard: str = ""
    concurrency: int | None = None
    losses: bool = False
    budget: float | None = None
    keep_going: bool = False

    def __post_init__(self) -> None:
        if self.topics not in get_args(Topics):
            raise SettingsError(f"topics must be {' or '.join(get_args(Topics))}, not {self.topics!r}.")
        if self.concurrency is not None and self.concurrency < 1:
            raise SettingsError(f"concurrency must be at least 1, not {self.concurrency}.")

    @property
    def in_flight(self) -> int:
        """Questions asked at once."""
        return self.concurrency or DEFAULT_CONCURRENCY


@dataclass(frozen=True)
class Selection:
    """The questions of a run, and of all shards together; the same lists without shards."""

    questions: Sequence[GoldQuestion]
    all_shards: Sequence[GoldQuestion]


def select_questions(plan: RunPlan) -> Selection:
    """Read the questions of a plan and make their ids distinct, because predictions are kept by id.

    Raises:
        QuestionFileError: the data set cannot be read.
        RunError: there is no such shard, or no question is left.
    """
    if plan.sample is None:
        whole = distinct(dataset_questions(plan.dataset))
    else:
        ids = QuestionIds()
        whole = sample_of(ids.recorded(iter_dataset(plan.dataset)), plan.sample, plan.seed)
        if ids.repeated():
            whole = sample_of(ids.made_distinct(iter_dataset(plan.dataset)), plan.sample, plan.seed)
    questions = shard(whole, *parse_shard(plan.shard)) if plan.shard else whole
    if not questions:
        raise RunError(f"{plan.dataset} has no question for this sample and shard. Choose others: --sample, --shard")
    return Selection(questions, whole)


def parse_shard(text: str) -> tuple[int, int]:
    """Read `1/4` as the numbers 1 and 4.

    Raises:
        RunError: the text does not name a shard.
    """
    match = _SHARD.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise RunError(f"{text} is not a shard. The first of four is --shard 1/4")
    return int(match[1]), int(match[2])


def distinct(questions: Sequence[GoldQuestion]) -> list[GoldQuestion]:
    """Make ids distinct: `#2`, `#3`, ... is appended to repeated ones."""
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
