"""`kgqa init`: ask for the main settings, check each answer, and write commented settings files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import say, setting_option, verbosity_options
from kgqa.errors import KeyRefused, KgqaError, LoginRefused, SettingsError
from kgqa.graph.endpoint.options import PASSWORD_VARIABLE
from kgqa.graph.store import is_address
from kgqa.net.servers import KEY_VARIABLE, OPENAI_KEY_VARIABLE, OPENAI_URL
from kgqa.plugins import plugin, plugin_names
from kgqa.settings.file import commented_file, with_value
from kgqa.settings.keys import find_key, remove_key, server_address, set_key
from kgqa.settings.table import own_settings
from kgqa.settings.values import FILE_NAME, PRESETS, Settings, resolve, user_settings_file
from kgqa.storage.atomic_files import cannot_create, replace_file
from kgqa.text.words import clean

HEADING = """Settings of kgqa for the commands that are run in this folder.
A line that begins with # and a name has the default, or an example if there is no default; remove the # to change it.
Every setting, its value and its source: kgqa config show
Language models, keys, logins and folders belong into your own file, because another person may write this one:
{own}"""
OWN_HEADING = """Your own settings of kgqa, for all folders; a kgqa.toml in the working folder takes precedence.
A line that begins with # and a name has the default, or an example if there is no default; remove the # to change it.
Every setting, its value and its source: kgqa config show. Keys do not belong here: kgqa keys set"""
LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(s|seconds?|quer(?:y|ies)|calls?|tokens?|usd|\$)", re.IGNORECASE)
LIMITS = {"s": "seconds", "q": "queries", "c": "calls", "t": "tokens", "u": "cost", "$": "cost"}
"""The budget of each unit, by its first letter."""
NOWHERE = Path(os.devnull)
"""A folder without kgqa.toml: the file that is about to be replaced does not count."""
SECONDS = 20.0
"""Time limit of the check of a language model."""


@click.command("init")
@click.option("--graph", "graph__path", metavar="FOLDER|URL|NAME:REST", help="graph to ask. [the bundled demo graph]")
@setting_option("llm.model")
@setting_option("ask.method")
@setting_option("ask.preset")
@setting_option("budget.seconds")
@setting_option("budget.calls")
@setting_option("budget.cost")
@setting_option("cache.folder", "--cache-folder")
@click.option("--yes", is_flag=True, help="ask nothing: take the options, and the defaults for what is not given")
@click.option("--replace", is_flag=True, help="replace an existing kgqa.toml, and other values in your own file")
@click.option("--no-check", is_flag=True, help="do not open the graph, and do not call the language model's server")
@verbosity_options
def command(yes: bool, replace: bool, no_check: bool, **options: Any) -> int:
    """Ask for the main settings, check each answer, and write a commented kgqa.toml.

    Asks for the graph, the language model, the method, the limits per question and the folder of caches. kgqa.toml is
    written to the working folder. The language model and the folder of caches are written to your own settings file,
    because another person may write a kgqa.toml in a working folder. Keys are kept by `kgqa keys`.

    \b
    Examples:
      kgqa init
      kgqa init --yes --graph mygraph/ --max-seconds 60
      kgqa init --yes --graph mygraph/ --llm http://localhost:8000/v1 --method top-2 --max-calls 50
    """
    try:
        return _init(Path(FILE_NAME), yes, replace, no_check, options)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            f"The input ended before all questions were answered. Without a terminal: add --yes, and --replace to "
            f"replace {FILE_NAME}."
        ) from None


def _init(file: Path, yes: bool, replace: bool, no_check: bool, options: Mapping[str, Any]) -> int:
    if os.path.lexists(file) and not replace:
        if yes:
            raise click.UsageError(f"{file} exists. Add --replace to replace it.")
        if not click.confirm(f"{file} exists. Replace it?", err=True):
            say(f"kgqa: {file} is unchanged.")
            return 1
    given = {name.replace("__", "."): value for name, value in options.items() if value is not None}
    values: dict[str, Any] = {}
    for question in _QUESTIONS:
        if yes or any(key in given for key in question.keys):
            new = {key: given[key] for key in question.keys if key in given}
            found = question.check(values | new, no_check)
            values |= new
            if found:
                say(f"{question.title}: {found}")
        else:
            values |= question.ask(values, no_check)
    _write(file, values, yes=yes, replace=replace)
    say('Ask: kgqa ask "...". Check everything: kgqa doctor. See every setting: kgqa config show')
    return 0


class _Question:
    """One of the five questions.

    Attributes:
        keys: the settings that the answer sets.
    """

    def __init__(
        self,
        title: str,
        prompt: str,
        default: str,
        keys: tuple[str, ...],
        read: Callable[[str], dict[str, Any]],
        check: Callable[[Settings], str],
        note: Callable[[], str] | None = None,
    ) -> None:
        self.title, self.keys = title, keys
        self._prompt, self._default, self._read, self._check, self._note = prompt, default, read, check, note

    def check(self, values: Mapping[str, Any], no_check: bool) -> str:
        """Check the answer and return what was found.

        Raises:
            KgqaError: the answer is wrong, or what it names cannot be used.
        """
        for key in self.keys:
            if isinstance(text := values.get(key), str) and not _is_unicode(text):
                raise SettingsError(f"{key} {clean(text)} has bytes that a settings file cannot hold.", "Rename it.")
        settings = resolve(values, folder=NOWHERE)
        if "ask.method" in values:
            plugin("method", values["ask.method"])
        return "" if no_check else self._check(settings)

    def ask(self, values: Mapping[str, Any], no_check: bool) -> dict[str, Any]:
        """Ask until the answer can be used, and return the values of its settings."""
        if self._note:
            say(self._note())
        own = resolve(values, folder=NOWHERE)
        default = self._default if own.origins[self.keys[0]] == "default" else str(own.values[self.keys[0]])
        failed = False
        while True:
            text = click.prompt(self._prompt, default=default, err=True).strip()
            try:
                new = self._read("" if text == default else text)
                found = self._with_login(values, new, no_check)
            except KgqaError as error:
                say(f"  {error}")
                if not failed:
                    say("  Answer again. Ctrl-C stops; kgqa init --no-check skips the checks.")
                failed = True
                continue
            say(f"  {found}" if found else "  ok")
            return new

    def _with_login(self, values: Mapping[str, Any], new: dict[str, Any], no_check: bool) -> str:
        """Check the answer; if its server refuses, ask for a key or a login, and keep it if it is accepted.

        Args:
            new: the values of the answer; `endpoint.user` is added for a login.
        """
        refusal: KeyRefused | LoginRefused
        try:
            return self.check({**values, **new}, no_check)
        except KeyRefused as error:
            server, refusal = "llm.model", error
            say(f"  {error.message}")
        except LoginRefused as error:
            server, refusal = "graph.path", error
            say(f"  {error.message}")
            new["endpoint.user"] = click.prompt("User name (empty: none)", "", show_default=False, err=True)
        server = str(resolve({**values, **new}, folder=NOWHERE).values[server])
        name = "Password" if isinstance(refusal, LoginRefused) else "Key"
        ask = f"{name} for {server_address(server)} (empty: none)"
        key = click.prompt(ask, "", hide_input=True, show_default=False, err=True)
        if not key.strip():
            raise refusal
        set_key(server, key)
        try:
            return self.check({**values, **new}, no_check)
        except (KeyRefused, LoginRefused):
            remove_key(server)
            raise


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8; the name of a file may have other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write(file: Path, values: Mapping[str, Any], *, yes: bool, replace: bool) -> None:
    own = {key: value for key, value in values.items() if own_settings()[key].trusted or _gets_login(key, values)}
    local = {key: value for key, value in values.items() if key not in own}
    _write_own(own, yes=yes, replace=replace)
    text = commented_file(local, "folder", heading=HEADING.format(own=user_settings_file()))
    replace_file(file, [text.encode()])
    say(f"Written: {file}")


def _gets_login(key: str, values: Mapping[str, Any]) -> bool:
    """Return whether a setting names the endpoint that gets the user's login; see `EndpointOptions.of`."""
    login = resolve(values, folder=NOWHERE).endpoint.user or os.environ.get(PASSWORD_VARIABLE)
    return key == "graph.path" and is_address(values[key]) and bool(login)


def _write_own(values: Mapping[str, Any], *, yes: bool, replace: bool) -> None:
    own = user_settings_file()
    if not values:
        return
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not own.exists():
        replace_file(own, [commented_file(values, "user", heading=OWN_HEADING).encode()])
    else:
        for key, value in values.items():
            _change(own, key, value, yes=yes, replace=replace)
    say(
        f"Written: {own} ({', '.join(values)}). This is your own file, for all folders: a {FILE_NAME} in a working "
        "folder may come from somebody else, and must not decide this."
    )


def _change(own: Path, key: str, value: Any, *, yes: bool, replace: bool) -> None:
    """Change one value of the user's own file, after asking if it has another value.

    Raises:
        SettingsError: the value was not changed.
    """
    settings = resolve(user_file=own, folder=NOWHERE, environment={})
    old = settings.values[key] if settings.origins[key] == str(own) else None
    if old == value:
        return
    if old is not None and not replace:
        question = f"{own} has {key} = {old}. Replace it?"
        if yes or not click.confirm(question, err=True):
            raise SettingsError(f"{own} has another {key}: {old}.", "To replace it, add --replace.")
    changed = with_value(own.read_text(encoding="utf-8"), key, value)
    if changed is None:
        raise SettingsError(f"{key} cannot be changed in {own}.", f"Change it yourself: {key} = {value!r}")
    replace_file(own, [changed.encode()], mode=own.stat().st_mode & 0o777)


def _read_graph(text: str) -> dict[str, Any]:
    return {"graph.path": text} if text else {}


def _check_graph(settings: Settings) -> str:
    from kgqa.graph.opening import open_graph_of
    from kgqa.methods.ask import cache_of, graph_id

    with open_graph_of(settings, cache=cache_of(settings)) as graph:
        triples = graph_id(graph).triples
        return f"{graph.schema.title}, {'unknown size' if triples is None else f'{triples:,} triples'}"


def _read_model(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind in ("replay", "vllm") and Path(rest).exists():
        text = f"{kind}:{Path(rest).absolute()}"  # your own file is read in every folder
    return {"llm.model": text} if text else {}


def _check_model(settings: Settings) -> str:
    from kgqa.llm.backends.openai import OpenAIChat
    from kgqa.llm.models import open_model

    name = (settings.llm.model or "none").strip()
    if name == "none":
        return "none; paths are compared by the similarity of embeddings"
    kind = name.partition(":")[0]
    if kind not in ("http", "https"):
        open_model(name, settings).close()
    if kind not in ("openai", "http", "https"):
        return name
    # a list of the models costs nothing, and shows whether the server accepts the key
    server = OPENAI_URL if name.startswith("openai:") else name.partition("#")[0]
    variable = OPENAI_KEY_VARIABLE if server == OPENAI_URL else KEY_VARIABLE
    model = OpenAIChat(None, url=server, key=find_key(variable, server), retries=0, timeout=SECONDS)
    model.close()
    return (
        f"{server} replies; {f'its first model is {model.name}' if '#' not in name and server != OPENAI_URL else name}"
    )


def _read_method(text: str) -> dict[str, Any]:
    name, _, preset = text.partition(" ")
    return {key: value for key, value in (("ask.method", name), ("ask.preset", preset.strip())) if value}


def _list_methods() -> str:
    return f"Methods: {', '.join(plugin_names('method'))}. Presets: {', '.join(PRESETS)} (docs/models.md)."


def _check_method(settings: Settings) -> str:
    from kgqa.methods.registry import method
    from kgqa.storage.corpus_file import read_corpus_file

    name = settings.ask.method
    chosen = method(name)
    if chosen.model and (settings.llm.model or "none") == "none":
        raise SettingsError(f"The method {name} needs a language model.", "Choose another, or name one: --llm MODEL")
    if chosen.corpus and read_corpus_file(settings.graph.path) is None:
        raise SettingsError(f"The method {name} needs a corpus folder.", "Choose another, or --graph CORPUS")
    return f"{name}, preset {settings.ask.preset}"


def _read_limits(text: str) -> dict[str, Any]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    matches = [LIMIT.fullmatch(part) for part in parts]
    if None in matches:
        raise SettingsError("Give limits with their units.", "Example: 60 s, 20 calls, 0.01 USD")
    found: dict[str, Any] = {}
    for match in filter(None, matches):
        key = f"budget.{LIMITS[match[2][0].lower()]}"
        try:
            found[key] = own_settings()[key].kind(match[1])
        except ValueError:
            raise SettingsError(f"{match[1]} is not a whole number of {match[2]}.") from None
    return found


def _check_limits(settings: Settings) -> str:
    from kgqa.llm.models import open_models

    if settings.budget.cost is not None and (models := open_models(settings)) is not None:
        models.close()  # a limit on the cost needs the price of the model
    limits = {each: getattr(settings.budget, each) for each in dict.fromkeys(LIMITS.values())}
    units = {"cost": "USD"}
    return ", ".join(f"{value:g} {units.get(name, name)}" for name, value in limits.items() if value is not None)


def _read_folder(text: str) -> dict[str, Any]:
    return {"cache.folder": str(Path(text).expanduser().absolute())} if text else {}


def _check_folder(settings: Settings) -> str:
    from kgqa.methods.ask import cache_of

    folder = cache_of(settings).folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(cannot_create(folder, error), "Name another folder.") from None
    if not os.access(folder, os.W_OK):
        raise SettingsError(f"{folder} is not writable.", "Name another folder.")
    return f"{folder}; a run is written to the folder that its --out names"


def _questions() -> Iterator[_Question]:
    yield _Question(
        "Graph", "Graph (folder, URL of a SPARQL endpoint)", "demo", ("graph.path",), _read_graph, _check_graph
    )
    yield _Question(
        "Language model",
        "Language model (none, openai:NAME, URL)",
        "none",
        ("llm.model",),
        _read_model,
        _check_model,
    )
    yield _Question(
        "Method",
        "Method, and preset after a space",
        "top",
        ("ask.method", "ask.preset"),
        _read_method,
        _check_method,
        _list_methods,
    )
    yield _Question(
        "Limits per question",
        "Limits per question (such as 60 s, 20 calls, 0.01 USD)",
        "300 s",
        ("budget.seconds", "budget.calls", "budget.cost"),
        _read_limits,
        _check_limits,
    )
    yield _Question("Caches", "Folder of caches", "default", ("cache.folder",), _read_folder, _check_folder)


_QUESTIONS = tuple(_questions())
