"""The exception classes of kgqa. Every message states what is wrong and what to do next.

* KgqaError
  · SettingsError
  · SchemaError
  · InvalidTerm
  · QuestionError
  * ModelUnavailable
    · ModelRefused
  * StoreError
    · StoreTimeout
    * PartialResult
      · RowCapMet
      · DamagedResult
    · ResultCapped
    · QueryRejected
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


class KgqaError(Exception):
    """Base class of all errors that kgqa raises. The command line prints the message and exits with `exit_code`."""

    exit_code = 1


class SettingsError(KgqaError):
    """A setting is unknown, has a wrong value, or may not be set in this file."""

    exit_code = 2


class SchemaError(KgqaError):
    """A schema file cannot be read or is invalid, or a string is not an entity id in the graph's schema."""


class InvalidTerm(KgqaError):
    """A string cannot be used as an IRI or literal in a SPARQL query."""


class QuestionError(KgqaError):
    """The question is empty or too long, or its topic is not in the graph."""


class ModelUnavailable(KgqaError):
    """The requested embedding or language model cannot be used."""


class ModelRefused(ModelUnavailable):
    """The model's server rejects a request, or a replay file has no reply to the request. Retrying does not help."""


class StoreError(KgqaError):
    """Base class of the errors that a `Store` raises."""


class StoreTimeout(StoreError):
    """A query exceeded its time limit and was cancelled. No partial result is returned."""


class PartialResult(StoreError):
    """A result exceeds the maximum number of rows or bytes. No partial result is returned."""


class RowCapMet(PartialResult):
    """A server cut off a result at its row cap. `variables`: variables of the result. `cap`: number of rows."""

    def __init__(self, message: str, *, variables: tuple[str, ...] = (), cap: int = 0) -> None:
        super().__init__(message)
        self.variables = variables
        self.cap = cap


class ResultCapped(StoreError):
    """The end nodes of a path exceed the server's row cap, so the path cannot be compared with other paths."""


class DamagedResult(PartialResult):
    """A reply was damaged during transfer (truncated JSON, broken gzip); a repeated query may succeed."""


class QueryRejected(StoreError):
    """A query is not valid SPARQL, or is not allowed (SERVICE, LOAD, or an update of a read-only store)."""


class StoreUnavailable(StoreError):
    """A path or URL cannot be used as a store: it is missing, unreachable or not a graph, or access is denied."""


class LoginRefused(StoreUnavailable):
    """A server denies a user's request. `status`: HTTP status; 401 means that user name or password is wrong."""

    def __init__(self, message: str, *, status: int = 403) -> None:
        super().__init__(message)
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

    def __init__(self, message: str, *, state: str = "") -> None:
        super().__init__(message)
        self.state = state
