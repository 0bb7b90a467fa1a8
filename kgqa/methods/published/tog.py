"""Think-on-Graph as published (Sun et al. 2024): a beam search over entities.

In each hop, the language model scores the relations of each entity, then the neighbours reached by each relation. A
neighbour's score is the product of both scores. If there are 20 or more neighbours, only a sample of them is scored.
After each hop, the model decides whether the triples found are enough to answer. Whole paths are never compared.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping, Sequence

from kgqa.methods.resources import Resources
from kgqa.methods.tog.chain_search import LISTED, ChainSearch
from kgqa.methods.tog.chains import NodeChain
from kgqa.model import Answer, Candidate, Entity, Named, Question, Step, Value
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import relation_words
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
    """The search for one question."""

    published = True

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        super().__init__(question, resources, trace)
        seed = f"{self._settings.rank.seed}\0{question.text}".encode("utf-8", "surrogatepass")
        self._random = random.Random(hashlib.blake2b(seed, digest_size=8).digest())

    def hop(self, frontier: Sequence[NodeChain]) -> list[NodeChain]:
        """Extend the chains by one hop; return the `explore.beam` best new chains with a score above 0."""
        steps = self.relations(frontier)
        paths = [Candidate(chain.onward(step)) for chain, step, _ in steps]
        ends_of = self._graph.paths.ends(paths, limit=LISTED, tolerated=TOLERATED)
        reached = without_failures(steps, ends_of, self._trace, worded=lambda each: self.step_name(each[1]))
        every = [
            (step, [chain.then([step], [end], score) for end in self._sampled(chain, there.values)])
            for (chain, step, score), there in reached
        ]
        found = [chain for _, chains in every if len(chains) == 1 for chain in chains]
        several = [(step, chains) for step, chains in every if len(chains) > 1]
        # fetch all names in one batch
        self._graph.labels(each.end for _, chains in several for each in chains if isinstance(each.end, Entity))
        found += self.rated(
            [
                ({"relation": self.step_name(step), "entities": [self.name(each.end) for each in chains]}, chains)
                for step, chains in several
            ]
        )
        best = sorted((chain for chain in found if chain.score > 0), key=lambda chain: -chain.score)
        return self.keep(best[: self._width], len(found))

    def _sampled(self, chain: NodeChain, ends: Sequence[Value]) -> list[Value]:
        known = (chain.path.topic, *chain.nodes)
        # blank nodes cannot be queried
        new = [e for e in ends if e not in known and not (isinstance(e, Entity) and e.iri.startswith("_:"))]
        return self._random.sample(new, SAMPLED) if len(new) >= MANY else new

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

    def step_name(self, step: Step, taken: Collection[str] = ()) -> str:
        """Return the id of a relation, whatever its direction."""
        return self._graph.schema.short_id(step.relation)
