r"""Writes a synthetic Freebase dump: lines `<s>\t<p>\t<o>\t.` in gzip members, with malformed lines of every kind.

It resembles the real dump:

- Lines are sorted by subject and have about 130 bytes; compression reduces them to a thirteenth.
- Types and names occur twice: as `type.object.*` and as RDF Schema copies. Every type has its inverse.
- More than half of the dump consists of keys, web pages and editorial data.
- Names are in many languages, numbers have no quotes, and times of day have the type `dateTime`.

The same seed gives the same dump.

"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

NS = "http://rdf.freebase.com/ns/"
KEY = "http://rdf.freebase.com/key/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
LINES_PER_MEMBER = 1_000_000
_DIGITS = "0123456789bcdfghjklmnpqrstvwxyz_"
_TYPES = [f"domain{n % 20}.type{n}" for n in range(140)]
_RELATIONS = [f"{_TYPES[n % 140]}.relation{n}" for n in range(700)]
_LANGUAGES = ["de", "fr", "ja", "zh", "zh-hant", "es-419", "pt-br", "ru", "iw", "it"]
_SYLLABLES = ["ka", "lo", "mi", "ren", "tos", "vi", "ber", "an", "du", "chi", "zur", "pel", "gra", "sto", "wen", "ry"]
_FOREIGN = {"ja": "東京の", "zh": "北京", "zh-hant": "臺北", "ru": "Москва", "iw": "ירושלים"}

_S, _P = f"<{NS}m.0broken>", f"<{NS}people.person.note>"


def _with_object(text: str) -> bytes:
    return f"{_S}\t{_P}\t{text}\t.".encode()


def _typed(value: str, kind: str) -> bytes:
    return _with_object(f'"{value}"^^<{XSD}{kind}>')


BREAKAGE: dict[str, tuple[str, bytes]] = {
    "\\u with two digits": ("invalid escape", _with_object('"Caf\\u00 noir"')),
    "\\$": ("invalid escape", _with_object('"US\\$ 5"')),
    "\\x": ("invalid escape", _with_object('"caf\\xe9"')),
    "half a surrogate pair": ("invalid escape", _with_object('"\\uD83D"')),
    "beyond Unicode": ("invalid escape", _with_object('"\\U00110000"')),
    "a backslash before the last quote": ("unescaped quote", _with_object('"C:\\"')),
    "quotes inside": ("unescaped quote", _with_object('"the "King" of pop"@en')),
    "no last quote": ("unescaped quote", _with_object('"never ends')),
    "a control character": ("control character", _with_object('"bell\x07"')),
    "an escaped control character": ("control character", _with_object('"nul\\u0000"')),
    "a space in an IRI": ("malformed IRI", _with_object("<http://example.com/a b>")),
    "a quote in an IRI": ("malformed IRI", _with_object('<http://example.com/"a">')),
    "braces in an IRI": ("malformed IRI", _with_object("<http://example.com/{id}>")),
    "a backslash in an IRI": ("malformed IRI", _with_object("<http://example.com/a\\b>")),
    "a pipe in an IRI": ("malformed IRI", _with_object("<http://example.com/a|b>")),
    "percent without digits": ("malformed IRI", _with_object("<http://example.com/100%>")),
    "no scheme": ("malformed IRI", _with_object("<www.example.com/>")),
    "an empty IRI": ("malformed IRI", _with_object("<>")),
    "an IRI that never ends": ("malformed IRI", _with_object("<http://example.com/a")),
    "a space in the subject": ("malformed IRI", f'<{NS}m.0 x>\t{_P}\t"x"\t.'.encode()),
    "a brace in the predicate": ("malformed IRI", f'{_S}\t<{NS}people.{{x}}>\t"x"\t.'.encode()),
    "a very long IRI": ("IRI longer than 1,800 bytes", _with_object(f"<http://example.com/{'a' * 2000}>")),
    "two columns": ("not three terms", f"{_S}\t{_P}\t.".encode()),
    "five columns": ("not three terms", f"{_S}\t{_P}\t{_S}\t{_S}\t.".encode()),
    "no dot": ("not three terms", f"{_S}\t{_P}\t{_S}".encode()),
    "cut short": ("not three terms", f"{_S}\t<{NS}people.per".encode()),
    "a bare word": ("not three terms", _with_object("hello")),
    "an empty line": ("empty line or comment", b""),
    "a comment": ("empty line or comment", b"# a remark"),
    "a blank node": ("blank node", f"_:b1\t{_P}\t{_S}\t.".encode()),
    "month 13": ("value does not fit its datatype", _typed("2012-13-01", "date")),
    "day 0": ("value does not fit its datatype", _typed("2012-00-00", "date")),
    "30 February": ("value does not fit its datatype", _typed("2012-02-30", "date")),
    "hour 25": ("value does not fit its datatype", _typed("2012-01-02T25:00:00", "dateTime")),
    "a year in words": ("value does not fit its datatype", _typed("abcd", "gYear")),
    "a year of two digits": ("value does not fit its datatype", _typed("99", "gYear")),
    "an integer in words": ("value does not fit its datatype", _typed("twelve", "integer")),
    "an empty integer": ("value does not fit its datatype", _typed("", "integer")),
    "60 digits": ("value does not fit its datatype", _typed("1" * 60, "integer")),
    "yes for true": ("value does not fit its datatype", _typed("yes", "boolean")),
    "a datatype in short form": ("malformed datatype", _with_object('"2012-01-01"^^xsd:date')),
    "XML that is none": (
        "datatype the server does not keep",
        _with_object('"<a>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>'),
    ),
    "a duration": ("datatype the server does not keep", _typed("P1Y", "duration")),
    "a digit in a language": ("malformed language tag", _with_object('"x"@e1')),
    "a language with an underscore": ("malformed language tag", _with_object('"x"@en_US')),
    "a language of nothing": ("malformed language tag", _with_object('"x"@')),
    "Latin-1": ("not UTF-8", _with_object('"caf')[:-2] + b'\xe9"\t.'),
    "overlong UTF-8": ("not UTF-8", _with_object('"a')[:-2] + b'\xc0\xaf"\t.'),
    "a very long line": ("longer than 1 MiB", _with_object('"' + "a" * (1 << 20) + '"')),
}
"""Malformed lines: the reason under which a line is counted, and the line without its line end."""

REPAIRED: dict[str, bytes] = {
    "a decimal without quotes": _with_object("4.5"),
    "an integer without quotes": _with_object("-17"),
    "a double without quotes": _with_object("1.5e3"),
    "true without quotes": _with_object("true"),
    "a time of day": _typed("T12:30", "dateTime"),
    "a language in capitals": _with_object('"Big Apple"@EN'),
}
"""Malformed lines that are repaired because their meaning is clear."""

UNUSUAL: dict[str, bytes] = {
    "blanks": f'{_S} {_P} "blanks" .'.encode(),
    "a blank line end": f'{_S}\t{_P}\t"carriage return"\t.\r'.encode(),
    "a tab in a literal": _with_object('"a\tb"'),
    "escapes": _with_object('"a\\nb \\"c\\" \\u00e9 \\U0001F600"'),
    "no seconds": _typed("1969-07-20T20:17", "dateTime"),
    "before Christ": _typed("-0044", "gYear"),
    "an encoded key": f"<{NS}m.0$0028x$0029>\t{_P}\t{_S}\t.".encode(),
    "an IRI of other letters": _with_object("<http://example.com/東京>"),
}
"""Rare but correct lines."""

_EXPENSIVE = "a very long line"


def _mid(number: int) -> str:
    digits, number = "", number * 2_654_435_761 % 2**35  # Consecutive numbers get very different ids.
    while number:
        digits = _DIGITS[number & 31] + digits
        number >>= 5
    return "m.0" + digits


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randrange(2, 5))).capitalize()


def _topic(chance: random.Random, number: int, most: int, instances: dict[str, list[int]]) -> Iterator[str]:
    """Yield the 40 to 60 lines of one topic, without ` .`, and record its types in `instances`.

    `most` is the maximum number of topics.
    """
    own = f"<{NS}{_mid(number)}>\t"

    def other() -> str:
        return f"<{NS}{_mid(int(most * chance.random() ** 2) + 32**3)}>"

    types = ["common.topic", "base.tagit.concept", *chance.sample(_TYPES, 3)]
    for kind in types:
        yield f"{own}<{NS}type.object.type>\t<{NS}{kind}>"
        yield f"{own}<{RDF_TYPE}>\t<{NS}{kind}>"
        instances.setdefault(kind, []).append(number)
    name = f"{_name(chance)} {_name(chance)}"
    names = [(name, "en")]
    names += [(_FOREIGN.get(language, "") + name, language) for language in chance.sample(_LANGUAGES, 2)]
    for text, language in names:
        yield f'{own}<{NS}type.object.name>\t"{text}"@{language}'
        yield f'{own}<{RDFS_LABEL}>\t"{text}"@{language}'
    if number % 3 == 0:
        yield f'{own}<{NS}common.topic.alias>\t"The \\"{name.split()[0]}\\""@en'
    if number % 4 == 0:
        words = " ".join(_name(chance) for _ in range(chance.randrange(10, 60)))
        yield f'{own}<{NS}common.topic.description>\t"{words}.\\n{name} é"@en'
        yield f'{own}<{NS}common.topic.description>\t"{words} – ß"@de'
    title = name.replace(" ", "_")
    for language in ("en", "de", "fr"):
        yield f'{own}<{NS}type.object.key>\t"/wikipedia/{language}_title/{title}$0028{number}$0029"'
        yield f'{own}<{KEY}wikipedia.{language}_title>\t"{title}$0028{number}$0029"'
    yield f"{own}<{NS}common.topic.topic_equivalent_webpage>\t<http://en.wikipedia.org/wiki/{title}>"
    yield f"{own}<{NS}common.topic.topic_equivalent_webpage>\t<http://en.wikipedia.org/wiki/index.html?curid={number}>"
    yield f"{own}<{NS}common.topic.notable_types>\t<{NS}{_mid(chance.randrange(1000))}>"
    yield f"{own}<{NS}kg.object_profile.prominent_type>\t<{NS}{types[2]}>"
    yield f"{own}<{NS}freebase.valuenotation.has_value>\t<{NS}{chance.choice(_RELATIONS)}>"
    yield f"{own}<{NS}freebase.valuenotation.is_reviewed>\t<{NS}{chance.choice(_RELATIONS)}>"
    for _ in range(chance.randrange(4, 14)):
        yield f"{own}<{NS}{_RELATIONS[int(700 * chance.random() ** 2)]}>\t{other()}"
    mediator = f"<{NS}m.0{_mid(chance.getrandbits(35))[3:]}>"
    yield f"{own}<{NS}people.person.spouse_s>\t{mediator}"
    yield f'{mediator}\t<{NS}people.marriage.from>\t"{chance.randrange(1500, 2015)}"^^<{XSD}gYear>'
    yield f"{mediator}\t<{NS}people.marriage.spouse>\t{other()}"
    if number % 2:
        day = f"{chance.randrange(1500, 2015)}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}"
        yield f'{own}<{NS}people.person.date_of_birth>\t"{day}"^^<{XSD}date>'
        yield f"{own}<{NS}location.geocode.longitude>\t{chance.random() * 180:.6f}"
        yield f"{own}<{NS}measurement_unit.dated_integer.number>\t{chance.randrange(10**6)}"


def _instances(instances: dict[str, list[int]]) -> list[str]:
    """Yield the inverse types, sorted by type like all subjects."""
    return [
        f"<{NS}{kind}>\t<{NS}type.type.instance>\t<{NS}{_mid(number)}>"
        for kind, numbers in sorted(instances.items())
        for number in numbers
    ]


def dump_lines(lines: int, *, seed: int = 7, broken: float = 0.02) -> Iterator[bytes]:
    """Yield the lines of a dump, with newlines.

    Args:
        lines: number of lines.
        broken: share of lines (0 to 1) taken from BREAKAGE; half as many lines are taken from REPAIRED and UNUSUAL.
    """
    chance = random.Random(seed)
    number, written = 32**3, 0
    kinds = [line for name, (_, line) in BREAKAGE.items() if name != _EXPENSIVE]
    odd = [*REPAIRED.values(), *UNUSUAL.values()]
    # Only one per dump, because these lines are so long that more of them would make up most of its bytes.
    expensive = {lines // 2: BREAKAGE[_EXPENSIVE][1]} if broken else {}
    instances: dict[str, list[int]] = {}
    while True:
        topic = list(_topic(chance, number, lines // 45, instances))
        if number % 500 == 0:
            topic += _instances(instances)
            instances.clear()
        for text in topic:
            if written in expensive:
                yield expensive[written] + b"\n"
                written += 1
            elif broken and chance.random() < broken * 1.5:
                yield chance.choice(kinds if chance.random() < 2 / 3 else odd) + b"\n"
                written += 1
            if written >= lines:
                return
            yield f"{text}\t.\n".encode()
            written += 1
            if written >= lines:
                return
        number += 1


def write_dump(path: Path, lines: int, *, seed: int = 7, broken: float = 0.02) -> None:
    """Write a dump with gzip, one member per LINES_PER_MEMBER lines; `path` exists only when the dump is complete."""
    part = path.with_name(path.name + ".part")
    source = dump_lines(lines, seed=seed, broken=broken)
    with part.open("wb") as raw:
        for first in range(0, lines, LINES_PER_MEMBER):
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as member:
                block = [next(source) for _ in range(min(LINES_PER_MEMBER, lines - first))]
                member.write(b"".join(block))
    part.replace(path)
