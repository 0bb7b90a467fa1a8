"""The exceptions that kgqa raises on purpose. Every message says what is wrong and what to do next.

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
    """A setting is unknown, has a wrong value, or is not allowed in this source."""

    exit_code = 2


class SchemaError(KgqaError):
    """A schema file cannot be read or is invalid, or a text is not an id under a schema."""


class InvalidTerm(KgqaError):
    """A text cannot be used as an IRI or literal in a SPARQL query."""


class QuestionError(KgqaError):
    """The question is empty or too long, or its topic is not in the graph."""


class ModelUnavailable(KgqaError):
    """The requested embedding or language model cannot be used."""


class ModelRefused(ModelUnavailable):
    """The model's server rejects this request, or no reply to it is recorded. Retrying does not help."""


class StoreError(KgqaError):
    """Base class of the errors that a `Store` raises."""


class StoreTimeout(StoreError):
    """The query exceeded its time limit and was cancelled. No partial result is returned."""


class PartialResult(StoreError):
    """The result is longer than the row or byte cap. No partial result is returned."""


class RowCapMet(PartialResult):
    """The server cut the result at its row cap. `variables`: those of the result. `cap`: rows."""

    def __init__(self, message: str, *, variables: tuple[str, ...] = (), cap: int = 0) -> None:
        super().__init__(message)
        self.variables = variables
        self.cap = cap


class ResultCapped(StoreError):
    """The server's row cap truncates the ends of a path, which makes it incomparable with other paths."""


class DamagedResult(PartialResult):
    """The reply is not a complete result: truncated JSON, broken gzip. The query and the graph are not the cause."""


class QueryRejected(StoreError):
    """The query is not valid SPARQL, or is not allowed here (SERVICE, LOAD, an update on a read-only store)."""


class StoreUnavailable(StoreError):
    """There is no usable store at this path or URL: missing, not a graph, no permission, unreachable."""


class LoginRefused(StoreUnavailable):
    """The server denies this user the request. `status` is the HTTP status; 401 means unknown user or password."""

    def __init__(self, message: str, *, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


class StoreBusy(StoreUnavailable):
    """Another process is writing to this store."""


class StoreIncomplete(StoreUnavailable):
    """The first load into this store was interrupted; the store is not usable yet."""


class NamesNotIndexed(StoreError):
    """Entities of this store cannot be found by name because there is no index. Everything else works."""


class StoreCrashed(StoreError):
    """The engine crashed while running this query."""


class LoadError(StoreError):
    """A file could not be loaded. The graph is unchanged."""


class ServerError(KgqaError):
    """The user's own database server cannot be started, stopped or used as requested."""


class SqlError(ServerError):
    """The server rejected an SQL statement. `state` is the SQLSTATE, such as `28000` for a bad login."""

    def __init__(self, message: str, *, state: str = "") -> None:
        super().__init__(message)
        self.state = state
