"""`kgqa`: the group of commands, and what they share when something goes wrong."""

from __future__ import annotations

import sys

import click

from kgqa.cli.lazy_group import LazyGroup
from kgqa.cli.options import verbosity_options
from kgqa.errors import KgqaError
from kgqa.version import __version__

COMMANDS = {
    "ask": "kgqa.cli.ask",
    "eval": "kgqa.cli.eval.group",
    "data": "kgqa.cli.data",
    "report": "kgqa.cli.report",
    "export": "kgqa.cli.export",
    "score": "kgqa.cli.eval.score",
    "graph": "kgqa.cli.graph.group",
    "virtuoso": "kgqa.cli.servers.virtuoso",
    "freebase": "kgqa.cli.servers.freebase",
    "rank": "kgqa.cli.rank",
    "prompts": "kgqa.cli.prompts",
    "explain": "kgqa.cli.explain",
    "doctor": "kgqa.cli.doctor",
    "config": "kgqa.cli.config",
    "cache": "kgqa.cli.cache",
    "completion": "kgqa.cli.completion",
}
EXIT_CODES = """\b
Exit codes:
  0    answered, or done
  1    an error; the message says what to do next
  2    wrong usage
  3    asked, but not answered (no answer, not supported, budget spent)
  130  stopped by Ctrl-C; what was finished is kept"""


@click.command(
    cls=LazyGroup, modules=COMMANDS, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="kgqa")
@verbosity_options
def cli() -> None:
    """Answers questions over a knowledge graph, and shows why.

    \b
    Start here, with nothing configured:
      kgqa ask "Which city is the capital of the country whose anthem is Kimigayo?"
    Then with a graph of your own:
      kgqa graph load triples.nt.gz --into mygraph/
      kgqa graph search "alta verapaz" --graph mygraph/
      kgqa ask "..." --graph mygraph/
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every error becomes a message and an exit code, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        sys.exit(cli.main(args=arguments, prog_name="kgqa", standalone_mode=False) or 0)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        # else the command has said what was kept; click puts an error of its own around it
        if not error.args and not getattr(error.__cause__, "args", ()):
            _say("Stopped.")
        sys.exit(130)
    except BrokenPipeError:
        # whoever read our output has had enough; keep the interpreter from complaining as it closes it
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KgqaError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            _internal(error, arguments)
        # a folder that may not be read or written, a full disk: nothing that we could have done better
        _say(f"{error.filename}: {error.strerror}.")
        sys.exit(1)
    except Exception as error:  # a defect of ours: still a message first
        _internal(error, arguments)


def _internal(error: Exception, arguments: list[str]) -> None:
    if any(a in ("-v", "--verbose", "-vv") for a in arguments):
        raise error
    _say(f"internal error: {type(error).__name__}: {error}. This is a defect; kgqa -v ... shows where.")
    sys.exit(1)


def _say(text: str) -> None:
    from kgqa.words import clean

    print(f"kgqa: {clean(text)}", file=sys.stderr)


if __name__ == "__main__":
    main()
