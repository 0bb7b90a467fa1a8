"""Metrics on texts: EM by containment, token F1 and Rouge-L.

They compare characters or words, not answers, so a wrong answer can score; docs/metrics.md shows how.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kgqa.words import normalise

SHORTEST = 3
"""Characters below which a prediction within a gold answer is suspect."""
MOST_TOKENS = 20_000
_ARTICLES = frozenset(("a", "an", "the"))
# scripts without blanks between words: each character is a token
_UNSPACED = re.compile("([\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def tokens(text: str) -> list[str]:
    """Split a text, normalised by `words.normalise`, into words, or characters for Chinese and Japanese.

    Returns at most `MOST_TOKENS`.
    """
    return _UNSPACED.sub(r" \1 ", normalise(text)).split()[:MOST_TOKENS]


def tog_clean(text: str) -> str:
    """Normalise text as Think-on-Graph's evaluation does: stripped, without spaces, lower case."""
    return text.strip().replace(" ", "").lower()


def tog_match(prediction: str, gold: Iterable[str]) -> bool:
    """Whether prediction and a gold answer are equal, or one contains the other: Think-on-Graph's "exact match".

    Every gold answer contains the empty prediction, and three of four contain "e".
    """
    text = tog_clean(prediction)
    return any(text in answer or answer in text for answer in map(tog_clean, gold))


def tog_suspect(prediction: str, gold: Collection[str]) -> bool:
    """Whether `tog_match` holds only by accident.

    The prediction is empty, too short, or a piece of a word; or a gold answer is a piece of one of its words ("US" in
    "Jesus"). No match is suspect if both are equal, if a gold answer is a sequence of whole words of the prediction,
    or if the prediction without articles has `SHORTEST` characters or more and is such a sequence of a gold answer
    ("Obama" in "Barack Obama").
    """
    text = tog_clean(prediction)
    if not tog_match(prediction, gold) or (text and any(tog_clean(answer) == text for answer in gold)):
        return False
    words = tokens(prediction)
    if any(_within(tokens(answer), words) for answer in gold):
        return False
    bare = [word for word in words if word not in _ARTICLES]
    short = len("".join(bare)) < (SHORTEST if text.isascii() else 2)  # two Chinese characters are a word
    return short or not any(_within(bare, _bare(tokens(answer))) for answer in gold)


def substring_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether a gold answer is a substring of the prediction, both normalised: RoG's and GNN-RAG's "Hit"."""
    text = normalise(prediction)
    return any(wanted in text for each in gold if (wanted := normalise(each)))


def sub_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether the prediction contains a gold answer as whole words (SubEM).

    GraphSearch, appendix F, equation 6 compares characters instead.
    """
    text = f" {' '.join(tokens(prediction))} "
    return any(f" {' '.join(wanted)} " in text for each in gold if (wanted := tokens(each)))


def token_f1(prediction: str, gold: Iterable[str]) -> float:
    """Compute the F1 of the words of a prediction and a gold text, the best over several gold texts.

    Words count as often as they occur, articles do not count (SQuAD, HippoRAG).
    """
    counts = Counter(_bare(tokens(prediction)))
    size = sum(counts.values())
    best = 0.0
    for each in gold:
        wanted = Counter(_bare(tokens(each)))
        shared = sum(min(count, counts[word]) for word, count in wanted.items())
        if shared:
            best = max(best, 2 * shared / (size + sum(wanted.values())))
    return best


def rouge_l(prediction: str, gold: Iterable[str]) -> tuple[float, float]:
    """Compute Rouge-L (Lin 2004, section 3.1): F1 and recall of the longest common subsequence of `tokens`.

    Of several gold texts the best of each counts. Graph Counselor reports the recall (section 3.1).
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


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence."""
    return _lcs(_places(first), len(first), second)


def _places(items: Sequence[str]) -> dict[str, int]:
    """Map each item to a bit mask of its positions."""
    found: dict[str, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found


def _lcs(places: dict[str, int], size: int, other: Sequence[str]) -> int:
    """Compute `lcs_length` bit-parallel (Hyyro 2004): a zero in `row` marks where the length grows by one."""
    row = full = (1 << size) - 1
    for item in other:
        met = row & places.get(item, 0)
        row = ((row + met) | (row - met)) & full
    return size - row.bit_count()


def _bare(words: Sequence[str]) -> Sequence[str]:
    return [word for word in words if word not in _ARTICLES] or words


def _within(words: Sequence[str], whole: Sequence[str]) -> bool:
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(whole)} "
