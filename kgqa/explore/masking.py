"""Takes the topic's mention out of a question (thesis, section 3.4).

Embeddings rank relations best when the mention is left out altogether; placeholders for language models come
with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def drop_mentions(question: str, names: Iterable[str]) -> str:
    """The question without the literal mentions of these names, whatever their case; unchanged if nothing
    would be left of it."""
    text = question
    for name in sorted({name for name in names if name.strip()}, key=len, reverse=True):
        words = [re.escape(word) for word in name.split()]
        pattern = r"(?<!\w)" + r"[\s_]+".join(words) + r"(?:['’]s)?(?!\w)"
        text = re.sub(pattern, " ", text, flags=re.IGNORECASE)
    text = " ".join(text.split())
    return text if re.search(r"\w", text) else question
