"""Messages with images: the data that a server receives, limits, and servers that do not read images."""

from __future__ import annotations

import base64

from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.client import Image, Message, Prompt
from kgqa.testing import faults
from kgqa.testing.server import ScriptedServer

PNG = Image(b"\x89PNG\r\n\x1a\n...", "image/png")
JPEG = Image(b"\xff\xd8...", "image/jpeg")


def ask(server: ScriptedServer, *content: str | Image):
    model = OpenAIChat("m", url=server.url, retries=0)
    try:
        return model.complete([Prompt((Message("system", "Look."), Message("user", content)), "decide")])[0]
    finally:
        model.close()


def test_server_receives_texts_and_images_in_order():
    with ScriptedServer(["a cat"]) as server:
        assert ask(server, "First:", PNG, "second:", JPEG, "Same?").text == "a cat"
        system, user = server.requests[0].messages
        assert system == {"role": "system", "content": "Look."}
        assert [part.get("text") for part in user["content"]] == ["First:", None, "second:", None, "Same?"]
        urls = [part["image_url"]["url"] for part in user["content"] if part["type"] == "image_url"]
        for url, image in zip(urls, (PNG, JPEG), strict=True):
            head, data = url.split(",")
            assert head == f"data:{image.media_type};base64" and base64.b64decode(data, validate=True) == image.data


def test_image_is_not_shown_in_messages_about_it():
    assert "PNG" not in repr(PNG)


def test_server_without_images_rejects_the_prompt():
    with ScriptedServer([faults.failing(400, "m is not a multimodal model")]) as server:
        completion = ask(server, PNG)
        assert completion.failure == "rejected" and "multimodal" in completion.detail
