"""Graph Counselor: what it needs, its settings, presets and stages."""

from __future__ import annotations

from typing import Any, Literal

from kgqa.methods.registry import Method
from kgqa.settings.setting import Section, setting, variant

_TURN: dict[str, Any] = {"temperature": 0.7, "top_p": 0.9}
"""Sampling of Graph Counselor (section 3.1 of the paper)."""
_STEP = {**_TURN, "max_tokens": "counselor.step_tokens"}


class CounselorSettings(Section, name="counselor"):
    """Settings of Graph Counselor."""

    steps: int = setting(10, "maximum number of steps per trial", minimum=1, maximum=50)
    reflections: int = setting(
        2, "how often the language model reflects on a rejected answer and tries again", minimum=0, maximum=5
    )
    shown: int = setting(50, "maximum number of values in an observation", minimum=1, maximum=1000)
    agents: Literal["separate", "merged"] = variant(
        "separate", "separate: a prompt each for plan, missing fact and actions; merged: one prompt for all three"
    )
    plan: Literal["on", "off"] = variant("on", "on: every step begins with a plan; off: it does not")
    compose: Literal["on", "off"] = variant(
        "on", "on: calls may stand inside and beside each other; off: one call a step"
    )
    functions: Literal["sets", "published"] = variant(
        "sets", "sets: with intersection, difference, count and most shared neighbours; published: without them"
    )
    retrieve: Literal["names", "dense"] = variant(
        "names",
        "how a node is found from text: names: by its name, then by similarity; dense: by similarity of the texts of "
        "all nodes, as published",
    )
    reflect: Literal["full", "perspectives", "short", "plain", "last-trial"] = variant(
        "full",
        "what a reflection contains: full: recap, analysis and a new strategy; perspectives: other readings of the "
        "question only; short: one sentence; plain: free text; last-trial: no reflection, but the last trial",
    )
    step_tokens: int | None = variant(None, "maximum tokens of a plan, a missing fact or actions", minimum=1)
    reflection_tokens: int | None = variant(None, "the same for a reflection", minimum=1)
    verify_tokens: int | None = variant(None, "the same for a verdict", minimum=1)
    verify_temperature: float = variant(0.0, "sampling temperature of verdicts", minimum=0)


# numbers as published: appendix D.2, sections 3.1 and 3.4.2 of Graph Counselor (Gao et al. 2025)
COUNSELOR = Method(
    "kgqa.methods.counselor.answering:answer",
    published="kgqa.methods.published.counselor:answer",
    published_note="As published, except that an answer is judged once, not twice.",
    summary="Functions of the graph, called in steps, with reflection",
    topics=False,
    model=True,
    settings=CounselorSettings,
    presets={
        "as-published": {
            "counselor.functions": "published",
            "counselor.retrieve": "dense",
            "counselor.shown": 1000,
            "counselor.step_tokens": 512,
            "counselor.reflection_tokens": 1024,
            "counselor.verify_tokens": 256,
            "counselor.verify_temperature": 0.3,
            "llm.reask": 0,
        },
        "economy": {"counselor.agents": "merged", "counselor.steps": 6, "counselor.reflections": 1},
        # the ablations of figures 3 and 4
        "no-plan": {"counselor.plan": "off"},
        "no-complex": {"counselor.compose": "off"},
        "perspectives": {"counselor.reflect": "perspectives"},
        "short-reflection": {"counselor.reflect": "short"},
        "plain-reflection": {"counselor.reflect": "plain"},
        "last-trial": {"counselor.reflect": "last-trial"},
    },
    stages={
        "plan": _STEP,
        "think": _STEP,
        "act": _STEP,
        "verify": {"temperature": "counselor.verify_temperature", "max_tokens": "counselor.verify_tokens"},
        "reflect": {**_TURN, "max_tokens": "counselor.reflection_tokens"},
    },
)
