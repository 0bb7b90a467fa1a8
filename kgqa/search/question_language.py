"""The language of a question, and whether the graph has names in it.

A question is not in English if it has frequent words of another language and no frequent word of English, or if most of
its letters belong to a script that English does not use.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from kgqa.errors import KgqaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.graph.tables.labels import languages_of_names
from kgqa.search.masking import drop_mentions
from kgqa.search.words import folded, word_list, word_table
from kgqa.text.hints import Hint, Option
from kgqa.text.words import relation_words

_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}"
"""A number with a point between thousands or a comma before decimals."""
_MARKS = str.maketrans(".,", ",.")


@cache
def _frequent() -> Mapping[str, frozenset[str]]:
    """Return the frequent words of each language, those with which questions begin included."""
    tables = word_table("languages").items()
    return {
        language: frozenset(f"{table['asking']} {table['frequent']}".split())
        for language, table in tables
        if "frequent" in table
    }


def question_language(question: str, mentions: Iterable[str] = ()) -> str:
    """Return the language code of a question; "" if unknown.

    Args:
        question: The question.
        mentions: The names of entities in the question, which may be in any language.
    """
    text = drop_mentions(question, list(mentions))
    if written := _written_in(text):
        return written[0]
    words = [word.lower() for word in _WORD.findall(text)]
    english = _frequent()["en"]
    if english.difference(word_list("shared", "any")).intersection(words):
        return "en"
    asking = {each: word_table("languages")[each]["asking"].split() for each in _frequent()}
    counts = {
        language: len((known - english).intersection(words)) + bool(set(asking[language]).intersection(words[:3]))
        for language, known in _frequent().items()
    }
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] > 1 else "en" if english.intersection(words) else ""


def in_english(question: str, names: Collection[str]) -> str:
    """Return a question with English words in place of its question words, articles, superlatives and the like.

    Its numbers get the English marks for thousands and decimals. So the English rules read its form; the names of
    entities and the other words stay. A question in a language without a table of such words is returned as it is.
    """
    words = word_table("in_english").get(question_language(question, names), {})
    if not words:
        return question
    kept = sorted(filter(None, names), key=len, reverse=True)
    every = "|".join(re.escape(each) for each in (*kept, *sorted(words, key=len, reverse=True)))
    return re.sub(
        rf"(?<!\w)(?:{every}|(?P<number>{_NUMBER}))(?!\w)",
        lambda found: (found["number"] or "").translate(_MARKS) or words.get(folded(found[0]), found[0]),
        question,
        flags=re.IGNORECASE,
    )


def _written_in(question: str) -> list[str]:
    """Return the languages that use the script of most letters; none if it is Latin or unknown."""
    scripts = Counter(unicodedata.name(char, "").split(" ")[0] for char in question if char.isalpha())
    if scripts["HIRAGANA"] or scripts["KATAKANA"]:
        scripts["HIRAGANA"] += scripts.pop("CJK", 0)
    first, count = max(scripts.items(), key=lambda item: item[1], default=("", 0))
    languages = word_table("scripts").get(first, "").split()
    return languages if 2 * count > scripts.total() else []


def language_notes(
    graph: KnowledgeGraph, question: str, mentions: Collection[str], *, topics: bool = False
) -> list[str]:
    """Return a note for the user if the graph has no names in the language of the question.

    `topics` says that the topics are given with the question. The languages of names are read once per graph, from
    some thousands of labels.
    """
    language = question_language(question, mentions)
    # an English question whose entities are known costs no query
    is_checked = language and not (language == "en" and (mentions or topics))
    known = graph.tables.values.get("languages", lambda: _languages(graph.tables)) if is_checked else frozenset()
    if not known or known.intersection(_written_in(drop_mentions(question, list(mentions))) or [language]):
        return []
    names = [word_table("languages").get(each, {}).get("name", each) for each in known]
    names.sort(key=lambda name: (name != "English", name))
    listed = ", ".join(names[:4]) + (" and other languages" if len(names) > 4 else "")
    asked = word_table("languages")[language]["name"]
    note = f"The question seems to be in {asked}, but the names in this graph are in {listed}."
    add_topic = Hint("add ", Option("topic", "ID"), client=Option("topic", "ID"))
    return [f"{note} Ask in {names[0]}." if mentions or topics else f"{note} Ask in {names[0]}, or {add_topic}."]


def _languages(tables: GraphTables) -> frozenset[str]:
    """Return the languages of the names in a graph; empty if they are unknown.

    If names have no language, the words of relations decide, such as "by" in "directed by".
    """
    try:
        found = languages_of_names(tables.select, tables.schema)
    except KgqaError:
        return frozenset()  # a note is not worth a failed question
    if not found <= {""}:
        return frozenset(found - {""})
    names = (relation_words(each, tables.schema, tables.relation_labels) for each in tables.relations)
    words = Counter(word.lower() for name in names for word in _WORD.findall(name))
    counts = {language: sum(words[word] for word in known) for language, known in _frequent().items()}
    best = max(counts, key=lambda language: counts[language])
    return frozenset([best] if counts[best] else [])
