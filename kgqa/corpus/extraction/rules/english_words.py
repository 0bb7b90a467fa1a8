"""English words that the rules for sentences know."""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


PLACES = _words(
    "village town city community commune municipality district county province region river lake mountain island",
    "school university college church cathedral museum station park building bridge hospital diocese parish suburb",
    "hamlet settlement locality neighborhood neighbourhood township borough stadium airport castle monastery abbey",
    "peak valley library theatre theater cemetery dam reservoir road street square prefecture canton tehsil union",
)
"""Types of things that are at a place."""
PERSONS = _words(
    "actor actress author writer poet novelist journalist politician player footballer composer musician singer",
    "songwriter director producer screenwriter painter sculptor architect engineer scientist physicist chemist",
    "mathematician philosopher historian lawyer judge priest bishop cardinal king queen prince princess emperor",
    "empress duke duchess earl count countess baron baroness noble nobleman noblewoman peer soldier officer general",
    "admiral businessman businesswoman entrepreneur swimmer sprinter cyclist wrestler boxer rower skier skater coach",
    "manager filmmaker jurist scholar professor teacher theologian saint monk nun rabbi pianist violinist guitarist",
    "drummer rapper dancer model comedian artist photographer cinematographer editor diplomat economist activist",
    "explorer consort child athlete fencer shooter golfer pilot merchant physician surgeon psychologist biologist",
    "botanist astronomer bassist vocalist conductor man woman person son daughter brother sister wife husband father",
    "mother playwright critic translator publisher",
)
"""Types of people."""
THINGS = PLACES | _words(
    "film movie series serial album song single novel book play poem painting opera magazine newspaper journal show",
    "documentary game band company organization organisation club team war battle breed species genus language road",
    "ship law act award festival airline brand software language structure theatre station locality",
)
"""Types of things that are no people."""
VAGUE = _words(
    "kind type sort variety series number group form example name list set one use work collection part member",
    "members version house order department institute best most pair piece study state result act love history story",
    "only first last second third fourth fifth stage television black and she former special",
)
"""Nouns that do not say what something is."""
NO_ROLES = VAGUE | _words("school university college church museum bank battle song album film book off out because")
"""Nouns after which `of` does not lead to what the topic is a part of, or has to do with."""
MAKERS = (
    "directed|written|produced|created|composed|developed|designed|founded|published|painted|built|invented|discovered"
    "|edited|recorded|performed|sung|illustrated|translated|narrated|choreographed|conducted|distributed|owned"
    "|manufactured|established|presented|hosted|sculpted|commissioned"
)
"""What is done to a work, in the form that comes before `by`."""
BEGINNINGS = {
    "founded": "founding",
    "established": "establishment",
    "released": "release",
    "published": "publication",
    "opened": "opening",
    "built": "construction",
    "completed": "completion",
    "formed": "formation",
    "incorporated": "incorporation",
}
"""What happens to a work or an organisation on a date, and the noun for it."""
WORKS = "film|album|song|novel|book|play|single|painting|opera|poem|EP|magazine|symphony|sculpture"
RELATIVES = (
    "son|daughter|brother|sister|father|mother|wife|husband|child|nephew|niece|uncle|aunt|cousin|consort|widow|mistress"
    "|spouse"
)
MODIFIERS = (
    "eldest|elder|older|oldest|youngest|younger|only|first|second|third|fourth|fifth|sixth|seventh|twin|illegitimate"
    "|natural|surviving|adopted|maternal|paternal|legitimate|known|but|and|queen|empress"
)
"""What may stand before a relative, and is left out."""
