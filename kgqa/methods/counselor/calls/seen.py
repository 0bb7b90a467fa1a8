"""The values that a language model has seen in observations, by id and by name."""

from __future__ import annotations

from kgqa.methods.counselor.calls.node_sets import NodeSet, union
from kgqa.methods.counselor.calls.observation_text import safe
from kgqa.methods.counselor.calls.observations import Observation
from kgqa.model import Entity, Literal, Named, Value
from kgqa.schema import Schema
from kgqa.text.words import local_name, normalise


class SeenValues:
    """Finds the values that were seen, by their ids and names.

    A name that several values have stands for those in the latest observation that shows one of them. A node that was
    retrieved starts a path of its own, whatever other paths lead to it.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._topics: dict[Value, NodeSet] = {}
        self._latest: dict[str, dict[Value, NodeSet]] = {}
        self.named: dict[str, dict[Value, Named]] = {}
        """By each id and normalised name: the values, those of the latest observation."""

    def add_topic(self, nodes: NodeSet, named: Named) -> None:
        """Add a node that was retrieved."""
        self._topics.setdefault(named.value, nodes)
        for key in self._keys(named):
            self._latest.setdefault(key, {}).setdefault(named.value, nodes)
            self.named.setdefault(key, {}).setdefault(named.value, named)

    def add(self, observation: Observation) -> None:
        """Add the values that an observation shows."""
        if observation.found is None or observation.call.name == "Retrieve":
            return
        nodes = NodeSet(observation.sources)
        added: dict[str, dict[Value, NodeSet]] = {}
        names: dict[str, dict[Value, Named]] = {}
        # the name of a node that was seen stands for the node, although it may be seen as a text, too
        known = {key for key, named in self.named.items() if any(isinstance(value, Entity) for value in named)}
        for each in observation.shown:
            one = self._topics.get(each.value) or nodes.among({each.value})
            if one.sources:
                for key in self._keys(each) - (known if isinstance(each.value, Literal) else set()):
                    added.setdefault(key, {})[each.value] = one
                    names.setdefault(key, {})[each.value] = each
        self._latest |= added
        self.named |= names

    def get(self, text: str) -> NodeSet | None:
        """Return the values with an id or name; None if no value that was seen has it."""
        for key in (text.strip(), normalise(text)):
            if found := self._latest.get(key):
                return union(list(found.values()))
        return None

    def _keys(self, named: Named) -> set[str]:
        """Return what a value may be called: its ids as they are, its name as it is compared."""
        keys = {normalise(named.name), normalise(safe(named.name)), named.name}
        if isinstance(named.value, Entity):
            keys |= {named.id, named.value.iri, local_name(named.value.iri), normalise(named.id)}
        return keys - {""}
