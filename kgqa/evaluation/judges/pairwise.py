"""Two responses side by side: a language model says which is better, in both orders, and Elo ratings of many systems.

Think-on-Graph 3.0, appendices E and F.3: win rates in comprehensiveness, diversity, empowerment and overall, and from
the win rates against a reference a rating each. That is a formula, not a sequence of games: it has no K, and no order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.evaluation.judges.judging import NOTHING
from kgqa.llm.client import Prompt
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import read_choice
from kgqa.llm.replies.json_values import Reading

DIMENSIONS = ("comprehensiveness", "diversity", "empowerment", "overall")
REFERENCE_RATING = 1600.0
_CHOICES = ("FIRST", "SECOND", "TIE")
Winner = OneOf["first", "second", "tie"]


@dataclass(frozen=True)
class Pair:
    """Two responses to one question."""

    question: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Who won as the pair stands, and who won (of the pair as it stands) when it was shown the other way round; None
    where the reply could not be read.
    """

    straight: Winner | None
    swapped: Winner | None

    @property
    def winner(self) -> Winner | None:
        """Who won in both orders; a tie where they disagree; None unless both could be read."""
        if self.straight is None or self.swapped is None:
            return None
        return self.straight if self.straight == self.swapped else "tie"


@dataclass(frozen=True, slots=True)
class WinRate:
    """Of n pairs that were judged in both orders how many the first response won, drew and lost; `rate` is wins and
    half the ties as a share, None of no pair. `unparsed`: the share of pairs left out because a reply could not be
    read. `contradictory`: the share of the judged whose winner changed with the order. `reads_first`: the share of all
    decided readings won by the response that was read first, 0.5 for a judge without that bias.
    """

    n: int
    wins: int
    ties: int
    losses: int
    rate: float | None
    unparsed: float | None
    contradictory: float | None
    reads_first: float | None


def judge_pairs(
    pairs: Sequence[Pair],
    *,
    models: QuestionModels,
    prompts: Prompts,
    dimensions: Sequence[str] = DIMENSIONS,
    reask: int = 1,
) -> list[Mapping[str, PairVerdict]]:
    """The verdict on each pair by dimension: two calls each, one with the order swapped.

    Raises:
        BudgetExhausted, ModelUnavailable: as `QuestionModels.complete`.
    """
    found: list[dict[str, PairVerdict]] = [{} for _ in pairs]
    for dimension in dimensions if pairs else ():
        asked = [_prompt(prompts, pair, dimension, swapped) for swapped in (False, True) for pair in pairs]
        said = ask_and_read(models, prompts, asked, [_read] * len(asked), reask=reask)
        for place in range(len(pairs)):
            swapped = _OTHER.get(said[place + len(pairs)] or "")
            found[place][dimension] = PairVerdict(said[place], swapped)  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def win_rate(verdicts: Sequence[Mapping[str, PairVerdict]], dimension: str) -> WinRate:
    """How often the first response wins in a dimension. Pairs without a verdict are counted, and stand for nothing."""
    known = [each[dimension] for each in verdicts if dimension in each]
    judged = [each for each in known if each.winner is not None]
    wins, ties, losses = (sum(each.winner == name for each in judged) for name in ("first", "tie", "second"))
    read_first = sum((each.straight == "first") + (each.swapped == "second") for each in judged)
    decided = sum((each.straight != "tie") + (each.swapped != "tie") for each in judged)
    changed = sum(each.straight != each.swapped for each in judged)
    return WinRate(
        n=len(judged),
        wins=wins,
        ties=ties,
        losses=losses,
        rate=(wins + ties / 2) / len(judged) if judged else None,
        unparsed=1 - len(judged) / len(known) if known else None,
        contradictory=changed / len(judged) if judged else None,
        reads_first=read_first / decided if decided else None,
    )


def elo_ratings(
    rates: Mapping[str, float | None], *, reference: str, at: float = REFERENCE_RATING
) -> dict[str, float | None]:
    """Elo ratings from win rates against one reference (ToG-3, appendix F.3): at - 400 log10(1 / rate - 1).

    Args:
        rates: of each system its win rate against the reference, from 0 to 1.

    Returns:
        The reference's own rating first. None for a system that won or lost everything, or was not judged: no number
        follows from that.
    """
    found: dict[str, float | None] = {reference: at}
    for name, rate in rates.items():
        if rate is not None and not 0 <= rate <= 1:
            raise ValueError(f"a win rate is from 0 to 1, not {rate}")
        found[name] = at - 400 * math.log10(1 / rate - 1) if rate and rate < 1 else None
    return found


def win_probability(rating: float, other: float) -> float:
    """The chance that a system of one rating beats another (ToG-3, appendix F.3)."""
    return 1 / (1 + 10 ** ((other - rating) / 400))


_OTHER: Mapping[str, Winner] = {"first": "second", "second": "first", "tie": "tie"}


def _prompt(prompts: Prompts, pair: Pair, dimension: str, swapped: bool) -> Prompt:
    first, second = (text.strip() or NOTHING for text in (pair.first, pair.second))
    if swapped:
        first, second = second, first
    messages = prompts.render("judge/pairwise", question=pair.question, first=first, second=second, dimension=dimension)
    return Prompt(messages, "judge", choices=_CHOICES)


def _read(text: str) -> Reading[str]:
    said = read_choice(text, options=_CHOICES)
    return Reading(None if said.value is None else said.value.lower(), said.repaired, said.problem)
