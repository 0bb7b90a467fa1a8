"""Whether the ends of a path are what a noun of the question names: by their types, or by the words of the relation."""

from __future__ import annotations

import re
from dataclasses import replace

from kgqa.model import Candidate, RelationPath, Step
from kgqa.model.conditions import Condition
from kgqa.rank.lexical import STOPWORDS, stem
from kgqa.search.conditions.beside import Beside
from kgqa.search.words import stems, word_list, word_table
from kgqa.text.words import type_words

UNTYPED_LEAST = 0.5
"""Least score of a path whose ends have no types, so that the question's noun can't be compared with them."""
NOUN_FITS = 0.8
"""Least cosine of two nouns that mean the same; most nouns with a lower one are neighbours, as "songs" and "music"."""
NOUN_NEAR = 0.65
"""Least cosine of two nouns that may mean the same or the opposite, as "brothers" and "sister"."""


class Undecidable(Exception):
    """The graph does not tell whether the best path answers the question, and worse paths leave out a part of it."""


def head_of(name: str) -> str:
    """Return the stem of the main noun of a name, in the singular: the last word, or the last before "in" or "born"."""
    head = ""
    for word in re.findall(r"[^\W_]+", name.lower()):
        if head and (word in STOPWORDS or word in word_list("after_noun")):
            break
        head = stem(word)
    return str(word_table("plurals", "en").get(head, head))


class Nouns:
    """Compares the nouns of one question with the ends of paths.

    Args:
        beside: Looks up types.
        named: The names of the topics in the question.
    """

    def __init__(self, beside: Beside, named: str) -> None:
        self._beside = beside
        self._named = frozenset(stems(named))

    def type_step(self) -> Step | None:
        """Return the step from an entity to its type; None if no entity of the graph has one."""
        graph = self._beside.graph
        return next((Step(each) for each in graph.schema.types if each in graph.tables.relations), None)

    def are_instances(self, path: RelationPath) -> bool:
        """Return whether a path begins with the step from a type to its instances."""
        return path.steps[0].direction == "in" and path.steps[0].relation in self._beside.graph.schema.types

    def fitting(self, candidate: Candidate, noun: str, score: float) -> Candidate | None:
        """Return the candidate if its ends are what a noun names, with a type if only some are; else None.

        Raises:
            Undecidable: Some ends have a type that the noun names, and others have no type.
        """
        last = candidate.path.steps[-1]
        is_known = set(stems(noun)) < self._named or (len(candidate.path) == 1 and self.are_instances(candidate.path))
        if not stems(noun) or noun == "person" or is_known:
            return candidate
        if any(step.direction == "in" and self._means(self._noun_of(step), noun) for step in candidate.path.steps):
            return None  # backwards, "children" leads to parents, and from there to siblings
        types = self._beside.types(candidate)
        every = frozenset(end for ends in types.values() for end in ends)
        if not every and last.direction == "in":
            near = self._beside.similarity(noun, [self._noun_of(last)])[0] >= NOUN_NEAR
            return candidate if score >= UNTYPED_LEAST and not near else None
        names = dict(zip(types, self._beside.type_names(list(types))))
        same = [type_ for type_, name in names.items() if head_of(name) == head_of(noun)]
        best = max(same, key=lambda type_: (stems(names[type_]) == stems(noun), len(types[type_])), default=None)
        if self.is_property(candidate, noun) or (best is not None and types[best] == every):
            return candidate
        if best is None:
            declared = self._beside.graph.tables.target_type(last)
            return (
                candidate if declared and self._means(type_words(declared, self._beside.graph.schema), noun) else None
            )
        if len(every) < len(self._beside.ends(candidate)):
            raise Undecidable
        step = self.type_step()
        assert step is not None
        return replace(candidate, conditions=(*candidate.conditions, Condition(len(candidate.path), (step,), best)))

    def is_property(self, candidate: Candidate, noun: str) -> bool:
        """Return whether the last relation of a path, without its domain, says that its ends are what a noun names."""
        last = candidate.path.steps[-1]
        return last.direction == "out" and self._means(self._noun_of(last), noun)

    def _noun_of(self, step: Step) -> str:
        """Return the words of a relation without its domain, or its label."""
        graph = self._beside.graph
        labelled = step.relation in graph.tables.relation_labels
        return self._beside.words(step) if labelled else type_words(step.relation, graph.schema)

    def _means(self, words: str, noun: str) -> bool:
        """Return whether two nouns mean the same.

        "Mountain" and "mountain range", with a word in common, do not; nor do opposites such as "wives" and "husband".
        """
        asked, other = head_of(noun), head_of(words)
        if asked == other:
            return True
        if set(stems(noun)) & set(stems(words)):
            return False
        if word_table("synonyms", "en").get(asked) == other:
            return True
        if {asked, other}.intersection(word_list("with_opposite")):
            return False
        return max(self._beside.similarity(each, [words])[0] for each in (noun, noun.removesuffix("s"))) >= NOUN_FITS
