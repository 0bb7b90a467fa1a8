from __future__ import annotations

import time

import pytest

from kgqa.corpus.documents.credentials import credential_in, named_like_key

KEYS = [
    "AKIAIOSFODNN7EXAMPLE",
    "key sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW",
    "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwxyz123456",
    "password = 'Tr0ub4dor&3x'",
    "api_key: 9f86d081884c7d659a2feaa0c55ad015",
    "GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "  -----BEGIN RSA PRIVATE KEY-----\nabc",
    "As follows: -----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx4UbaDzY5xjW6hc9jwN0mX33XpTDVW",
    '{"secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKEY1"}',
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
]
PROSE = [
    "password: your-password-here",
    "The secret: nobody knew about it, and the token of 1902-1931 was lost.",
    "token=get_token_from_config(name)",
    "sk-learn is a library for the risk-assessment-of-nineteen-eighty-four",
    "secret = os.environ['X']; password=<password>",
    "Password: correct-horse-battery",
    "a key: A minor 1723",
    "token: https://tarn.example/abc123def456ghi789",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
    "A file begins with -----BEGIN PRIVATE KEY----- and some lines.",
]


@pytest.mark.parametrize("text", KEYS)
def test_keys_are_recognised_and_not_shown(text):
    found = credential_in(text)
    assert found
    assert len(found) < 70 and text.split()[-1][-12:] not in found


@pytest.mark.parametrize("text", PROSE)
def test_prose_and_placeholders_are_not_keys(text):
    assert credential_in(text) == ""


def test_names_of_key_files():
    assert all(map(named_like_key, ("id_rsa", "ID_RSA", "server.pem", ".env", ".env.local", "credentials.json")))
    assert not any(map(named_like_key, ("keynote.md", "environment.txt", "secrets-of-the-garden.txt", "id_rsa.md")))


def test_hostile_texts_take_little_time():
    start = time.process_time()
    for text in (
        "token=" * 10**5,
        "eyJ" * 10**5,
        "sk-" + "a" * 10**6,
        "-----BEGIN PRIVATE KEY-----" * 10**4,
        "sk-aa-" * 10**5,
    ):
        credential_in(text)
    assert time.process_time() - start < 5
