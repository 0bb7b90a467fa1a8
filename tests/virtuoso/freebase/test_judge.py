"""Judging lines of a dump: known damage, repairs, and comparison with the reference."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import namedtuple

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dump_sample import BREAKAGE, REPAIRED, UNUSUAL, dump_lines
from kgqa.schema import bundled_schema
from kgqa.virtuoso.freebase.blocks import BlockJudge
from kgqa.virtuoso.freebase.judge import (
    ALL_LANGUAGES,
    Cleaning,
    Dropped,
    LineJudge,
    noise_rules,
)
from tests.conftest import SOAK
from tests.virtuoso.freebase import dump_reference

NS, XSD = "http://rdf.freebase.com/ns/", "http://www.w3.org/2001/XMLSchema#"
SUBJECT, PREDICATE = f"<{NS}m.0x>", f"<{NS}people.person.note>"
CLEANING, WITH_NOISE = Cleaning(), Cleaning(keep_noise=True)
NOISE = [prefix for prefixes in noise_rules().values() for prefix in prefixes]


# the cleaned line, None if it is dropped; the reason why; what was repaired
Verdict = namedtuple("Verdict", "kept reason repair", defaults=(None, "", ""))


def verdict_of(judge: LineJudge, line: bytes) -> Verdict:
    try:
        kept, repair = judge.line(line)
    except Dropped as dropped:
        return Verdict(reason=str(dropped))
    return Verdict(kept, repair=repair)


def judge_line(line: bytes | str, cleaning: Cleaning = CLEANING) -> Verdict:
    return verdict_of(LineJudge(cleaning), line.encode() if isinstance(line, str) else line)


def with_object(text: str) -> str:
    return f"{SUBJECT}\t{PREDICATE}\t{text}\t."


def parsed(line: bytes) -> list[ox.Triple]:
    return [quad.triple for quad in ox.parse(line, format=ox.RdfFormat.N_TRIPLES)]


def expected(line: bytes, cleaning: Cleaning = CLEANING) -> ox.Triple | None:
    return dump_reference.expected_triple(line, cleaning.languages, [] if cleaning.keep_noise else NOISE)


@pytest.mark.parametrize("name", [*BREAKAGE, *REPAIRED, *UNUSUAL])
def test_known_lines_are_dropped_repaired_or_kept(name):
    reason, line = BREAKAGE[name] if name in BREAKAGE else ("", {**REPAIRED, **UNUSUAL}[name])
    verdict, wanted = judge_line(line), expected(line)
    assert (verdict.reason, bool(verdict.repair)) == (reason, name in REPAIRED)
    assert (None if verdict.kept is None else parsed(verdict.kept)) == (None if reason else [wanted])
    assert (wanted is None) == bool(reason)


@pytest.mark.parametrize("bare", ["4.", ".", "1e5000", "1" * 39, "0x1f", "True", "NaN", "--1", "1,5"])
def test_invalid_numbers_are_not_repaired(bare):
    assert judge_line(with_object(bare)).kept is None


@pytest.mark.parametrize(
    ("languages", "tag", "kept"),
    [
        (("en",), "en", True),
        (("en",), "en-us", True),
        (("en",), "eng", False),
        (("en", "zh"), "zh-hant", True),
        (("pt-br",), "pt", False),
        (ALL_LANGUAGES, "x-klingon", True),
        (ALL_LANGUAGES, "en-a", False),  # an extension without content, invalid in pyoxigraph
    ],
)
def test_languages(languages, tag, kept):
    assert (judge_line(with_object(f'"x"@{tag}'), Cleaning(languages, keep_noise=True)).kept is not None) == kept
    assert judge_line(with_object('"x"'), Cleaning(languages, keep_noise=True)).kept is not None


@pytest.mark.parametrize(
    "line", ["{0} {1} {0} .", "  {0}\t{1}  {0}.", "{0}{1}{0}.", "{0}\t{1}\t{0}\t. # ah", "{0} {1} {0}.\r"]
)
def test_separators_become_tabs(line):
    assert judge_line(line.format(SUBJECT, PREDICATE)).kept == with_object(SUBJECT).encode()


def test_noise_is_checked_first():
    """Lines with a noise predicate are dropped for that reason whatever their object is."""
    line = f'{SUBJECT}\t<{NS}type.object.key>\t"broken\t.'
    assert judge_line(line).reason == "noise: keys"
    assert judge_line(line, WITH_NOISE).reason == "unescaped quote"


def test_caches_are_bounded(monkeypatch):
    monkeypatch.setattr("kgqa.virtuoso.freebase.judge.MAX_KNOWN", 10)
    judge = LineJudge(CLEANING)
    for number in range(100):
        judge.line(f"{SUBJECT}\t<{NS}p{number}>\t{SUBJECT}\t.".encode())
    assert len(judge.predicates) <= 10


# ---- against the reference ----

SAMPLE = [line[:-1] for line in dump_lines(400, broken=0.3)]
SEEDS = [*(line for name, (_, line) in BREAKAGE.items() if len(line) < 5000), *REPAIRED.values(), *UNUSUAL.values()]
BYTES = [bytes([c]) for c in b'\t "\\<>.@^:_#-+eETZ%{}|`\r\x00\x01\x07\x7f\xc3\xff0129au\xa9']
FRAGMENTS = [
    b"\\u00e9", b"\\u0000", b"\\uD800", b"\\U0010FFFF", b'"@en', b'"@en-US', b'"@de', b"^^<" + XSD.encode() + b"date>",
    b"\xc3\xa9", b"\xe6\x9d\xb1", b"%20", b"%zz", b"\t", b" .", b"\t.", b"4.5", b"true", b"<http://e/x>", b"_:b", b"--",
    b"2012-02-29", b"24:00", b"T12:00", b"http://", b"[::1]", b"#a#b", b"12345678901234567890123456789012345678901",
]  # fmt: skip


@st.composite
def mutated_lines(draw) -> bytes:
    """Draw a line of the sample with a few bytes inserted, removed or replaced."""
    line = bytearray(draw(st.sampled_from(SEEDS + SAMPLE)))
    for _ in range(draw(st.integers(0, 3))):
        position = draw(st.integers(0, len(line)))
        new = draw(st.sampled_from(BYTES + FRAGMENTS))
        line[position : position + draw(st.integers(0, 3))] = new
    return bytes(line).replace(b"\n", b"")


XSD_KINDS = [
    "date", "dateTime", "time", "gYear", "gYearMonth", "gMonth", "gDay", "gMonthDay", "boolean", "decimal", "double", "float",
    "integer", "int", "byte", "string", "anyURI", "duration",
]  # fmt: skip
values = st.one_of(
    st.from_regex(r"-?[0-9]{3,5}(-[0-3]?[0-9](-[0-3]?[0-9])?)?(Z|\+01:00)?", fullmatch=True),
    st.from_regex(r"-{0,3}[0-3][0-9](-[0-3][0-9])?", fullmatch=True),
    st.from_regex(r"(2012-0[1-3]-[23][0-9])?T?[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,3})?)?Z?", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{0,40}(\.[0-9]{0,3})?([eE][+-]?[0-9]{0,4})?", fullmatch=True),
    st.sampled_from(["true", "TRUE", "1", "INF", "-INF", "NaN", "", " 5", "5 ", "x", "\\u0035"]),
)
typed_lines = st.builds(
    lambda value, kind: with_object(f'"{value}"^^<{XSD}{kind}>').encode(), values, st.sampled_from(XSD_KINDS)
)
text_lines = st.builds(
    lambda text, suffix: with_object(f'"{text}"{suffix}').encode("utf-8", "surrogatepass"),
    st.text(st.characters(blacklist_characters="\n"), max_size=12),
    st.sampled_from(["", "@en", "@de", "@EN", f"^^<{XSD}string>", "@", "^^", "^^<http://example.com/t>"]),
)
iri_lines = st.builds(
    lambda start, text: with_object(f"<{start}{text}>").encode("utf-8", "surrogatepass"),
    st.sampled_from([NS, "http://", "http://e/", "https://e:80/", "urn:", "http://e/?", "http://e/#", ""]),
    st.text(st.characters(blacklist_characters="\n\t"), max_size=10)
    | st.text("abz09-._~:/?#[]@!$&'()*+,;=%", max_size=10),
)
lines = st.one_of(mutated_lines(), typed_lines, text_lines, iri_lines)
EXAMPLES = 10_000 if SOAK else 600


@pytest.mark.soak
@settings(max_examples=EXAMPLES)
@given(lines, st.sampled_from(["as usual", "all languages", "with noise"]))
def test_lines_are_judged_like_the_reference(line, mode):
    cleaning = {
        "as usual": CLEANING,
        "all languages": Cleaning(ALL_LANGUAGES),
        "with noise": Cleaning(("en", "de"), keep_noise=True),
    }[mode]
    verdict = judge_line(line, cleaning)
    found = None if verdict.kept is None else parsed(verdict.kept)
    wanted = expected(line, cleaning)
    assert found == (None if wanted is None else [wanted]), verdict


@pytest.mark.soak
@settings(max_examples=EXAMPLES // 4)
@given(st.lists(lines, max_size=20), st.integers(0, 1000))
def test_block_verdicts_equal_line_verdicts(found, seed):
    chance = random.Random(seed)
    # the lines around them fill the caches of predicates, tags and the last subject
    block_lines = [*SAMPLE[:40], *found, *SAMPLE[40:60]]
    chance.shuffle(block_lines)
    block_judge, judge = BlockJudge(CLEANING), LineJudge(CLEANING)
    block_judge.block(b"\n".join(SAMPLE) + b"\n")
    kept, tally = block_judge.block(b"".join(line + b"\n" for line in block_lines))
    verdicts = [verdict_of(judge, line) for line in block_lines]
    assert kept == b"".join(verdict.kept + b"\n" for verdict in verdicts if verdict.kept is not None)
    assert tally.lines == len(block_lines) == tally.kept + sum(tally.dropped.values())
    assert tally.dropped == {
        reason: sum(v.reason == reason for v in verdicts) for reason in {v.reason for v in verdicts if v.kept is None}
    }
    assert sum(tally.repaired.values()) == sum(bool(v.repair) for v in verdicts)


# ---- noise rules ----

SCHEMA = bundled_schema("freebase")
COPIES = {
    "http://www.w3.org/2000/01/rdf-schema#label": f"{NS}type.object.name",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": f"{NS}type.object.type",
}


def needed_predicates() -> set[str]:
    """Return the predicates that the schema needs."""
    groups = [SCHEMA.label, SCHEMA.alias, SCHEMA.types, SCHEMA.domain, SCHEMA.range, SCHEMA.inverse]
    groups += [SCHEMA.mediator_object_of, SCHEMA.mediator_subject_of]
    # in each of these tuples (predicate, value, ...), only the first item is a predicate
    groups += [marks[:1] for marks in (SCHEMA.mediator_marked_by or (), SCHEMA.noise_marked_by, SCHEMA.declared_by)]
    return {predicate for group in groups for predicate in group}


class TestFreebaseRules:
    def test_predicates_of_the_schema_are_kept(self):
        for predicate in sorted(needed_predicates()):
            if predicate in COPIES:
                assert CLEANING.noise(predicate) and not CLEANING.noise(COPIES[predicate])
            else:
                assert CLEANING.noise(predicate) is None, predicate

    @pytest.mark.parametrize(
        ("iri", "reason"),
        [
            (f"{NS}type.object.key", "noise: keys"),
            (f"{NS}type.type.instance", "noise: types the other way round"),
            (f"{NS}common.topic.topic_equivalent_webpage", "noise: web pages"),
            (f"{NS}type.object.key_", None),
            (f"{NS}common.topic.official_website", None),
        ],
    )
    def test_dropped_and_kept_predicates(self, iri, reason):
        assert CLEANING.noise(iri) == reason

    def test_gold_queries_keep_their_predicates(self, data_folder):
        """Predicates with a kept copy are excepted: rdf:type, and types in the other direction."""
        replaced = {*COPIES, f"{NS}type.type.instance"}
        lost = set()
        for file in [*data_folder.glob("freebase*/questions*.gz"), *data_folder.glob("train/*.gz")]:
            with gzip.open(file, "rt", encoding="utf-8") as questions:
                for line in questions:
                    query = json.loads(line).get("sparql_portable") or ""
                    lost |= {iri for iri in set(re.findall(r"<([^<>\s]+)>", query)) - replaced if CLEANING.noise(iri)}
        assert lost == set()
