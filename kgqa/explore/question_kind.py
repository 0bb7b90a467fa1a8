"""Recognises questions that a relation path cannot answer: counts, superlatives, yes/no. They are declined, not guessed."""

from __future__ import annotations

import re

_COUNT = re.compile(
    r"\b(how many|how much|(?:(?:^|the|total|a|and|its|their)\s+)number of|what is the (total|count)|count the)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"^\s*(is|are|was|were|am|does|do|did|has|have|had|can|could|will|would|should|isn't|aren't|wasn't|weren't|doesn't|"
    r"didn't|hasn't)\b",
    re.IGNORECASE,
)
# a capitalised title in the middle of a sentence: The Last Samurai
_TITLE = re.compile(r"(?<=\s)(?:The|A|An)(?:\s+(?:[A-Z]\w*|of|the|and))*\s+[A-Z]\w*")
# polite requests and alternatives begin like yes/no questions: can you name ...? is she a man or a woman?
_OPEN = re.compile(
    r"^\s*(?:(?:can|could|will|would) (?:you|anyone|somebody|someone)|do(?:es)? (?:you|anyone|anybody) know)\b|\bor (?:a|an|the)\b",
    re.IGNORECASE,
)
# a name that looks like a verb, and the question at the end: Will Smith starred in which films?
_ASKED_LAST = re.compile(r"\b(?:in|of|to|for|by|from|with|borders)\s+(?:which|what)\s+\w+\s*\?*\s*$", re.IGNORECASE)
_SUPERLATIVE = re.compile(
    r"\b((?:the|'s|’s|its|their|whose|which|with|by|has|have|had)\s+(?:\w+\s+){0,2}?(?:most|least|fewest)\s+\w+"
    r"|(?:larg|bigg|small|tall|short|high|low|deep|long|old|young|new|earli|lat|fast|slow|rich|poor|heavi|light|"
    r"great|strong|weak|near|clos|furth|farth|warm|cold|hott|wid|narrow|steep|busi|happi)est"
    r"|the\s+(?:first|last)\s+(?!name|names|lady|ladies|language|time|season|person)\w+)\b",
    re.IGNORECASE,
)


def unsupported_kind(question: str) -> str | None:
    """What kind of question this is, if it is one that paths alone cannot answer: in words, or None.

    "How much" asks for a stored value as often as for a count, but is declined as well; so is "who was the
    first ...", which wants an order in time. Names should be taken out first where they are known.
    """
    if _COUNT.search(question):
        return "a count"
    if _YES_NO.match(question) and not _ASKED_LAST.search(question) and not _OPEN.search(question):
        return "a yes/no question"
    if match := _SUPERLATIVE.search(question if question.isupper() else _TITLE.sub(" ", question)):
        return f"a superlative ({match[0].strip().lower()})"
    return None
