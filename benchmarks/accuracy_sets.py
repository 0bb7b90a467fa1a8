"""Defines the question sets (files in KGQA_DATA or in tests/) and the columns (options) of the table that accuracy.py prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import CHECKOUT, data_file

# kg_gold_dev is left out because it was built from the gold queries; questions that need it are not counted.
FREEBASE = tuple(
    f"freebase/{name}.nt.gz"
    for name in [
        "kg_arcane1",
        "kg_arcane2_skolem",
        "kg_epr_dev",
        "kg_fb237",
        "kg_fb237_cvt",
        "kg_grasp",
        "kg_inverse_closure",
        "kg_simplequestions",
        "kg_subgraphrag",
        "names",
        "schema",
    ]
)
METAQA = ("metaqa/kg.nt.gz", "metaqa/names.nt.gz")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The files of a graph, a question file, and the options with which accuracy.py uses them.

    Names of files are relative to KGQA_DATA; names that begin with `tests/` are relative to the checkout.

    The depth is the same for all sets of a family, so it does not reveal the number of hops.
    """

    kg: tuple[str, ...]
    questions: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def kg_files(self) -> list[Path]:
        return [_file(name) for name in self.kg]

    def question_file(self) -> Path:
        return _file(self.questions)


def _file(name: str) -> Path:
    return CHECKOUT / name if name.startswith("tests/") else data_file(*name.split("/"))


def _path_question(name: str) -> QuestionSet:
    kg, questions = f"pathquestion/{name}.kg.nt.gz", f"pathquestion/{name}.questions.dev.jsonl.gz"
    return QuestionSet((kg,), questions, {"walks": "free", "depth": 3})


SETS: dict[str, QuestionSet] = {
    "freebase_fast": QuestionSet(
        ("freebase_fast/kg.nt.gz", "freebase/schema.nt.gz"), "freebase_fast/questions.jsonl.gz"
    ),
    "webqsp": QuestionSet(FREEBASE, "freebase/questions_webqsp_test.dev.jsonl.gz"),
    "cwq": QuestionSet(FREEBASE, "freebase/questions_cwq_test.dev.jsonl.gz"),
    **{name: _path_question(name) for name in ("pq2h", "pq3h", "pql2h", "pql3h")},
    "wc_path2": QuestionSet(("wc2014/kg.nt.gz",), "wc2014/questions_path2.dev.jsonl.gz"),
    "wc_conj": QuestionSet(("wc2014/kg.nt.gz",), "wc2014/questions_conj.dev.jsonl.gz"),
    **{
        f"metaqa_{hops}": QuestionSet(
            METAQA, f"metaqa/questions_{hops}hop.dev.jsonl.gz", {"walks": "topic-never", "depth": 3}
        )
        for hops in (1, 2, 3)
    },
    "company": QuestionSet(("tests/company/graph.ttl",), "tests/company/questions.jsonl"),
}


def _without(**settings: object) -> dict[str, Any]:
    return {"settings": [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]}


TABLE: dict[str, dict[str, Any]] = {
    "default": {},
    "top-1": {"method": "top-1"},
    "top-2": {"method": "top-2"},
    "random": {"chooser": "random", "prefilter": "random"},
}
ABLATION: dict[str, dict[str, Any]] = {
    "default": {},
    "no alignment": _without(rank__alignment=0),
    "no answer type": _without(rank__answer_type=0),
    "no depth cue": _without(rank__depth_penalty=0),
    "no mask": _without(explore__mask="none"),
    "separate": {"combine": "separate"},
    "bm25 only": _without(rank__embeddings="off"),
    "sbert only": {"prefilter": "sbert"},
    "beam 3": _without(explore__beam=3),
}
"""The defaults of kgqa, and the defaults with one rule switched off."""
COLUMNS = TABLE | ABLATION
"""The settings of each column; options such as `--chooser trained:FILE` apply to columns that do not set them."""
