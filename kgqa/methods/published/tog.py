"""Think-on-Graph as published (Sun et al. 2024): a beam search over entities.

In each hop, the language model scores the relations of each entity, then the neighbours reached by each relation. A
neighbour's score is the product of both scores. If there are 20 or more neighbours, only a sample of them is scored.
After each hop, the model decides whether the triples found are enough to answer. Whole paths are never compared.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from functools import partial

from kgqa.llm.replies.json_values import Reading
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chain_search import LISTED, ChainSearch
from kgqa.methods.tog.chains import Chain
from kgqa.methods.tog.replies import BRACES, FORM, answer_braces, best_relations, listed_scores, separated
from kgqa.model import Answer, Candidate, Entity, Named, Question, Step, Value
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import relation_words
from kgqa.trace import Kept
from kgqa.trace.trace import Trace

MANY = 20
"""With this number of neighbours or more, only a sample of the neighbours is scored."""
SAMPLED = 5


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question; arguments and errors as in `top.answer`. Names of topics are not masked."""
    return PublishedSearch(question, resources, trace).answer(topics)


class PublishedSearch(ChainSearch):
    """The search for one question. Replies are read as the published program reads them, in one form only."""

    prompts = "tog/"

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        super().__init__(question, resources, trace)
        seed = f"{self._settings.rank.seed}\0{question.text}".encode("utf-8", "surrogatepass")
        self._random = random.Random(hashlib.blake2b(seed, digest_size=8).digest())

    def hop(self, frontier: Sequence[Chain]) -> list[Chain]:
        """Extend the chains by one hop; return the `explore.beam` best new chains with a score above 0."""
        found = self._neighbours(self.relations(frontier))
        best = sorted((chain for chain in found if chain.score > 0), key=lambda chain: -chain.score)[: self._width]
        self.record(best, len(found))
        paths = tuple(self.hops(chain.path) for chain in best)
        self._trace.record(Kept(hop=len(best[0].nodes) if best else 0, paths=paths))
        return best

    def _neighbours(self, steps: Sequence[tuple[Chain, Step, float]]) -> list[Chain]:
        paths = [Candidate(chain.from_end().then(step)) for chain, step, _ in steps]
        ends_of = self._graph.paths.ends(paths, limit=LISTED, tolerated=TOLERATED)
        reached = without_failures(steps, ends_of, self._trace, worded=lambda each: self.step_name(each[1]))
        every = [
            (chain.path.then(step), chain, step, score, self._sampled(chain, there.values))
            for (chain, step, score), there in reached
        ]
        found = [Chain(path, (*chain.nodes, ends[0]), score) for path, chain, _, score, ends in every if len(ends) == 1]
        several = [each for each in every if len(each[-1]) > 1]
        # fetch all names in one batch
        self._graph.labels(end for *_, ends in several for end in ends if isinstance(end, Entity))
        values = [
            {"relation": self.step_name(step), "entities": [self.name(end) for end in ends]}
            for _, _, step, _, ends in several
        ]
        read = self.ask("entities", "entity", values, [partial(_read_entities, size=len(ends)) for *_, ends in several])
        for (path, chain, _, score, ends), scores in zip(several, read):
            # all neighbours get equal scores after an unreadable reply
            shares = scores or (1 / len(ends),) * len(ends)
            found += [Chain(path, (*chain.nodes, end), score * share) for end, share in zip(ends, shares)]
        return found

    def _sampled(self, chain: Chain, ends: Sequence[Value]) -> list[Value]:
        known = (chain.path.topic, *chain.nodes)
        # blank nodes cannot be queried
        new = [e for e in ends if e not in known and not (isinstance(e, Entity) and e.iri.startswith("_:"))]
        return self._random.sample(new, min(SAMPLED, len(new))) if len(new) >= MANY else new

    def triples(self) -> list[str]:
        """Return the triples of all kept chains in words."""
        schema, labels = self._graph.schema, self._graph.tables.relation_labels
        texts = (
            f"{self.name(subject)}; {relation_words(relation, schema, labels)}; {self.name(object_)}"
            for chain in self.chains
            for subject, relation, object_ in chain.path.triples_along((chain.path.topic, *chain.nodes))
            if isinstance(subject, Entity)
        )
        return list(dict.fromkeys(texts))

    def step_name(self, step: Step) -> str:
        """Return the id of a relation, whatever its direction."""
        return self._graph.schema.short_id(step.relation)

    @staticmethod
    def read_relations(text: str, names: list[str]) -> Reading[tuple[tuple[str, float], ...]]:
        """Read the relations in the form {name (Score: 0.5)}."""
        found: dict[str, float] = {}
        for line in text[-20_000:].splitlines():
            match = FORM.search(line)
            if match and match[1] in names:
                found.setdefault(match[1], min(float(match[2]), 1.0))
        return best_relations(found)

    @staticmethod
    def read_sufficient(text: str) -> Reading[tuple[str, ...]]:
        """Read the first text in braces as the verdict, and all later ones as answers."""
        verdict = (*BRACES.findall(text[:20_000]), "")[0].strip().lower()
        if verdict == "no":
            return Reading((), False, "")
        return (
            separated(answer_braces(text))
            if verdict == "yes"
            else Reading(None, False, "It begins neither with {Yes} nor with {No}.")
        )

    @staticmethod
    def read_answer(text: str) -> Reading[tuple[str, ...]]:
        """Read all texts in braces as answers."""
        return separated(answer_braces(text))


def _read_entities(text: str, size: int) -> Reading[tuple[float, ...]]:
    numbers = listed_scores(text)
    return Reading(numbers if len(numbers) == size else None, False, f"It does not give {size} numbers.")
