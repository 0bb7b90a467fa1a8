"""The MCP server, used by the client of the mcp package: over HTTP on loopback, and in a process over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from kgqa.serve.tools import agent_tools
from kgqa.testing.server import ScriptedServer
from tests.conftest import ROOT
from tests.serve.running import Running, running
from tests.small_corpus import write_corpus

KGQA = str(Path(sys.executable).with_name("kgqa"))
TOOLS = ["search", "neighbours", "next_steps", "ends", "ask", "run_query"]
TOKEN = "a-token-for-tests"


@pytest.fixture(scope="module")
def served(session_cache) -> Iterator[Running]:
    with running(mcp=True, cache_folder=str(session_cache), rank_embeddings="off") as found:
        yield found


def call(served: Running, tool: str, **arguments: Any) -> Any:
    """Call one tool; return its structured result, or the text of its error."""

    async def called() -> Any:
        async with Client(f"{served.url}/mcp") as client:
            found = await client.call_tool(tool, arguments)
        return found.content[0].text if found.is_error else found.structured_content

    return asyncio.run(called())


def test_an_agent_goes_from_a_name_to_the_answer_and_asks_with_steps_as_progress(served):
    async def work() -> None:
        async with Client(f"{served.url}/mcp") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == TOOLS
            assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools.values())

            async def result(name: str, **arguments: Any) -> Any:
                return (await client.call_tool(name, arguments)).structured_content

            topic = (await result("search", text="Parasite"))["entities"][0]["id"]
            steps = (await result("next_steps", topic=topic))["steps"]
            step = next(each["step"] for each in steps if "directed by" in each["words"])
            (end,) = (await result("ends", topic=topic, steps=[step]))["ends"]
            around = await result("neighbours", id=end["id"])
            assert any(node["name"] == "Parasite" for each in around["relations"] for node in each["nodes"])
            rows = await result("run_query", sparql=(await result("ends", topic=topic, steps=[step]))["sparql"])
            assert rows["rows"] == [[end]]
            said: list[str] = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                said.append(message or "")

            found = await client.call_tool("ask", {"question": "Who directed Parasite?"}, progress_callback=progress)
            answer = found.structured_content
            assert answer["answers"] == [end] and answer["status"] == "answered"
            assert answer["paths"][0]["steps"] == [f"http://rdf.freebase.com/ns/{step}"]
            assert any(each.startswith("topics in the question") for each in said)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("run_query", {"sparql": "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"}, "SERVICE is not allowed"),
        ("run_query", {"sparql": "LOAD <file:///etc/passwd>"}, "LOAD is not allowed"),
        ("run_query", {"sparql": "DELETE WHERE { ?s ?p ?o }"}, "Only SELECT and ASK"),
        ("run_query", {"sparql": "SELECT * { ?s ?p ?o }"}, "more than 100 rows"),
        ("run_query", {"sparql": "SELECT * { ?s ?p ?o }", "rows": 10_000}, "more than 1,000 rows"),
        ("run_query", {"sparql": "SELECT * { ?s ?p ?o }", "rows": 10**9}, "less than or equal"),
        ("search", {"text": "x" * 2000}, "at most 1000"),
        ("ends", {"topic": "m.nobody", "steps": ["film.film.genre"]}, "no entity m.nobody.*Search"),
        ("ends", {"topic": "../../etc/passwd", "steps": ["film.film.genre"]}, "no entity"),
        ("ask", {"question": "?"}, "question is empty"),
        ("ask", {"question": "Who?", "method": "../evil"}, "not offered here.*Choose one of"),
        ("ask", {}, r"^ask needs the argument question\.$"),
        (
            "search",
            {"text": "a", "limit": "many"},
            r"^The argument limit of search is wrong: input should be [^\n]*\.$",
        ),
        ("read_file", {"path": "/etc/passwd"}, "Unknown tool"),
        ("retrieve", {"text": "a"}, "Unknown tool"),
    ],
)
def test_what_is_refused_is_a_tool_error_that_says_what_to_do(served, tool, arguments, said):
    assert re.search(said, call(served, tool, **arguments), re.DOTALL)


def test_advice_is_in_the_words_of_an_agent(served):
    answer = call(served, "ask", question="Who invented the flux capacitor?")
    assert answer["reason"].endswith("First call search, then pass its id in topics")


def test_names_of_files_in_arguments_are_neither_read_nor_written(served, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("unchanged")
    for text in (str(victim), f"file://{victim}", f"replay:{victim}"):
        for tool, arguments in (
            ("search", {"text": text}),
            ("neighbours", {"id": text}),
            ("next_steps", {"topic": text, "steps": [text]}),
            ("run_query", {"sparql": f"SELECT * FROM <file://{text}> {{ ?s ?p ?o }}"}),
            ("ask", {"question": f"What is in {text}?", "topics": [text], "method": text}),
        ):
            assert "unchanged" not in str(call(served, tool, **arguments))
    assert (victim.read_text(), list(tmp_path.iterdir())) == ("unchanged", [victim])


def test_the_examples_in_the_docs_work(served):
    text = (ROOT / "docs" / "mcp.md").read_text()
    configurations = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert configurations[0]["mcpServers"]["my-graph"]["args"][:3] == ["serve", "--mcp", "stdio"]
    examples = {
        tool: json.loads(given) for tool, given in re.findall(r"^\| `(\w+)` \|.*`({.*})` \|$", text, re.MULTILINE)
    }
    assert set(examples) == {*TOOLS, "retrieve"}
    backwards = json.loads(re.search(r'`({.*"<-.*})`', text)[1])
    for tool, given in [*examples.items(), ("ends", backwards)]:
        if tool != "retrieve":
            assert isinstance(call(served, tool, **given), dict), tool


def test_a_result_that_is_too_large_for_an_agent_is_an_error(served, monkeypatch):
    monkeypatch.setattr(agent_tools, "MAX_RESULT_CHARS", 100)
    assert "lower the limit" in call(served, "next_steps", topic="m.demo_parasite")


def test_a_cancelled_call_stops_its_question(session_cache):
    asked = threading.Event()

    def reply(messages: list[dict[str, Any]]) -> str:
        asked.set()
        time.sleep(0.2)
        return "1"

    async def work(served: Running) -> None:
        async with Client(f"{served.url}/mcp") as client:
            calling = asyncio.ensure_future(client.call_tool("ask", {"question": "Who directed Parasite?"}))
            assert await asyncio.to_thread(asked.wait, 20)
            (job,) = served.service.jobs.values()
            calling.cancel()
            for _ in range(500):
                if job.answer is not None:
                    break
                await asyncio.sleep(0.02)
        assert job.answer is not None and job.answer["status"] == "budget_exhausted"
        assert "Stopped" in job.answer["reason"]

    with ScriptedServer(reply) as model:
        given = {"cache_folder": str(session_cache), "rank_embeddings": "off", "llm_model": f"{model.url}#scripted"}
        with running(mcp=True, **given, serve_workers=1) as served:
            asyncio.run(work(served))


def test_http_has_the_checks_of_the_page(session_cache):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}

    async def with_token(url: str) -> list[str]:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    given = {"cache_folder": str(session_cache), "rank_embeddings": "off"}
    with running(mcp=True, tokens=[TOKEN], **given) as served:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({**bearer, "Host": "evil.example"}, 421),
            ({**bearer, "Origin": "http://evil.example"}, 403),
            ({**bearer, "Content-Type": "text/plain"}, 415),
        ):
            assert served.client.post("/mcp", json=ping, headers={**accept, **headers}).status_code == status
        large = {**ping, "params": {"text": "x" * 300_000}}
        assert served.client.post("/mcp", json=large, headers={**accept, **bearer}).status_code == 413
        assert asyncio.run(with_token(f"{served.url}/mcp")) == TOOLS
    with running(**given) as without:
        assert without.client.post("/mcp", json=ping, headers=accept).status_code in (404, 405)


def test_no_client_can_use_up_sessions_or_wait_for_messages(session_cache):
    async def found(served: Running) -> dict[str, Any] | None:
        async with Client(f"{served.url}/mcp", mode="legacy") as client:
            return (await client.call_tool("search", {"text": "Tokyo"})).structured_content

    accept = {"Accept": "application/json, text/event-stream"}
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    with running(mcp=True, cache_folder=str(session_cache), rank_embeddings="off") as served:
        reply = served.client.post("/mcp", json=start, headers=accept)
        assert reply.status_code == 200 and "mcp-session-id" not in reply.headers
        assert served.client.get("/mcp", headers=accept, timeout=5).status_code == 405
        assert asyncio.run(found(served))


def test_retrieve_finds_passages_of_a_corpus(session_cache, tmp_path):
    corpus = write_corpus(tmp_path)
    given = {"graph_path": str(corpus), "cache_folder": str(session_cache), "rank_embeddings": "off"}
    with running(mcp=True, **given) as served:
        (piece,) = call(served, "retrieve", text="Who built the first tide clock?", k=1)["pieces"]
    assert "Mara Holt" in piece["text"] and piece["sources"] and piece["spans"]


def test_over_stdio_only_the_protocol_is_written_and_the_process_ends_with_its_input(session_cache, tmp_path):
    environment = {**os.environ, "KGQA_CACHE_FOLDER": str(session_cache), "KGQA_RANK_EMBEDDINGS": "off"}
    folder = tmp_path / "empty"
    folder.mkdir()
    script = f"cd {folder}; {KGQA} serve --mcp stdio -v 2> ../errors | tee ../lines; echo ${{PIPESTATUS[0]}} > ../code"

    async def work() -> Any:
        parameters = StdioServerParameters(command="bash", args=["-c", script], env=environment, cwd=str(tmp_path))
        async with Client(stdio_client(parameters)) as client:
            return (await client.call_tool("ask", {"question": "Who directed Parasite?"})).structured_content

    assert [each["name"] for each in asyncio.run(work())["answers"]] == ["Bong Joon-ho"]
    assert (tmp_path / "code").read_text() == "0\n"
    lines = (tmp_path / "lines").read_text().splitlines()
    assert len(lines) >= 3 and all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    assert "Traceback" not in (tmp_path / "errors").read_text()
    assert list(folder.iterdir()) == []
