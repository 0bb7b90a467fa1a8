"""Metrics on texts: what the field calls EM, containment, token F1 and Rouge-L.

None of these compares answers: they compare characters or words, so each can be won by an answer that is wrong.
docs/metrics.md says how.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kgqa.words import normalise

SHORTEST = 3
"""A prediction of fewer characters that passes because it lies within a gold answer says nothing."""
MOST_TOKENS = 20_000
_ARTICLES = frozenset(("a", "an", "the"))
# scripts that put no blanks between words: a character is a token
_UNSPACED = re.compile("([\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def tokens(text: str) -> list[str]:
    """The words of a text as `words.normalise` has them; of Chinese and Japanese the characters. At most
    `MOST_TOKENS`.
    """
    return _UNSPACED.sub(r" \1 ", normalise(text)).split()[:MOST_TOKENS]


def tog_clean(text: str) -> str:
    """Text as Think-on-Graph's evaluation compares it: no blanks at its ends, no spaces in it, lower case."""
    return text.strip().replace(" ", "").lower()


def tog_match(prediction: str, gold: Iterable[str]) -> bool:
    """Think-on-Graph's "exact match": prediction and some gold answer are equal, or one holds the other.

    The empty prediction lies within every gold answer, and "e" within three of four.
    """
    said = tog_clean(prediction)
    return any(said in answer or answer in said for answer in map(tog_clean, gold))


def tog_suspect(prediction: str, gold: Collection[str]) -> bool:
    """Whether `tog_match` holds only because the prediction is empty, too short, or a piece of a word, or a gold answer
    is a piece of one of its words ("US" of "Jesus").

    Not so where they are equal, where a gold answer is a run of whole words of the prediction, and where the prediction
    without its articles has `SHORTEST` characters or more and is such a run of a gold answer ("Obama" of "Barack Obama").
    """
    said = tog_clean(prediction)
    if not tog_match(prediction, gold) or (said and any(tog_clean(answer) == said for answer in gold)):
        return False
    words = tokens(prediction)
    if any(_within(tokens(answer), words) for answer in gold):
        return False
    bare = [word for word in words if word not in _ARTICLES]
    short = len("".join(bare)) < (SHORTEST if said.isascii() else 2)  # two Chinese characters are a word
    return short or not any(_within(bare, _bare(tokens(answer))) for answer in gold)


def substring_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether a gold answer is a piece of the prediction, both normalised: RoG's and GNN-RAG's "Hit"."""
    said = normalise(prediction)
    return any(wanted in said for each in gold if (wanted := normalise(each)))


def sub_em(prediction: str, gold: Iterable[str]) -> bool:
    """Whether a gold answer stands in the prediction as whole words (SubEM; GraphSearch, appendix F, equation 6, which
    compares characters).
    """
    said = f" {' '.join(tokens(prediction))} "
    return any(f" {' '.join(wanted)} " in said for each in gold if (wanted := tokens(each)))


def token_f1(prediction: str, gold: Iterable[str]) -> float:
    """The F1 of the words of a prediction and a gold text, each word as often as it occurs, articles left out
    (SQuAD, HippoRAG); of several gold texts the best.
    """
    said = Counter(_bare(tokens(prediction)))
    size = sum(said.values())
    best = 0.0
    for each in gold:
        wanted = Counter(_bare(tokens(each)))
        shared = sum(min(count, said[word]) for word, count in wanted.items())
        if shared:
            best = max(best, 2 * shared / (size + sum(wanted.values())))
    return best


def rouge_l(prediction: str, gold: Iterable[str]) -> tuple[float, float]:
    """Rouge-L (Lin 2004, section 3.1): F1 and recall of the longest common subsequence of words, of Chinese
    characters; of several gold texts the best of each. Recall is what Graph Counselor reports (section 3.1).
    """
    said = tokens(prediction)
    places = _places(said)
    best_f1 = best_recall = 0.0
    for each in gold:
        wanted = tokens(each)
        if common := _lcs(places, len(said), wanted):
            best_f1 = max(best_f1, 2 * common / (len(said) + len(wanted)))
            best_recall = max(best_recall, common / len(wanted))
    return best_f1, best_recall


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    return _lcs(_places(first), len(first), second)


def _places(items: Sequence[str]) -> dict[str, int]:
    """Where each item stands, a bit a place."""
    found: dict[str, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found


def _lcs(places: dict[str, int], size: int, other: Sequence[str]) -> int:
    """Bit-parallel (Hyyro 2004): a zero in `row` is a place of the first sequence where the length grows by one."""
    row = full = (1 << size) - 1
    for item in other:
        met = row & places.get(item, 0)
        row = ((row + met) | (row - met)) & full
    return size - row.bit_count()


def _bare(words: Sequence[str]) -> Sequence[str]:
    return [word for word in words if word not in _ARTICLES] or words


def _within(words: Sequence[str], whole: Sequence[str]) -> bool:
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(whole)} "
