"""The methods by name: methods of kgqa, and methods from other packages (entry points `kgqa.methods`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pkgutil import resolve_name
from typing import Any

from kgqa.errors import SettingsError
from kgqa.model import Answer
from kgqa.plugins import MethodExtension, plugin
from kgqa.settings.setting import Section, variant
from kgqa.settings.values import Settings, preset_names
from kgqa.text.hints import Option


@dataclass(frozen=True)
class Method(MethodExtension):
    """A question answering method: what it needs, and what it declares (see `MethodExtension`).

    Attributes:
        answer: Called as `(question, *, resources, trace, topics, names)`; an exception becomes a failed answer. A
            string such as "mypackage.search:answer" names a function that is imported when the method is used.
        published: Called in place of `answer` with the preset "as-published": a method of its own, in
            `kgqa.methods.published`, that follows the publication. It needs a language model.
        published_note: What of the publication can't be followed, a note of each answer with this preset.
        published_by: The methods that the publication describes, if this is none of them.
        topics: Whether the method needs the topic entities of the question. If so, kgqa finds and checks them, and
            declines questions that paths cannot answer.
        corpus: Whether the method needs a text corpus.
        graph: Whether the method reads the graph.
        model: Whether the method needs a language model.
        embeddings: Whether to open the embedding model, which the ranking and the linking of topics use.
        images: Whether the method looks at the images of a question.
        in_order: Values of settings with which the questions of a batch are asked one at a time, in their order,
            because each depends on those before it.
    """

    answer: Callable[..., Answer] | Any
    _: KW_ONLY
    published: str = ""
    published_note: str = ""
    published_by: tuple[str, ...] = ()
    topics: bool = True
    corpus: bool = False
    graph: bool = True
    model: bool = False
    embeddings: bool = True
    images: bool = False
    in_order: Mapping[str, Any] = field(default_factory=dict)


def method(name: str, *, preset: str = "ours") -> Method:
    """Return a method by name, with the function `answer` imported: that for a preset, or several with commas.

    An entry point from another package is a `Method` or a function. A function becomes a method that needs topics and
    no language model.

    Raises:
        SettingsError: There is no such method, or it cannot be imported.
    """
    found = plugin("method", name)
    if not isinstance(found, Method):
        found = Method(found)
    if "as-published" in preset_names(preset) and (found.published or found.published_by):
        if found.published_by:
            raise SettingsError(
                f"No publication describes {name}.",
                *("Choose a method of the publication: ", Option("method", found.published_by[0])),
                *(part for other in found.published_by[1:] for part in (" or ", Option("method", other))),
            )
        found = replace(found, answer=found.published, model=True)
    else:
        found = replace(found, published_note="")
    place = found.answer
    if not isinstance(place, str):
        return found
    try:
        return replace(found, answer=resolve_name(place))
    except Exception as error:
        raise SettingsError(f"The method {name} cannot be loaded from {place}: {error}") from error


def asked_in_order(settings: Settings) -> bool:
    """Return whether each question of a batch depends on those before it, so that they are asked one at a time."""
    in_order = method(settings.ask.method).in_order
    return any(settings.values[key] == value for key, value in in_order.items())


UNTIL_ANSWERED = 99
_AS_PUBLISHED = {
    "ask.on_exhausted": "none",
    "explore.depth": 3,
    "explore.combine": "separate",
    "explore.entity_pool": 30,
    "explore.entity_chunk": 20,
    "rank.bm25": "okapi",
    "rank.lexical_weight": 1.0,
    "rank.pool": 30,
    "rank.chunk": 10,
    "rank.wording": "published",
    "llm.samples": 0,
    "llm.compare": "reasons",
    "llm.reask": 0,
}
# an ablation of the thesis, for both systems
_LAST_RELATION = {"explore.prune_by": "last-relation"}
_ECONOMY = {"rank.pool": 20, "rank.chunk": 20, "llm.compare": "choice"}
TOP = Method(
    "kgqa.methods.top:answer",
    summary="Tournament on Path with our best settings",
    usual=True,
    published_by=("top-1", "top-2"),
    presets={"economy": _ECONOMY},
)
# the two systems of the thesis (table 4.1)
TOP_1 = Method(
    "kgqa.methods.top:answer",
    published="kgqa.methods.published.top:system_1",
    summary="Tournament on Path, System 1 of the thesis",
    presets={
        "ours": {
            "explore.shape": "path+entity",
            "explore.beam": 3,
            "llm.mask": "none",
            "rank.prefilter": "rrf",
            "rank.lexical_weight": 1.0,
            "rank.tournament": "chunked",
            "explore.stop": "answered",
            "ask.compose": "composed",
        },
        "as-published": {**_AS_PUBLISHED, "explore.mask": "none", "explore.stop": "depth"},
        # a verdict after each hop makes up for tournaments of one prompt, and ends the search earlier
        "economy": {**_ECONOMY, "explore.stop": "accepted"},
        "last-relation": _LAST_RELATION,
    },
)
TOP_2 = Method(
    "kgqa.methods.top:answer",
    published="kgqa.methods.published.top:system_2",
    summary="Tournament on Path, System 2 of the thesis",
    presets={
        "ours": {
            "explore.shape": "path",
            "explore.beam": 3,
            "rank.prefilter": "sbert",
            "rank.tournament": "pairwise",
            "explore.stop": "accepted",
            "ask.compose": "ends",
        },
        # the search ends with an accepted path or the question's budget
        "as-published": {**_AS_PUBLISHED, "explore.mask": "id", "explore.depth": UNTIL_ANSWERED},
        "economy": {**_ECONOMY, "rank.tournament": "knockout"},
        "last-relation": _LAST_RELATION,
    },
)


class TogSettings(Section, name="tog"):
    """Settings of Think-on-Graph."""

    temperature: float = variant(
        0.4,
        "sampling temperature while Think-on-Graph explores; llm.temperature, if given, takes precedence",
        minimum=0,
    )


# width 3, depth 3; temperature 0.4 while exploring, 0 while reasoning (Sun et al. 2024, section 3.1)
TOG = Method(
    "kgqa.methods.tog.search:answer",
    published="kgqa.methods.published.tog:answer",
    summary="Think-on-Graph (baseline)",
    model=True,
    settings=TogSettings,
    presets={
        "ours": {"explore.beam": 3, "explore.depth": 3, "llm.mask": "none"},
        "as-published": {"rank.wording": "published", "llm.reask": 0},
    },
    stages={"filter": {"temperature": "tog.temperature"}, "entity": {"temperature": "tog.temperature"}},
)
IO = Method(
    "kgqa.methods.direct:answer_io",
    summary="The language model alone",
    topics=False,
    graph=False,
    model=True,
)
COT = Method(
    "kgqa.methods.direct:answer_cot",
    summary="The language model alone, step by step",
    topics=False,
    graph=False,
    model=True,
)
