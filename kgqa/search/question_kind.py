"""Detection of questions that a relation path cannot answer: counts, superlatives, comparisons and yes/no questions.

Such questions are rejected instead of answered wrongly.
"""

from __future__ import annotations

import re

_COUNT = re.compile(
    r"\b(how many|how much|(?:(?:^|the|total|a|and|its|their|what)\s+)number of|what is the (total|count)|count the)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"^\s*(is|are|was|were|am|does|do|did|has|have|had|can|could|will|would|should|isn't|aren't|wasn't|weren't|doesn't|"
    r"didn't|hasn't)\b",
    re.IGNORECASE,
)
# a capitalised title within a sentence, such as The Last Samurai
_TITLE = re.compile(r"(?<=\s)(?:The|A|An)(?:\s+(?:[A-Z]\w*|of|the|and))*\s+[A-Z]\w*")
# questions that only begin like yes/no questions: "can you name ...?", "is she a man or a woman?"
_OPEN = re.compile(
    r"^\s*(?:(?:can|could|will|would) (?:you|anyone|somebody|someone)|do(?:es)? (?:you|anyone|anybody) know)\b"
    r"|\bor (?:a|an|the)\b",
    re.IGNORECASE,
)
# the question word is at the end, and a name at the beginning looks like a verb: "Will Smith starred in which films?"
_ASKED_LAST = re.compile(r"\b(?:in|of|to|for|by|from|with|borders)\s+(?:which|what)\s+\w+\s*\?*\s*$", re.IGNORECASE)
_SUPERLATIVE = re.compile(
    r"\b((?:the|'s|’s|its|their|whose|which|with|by|has|have|had)\s+(?:\w+\s+){0,2}?(?:most|least|fewest)\s+\w+"
    r"|(?:larg|bigg|small|tall|short|high|low|deep|long|old|eld|young|new|earli|lat|fast|slow|rich|poor|heavi|light|"
    r"great|strong|weak|near|clos|furth|farth|warm|cold|hott|wid|narrow|steep|busi|happi)est"
    r"|(?:the|whose|his|her|its|their|'s|’s)\s+(?:first|last)\s+(?!name|names|lady|ladies|language|time|season|person)\w+"
    r"|(?:is|are|was|were)\s+(?:first|last)\s+\w+\s+(?:of|in|to)"
    r"|(?<=\w)\s+(?:first|last)\s+(?:wife|husband|spouse|child|son|daughter|film|movie|book|novel|album))\b",
    re.IGNORECASE,
)
# "France borders Spain, right?"
_TAG = re.compile(
    r",\s*(?:right|correct|true|yes|no"
    r"|(?:is|are|was|were|do|does|did|has|have|can)(?:n't|n’t)? (?:it|he|she|they|there))\s*\?*\s*$",
    re.IGNORECASE,
)
# "more people than Spain", "which is bigger, Spain or France?"; a comparison with a number is not matched
_COMPARISON = re.compile(
    r"\b(?:more|less|fewer|(?!(?:other|rather|whether|either)\b)\w{2,}er)\s+(?:\w+\s+){0,3}?than\s+"
    r"(?!\d|(?:an?|one|two|three|four|five|ten|others?|or|to|having|just|usual|before)\b)"
    r"|\b(?:is|are|was|were|has|have|had)\s+(?:the\s+)?(?:more|less|fewer|(?!other\b|either\b)\w{2,}er)"
    r"(?:\s+\w+){0,2}\s*[,:–-]\s*(?:\S+\s+){1,6}?or\s"
    r"|\b(?:more|fewer)\s+(?:\w+\s+){0,2}\w+\s*[,:–-]\s*(?:\S+\s+){1,6}?or\s",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:born|died|founded|released|published|opened|come out|came out|began|begin)\s+"
    r"(?:first|last|(?:earlier|later)(?!\s+than\s+(?:the\s+year\s+)?\d))\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\b(?:average|total|combined)\s+(?:\w+\s+){1,3}?(?:of|for|in|across)\b", re.IGNORECASE)
_DIFFERENCE = re.compile(r"\b(?:difference|gap)\s+(?:in|of|between)\b", re.IGNORECASE)


def unsupported_kind(question: str) -> str | None:
    """Return the kind of question, in words, if relation paths alone cannot answer it; else None.

    "How much" is rejected as a count, although it often asks for a stored value. "Who was the first ..." is also
    rejected, because the answer depends on an order in time. Remove names of entities before the call.
    """
    if _COUNT.search(question):
        return "a count"
    if _YES_NO.match(question) and not _ASKED_LAST.search(question) and not _OPEN.search(question):
        return "a yes/no question"
    if _TAG.search(question):
        return "a yes/no question"
    if match := _COMPARISON.search(question):
        return "a comparison"
    if match := _FIRST.search(question):
        return f"a comparison ({match[0].strip().lower()})"
    if match := _TOTAL.search(question) or _DIFFERENCE.search(question):
        return f"a computed value ({match[0].strip().lower()})"
    if match := _SUPERLATIVE.search(question if question.isupper() else _TITLE.sub(" ", question)):
        return f"a superlative ({match[0].strip().lower()})"
    return None
