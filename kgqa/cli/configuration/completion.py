"""`kgqa completion`: shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that makes SHELL complete kgqa commands and options.

    \b
    In this shell:       eval "$(kgqa completion bash)"
    In every new shell:  kgqa completion bash >> ~/.bashrc
                         kgqa completion zsh > ~/.zfunc/_kgqa
                         kgqa completion fish > ~/.config/fish/completions/kgqa.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None, shell
    print(completion(click.get_current_context().find_root().command, {}, "kgqa", "_KGQA_COMPLETE").source())
