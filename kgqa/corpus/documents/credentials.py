"""Recognises files and texts that look like keys or passwords, so that they are not sent to a model unasked."""

from __future__ import annotations

import math
import re
from collections import Counter
from fnmatch import fnmatchcase

_FILE_NAMES = (
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "*.ppk", "*.p8", "*.ovpn", "*.asc", "*.gpg", ".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".npmrc",
    ".pypirc", ".htpasswd", ".git-credentials", ".dockercfg", "credentials", "credentials.*", "secrets.json",
    "secrets.y*ml", "secrets.toml", "secrets.ini", "secrets.txt", "password.*", "passwords.*", "client_secret*.json",
    "service-account*.json", "service_account*.json", "kubeconfig",
)  # fmt: skip
_KEY_FILE = re.compile(r"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,400}?[A-Za-z0-9+/=]{30}")
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA)[0-9A-Z]{16}"  # Amazon
    r"|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{30,300}"  # Google
    r"|gh[oprsu]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{40,255}|glpat-[0-9A-Za-z_-]{20}"
    r"|sk-(?:[a-z]{2,10}[0-9]{0,2}-){0,3}[0-9A-Za-z_-]{20,250}"  # OpenAI, Anthropic and others
    r"|(?:sk|rk|pk)_live_[0-9A-Za-z]{16,250}"  # Stripe
    r"|xox[abeoprs]-[0-9A-Za-z-]{20,250}|hf_[0-9A-Za-z]{30,60}|npm_[0-9A-Za-z]{36}|pypi-[0-9A-Za-z_-]{50,300}"
    r"|SG\.[0-9A-Za-z_-]{16,30}\.[0-9A-Za-z_-]{30,60}"  # SendGrid
    r"|eyJ[0-9A-Za-z_-]{15,2000}\.eyJ[0-9A-Za-z_-]{15,4000}\.[0-9A-Za-z_-]{20,2000}"  # JSON Web Tokens
    r")"
)
_ASSIGNMENT = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|credentials?)"
    r"[\"']?[ \t]{0,4}(?:=|:=|=>|:)[ \t]{0,4}[\"']?([0-9A-Za-z+/_.~!@#$%^&*=-]{10,300})",
    re.IGNORECASE,
)
_WORDS = ("passw", "passphrase", "pwd", "secret", "token", "key", "credential")
_PLACEHOLDER = re.compile(r"example|your|change|dummy|sample|placeholder|redacted|xxxx|\*\*\*", re.IGNORECASE)
_MIN_BITS = 3.3
_MIN_LENGTH = 16


def named_like_key(name: str) -> bool:
    """Return whether the name of a file is usual for files with keys or passwords."""
    lower = name.lower()
    return any(fnmatchcase(lower, pattern) for pattern in _FILE_NAMES)


def credential_in(text: str) -> str:
    """Return what a text contains that looks like a key or a password, in words; "" if nothing does.

    Placeholders such as `password=your-password` do not count, nor do words of a language: what follows the sign must
    look random.
    """
    if "PRIVATE KEY" in text and (_KEY_FILE.match(text) or _PRIVATE_KEY.search(text)):
        return "a private key"
    for found in _TOKENS.finditer(text):
        if found[0].startswith(("AKIA", "ASIA")) or _looks_random(found[0], bits=3.0):
            return f"an access token ({found[0][:4]}…)"
    lower = text.lower()
    if any(word in lower for word in _WORDS):
        for found in _ASSIGNMENT.finditer(text):
            if _is_secret(found[1]):
                return f"a password or token (“{found[0][: found.start(1) - found.start()].strip()[:40]}…”)"
    return ""


def _is_secret(value: str) -> bool:
    if _PLACEHOLDER.search(value) or value.startswith(("/", "./", "http", "www.")) or "://" in value:
        return False
    if len(value) >= _MIN_LENGTH:
        return _looks_random(value, bits=_MIN_BITS)
    # a shorter password counts with letters of both cases, digits and other characters
    kinds = (str.islower, str.isupper, str.isdigit, lambda character: not character.isalnum())
    return all(any(map(kind, value)) for kind in kinds)


def _looks_random(value: str, *, bits: float) -> bool:
    """Return whether a string has digits and letters, and many different characters for its length."""
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy >= bits
