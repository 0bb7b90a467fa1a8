"""The tools as an environment for trainers."""

from __future__ import annotations

import inspect
import json

import pytest

from kgqa.corpus.editing.proposals import ProposalFile
from kgqa.errors import KgqaError, SettingsError
from kgqa.methods.evograph.environment import make_environment


def results(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_each_object_is_a_session_and_reset_forgets_it(written):
    made = make_environment(written[0], web=f"replay:{written[1]}", embeddings="off", results=3)
    one, other = made(), made()
    one.reset(question="Where did Mara Holt die?", answer="not read")
    found = results(one.graph_search("Mara Holt died")) + results(one.web_search("Mara Holt died"))
    web = found[-1]
    assert [each["number"] for each in found] == list(range(1, len(found) + 1)) and web["kind"] == "web"
    assert "Done" in one.insert("Mara Holt died in Oster Quay in 1930.", [web["number"]])
    assert "was not shown" in other.insert("Mara Holt died in Oster Quay in 1930.", [1])
    assert "1930" in one.graph_search("died Oster Quay 1930") or "Found again" in one.graph_search("1930 Oster Quay")
    assert results(other.graph_search("Oster Quay died 1930")) == [] or "1930" not in other.graph_search("died 1930")
    one.reset(question="Again?")
    assert results(one.graph_search("Mara Holt"))[0]["number"] == 1
    assert "1930" not in one.graph_search("died 1930")
    assert ProposalFile(written[0]).records() == []  # nothing is kept


def test_methods_are_the_tools_with_types_and_descriptions(written):
    made = make_environment(written[0], embeddings="off", tools="graph_search,insert")
    public = [name for name, _ in inspect.getmembers(made(), inspect.ismethod) if not name.startswith("_")]
    assert public == ["graph_search", "insert", "reset"]
    for name in public[:2]:
        assert "Args:" in inspect.getdoc(getattr(made, name))
        assert all(
            each.annotation is not each.empty
            for each in list(inspect.signature(getattr(made(), name)).parameters.values())
        )


@pytest.mark.parametrize("arguments", [{"query": 3}, {"query": ""}, {"query": ["a"]}])
def test_wrong_arguments_are_told_and_raise_nothing(written, arguments):
    environment = make_environment(written[0], embeddings="off")()
    assert "must be a text" in environment.graph_search(**arguments)


def test_wrong_settings_are_refused(written, tmp_path):
    with pytest.raises(SettingsError):
        make_environment(written[0], nosuch=1)
    with pytest.raises(KgqaError):
        make_environment(tmp_path)
