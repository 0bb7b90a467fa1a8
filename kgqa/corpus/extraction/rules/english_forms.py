"""The forms of English sentences that state a fact about a topic, as regular expressions."""

from __future__ import annotations

import re

from kgqa.corpus.extraction.rules.english_words import BEGINNINGS, MAKERS, MODIFIERS, PERSONS, PLACES, RELATIVES, WORKS
from kgqa.corpus.extraction.rules.values import DATE_PATTERN

DEFINITION = re.compile(
    r"""["“”'‘’]*\s?(?P<name>[^(;:!?"“”\n]{1,100}?)["”]?,?\s*
    (?P<parentheses>\((?:[^()]|\([^()]*\)){0,300}\)\s*)?
    (?P<alias>,?\s?(?:also|better|formerly|originally|previously|sometimes|professionally)?\s?
      (?:known|credited|billed)\s(?:simply\s|professionally\s|in\s\w+\s)?as[^.;()]{1,80}?,?\s)?
    (?:,\s?)?(?:(?:he|she|it)\s)?(?<![^\s,)])(?:is|was|are|were)\s
    (?:(?:also|originally|currently|formerly|previously|both|perhaps|still)\s)?(?P<article>an?|the)\s""",
    re.VERBOSE,
)
"""`X (1960 – 2010), also known as Z, is a`; the noun phrase follows."""
NOUN_PHRASE = re.compile(
    r"""(?P<phrase>(?:[^\s,.;:()"“”]+\s){0,10}?[^\s,.;:()"“”]+?)(?=
    [,.;:()"“”]|$|\s(?:who|whom|whose|which|that|where|when|directed|written|produced|starring|based|from|in|at|by|for|with
    |about|set|released|located|situated|known|noted|famous|best|on|as|made|created|published|founded|born|owned|during
    |serving|played|playing|used|found|given|held|living|active|under|near|between|to|has|had|is|was|are|were|and\s(?:is
    |was|the|a|an|has|also|currently|former)|created|composed|developed|designed|featuring|operated|formed|belonging
    |appearing|consisting|within|since|until|after|before|along|through|built|named|called|considered|chiefly
    |mainly|primarily|mostly|especially|currently|often)\b)""",
    re.VERBOSE,
)
"""What comes after `is a`."""
LISTED_PERSON = re.compile(
    r"(?:, [\w -]{1,40}?){0,4},? (?:and|&) [\w -]{0,40}?"
    rf"\b(?P<type>{'|'.join(sorted(PERSONS))})\b(?! of)(?=[ ,.;])",
    re.IGNORECASE,
)
"""`, television and stage actor` after `is a film`."""
SUBORDINATE = re.compile(
    r"""\b(?:based\son|adapted\sfrom|adaptation\sof|about|version\sof|remake\sof|sequel\sto|prequel\sto|inspired\sby|who
    |whose|whom|where|when|which|while|after|because|featuring|set\sin|tells|during|following|although|but
    |and\s(?:is|was)\snot)\b""",
    re.VERBOSE,
)
"""Where a sentence stops to be about the topic alone."""
ALIAS = re.compile(
    r"(?:known|credited|billed) (?:simply |professionally |in \w+ )?as (?:simply )?(?P<name>[^.;,()]{1,80})"
)
IS = re.compile(r"(?:was|is|were|are|has been)\s(?:(?:also|originally|first|later)\s)?")
PRONOUN = re.compile(r"(?P<person>He|She)\s|(?P<thing>It|They)\s|The\s(?P<noun>[a-z]+)\s")

_MAKER = rf"(?:co-?\s?)?(?:{MAKERS})"
MADE_BY = re.compile(rf"\b(?P<verbs>{_MAKER}(?:(?:,? and|,| &) {_MAKER})*) by ")
MAKER = re.compile(_MAKER)
STARRING = re.compile(r"\b(?:starring|stars) (?=[A-Z\u00c0-\u00de])")
WORK_BY = re.compile(rf"\b(?P<noun>{WORKS}) by ")
YEAR_OF_WORK = re.compile(
    r"(?P<year>1[5-9]\d\d|20\d\d)\s(?:[\w'’-]+\s){0,6}?(?:film|movie|album|song|novel|book|single|game|series|EP|play|drama"
    r"|comedy|documentary|opera|musical)\b"
)
BEGAN_ON = re.compile(
    rf"\b(?P<verb>{'|'.join(BEGINNINGS)})\s(?:in|on)\s(?:{DATE_PATTERN})",
    re.IGNORECASE,
)

_KINSHIP = (
    rf"(?:the |a |an )?(?:(?:{MODIFIERS})-?\s?)*"
    rf"(?P<relative>(?:half|step|grand|great-?\s?grand|foster)?-?\s?(?:{RELATIVES})(?:-\s?in-\s?law)?) (?:of|to) "
)
RELATIVE_OF = re.compile(_KINSHIP)
MORE_RELATIVES = re.compile(rf",? and {_KINSHIP}")
ROLE_OF = re.compile(
    r"(?:(?!in\b|on\b|at\b|from\b|by\b|for\b|with\b|of\b)[a-z][a-z-]*\s){0,3}(?P<role>[A-Za-z][a-z-]{2,20}) of "
)
"""`medieval Bishop of`, at the begin of a noun phrase; a name follows."""
EDUCATED_AT = re.compile(r"\b(?:graduated from|studied at|was educated at|attended) (?:the )?")
MARRIED = re.compile(r"\bmarried (?=[A-Z\u00c0-\u00de])")
PLAYS_FOR = re.compile(r"\b(?:plays|played) (?:as an? [a-z -]{3,30} )?for (?:the )?(?:club )?")

_KIND_OF_PLACE = r"(?:the )?(?:(?:city|town|village|district|province|state|region|county|heart|cent(?:er|re)) of )?"
LOCATED_IN = re.compile(rf"\b(?:located|situated|based|headquartered) (?:in|at) {_KIND_OF_PLACE}")
PLACE_IN = re.compile(rf"\b(?:{'|'.join(sorted(PLACES))}) in (?:the )?")
CAPITAL_OF = re.compile(r"(?:the )?(?:[a-z]+ )?capital (?:and (?:[a-z]+ ){1,3}city )?of (?:the )?")
_ON_IN = rf" (?:on (?:{DATE_PATTERN}),? )?(?:in|at) {_KIND_OF_PLACE}"
BORN_IN = re.compile(rf"\bborn{_ON_IN}", re.IGNORECASE)
DIED_IN = re.compile(rf"\bdied{_ON_IN}", re.IGNORECASE)
BORN_ON = re.compile(rf"\bborn (?:on |in )?(?:{DATE_PATTERN})", re.IGNORECASE)
DIED_ON = re.compile(rf"\bdied (?:on |in )?(?:{DATE_PATTERN})", re.IGNORECASE)
ROUNDED = re.compile(r"(?:c\.|ca\.|circa|about|around|before|after|by|between|or|\?|fl\.|bapti[sz]ed)", re.IGNORECASE)
"""What makes the date before it uncertain."""
