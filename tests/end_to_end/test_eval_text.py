"""`kgqa eval` over a text corpus: passages of a data set, recall of supporting passages, several methods."""

from __future__ import annotations

import json

import pytest

from kgqa.testing.server import ScriptedServer

OFF = ("--embeddings", "off")
PEOPLE = {"Tollo": "Tollen", "Mira": "Brenn", "Ovid": "Harrow"}


def rows() -> list[dict]:
    """Questions in the format of MuSiQue, each with two supporting passages and one that is not."""
    found = []
    for number, (person, town) in enumerate(PEOPLE.items()):
        texts = {
            person: f"{person} rowed the ferry of {town}.",
            "Mill": "The mill grinds rye.",
            town: f"{town} lies on Lake {town}see.",
        }
        paragraphs = [
            {"idx": place, "title": title, "paragraph_text": text, "is_supporting": title != "Mill"}
            for place, (title, text) in enumerate(texts.items())
        ]
        question = f"On which lake does the town lie whose ferry {person} rowed?"
        found.append(
            {"id": f"2hop__{number}", "question": question, "answer": f"Lake {town}see", "paragraphs": paragraphs}
        )
    return found


@pytest.fixture
def corpus(kgqa, tmp_path):
    (tmp_path / "dev.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows()))
    done = kgqa("corpus", "build", "--dataset", "musique:dev.jsonl", "--into", "corpus", *OFF)
    assert "Documents: 7 added" in done.out, done.out + done.err
    return tmp_path / "corpus"


def reply(messages) -> str:
    """Answer with the lake of the person in the question, and quote the first passage."""
    prompt = messages[-1]["content"]
    town = next((town for person, town in PEOPLE.items() if f"ferry {person} rowed" in prompt), "")
    support = [{"claim": "c", "passage": 1, "quote": "rowed the ferry"}]
    return json.dumps({"answers": [f"Lake {town}see"], "response": f"It is Lake {town}see.", "support": support})


def test_several_methods_over_a_corpus(kgqa, tmp_path, corpus):
    with ScriptedServer(reply) as server:
        command = (
            "eval", "run", "--dataset", "musique:dev.jsonl", "--graph", "corpus", "--method", "rag,io",
            "--set", "rag.chunks=2", "--llm", f"{server.url}#m", "--out", "runs", *OFF,
        )  # fmt: skip
        done = kgqa(*command)
        assert done.returncode == 0, done.err
        calls = server.calls
        again = kgqa(*command, "--resume", "--json")
        assert server.calls == calls, "both runs are done"
    assert "rag" in done.out and "io" in done.out and "recall of passages" in done.out
    found = {each["method"]: each for each in map(json.loads, again.out.splitlines())}
    retrieval = found["rag"]["retrieval"]
    # the question names the person; the lake's passage shares "lies" or "on" with it at best
    assert retrieval["n"] == 3 and retrieval["in_corpus"] == 1 and retrieval["recall"]["value"] >= 0.5
    assert retrieval["recall"]["value"] == retrieval["recall@2"]["value"] == retrieval["by_step"][0]["recall"]
    assert found["io"]["retrieval"] == {}
    assert found["rag"]["quotes"]["answers"] > 0.5 and found["rag"]["scores"]["substring_em"]["value"] == 1
    records = [json.loads(line) for line in (tmp_path / "runs/rag/predictions.jsonl").read_text().splitlines()]
    assert all(len(record["support"]) == 2 and all(record["support"]) for record in records)
    assert all(record["answer"]["response"] and record["answer"]["citations"] for record in records)
    status = kgqa("eval", "status", "runs").out
    assert "so far  token_em 100.0, token_f1 100.0, substring_em 100.0" in status
    assert "  passages  recall@2 " in status and status.count("passages") == 1


def judge_or_answer(messages) -> str:
    """Rate every response with 7; answer everything else."""
    return "7" if messages[0]["content"].startswith("You judge") else reply(messages)


def test_table_with_a_judge(kgqa, tmp_path, corpus):
    """Rows of the baselines are run and judged; the verdicts are kept."""
    with ScriptedServer(judge_or_answer) as server:
        models = {"qwen2.5-7b": "m", "qwen-plus": "judge"}
        lines = [f'["{name}"]\nllm = "{server.url}#{model}"\n' for name, model in models.items()]
        (tmp_path / "models.toml").write_text("".join(lines))
        command = (
            "eval", "table", "graphsearch.2", "--models", "models.toml", "--dataset", "2wikimultihopqa=musique:dev.jsonl",
            "--corpus", "2wikimultihopqa=corpus", "--sample", "1", "--ours", *OFF,
        )  # fmt: skip
        found = json.loads(kgqa(*command, "--json").out)
        calls = server.calls
        text = kgqa(*command).out
        assert server.calls == calls, "runs and verdicts are kept"
    rows = {row["label"]: row["cells"] for row in found["rows"]}
    cell = rows["Naive RAG"]["2wikimultihopqa"]
    assert cell["SubEM"] == {"printed": 62.33, "measured": {"sub_em_raw": 1.0, "sub_em": 1.0}, "n": 1}
    assert cell["A-Score"]["measured"] == {"judge.answer": 7.0}
    assert cell["E-Score"] == {"printed": 7.41, "measured": {"judge.evidence": 7.0}, "n": 1}
    assert rows["Vanilla LLM"]["2wikimultihopqa"]["SubEM"]["n"] == 1
    assert rows["LightRAG"]["legal"]["SubEM"] == {"printed": 52.93, "measured": None, "n": 0}
    assert "62.33 | 100.0 / 100.0 (n=1)" in text and "52.58 | not run" in text
    (tmp_path / "models.toml").write_text(lines[0])
    (row,) = [line for line in kgqa(*command).out.splitlines() if "Naive RAG" in line and "n=1" in line]
    assert row.count("| not run") == 2, "there is no judge"
    refused = kgqa("eval", "table", "tog3.1", "--corpus", "cwq=corpus")
    assert refused.returncode == 2 and "Choose from: hotpotqa, 2wikimultihopqa, musique" in refused.err


def test_sizes_of_a_corpus_beside_the_printed_ones(kgqa, corpus):
    done = kgqa("eval", "table", "tog3.3", "--corpus", "musique=corpus")
    assert "11,254 | 7" in done.out and "9,809 | not run" in done.out and "11,300 | 7" in done.out, done.out
    done = kgqa("eval", "table", "tog3.3", "--graph", "corpus")
    assert "11,254 | 7" in done.out and "9,809 | 7" in done.out and "not run" not in done.out, done.out


def test_verdicts_that_cannot_be_read_are_asked_for_again(kgqa, tmp_path, corpus):
    with ScriptedServer(
        lambda messages: "Hm." if messages[0]["content"].startswith("You judge") else reply(messages)
    ) as s:
        lines = [f'["{name}"]\nllm = "{s.url}#m"\n' for name in ("qwen2.5-7b", "qwen-plus")]
        (tmp_path / "models.toml").write_text("".join(lines))
        command = (
            "eval", "table", "graphsearch.2", "--models", "models.toml", "--dataset", "2wikimultihopqa=musique:dev.jsonl",
            "--corpus", "2wikimultihopqa=corpus", "--sample", "1", "--ours", *OFF,
        )  # fmt: skip
        done = kgqa(*command)
        calls = s.calls
        kgqa(*command)
        assert s.calls > calls
    assert done.returncode == 1 and "no verdict of the judge could be read" in done.err
    (row,) = [line for line in done.out.splitlines() if "Naive RAG" in line and "n=1" in line]
    assert "not run" not in row and row.endswith("| –"), row
    # the rows of hyperedges need a corpus of their own, and are not run over triples
    assert "not run: give a corpus of hyperedges with --corpus 2wikimultihopqa.hyper=FOLDER" in done.err
    assert all("not run" in line for line in done.out.splitlines() if "HyperGraphRAG" in line)


def test_several_tables_without_models(kgqa):
    found = json.loads(kgqa("eval", "table", "tog3.1", "graphsearch.8", "--json").out)
    assert [table["table"] for table in found] == ["tog3.1", "graphsearch.8"]
    done = kgqa("eval", "table", "tog3.1", "graphsearch.8")
    assert done.returncode == 0 and "Table tog3.1" in done.out and "Table graphsearch.8" in done.out
    assert "give a corpus or graph with --corpus hotpotqa=FOLDER" in done.err
    assert "\n\nTable graphsearch.8" in done.out and "with --models FILE" in done.err


def test_questions_without_gold_answers_have_no_scores(kgqa, tmp_path, corpus):
    (tmp_path / "own.jsonl").write_text('{"id": "q", "question": "On which lake does Tollen lie?"}\n')
    with ScriptedServer(reply) as server:
        options = ("--graph", "corpus", "--method", "rag", "--llm", f"{server.url}#m", *OFF)
        done = kgqa("eval", "run", "--dataset", "own.jsonl", *options, "--out", "own")
    assert done.returncode == 0 and "1 of 1: no gold answers" in done.err and "token_em" not in done.err
    assert "so far  no gold answers" in kgqa("eval", "status", "own").out
    (status,) = json.loads(kgqa("eval", "status", "own", "--json").out)
    assert status["done"] == 1 and set(status["scores"].values()) == {None}
