"""`hudictl completion SHELL`: a script by which bash, zsh or fish complete verbs, options and their
values.

It is made of the program's own parser and asks nothing when it completes, so it is as quick as the
shell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from hudi_table.cli import exits
from hudi_table.cli.output import note

_HOW = {
    "bash": "hudictl completion bash > ~/.local/share/bash-completion/completions/hudictl",
    "zsh": "hudictl completion zsh > a file _hudictl in a folder of $fpath",
    "fish": "hudictl completion fish > ~/.config/fish/completions/hudictl.fish",
}


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    verbs = dict(_verbs(args.parser))
    sys.stdout.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](verbs))
    if sys.stdout.isatty():
        note(_HOW[args.shell])
    return exits.GOOD


Options = dict[str, tuple[str, ...]]
"""Of each option the values that it may have; () for an option without any, or whose values nobody
can list."""


def _verbs(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Options]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield name, dict(_options(verb))


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, tuple[str, ...]]]:
    for action in parser._actions:
        names = action.option_strings or ([""] if action.choices else [])
        values = tuple(map(str, action.choices)) if action.choices else ()
        for name in names:
            yield name, values


def _bash(verbs: dict[str, Options]) -> str:
    cases = []
    for verb, options in verbs.items():
        valued = "".join(
            f"      {name}) COMPREPLY=($(compgen -W '{' '.join(values)}' -- \"$cur\")); return;;\n"
            for name, values in options.items()
            if name and values
        )
        words = " ".join([*(name for name in options if name), *options.get("", ())])
        cases_of_values = f'      case "$prev" in\n{valued}      esac\n' if valued else ""
        cases.append(f"    {verb})\n{cases_of_values}      words='{words}';;\n")
    names = " ".join(verbs)
    return (
        "_hudictl() {\n"
        '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=""\n'
        f'  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W \'{names} --help --version\' -- "$cur")); return; fi\n'
        f'  case "${{COMP_WORDS[1]}}" in\n{"".join(cases)}  esac\n'
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))\n'
        "}\n"
        "complete -o default -F _hudictl hudictl\n"
    )


def _zsh(verbs: dict[str, Options]) -> str:
    return f"#compdef hudictl\nautoload -U +X bashcompinit && bashcompinit\n{_bash(verbs)}"


def _fish(verbs: dict[str, Options]) -> str:
    lines = [f"complete -c hudictl -n __fish_use_subcommand -f -a '{' '.join(verbs)}'"]
    for verb, options in verbs.items():
        for name, values in options.items():
            seen = f"complete -c hudictl -n '__fish_seen_subcommand_from {verb}'"
            arguments = f" -x -a '{' '.join(values)}'" if values else ""
            kind = f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" if name else ""
            lines.append(f"{seen}{kind}{arguments}")
    return "\n".join(lines) + "\n"
