"""Which types two mentions of one entity may have."""

from __future__ import annotations

from kgqa.corpus.items import normal_name

_GROUPS = (
    "person|people|human|man|woman|writer|author|poet|novelist|actor|actress|singer|musician|composer|rapper|"
    "politician|president|king|queen|monarch|emperor|scientist|physicist|mathematician|philosopher|artist|painter|"
    "director|film director|filmmaker|producer|athlete|footballer|football player|player|basketball player|coach|"
    "journalist|lawyer|judge|soldier|general|military officer|saint|pope|engineer|inventor|businessman|"
    "businesswoman|entrepreneur|historian|architect|explorer|character|fictional character|deity",
    "location|place|geographic location|geographical location|geopolitical entity|gpe|loc|region|area|city|town|"
    "village|municipality|settlement|capital|capital city|country|nation|state|province|county|district|territory|"
    "borough|neighborhood|neighbourhood|island|continent|sovereign state",
    "river|lake|sea|ocean|mountain|body of water|natural feature|location|place|loc|geographic location",
    "organization|organisation|org|company|corporation|business|firm|institution|agency|government agency|"
    "university|college|school|political party|party|nonprofit|record label|newspaper|publisher|broadcaster|"
    "sports team|team|football club|club|band|group|musical group|government|military unit|ngo|brand",
    "work|creative work|work of art|film|movie|motion picture",
    "work|creative work|work of art|book|novel|literary work|written work|publication",
    "work|creative work|work of art|song|single|track|musical work",
    "work|creative work|work of art|album|studio album|record|musical work",
    "work|creative work|work of art|television series|tv series|tv show|television show|show|series",
    "event|conflict|war|battle|historical event|military conflict",
    "event|competition|tournament|sports event|championship|sporting event",
    "date|time|year|day|month|period|time period|temporal|era",
    "number|quantity|amount|cardinal|measurement|money|percent",
    "language|languages",
    "facility|building|structure|venue|stadium|location|place|landmark",
    "product|device|software|brand|model|vehicle",
    "concept|idea|term|topic|abstract concept|field|field of study|discipline|subject",
)
"""Types that may be given to one entity. Two types agree if they are equal or stand in one of the rows; the rows are
narrow, so that a film and the book of the same name stay apart."""
_OF_TYPE: dict[str, frozenset[int]] = {}
for _number, _row in enumerate(_GROUPS):
    for _type in _row.split("|"):
        _OF_TYPE[_type] = _OF_TYPE.get(_type, frozenset()) | {_number}


def types_agree(one: str, other: str) -> bool:
    """Return whether two types may be those of one entity; an empty type agrees only with itself."""
    one, other = normal_name(one), normal_name(other)
    return one == other or bool(_OF_TYPE.get(one, frozenset()) & _OF_TYPE.get(other, frozenset()))
