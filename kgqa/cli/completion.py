"""`kgqa completion`: shell completion."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes kgqa commands and options in SHELL.

    \b
    For this shell:     eval "$(kgqa completion bash)"
    For every new one:  kgqa completion bash >> ~/.bashrc
                        kgqa completion zsh > ~/.zfunc/_kgqa
                        kgqa completion fish > ~/.config/fish/completions/kgqa.fish
    """
    from click.shell_completion import get_completion_class

    from kgqa.cli.main import cli

    kind = get_completion_class(shell)
    print(kind(cli, {}, "kgqa", "_KGQA_COMPLETE").source())
