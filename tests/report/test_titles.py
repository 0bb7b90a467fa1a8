"""Titles of runs: what differs between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgqa.report.comparison import compare
from kgqa.report.tables import as_text
from kgqa.report.titles import run_titles
from kgqa.settings.values import resolve
from tests.report.test_comparison import run_of


def manifest(model: str = "", dataset: str = "data/cwq.jsonl", seed: int = 0, **settings: Any) -> dict[str, Any]:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return {
        "dataset": {"source": dataset, "questions": 4},
        "topics": "gold",
        "seed": seed,
        "graph": {"place": "/graphs/freebase", "fingerprint": "f"},
        "models": {"decide": {"model": model}} if model else None,
        "settings": {"ask.method": "top-2", "rank.chooser": "auto", "explore.depth": 2, "rank.seed": seed, **given},
    }


def titles(*manifests: dict[str, Any], names: tuple[str, ...] = ()) -> tuple[str, ...]:
    names = names or ("top-2",) * len(manifests)
    return run_titles([run_of(name, 1, manifest=each) for name, each in zip(names, manifests)])


def test_title_of_one_run_is_its_method():
    assert titles(manifest("openai:gpt-4.1-mini")) == ("top-2",)


def test_titles_name_only_what_differs():
    qwen, llama = "http://127.0.0.1:8000/v1#Qwen/Qwen3-32B", "meta/Llama-3.3-70B"
    assert titles(manifest(qwen, seed=1), manifest(llama, seed=2)) == (
        "top-2, Qwen3-32B, seed 1",
        "top-2, Llama-3.3-70B, seed 2",
    )
    assert titles(manifest(qwen), manifest()) == ("top-2, Qwen3-32B", "top-2, no model")
    assert titles(manifest(dataset="a/webqsp.json"), manifest(dataset="cwq")) == ("top-2, webqsp", "top-2, cwq")
    assert titles(manifest(), manifest(rank__chooser="random", explore__depth=3)) == (
        "top-2, depth 2, chooser auto",
        "top-2, depth 3, chooser random",
    )


def test_title_does_not_say_that_topics_were_gold():
    """The data set may have no topics for some questions."""
    linked = {**manifest(), "topics": "linked"}
    assert titles(manifest(), linked) == ("top-2, topics as given", "top-2, topics linked")


def test_equal_short_names_are_written_in_full():
    assert titles(manifest(dataset="a/test.json"), manifest(dataset="b/test.json")) == (
        "top-2, a/test.json",
        "top-2, b/test.json",
    )


def test_settings_that_follow_from_the_method_are_left_out():
    both = [
        {**manifest(), "settings": dict(resolve({"ask.method": method, "explore.depth": depth}, environment={}).values)}
        for method, depth in (("top-2", 3), ("top-1", 1))
    ]
    assert both[0]["settings"]["rank.tournament"] != both[1]["settings"]["rank.tournament"]
    first, second = titles(*both, names=("top-2", "top-1"))
    assert "depth 3" in first and "depth 1" in second and "tournament" not in first + second


def test_many_settings_are_counted():
    other = manifest(**{f"x__s{number}": number for number in range(7)})
    first, second = titles(manifest(), other)
    assert second == "top-2, s0 0, s1 1, s2 2, s3 3, 3 more settings" and first.endswith("s3 not set, 3 more settings")


def test_runs_without_a_difference_are_named_by_their_folders():
    runs = [run_of("top", folder=Path("runs/x/top")), run_of("top", folder=Path("runs/y/top")), run_of("tog")]
    assert run_titles(runs) == ("top (x)", "top (y)", "tog")
    assert run_titles([run_of("top", folder=Path("a/b")), run_of("top", folder=Path("c/b"))]) == (
        "top (b)",
        "top (b) #2",
    )
    assert run_titles([run_of("\x1b[31m\n")]) == ("[31m",)


def test_long_titles_stand_in_several_lines_of_a_text_table():
    runs = [run_of("top-2", 1, 0, manifest=manifest(model, seed=seed)) for model, seed in (("Qwen3-32B", 1), ("x", 2))]
    lines = as_text(compare(runs)).splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) == {"─"})
    assert rule > 1 and "Qwen3-32B," in " ".join(lines[:rule]) and "seed 1" in lines[rule - 1]
    assert max(map(len, lines[:rule])) <= len(lines[rule])
