"""A simulated language model that answers from its memory of the real world whenever a prompt lets it.

It compares, selects and accepts paths by the gold of the graph, like `ModelOracle`. A method that adopts its answers is
right on the real graph and wrong on a fictional one; a method that reads the ends of accepted paths is right on both.
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
        memory: names of the real answers by question, as worded in the prompt. Other questions, such as masked ones,
            are answered as by `ModelOracle`.
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
