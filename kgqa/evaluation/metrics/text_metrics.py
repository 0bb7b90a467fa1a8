"""Metrics on texts: EM by containment, token F1 and Rouge-L.

These metrics compare characters or words. Wrong answers can score; docs/metrics.md gives examples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kgqa.text.words import normalise

SHORTEST = 3
"""Minimum number of characters for a prediction that is part of a gold answer; shorter predictions are suspect."""
MAX_TOKENS = 20_000
_ARTICLES = frozenset(("a", "an", "the"))
# scripts without spaces between words: each character is a token
_UNSPACED = re.compile("([\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def tokens(text: str) -> list[str]:
    """Normalise a text and split it into words; Chinese and Japanese are split into characters.

    Returns at most `MAX_TOKENS` tokens.
    """
    return _UNSPACED.sub(r" \1 ", normalise(text)).split()[:MAX_TOKENS]


def tog_clean(text: str) -> str:
    """Normalise text as Think-on-Graph's evaluation does: no spaces, lower case."""
    return text.strip().replace(" ", "").lower()


def tog_match(prediction: str, gold: Iterable[str]) -> bool:
    """Whether the prediction contains a gold answer or the reverse: Think-on-Graph's "exact match".

    This metric accepts wrong predictions: every gold answer contains the empty string, and three of four gold answers
    contain "e".
    """
    text = tog_clean(prediction)
    return any(text in answer or answer in text for answer in map(tog_clean, gold))


def tog_suspect(prediction: str, gold: Collection[str]) -> bool:
    """Whether `tog_match` holds only by accident.

    A match is an accident if the prediction is empty, too short, or a piece of a word, or if a gold answer is a piece
    of a word of the prediction ("US" in "Jesus"). A match is sound in three cases: both are equal; a gold answer is a
    sequence of whole words of the prediction; or the prediction without articles has at least `SHORTEST` characters
    and is a sequence of whole words of a gold answer ("Obama" in "Barack Obama").
    """
    text = tog_clean(prediction)
    if not tog_match(prediction, gold) or (text and any(tog_clean(answer) == text for answer in gold)):
        return False
    words = tokens(prediction)
    if any(_within(tokens(answer), words) for answer in gold):
        return False
    bare = [word for word in words if word not in _ARTICLES]
    short = len("".join(bare)) < (SHORTEST if text.isascii() else 2)  # two Chinese characters can be a whole name
    return short or not any(_within(bare, _bare(tokens(answer))) for answer in gold)


def substring_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether a gold answer is a substring of the prediction, both normalised.

    This is ToG-3's EM (appendix E), and RoG's and GNN-RAG's "Hit".
    """
    text = normalise(prediction)
    return any(wanted in text for each in gold if (wanted := normalise(each)))


def sub_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether the prediction contains a gold answer as whole words, both normalised."""
    text = f" {' '.join(tokens(prediction))} "
    return any(f" {' '.join(wanted)} " in text for each in gold if (wanted := tokens(each)))


def sub_em_raw(prediction: str, gold: Iterable[str]) -> bool:
    """Whether the prediction contains a gold answer character by character (GraphSearch, appendix F, equation 6)."""
    return any(each in prediction for each in gold if each.strip())


@dataclass(frozen=True, slots=True)
class TokenOverlap:
    """How well the words of a prediction and of a gold text agree.

    `em`: 1 if both have the same words in the same order. `precision`, `recall`: shared words / words of the
    prediction, and of the gold text.
    """

    em: float = 0.0
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0


def token_overlap(prediction: str, gold: Iterable[str]) -> TokenOverlap:
    """Compare the words of the prediction with those of each gold text, and return the comparison with the best F1.

    Repeated words count several times; articles are ignored (SQuAD, HippoRAG).
    """
    words = _bare(tokens(prediction))
    counts = Counter(words)
    best = TokenOverlap()
    for each in gold:
        wanted = _bare(tokens(each))
        shared = sum(min(count, counts[word]) for word, count in Counter(wanted).items())
        if shared:
            found = TokenOverlap(
                em=float(list(words) == list(wanted)),
                precision=shared / len(words),
                recall=shared / len(wanted),
                f1=2 * shared / (len(words) + len(wanted)),
            )
            best = max(best, found, key=lambda overlap: (overlap.f1, overlap.em))
    return best


def token_f1(prediction: str, gold: Iterable[str]) -> float:
    """Compute the best F1 between the words of the prediction and of each gold text; see `token_overlap`."""
    return token_overlap(prediction, gold).f1


def rouge_l(prediction: str, gold: Iterable[str]) -> tuple[float, float]:
    """Compute Rouge-L (Lin 2004, section 3.1): F1 and recall of the longest common subsequence of `tokens`.

    Each value is the best over all gold texts. Graph Counselor reports the recall (section 3.1).
    """
    words = tokens(prediction)
    places = _places(words)
    best_f1 = best_recall = 0.0
    for each in gold:
        wanted = tokens(each)
        if common := _lcs(places, len(words), wanted):
            best_f1 = max(best_f1, 2 * common / (len(words) + len(wanted)))
            best_recall = max(best_recall, common / len(wanted))
    return best_f1, best_recall


def _places(items: Sequence[str]) -> dict[str, int]:
    """Map each item to a bit mask of its positions."""
    found: dict[str, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found


def _lcs(places: dict[str, int], size: int, other: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence with bit operations (Hyyro 2004).

    Each zero bit in `row` stands for one item of the subsequence.
    """
    row = full = (1 << size) - 1
    for item in other:
        met = row & places.get(item, 0)
        row = ((row + met) | (row - met)) & full
    return size - row.bit_count()


def _bare(words: Sequence[str]) -> Sequence[str]:
    return [word for word in words if word not in _ARTICLES] or words


def _within(words: Sequence[str], whole: Sequence[str]) -> bool:
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(whole)} "
