"""A language model that knows the real answers and gives them wherever it may, whatever the graph says.

About paths it is as truthful as `ModelOracle`: it compares, selects and accepts by the gold of the graph at hand. Only
where a prompt lets it answer does it answer from memory. So a method that takes its word is right about the world and
wrong about a fictional graph, and one that reads the ends of accepted paths is right about both.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.testing.model_oracle import Gold, ModelOracle


@dataclass
class MemoryOracle(ModelOracle):
    """Replies for `ScriptedServer`.

    Args:
        memory: names of the real answers by question, as it stands in the prompt. What is not in it is answered as
            `ModelOracle` does; a masked question is in nobody's memory.
    """

    memory: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def _answer(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        return self._remembered(fields) or super()._answer(gold, asked, fields, chance)

    def _recall(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        return self._remembered(fields) or super()._recall(gold, asked, fields, chance)

    def _sufficient(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        known = self.memory.get(fields.get("Question", ""), ())
        if known and self._right(chance):
            return f"{{Yes}}. It is {{{'; '.join(known)}}}."
        return super()._sufficient(gold, asked, fields, chance)

    def _remembered(self, fields: dict[str, str]) -> str:
        known = self.memory.get(fields.get("Question", ""), ())
        return json.dumps({"answers": list(known)}) if known else ""
