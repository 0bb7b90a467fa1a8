"""Question files for these tests: a few made-up records in each format."""

from __future__ import annotations

from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"

SOURCES = {
    "cwq": "ComplexWebQuestions_dev.json",
    "webqsp": "WebQSP.test.json",
    "grailqa": "grailqa_v1.0_dev.json",
    "webquestions": "webquestions.examples.test.json",
    "simplequestions": "annotated_fb_data_test.txt",
    "qald10": "qald_10.json",
    "lcquad2": "lcquad2_test.json",
    "hotpotqa": "hotpot_dev_distractor_v1.json",
    "2wikimultihopqa": "2wiki/dev.json",
    "musique": "musique_ans_v1.0_dev.jsonl",
    "nq": "NQ-open.dev.jsonl",
    "evqa": "evqa/test.csv",
    "infoseek": "infoseek_val.jsonl",
    "okvqa": "okvqa/OpenEnded_mscoco_val2014_questions.json",
    "grbench": "grbench/legal/data.json",
    "hipporag": "hipporag/boats.json",
    "hypergraphrag": "hypergraphrag/boats/questions.json",
    "ultradomain": "ultradomain_boats.jsonl",
    "tog-cwq": "tog/cwq.json",
    "tog-webqsp": "tog/WebQSP.json",
    "tog-grailqa": "tog/grailqa.json",
    "tog-webquestions": "tog/WebQuestions.json",
    "tog-simpleqa": "tog/SimpleQA.json",
    "tog-qald": "tog/qald_10-en.json",
}
"""One file of each format."""


@pytest.fixture
def source():
    """`source("cwq")`: the value of --dataset for the file of this format."""
    return lambda name, file=None: f"{name}:{FIXTURES / (file or SOURCES[name])}"
