"""The exception classes of kgqa. An error has a message, which states what is wrong, and a hint: what to do next.

* KgqaError
  · SettingsError
  · PluginError
  · SchemaError
  · ClusterError
  · CorpusError
  · DocumentError
  · InvalidTerm
  * QuestionError
    · NoTopicFound
  * ModelUnavailable
    · ModelRefused
    · KeyRefused
  * StoreError
    · StoreTimeout
    * PartialResult
      · RowCapMet
      · DamagedResult
    · ResultCapped
    * QueryRejected
      · InvalidQuery
    * StoreUnavailable
      · LoginRefused
      · StoreBusy
      · StoreIncomplete
    · NamesNotIndexed
    · StoreCrashed
    · LoadError
  * ServerError
    · SqlError
"""

from kgqa.text.hints import Part


class KgqaError(Exception):
    """Base class of all errors that kgqa raises. The command line prints the error and exits with `exit_code`.

    Args:
        message: what is wrong.
        hint: what to do next (see `kgqa.text.hints`); empty if nothing can be done.
    """

    exit_code = 1

    def __init__(self, message: str = "", *hint: Part) -> None:
        super().__init__(message, *hint)
        self.message = message
        self.hint_parts = hint

    @property
    def hint(self) -> str:
        """What to do next, worded for where it is shown: command line, Python, page or agent."""
        return "".join(map(str, self.hint_parts))

    def __str__(self) -> str:
        message = self.message if not self.hint or self.message.endswith((".", "!", "?", ":")) else f"{self.message}."
        return f"{message} {self.hint}".rstrip()


class SettingsError(KgqaError):
    """A setting is unknown, has a wrong value, or may not be set in this file."""

    exit_code = 2


class PluginError(KgqaError):
    """A plugin of another package failed."""


class SchemaError(KgqaError):
    """A schema file cannot be read or is invalid, or a string is not an entity id in the graph's schema."""


class ClusterError(KgqaError):
    """A cluster of machines cannot be used, or its workers cannot run what they are sent."""


class CorpusError(KgqaError):
    """A corpus cannot be opened, read or changed: it is missing, damaged, in use, or the change is not possible."""


class DocumentError(KgqaError):
    """A file cannot be read as a document; other files are not affected. `reason`: why, without the file's name."""

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(f"{source} cannot be read: {reason}" if source else reason)
        self.reason = reason


class InvalidTerm(KgqaError):
    """A string cannot be used as an IRI or literal in a SPARQL query."""


class QuestionError(KgqaError):
    """The question is empty or too long, or its topic is not in the graph."""


class NoTopicFound(QuestionError):
    """The question names no entity of the graph, so it has no answer there; nothing went wrong."""


class ModelUnavailable(KgqaError):
    """The requested embedding or language model cannot be used."""


class ModelRefused(ModelUnavailable):
    """The model's server rejects a request, or a replay file has no reply to the request. Retrying does not help."""


class KeyRefused(ModelUnavailable):
    """The server of a model needs an API key, or does not accept the given one."""


class StoreError(KgqaError):
    """Base class of the errors that a `Store` raises."""


class StoreTimeout(StoreError):
    """A query exceeded its time limit and was cancelled. No partial result is returned."""


class PartialResult(StoreError):
    """A result exceeds the maximum number of rows or bytes. No partial result is returned."""


class RowCapMet(PartialResult):
    """A server cut off a result at its row cap. `variables`: variables of the result. `cap`: number of rows."""

    def __init__(self, message: str, *hint: Part, variables: tuple[str, ...] = (), cap: int = 0) -> None:
        super().__init__(message, *hint)
        self.variables = variables
        self.cap = cap


class ResultCapped(StoreError):
    """The end nodes of a path exceed the server's row cap, so the path cannot be compared with other paths."""


class DamagedResult(PartialResult):
    """A reply was damaged during transfer (truncated JSON, broken gzip); a repeated query may succeed."""


class QueryRejected(StoreError):
    """A query is not valid SPARQL, or is not allowed (SERVICE, LOAD, or an update of a read-only store)."""


class InvalidQuery(QueryRejected):
    """A query is not valid SPARQL.

    `at`: the number of characters before the error; `exact`: whether it is not further on; `reason`: why, if known.
    """

    def __init__(self, query: str, at: int, reason: str = "", *, exact: bool = True) -> None:
        before = query[:at].split("\n")
        place = f"Not valid SPARQL at {'' if exact else 'or after '}line {len(before)}, column {len(before[-1]) + 1}"
        super().__init__(place + (f": {reason}." if reason else "."))
        self.at = at
        self.reason = reason
        self.exact = exact


class StoreUnavailable(StoreError):
    """A path or URL cannot be used as a store: it is missing, unreachable or not a graph, or access is denied."""


class LoginRefused(StoreUnavailable):
    """A server denies a user's request. `status`: HTTP status; 401 means that user name or password is wrong."""

    def __init__(self, message: str, *hint: Part, status: int = 403) -> None:
        super().__init__(message, *hint)
        self.status = status


class StoreBusy(StoreUnavailable):
    """A store cannot be used now, because another process is writing to it."""


class StoreIncomplete(StoreUnavailable):
    """A store cannot be used, because the first load into it was interrupted and must be resumed."""


class NamesNotIndexed(StoreError):
    """Entities cannot be found by name, because the store has no index of names."""


class StoreCrashed(StoreError):
    """The engine of the embedded store crashed during a query."""


class LoadError(StoreError):
    """A file could not be loaded. The graph is unchanged."""


class ServerError(KgqaError):
    """The Virtuoso server that kgqa manages cannot be started, stopped or used as requested."""


class SqlError(ServerError):
    """A server rejected an SQL statement. `state`: the SQLSTATE, such as `28000` for a wrong user or password."""

    def __init__(self, message: str, *hint: Part, state: str = "") -> None:
        super().__init__(message, *hint)
        self.state = state
