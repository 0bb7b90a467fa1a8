"""Pairwise comparison of responses by a language model, in both orders, and Elo ratings.

Follows Think-on-Graph 3.0, appendices E and F.3. The dimensions are comprehensiveness, diversity, empowerment and
overall. A formula converts win rates against a reference to Elo ratings, so the ratings need no K factor and no order
of games.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.evaluation.judges.responses import NO_RESPONSE
from kgqa.llm.asking import ask
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import choice

PAIR_DIMENSIONS = ("comprehensiveness", "diversity", "empowerment", "overall")
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
    """The winner of a pair with the responses shown in the original order and in swapped order.

    `straight`, `swapped`: the winner in the original numbering of the pair, None if the reply was unreadable.
    """

    straight: Winner | None
    swapped: Winner | None

    @property
    def winner(self) -> Winner | None:
        """The winner in both orders; a tie if the orders disagree; None if a reply was unreadable."""
        if self.straight is None or self.swapped is None:
            return None
        return self.straight if self.straight == self.swapped else "tie"


@dataclass(frozen=True, slots=True)
class WinRate:
    """Wins, ties and losses of the first response over n pairs that were judged in both orders.

    `rate`: (wins + ties / 2) / n; `unparsed`: share of pairs left out because a reply was unreadable;
    `contradictory`: share of judged pairs whose winner changed with the order; `reads_first`: among the replies that
    name a winner, the share won by the response shown first (0.5 for an unbiased judge). Without pairs, all shares are
    None.
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
    dimensions: Sequence[str] = PAIR_DIMENSIONS,
    reask: int = 1,
) -> list[Mapping[str, PairVerdict]]:
    """Judge each pair in each dimension with two calls, one for each order of the responses.

    Raises:
        BudgetExhausted, ModelUnavailable: see `QuestionModels.complete`.
    """
    found: list[dict[str, PairVerdict]] = [{} for _ in pairs]
    for dimension in dimensions if pairs else ():
        asked = [_prompt(prompts, pair, dimension, swapped) for swapped in (False, True) for pair in pairs]
        replies = ask(models, prompts, asked, reask=reask)
        for index in range(len(pairs)):
            swapped = _OTHER.get(replies[index + len(pairs)] or "")
            found[index][dimension] = PairVerdict(replies[index], swapped)  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def win_rate(verdicts: Sequence[Mapping[str, PairVerdict]], dimension: str) -> WinRate:
    """Compute how often the first response wins in a dimension."""
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


def elo_ratings(rates: Mapping[str, float | None], *, reference: str) -> dict[str, float | None]:
    """Compute Elo ratings from win rates against a reference system.

    The rating is `REFERENCE_RATING` - 400 log10(1 / win rate - 1); see ToG-3, appendix F.3.

    Args:
        rates: win rate of each system against the reference, from 0 to 1; None if the system was not judged.
        reference: name of the reference system.

    Returns:
        The rating of each system, the reference first. The rating is None if the win rate is 0, 1 or None.
    """
    found: dict[str, float | None] = {reference: REFERENCE_RATING}
    for name, rate in rates.items():
        if rate is not None and not 0 <= rate <= 1:
            raise ValueError(f"A win rate must be from 0 to 1, not {rate}.")
        found[name] = REFERENCE_RATING - 400 * math.log10(1 / rate - 1) if rate and rate < 1 else None
    return found


_OTHER: Mapping[str, Winner] = {"first": "second", "second": "first", "tie": "tie"}


def _prompt(prompts: Prompts, pair: Pair, dimension: str, swapped: bool) -> TypedPrompt[str]:
    first, second = (text.strip() or NO_RESPONSE for text in (pair.first, pair.second))
    if swapped:
        first, second = second, first
    return prompts.prompt(
        "judge/pairwise",
        "judge",
        choice(_CHOICES).then(str.lower),
        question=pair.question,
        first=first,
        second=second,
        dimension=dimension,
    )
