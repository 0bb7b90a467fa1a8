"""Fictional versions of a graph and its questions."""

from __future__ import annotations

import gzip
import json

import pytest

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion, read_questions
from kgqa.evaluation.fictional.facts import FictionError, read_facts
from kgqa.evaluation.fictional.fictionalise import fictionalise
from kgqa.evaluation.fictional.gold_queries import gold_queries_of
from kgqa.evaluation.fictional.invented_world import QUESTIONS, invent, world_folder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.opening import open_graph
from kgqa.storage.cache import Cache
from tests.conftest import SOAK
from tests.evaluation.fictional.graphs import NAME, degrees, line

NS = "http://rdf.freebase.com/ns/"


def lines_of(folder):
    with gzip.open(folder / "facts.nt.gz", "rt", encoding="utf-8") as file:
        return file.readlines()


def rows_of(file):
    return [json.loads(row) for row in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def world(session_cache):
    return world_folder(Cache(session_cache))


@pytest.fixture(scope="module")
def fiction(world, session_cache, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "fiction"
    with open_graph(world, cache=Cache(session_cache)) as graph:
        found = fictionalise(graph, read_questions(world / QUESTIONS), out, cache=Cache(session_cache))
    return out, found


def test_invented_graph_depends_only_on_the_seed():
    assert invent(3) == invent(3)
    assert invent(3)[0] != invent(4)[0]


@pytest.mark.parametrize("seed", range(4))
def test_invented_questions_have_both_shapes(seed):
    lines, rows = invent(seed)
    assert 2000 < len(lines) < 4000 and len({row["id"] for row in rows}) == len(rows) >= 100
    assert {row["kind"] for row in rows} == {"path", "conjunction"}


def test_gold_paths_of_invented_questions_give_their_answers(world, session_cache):
    questions = read_questions(world / QUESTIONS)
    assert len(questions) == len(invent()[1])
    with open_graph(world, cache=Cache(session_cache)) as graph:
        for gold_query in gold_queries_of(questions, graph):
            assert gold_query.true and gold_query.shape == gold_query.question.kind
            assert {graph.schema.iri(a.id) for a in gold_query.question.answers} == {v.iri for v in gold_query.true}


def test_fictional_graph_contradicts_the_original(world, fiction, session_cache):
    out, found = fiction
    assert found.shapes["path"] == {"asked": 96, "kept": 96}
    assert found.shapes["conjunction"]["kept"] >= 0.9 * found.shapes["conjunction"]["asked"] > 0
    rows = rows_of(out / "questions.jsonl")
    assert len(rows) + len(rows_of(out / "left_out.jsonl")) == found.questions
    true = {question.id: {a.id for a in question.answers} for question in read_questions(world / QUESTIONS)}
    with open_graph(out, cache=Cache(session_cache)) as graph:
        assert graph.store.triples_of() == found.triples and graph.store.fingerprint_of() == found.fingerprint
        assert graph.settings["mediator_hop"] == "free" and graph.schema.name == "freebase"
        for row, question in zip(rows, read_questions(out / "questions.jsonl"), strict=True):
            answers = {a.id for a in question.answers}
            assert answers and not answers & true[question.id]
            assert {a["id"] for a in row["true_answers"]} == true[question.id]
            values = graph.run_exported(question.sparql[0])
            assert {graph.schema.short_id(value.iri) for value in values} == answers
    assert found.rewired > 0.9 * found.facts
    with open_graph(world, cache=Cache(session_cache)) as graph:
        facts = read_facts(graph)
        before = [
            f"{facts.terms[s]} <{facts.relations[r]}> {facts.terms[o]} .\n"
            for r in range(len(facts.relations))
            for s, o in zip(facts.subjects[r].tolist(), facts.objects[r].tolist())
        ]
    after = lines_of(out)
    assert degrees(after) == degrees(before)
    assert len(set(after) - set(before)) == found.rewired
    assert json.loads((out / "fictional.json").read_text())["fingerprint"] == found.fingerprint


def test_same_seed_gives_the_same_files(world, fiction, session_cache, tmp_path):
    with open_graph(world, cache=Cache(session_cache)) as graph:
        again = fictionalise(graph, read_questions(world / QUESTIONS), tmp_path / "again", cache=Cache(session_cache))
        other = fictionalise(graph, (), tmp_path / "other", seed=9, cache=Cache(session_cache))
    assert again == fiction[1] and other.fingerprint != again.fingerprint
    for name in ("facts.nt.gz", "questions.jsonl", "left_out.jsonl", "fictional.json"):
        assert (tmp_path / "again" / name).read_bytes() == (fiction[0] / name).read_bytes()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["again", "other"]


def test_left_out_questions_have_a_reason(tmp_path, session_cache):
    lines = [line(f"m.{n}", "people.person.place_of_birth", f"m.t{n}") for n in range(6)]
    lines += [line("m.0", "people.person.gender", "m.female"), line("m.1", "people.person.gender", "m.female")]
    (tmp_path / "f.nt").write_text("".join(lines))
    load_graph(tmp_path / "g", [tmp_path / "f.nt"], schema="freebase")

    def question(ident, path=(), **more):
        row = {"topic_entities": [{"id": "m.0"}], **({"gold_path": [NS + step for step in path]} if path else {})}
        return GoldQuestion(f"{ident}?", ident, "t", 0, topics=("m.0",), row=row, **more)

    questions = [
        question("born", ["people.person.place_of_birth"]),
        question("gender", ["people.person.gender"]),
        question("nothing", ["people.person.nothing"]),
        question("no query"),
        question("not sparql", sparql=("SELECT ?x WHERE { ?x",)),
        # answers in the file count as true even if they are not in the graph
        question("file", ["people.person.place_of_birth"], answers=tuple(GoldAnswer(f"m.t{n}", "") for n in range(6))),
    ]
    with open_graph(tmp_path / "g", cache=Cache(session_cache)) as graph:
        found = fictionalise(graph, questions, tmp_path / "out", cache=Cache(session_cache))
    reasons = {row["id"]: row["reason"].split(":")[0] for row in rows_of(tmp_path / "out" / "left_out.jsonl")}
    assert reasons == {
        "gender": "an answer is still true",
        "nothing": "no answer in the true graph",
        "no query": "no gold query",
        "not sparql": "the gold query failed",
        "file": "an answer is still true",
    }
    assert [row["id"] for row in rows_of(tmp_path / "out" / "questions.jsonl")] == ["born"]
    assert found.shapes["path"] == {"asked": 3, "kept": 1}


def test_answer_with_the_name_of_a_true_one_is_left_out(tmp_path, session_cache):
    """Two towns with one name: a model that remembers the true one would be right by name."""
    lines = [line(f"m.{n}", "people.person.place_of_birth", f"m.t{n}") for n in range(2)]
    lines += [line(f"m.a{n}", "people.person.employer", f"m.c{n}") for n in range(2)]
    for n in range(2):
        lines += [line(f"m.t{n}", NAME, f'"{"Springfield" if n else "springfield"}"@en')]
        lines += [line(f"m.c{n}", NAME, f'"Works {n}"@en')]
    (tmp_path / "f.nt").write_text("".join(lines))
    load_graph(tmp_path / "g", [tmp_path / "f.nt"], schema="freebase")

    def question(ident, topic, relation, *answers):
        row = {"topic_entities": [{"id": topic}], "gold_path": [NS + relation]}
        return GoldQuestion(f"{ident}?", ident, "t", 0, topics=(topic,), row=row, answers=answers)

    questions = [
        question("born", "m.0", "people.person.place_of_birth"),
        question("works", "m.a0", "people.person.employer"),
        question("alias", "m.a1", "people.person.employer", GoldAnswer("m.c1", "", aliases=("works 0",))),
    ]
    with open_graph(tmp_path / "g", cache=Cache(session_cache)) as graph:
        found = fictionalise(graph, questions, tmp_path / "out", cache=Cache(session_cache))
    assert found.left_out == {"an answer has the name of a true one": 2}
    assert [row["id"] for row in rows_of(tmp_path / "out" / "questions.jsonl")] == ["works"]


def test_every_marriage_keeps_a_spouse(world, fiction, session_cache):
    spouses = []
    for folder in (world, fiction[0]):
        couples: dict[str, set[str]] = {}
        with open_graph(folder, cache=Cache(session_cache)) as graph:
            facts = read_facts(graph)
        relation = facts.relations.index(f"{NS}people.marriage.spouse")
        for marriage, spouse in zip(facts.subjects[relation].tolist(), facts.objects[relation].tolist()):
            couples.setdefault(facts.terms[marriage], set()).add(facts.terms[spouse])
        spouses.append(couples)
    before, after = spouses
    kept = [len(couple & after[marriage]) for marriage, couple in before.items()]
    assert set(kept) <= {1, 2} and kept.count(1) >= 0.9 * len(kept) > 15


@pytest.mark.parametrize(("every", "kept"), [(5, 13), (1, 50)])
def test_conjunctions_keep_an_answer(every, kept, tmp_path, session_cache):
    """Each pair of genre and country has one film, so that almost no pair would meet again by chance."""
    lines = []
    for n in range(64):
        lines += [
            line(f"m.f{n}", "film.film.genre", f"m.g{n % 16}"),
            line(f"m.f{n}", "film.film.country", f"m.c{n // 4}"),
        ]
    (tmp_path / "f.nt").write_text("".join(lines))
    load_graph(tmp_path / "g", [tmp_path / "f.nt"], schema="freebase")
    questions = []
    for n in range(0, 64, every):
        topics = (f"m.g{n % 16}", f"m.c{n // 4}")
        chains = [[topics[0], f"^{NS}film.film.genre", ""], [topics[1], f"^{NS}film.film.country", ""]]
        row = {"topic_entities": [{"id": t} for t in topics], "gold_chains": chains}
        questions.append(GoldQuestion(f"q{n}", f"q{n}", "t", n, topics=topics, kind="conjunction", row=row))
    with open_graph(tmp_path / "g", cache=Cache(session_cache)) as graph:
        found = fictionalise(graph, questions, tmp_path / "out", cache=Cache(session_cache))
    assert found.shapes["conjunction"]["asked"] == len(questions)
    assert found.shapes["conjunction"]["kept"] >= kept


def test_interruption_leaves_no_files(world, session_cache, tmp_path):
    def stop(stage, done, total):
        if stage == "asking the fictional graph" and done > 3:
            raise KeyboardInterrupt

    with open_graph(world, cache=Cache(session_cache)) as graph:
        with pytest.raises(KeyboardInterrupt):
            fictionalise(graph, read_questions(world / QUESTIONS), tmp_path / "out", progress=stop)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "taken").mkdir()
        (tmp_path / "taken" / "file").touch()
        with pytest.raises(FictionError, match="out="):
            fictionalise(graph, (), tmp_path / "taken")


def test_custom_schema_is_kept(tmp_path, session_cache):
    schema = 'name = "mine"\n[prefixes]\nx = "http://x.example/"\n[names]\nlabel = ["x:called"]\n'
    (tmp_path / "mine.toml").write_text(schema)
    x = "http://x.example/"
    lines = [f'<{x}{n}> <{x}knows> <{x}{(n * 7 + 1) % 9}> .\n<{x}{n}> <{x}called> "N{n}" .\n' for n in range(9)]
    (tmp_path / "f.nt").write_text("".join(lines))
    load_graph(tmp_path / "g", [tmp_path / "f.nt"])
    with open_graph(tmp_path / "g", schema=tmp_path / "mine.toml", walks="free", cache=Cache(session_cache)) as graph:
        fictionalise(graph, (), tmp_path / "out", cache=Cache(session_cache))
    with open_graph(tmp_path / "out", cache=Cache(session_cache)) as graph:
        assert graph.schema.name == "mine" and graph.paths.walk_rule == "free"
        assert graph.names.count == 9


@pytest.mark.soak
@pytest.mark.slow
def test_most_freebase_questions_keep_an_answer(data_folder, tmp_path, session_cache):
    fast, schema = data_folder / "freebase_fast", data_folder / "freebase" / "schema.nt.gz"
    load_graph(tmp_path / "g", [fast / "kg.nt.gz", schema], schema="freebase")
    questions = read_questions(fast / "questions.jsonl.gz")[:: 1 if SOAK else 6]
    with open_graph(tmp_path / "g", cache=Cache(session_cache)) as graph:
        found = fictionalise(graph, questions, tmp_path / "out", cache=Cache(session_cache))
    path, meeting = found.shapes["path"], found.shapes["conjunction"]
    assert path["asked"] + meeting["asked"] == len(questions) == found.questions
    assert path["kept"] >= 0.8 * path["asked"]
    assert meeting["kept"] >= 0.5 * meeting["asked"]
    assert found.rewired >= 0.9 * found.facts
