"""A simulated language model that answers from its memory of the real world whenever a prompt asks for answers.

The model compares, selects and accepts paths according to the gold paths of the graph, like `ModelOracle`. A method
that adopts the model's answers is right on the real graph and wrong on a fictional graph. A method that takes the
answers from the ends of accepted paths is right on both graphs.
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
        memory: map from each question, worded as in the prompt, to the names of its real answers. Questions that are
            not in this map, such as masked questions, get the replies of `ModelOracle`.
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
