"""Errors a caller can act on. Every message says what happened and what to do next."""


class KgqaError(Exception):
    """Base of all errors raised on purpose. The CLI prints the message and exits with `exit_code`."""

    exit_code = 1


class SettingsError(KgqaError):
    """A setting is unknown, has the wrong type, or stands where it is not allowed."""

    exit_code = 2


class SchemaError(KgqaError):
    """A schema file cannot be read or contradicts itself."""


class InvalidTerm(KgqaError):
    """Text that should become an IRI or literal cannot stand in a SPARQL query."""


class QuestionError(KgqaError):
    """The question cannot be asked as it is: empty, too long, or its topic is not in the graph."""


class ModelUnavailable(KgqaError):
    """An embedding or language model that was asked for by name cannot be used here."""


class ModelRefused(ModelUnavailable):
    """A model's server refuses this one request, or no reply to it is recorded: asking again changes nothing."""


class StoreError(KgqaError):
    """Base of what a `Store` raises."""


class StoreTimeout(StoreError):
    """The query ran past its time limit and was ended. No part of its result is given."""


class PartialResult(StoreError):
    """The result is longer than the row or byte cap. No part of it is given."""


class RowCapMet(PartialResult):
    """The server cut the result at its own row cap. `variables` are those of the result, `cap` is in rows."""

    def __init__(self, message: str, *, variables: tuple[str, ...] = (), cap: int = 0) -> None:
        super().__init__(message)
        self.variables = variables
        self.cap = cap


class ResultCapped(StoreError):
    """The server's row cap cuts what a question needs of a path; what is left is not to be compared with other paths."""


class DamagedResult(PartialResult):
    """What arrived is no whole result: truncated JSON, broken gzip. The query and the graph are not to blame."""


class QueryRejected(StoreError):
    """The query is not valid SPARQL, or is not allowed here (SERVICE, LOAD, an update where one reads)."""


class StoreUnavailable(StoreError):
    """There is no usable store at this place: missing, not a graph, no permission, unreachable."""


class LoginRefused(StoreUnavailable):
    """A server that is there does not let this user do this. `status` is that of HTTP: with 401 it takes the user for
    nobody it knows.
    """

    def __init__(self, message: str, *, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


class StoreBusy(StoreUnavailable):
    """Another process is writing to this store."""


class StoreIncomplete(StoreUnavailable):
    """A load into this store was interrupted before anything was usable."""


class NamesNotIndexed(StoreError):
    """Entities of this store cannot be found by name. Everything else works."""


class StoreCrashed(StoreError):
    """The engine died on this query. Where it died by itself, the query is not tried again."""


class LoadError(StoreError):
    """A file could not be loaded. What was in the graph before is unchanged."""


class ServerError(KgqaError):
    """A database server of one's own cannot be started, stopped or used as asked."""


class SqlError(ServerError):
    """The server refused an SQL statement. `state` is the SQLSTATE it gave, such as `28000` for a bad login."""

    def __init__(self, message: str, *, state: str = "") -> None:
        super().__init__(message)
        self.state = state
