"""Compares the facts that kgqa extracts from MuSiQue passages with those that GPT-3.5 extracted from the same passages.

The passages and GPT-3.5's triples come from musique/openie_gpt35.json.gz. The sample is the same on every run.

- facts: accepted facts; dates and numbers may be literals.
- true spans: share of the facts whose place in the text names the object, and the subject unless the passage is about it.
- entities: share of the named entities that GPT-3.5 lists that are in the facts or entities.
- GPT-3.5's facts: share of its triples that have a counterpart here: a fact whose subject and object have the same names
  in either order (`same`), or names one of which contains the other (`similar`).
- topics: share of the passages whose title is the subject of a fact.

    python benchmarks/extraction.py --llm URL [--extract triples|hyperedges|openie] [--passages 20] [--facts FILE]
    python benchmarks/extraction.py --extract rules
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from common import data_file, machine, print_json, print_table

from kgqa.corpus.documents.document import Document
from kgqa.corpus.extraction.estimates import estimate
from kgqa.corpus.extraction.names import NameFinder, folded_name
from kgqa.corpus.extraction.openie import OpenIEPassage, stream_openie
from kgqa.corpus.extraction.opening import open_extractor
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.extraction.rules.values import DATE_PATTERN, read_value
from kgqa.corpus.items import EntityItem, HyperedgeItem, Party, StatementItem
from kgqa.llm.client import CORPUS_STAGES
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.settings.values import resolve

DATE = re.compile(re.sub(r"\?P<\w+>", "?:", DATE_PATTERN), re.IGNORECASE)
Fact = tuple[str, str, str, str]
"""Subject, relation, object, and the text at its place."""


def facts_of(result: ChunkResult, document: Document) -> list[Fact]:
    """Return statements as facts; a hyperedge gives one fact for each pair of its participants."""
    found: list[Fact] = []
    for each in result.additions:
        item, words = each.item, document.text[each.begin : each.end]
        if isinstance(item, StatementItem):
            value = item.object.name if isinstance(item.object, Party) else item.object.value
            found.append((item.subject.name, item.relation, value, words))
        elif isinstance(item, HyperedgeItem):
            found += [(a.name, item.segment, b.name, words) for (_, a), (_, b) in combinations(item.participants, 2)]
    return found


def names_of(result: ChunkResult, facts: Sequence[Fact]) -> set[str]:
    listed = [each.item.party.name for each in result.additions if isinstance(each.item, EntityItem)]
    return {shape(name) for name in (*listed, *(fact[0] for fact in facts), *(fact[2] for fact in facts))}


def has_true_span(fact: Fact, title: str) -> bool:
    """Return whether the place of a fact names its object, and its subject unless that is the topic."""
    subject, _, object_, words = fact
    there = NameFinder(words)
    values = {shape(word) for word in DATE.findall(words)} | {shape(word) for word in words.split()}
    return (object_ in there or shape(object_) in values) and (subject in there or is_similar(subject, title))


def shape(text: str) -> str:
    """Return the form in which names, dates and numbers are compared."""
    text = text.strip(".,;:()")
    value = read_value(text, "year")
    return value.value if value else text if re.fullmatch(r"\d{4}-\d\d", text) else folded_name(text)


def is_similar(one: str, other: str) -> bool:
    """Return whether all words of one name are in the other."""
    a, b = set(shape(one).split()), set(shape(other).split())
    return bool(a and b) and (a <= b or b <= a)


def counterparts(gold: Sequence[Fact], facts: Sequence[Fact]) -> tuple[int, int]:
    """Return how many gold facts have a counterpart with the same names, and with similar names."""
    pairs = [{shape(fact[0]), shape(fact[2])} for fact in facts]
    same = sum({shape(fact[0]), shape(fact[2])} in pairs for fact in gold)
    similar = sum(
        any(
            (is_similar(one[0], other[0]) and is_similar(one[2], other[2]))
            or (is_similar(one[0], other[2]) and is_similar(one[2], other[0]))
            for other in facts
        )
        for one in gold
    )
    return same, similar


def measure(side: str, passages: Sequence[OpenIEPassage], results: dict[str, ChunkResult]) -> dict[str, Any]:
    facts = true = entities = known = gold_facts = same = similar = topics = rejected = failed = 0
    for passage in passages:
        result, document = results[passage.chunk.chunk], passage.document
        found, gold = facts_of(result, document), facts_of(passage.result, document)
        facts += len(found)
        true += sum(has_true_span(fact, document.title) for fact in found)
        listed = {shape(name) for name in gold_entities(passage)}
        known += len(listed)
        entities += len(listed & names_of(result, found))
        one, other = counterparts(gold, found)
        gold_facts, same, similar = gold_facts + len(gold), same + one, similar + other
        topics += any(is_similar(fact[0], document.title) for fact in found)
        rejected += len(result.rejected)
        failed += result.status == "failed"
    return {
        "side": side,
        "passages": len(passages),
        "failed": failed,
        "facts": facts,
        "true spans": true / max(1, facts),
        "entities": entities / max(1, known),
        "same": same / max(1, gold_facts),
        "similar": similar / max(1, gold_facts),
        "topics": topics / max(1, len(passages)),
        "rejected": rejected,
    }


def gold_entities(passage: OpenIEPassage) -> list[str]:
    """Return the named entities that the file lists, which come first among the additions."""
    names = []
    for each in passage.result.additions:
        if not isinstance(each.item, EntityItem):
            break
        names.append(each.item.party.name)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", help="language model, such as the URL of a server")
    parser.add_argument("--extract", default="auto", choices=("auto", "triples", "hyperedges", "openie", "rules"))
    parser.add_argument("--passages", type=int, default=20)
    parser.add_argument("--replay", help="file with recorded replies")
    parser.add_argument("--facts", type=Path, help="JSON file to which the facts and what was rejected are written")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = list(stream_openie(data_file("musique", "openie_gpt35.json.gz"), model="GPT-3.5"))
    passages = sorted(every, key=lambda each: each.document.digest)[: options.passages]
    settings = resolve({"llm.model": options.llm, "corpus.extract": options.extract, "llm.replay": options.replay})
    models = open_models(settings, stages=CORPUS_STAGES)
    extractor = open_extractor(settings, models, Prompts())
    assert extractor is not None
    requests = [ExtractionRequest(each.document, each.chunk) for each in passages]
    started = time.perf_counter()
    results = {result.chunk: result for result in extractor.extract(requests)}
    seconds = time.perf_counter() - started
    rows = [measure(extractor.name, passages, results)]
    rows.append(measure("GPT-3.5", passages, {each.chunk.chunk: each.result for each in passages}))
    found: dict[str, Any] = {"rows": rows, "seconds": round(seconds, 2), "machine": machine()}
    if models is not None and options.extract != "rules":
        mode = "triples" if options.extract == "auto" else options.extract
        guess = estimate(requests, mode=mode, prompts=Prompts(), limit=settings.corpus.limit)
        spent = extractor.spent  # type: ignore[attr-defined]
        found["estimate"] = [guess.calls, guess.prompt_tokens, guess.completion_tokens]
        found["spent"] = [spent.calls, spent.prompt_tokens, spent.completion_tokens, spent.reasked, spent.repaired]
        models.close()
    if options.facts:
        options.facts.write_text(json.dumps(details(passages, results), ensure_ascii=False, indent=1), encoding="utf-8")
    if options.json:
        print_json(found)
        return
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    for name in ("seconds", "estimate", "spent"):
        if name in found:
            print(f"{name}: {found[name]}")


def details(passages: Sequence[OpenIEPassage], results: dict[str, ChunkResult]) -> list[dict[str, Any]]:
    return [
        {
            "title": passage.document.title,
            "facts": facts_of(results[passage.chunk.chunk], passage.document),
            "gpt-3.5": facts_of(passage.result, passage.document),
            "rejected": results[passage.chunk.chunk].rejected,
            "reason": results[passage.chunk.chunk].reason,
        }
        for passage in passages
    ]


if __name__ == "__main__":
    main()
