"""The plan of a run, and the selection of its questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal as OneOf
from typing import get_args

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.registry import iter_dataset
from kgqa.evaluation.datasets.sampling import distinct_sample, shard
from kgqa.evaluation.runs.run_files import RunError
from kgqa.text.hints import Option

Topics = OneOf["gold", "linked"]
DEFAULT_CONCURRENCY = 8
MAX_ROLLOUTS = 256
_SHARD = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class RunPlan:
    """The options of a run, apart from its settings.

    `dataset`: source of questions, as for --dataset; `topics`: `gold` uses the topic entities of the data set, `linked`
    finds topic entities in the text of the question; `sample`: number of questions to draw with `seed`; `shard`: part
    of the questions, such as `1/4` for the first of four parts; `concurrency`: number of questions in flight, 8 by
    default; `losses`: also find the step at which right answers were lost; `budget`: maximum cost in USD of all runs
    started together; `keep_going`: continue if the graph or the language model stops replying; `rollouts`: how often
    each question is asked, each time with another seed of the language model; `ray`: address of a Ray cluster whose
    workers ask the questions (see `kgqa.cluster.open_cluster`), by default threads of this process ask them.

    Raises:
        SettingsError: an option has a value that is not allowed.
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
    rollouts: int = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.topics not in get_args(Topics):
            raise SettingsError(f"topics must be {' or '.join(get_args(Topics))}, not {self.topics!r}.")
        if self.concurrency is not None and self.concurrency < 1:
            raise SettingsError(f"concurrency must be at least 1, not {self.concurrency}.")
        if not 1 <= self.rollouts <= MAX_ROLLOUTS:
            raise SettingsError(f"rollouts must be from 1 to {MAX_ROLLOUTS}, not {self.rollouts}.")

    @property
    def in_flight(self) -> int:
        """Number of questions in flight."""
        return self.concurrency or DEFAULT_CONCURRENCY


@dataclass(frozen=True)
class Selection:
    """The questions of a run, and the questions of all shards together (the same list without shards)."""

    questions: Sequence[GoldQuestion]
    all_shards: Sequence[GoldQuestion]


def select_questions(plan: RunPlan) -> Selection:
    """Read the questions of a plan and make their ids distinct, because predictions are kept by id.

    Raises:
        QuestionFileError: the data set cannot be read.
        SettingsError: there is no such shard. RunError: no question is selected.
    """
    whole = distinct_sample(partial(iter_dataset, plan.dataset), plan.sample, plan.seed)
    questions = shard(whole, *parse_shard(plan.shard)) if plan.shard else whole
    if not questions:
        raise RunError(
            f"{plan.dataset} has no questions in this shard.",
            "Use fewer shards (",
            Option("shard"),
            ") or a larger sample (",
            Option("sample"),
            ")",
        )
    return Selection(repeated(questions, plan.rollouts), repeated(whole, plan.rollouts))


def repeated(questions: Sequence[GoldQuestion], rollouts: int) -> Sequence[GoldQuestion]:
    """Return each question `rollouts` times in a row, with distinct ids; `group` is the id that they share."""
    if rollouts == 1:
        return questions
    ids = {question.id for question in questions}
    found = []
    for question in questions:
        for number in range(rollouts):
            ident = f"{question.id}~{number + 1}" if number else question.id
            while number and ident in ids:
                ident += "~"
            ids.add(ident)
            found.append(replace(question, id=ident, group=question.id, rollout=number))
    return found


def parse_shard(text: str) -> tuple[int, int]:
    """Convert a shard such as `1/4` to the numbers 1 and 4.

    Raises:
        SettingsError: the text is not a shard.
    """
    match = _SHARD.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        example = ("Write for example ", Option("shard", "1/4"), " for the first of four parts")
        raise SettingsError(f"{text[:40]} is not a shard.", *example)
    return int(match[1]), int(match[2])
