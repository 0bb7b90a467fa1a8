"""The language of a question, and whether the graph has names in it.

A question is not in English if it has frequent words of another language and no frequent word of English, or if most of
its letters belong to a script that English does not use.
"""

from __future__ import annotations

import re
import unicodedata
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kgqa.errors import KgqaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.graph.tables.labels import languages_of_names
from kgqa.search.masking import drop_mentions
from kgqa.text.hints import Hint, Option
from kgqa.text.words import relation_words

NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}
_SCRIPTS = {
    "CYRILLIC": "ru uk bg sr mk be kk",
    "GREEK": "el",
    "ARABIC": "ar fa ur",
    "HEBREW": "he yi",
    "DEVANAGARI": "hi mr ne",
    "THAI": "th",
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh ja yue",
}
"""The languages that use a script, by the first word of the names of its characters; the first one is reported."""
_ASKING = {
    "en": "what which who whom whose where when why how name list give tell show find",
    "de": "wer wen wem wessen wie wo wann warum welche welcher welches welchem welchen woher wohin nenne",
    "fr": "qui quel quelle quels quelles où quand comment pourquoi combien",
    "es": "quién quien quiénes qué cuál cual cuáles dónde donde cuándo cuando cómo cuántos dime",
    "it": "chi quale qual quali dove quando perché quanti",
    "pt": "quem qual quais onde quando quantos",
    "nl": "wie wat welke welk waar wanneer waarom",
    "sv": "vem vad vilken vilket vilka när varför",
    "pl": "kto który która które jaki jaka jakie gdzie kiedy dlaczego",
    "cs": "kdo který která které jaký jaká jaké kde kdy proč",
    "tr": "hangi nerede nereye neresi neresidir nasıl kaç kimdir nedir",
}
"""Words with which questions begin, by language."""
_FREQUENT = {
    "en": "the of is are was were did does do has have had from with and for by to in on at his her their its that "
    "this me there",
    "de": "des ein eine einer einem einen ist sind wurde wurden hat haben hatte von vom mit und für aus im zum zur auf "
    "nach bei nicht auch über heißt dem",
    "fr": "les des un une du est sont était étaient fut dans avec et pour sur par ce cette ces ses leur au aux",
    "es": "los las una unos del fue fueron era está con y para por su sus este esta",
    "it": "lo gli una uno del della dello dei degli delle di è sono era fu stato stata nel nella con e per da dal "
    "dalla suo",
    "pt": "os um uma do da dos das nos nas é são foi foram era com e para por pelo pela seu sua em",
    "nl": "het een van zijn waren werd heeft hebben voor uit bij naar door niet ook deze dit heet",
    "sv": "och att är ett från med till på av hade blev heter",
    "pl": "jest są był była było od przez oraz jak",
    "cs": "je jsou byl byla bylo od se jak",
    "tr": "ve bir ile için olan",
}
"""Other frequent words, by language."""
_SHARED = frozenset(["do", "e", "era", "for", "in", "is", "me", "on", "per", "so", "to", "was"])
"""Words that are frequent in English and in other languages."""
_ARTICLES = frozenset(["la", "de", "die", "der", "das", "den", "le", "el", "il"])
"""Frequent words of several languages that are also part of many names in English texts."""
_WORDS = {language: frozenset(f"{_ASKING[language]} {words}".split()) for language, words in _FREQUENT.items()}
_ENGLISH = _WORDS["en"]
_FOREIGN = {language: words - _ENGLISH - _SHARED - _ARTICLES for language, words in _WORDS.items() if language != "en"}
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLES: weakref.WeakKeyDictionary[GraphTables, tuple[str, frozenset[str]]] = weakref.WeakKeyDictionary()


def question_language(question: str, mentions: Iterable[str] = ()) -> str:
    """Return the language code of a question; "" if unknown.

    Args:
        question: The question.
        mentions: The names of entities in the question, which may be in any language.
    """
    script = _script(question)
    if script:
        return _SCRIPTS[script].split()[0]
    words = [word.lower() for word in _WORD.findall(drop_mentions(question, list(mentions)))]
    if any(word in _ENGLISH and word not in _SHARED for word in words):
        return "en"
    counts = {language: len(known & set(words)) for language, known in _FOREIGN.items()}
    best = max(counts, key=lambda language: counts[language])
    asks = any(word in _ASKING[best].split() for word in words[:3])
    if counts[best] and counts[best] + asks + any(word in _ARTICLES for word in words) >= 2:
        return best
    return "en" if any(word in _ENGLISH for word in words) else ""


def _script(question: str) -> str:
    """Return the script of most letters; "" if it is Latin or unknown."""
    names = Counter(unicodedata.name(char, "").split(" ")[0] for char in question if char.isalpha())
    if not names:
        return ""
    if names["HIRAGANA"] or names["KATAKANA"]:
        names["HIRAGANA"] += names.pop("CJK", 0)
    first, count = names.most_common(1)[0]
    return first if first in _SCRIPTS and 2 * count > names.total() else ""


def language_notes(
    graph: KnowledgeGraph, question: str, mentions: Collection[str], *, topics: bool = False
) -> list[str]:
    """Return a note for the user if the graph has no names in the language of the question.

    `topics` says that the topics are given with the question. The languages of names are read once per graph, from
    some thousands of labels.
    """
    language = question_language(question, mentions)
    possible = set(_SCRIPTS[script].split()) if (script := _script(question)) else {language}
    # an English question whose entities are known costs no query
    known = _languages(graph) if language and not (language == "en" and (mentions or topics)) else frozenset()
    if not known or known & possible:
        return []
    names = sorted((NAMES.get(each, each) for each in known), key=lambda name: (name != "English", name))
    note = f"The question seems to be in {NAMES[language]}, but the names in this graph are in {_listed(names)}."
    add_topic = Hint("add ", Option("topic", "ID"), client=Option("topic", "ID"))
    return [f"{note} Ask in {names[0]}." if mentions or topics else f"{note} Ask in {names[0]}, or {add_topic}."]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (" and other languages" if len(names) > 4 else "")


def _languages(graph: KnowledgeGraph) -> frozenset[str]:
    """Return the languages of the graph's names; empty if they are unknown.

    If names have no language, the words of relations decide, such as "by" in "directed by".
    """
    version = graph.tables.version()
    known = _SAMPLES.get(graph.tables)
    if known is None or known[0] != version:
        try:
            found = languages_of_names(graph.tables.select, graph.schema)
            known = (version, _of_relations(graph) if found <= {""} else found - {""})
        except KgqaError:
            known = (version, frozenset())  # a note is not worth a failed question
        _SAMPLES[graph.tables] = known
    return known[1]


def _of_relations(graph: KnowledgeGraph) -> frozenset[str]:
    names = (relation_words(each, graph.schema, graph.relation_labels) for each in graph.relations)
    words = Counter(word.lower() for name in names for word in _WORD.findall(name))
    counts = {language: sum(words[word] for word in known) for language, known in _WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    return frozenset([best] if counts[best] else [])
