"""Write the page of the command line: `python -m dev.cli_reference [--check]`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from dev.generated import write_page
from scalable_topics_operator.cli.main import app
from scalable_topics_operator.generate import CLI_PAGE

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "reference" / CLI_PAGE
_HEAD = """# Commands of stopics

Generated from the program; `stopics COMMAND --help` shows the same. How to use them: [cli.md](../cli.md).
`kubectl stopics` is the same program.

"""
_TYPES = {"str": "text", "int": "number", "float": "number"}
# Those of every program, for which its own help is enough.
_LEFT_OUT = frozenset({"help", "install_completion", "show_completion"})


def page() -> str:
    """The page."""
    return _HEAD + "\n".join(_section(path, command) for path, command in commands())


def commands() -> list[tuple[str, Any]]:
    """All commands, as they are typed, and the program itself."""
    return list(_commands("stopics", _program()))


def main() -> int:
    """Run the command; answers 1 when `--check` finds a difference."""
    return write_page("Write the page of the command line.", PAGE, page())


def _program() -> Any:
    return typer.main.get_command(app)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all below it that do something, by name."""
    below = getattr(command, "commands", {})
    if not below or command.params:
        yield path, command
    for name in sorted(below):
        yield from _commands(f"{path} {name}", below[name])


def _section(path: str, command: Any) -> str:
    parameters = [one for one in command.params if one.name not in _LEFT_OUT]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    usage = " ".join([path, *(_placeholder(one) for one in arguments), "[OPTIONS]"])
    if path == "stopics":
        usage = "stopics [OPTIONS] COMMAND"
    lines = [f"## {path}", str(command.help or "").strip(), "", "```text", usage, "```", ""]
    if parameters:
        lines += ["| | variable | default | |", "|---|---|---|---|", *map(_row, parameters), ""]
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{_placeholder(parameter)}`"
    else:
        names = ", ".join(f"`{one}`" for one in sorted(parameter.opts, key=lambda one: not one.startswith("--")))
        name = names if parameter.is_flag else f"{names} {_kind(parameter)}"
    variable = f"`{parameter.envvar}`" if parameter.envvar else ""
    return f"| {name} | {variable} | {_default(parameter)} | {parameter.help or ''} |"


def _placeholder(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _kind(parameter: Any) -> str:
    shown = str(parameter.display_type(typer.Context(_program()))).strip("<>").removeprefix("list[").rstrip("]")
    return _TYPES.get(shown.removesuffix(" range"), shown.replace("|", "\\|").lower())


def _default(parameter: Any) -> str:
    if parameter.required:
        return "needed"
    default = getattr(parameter.default, "value", parameter.default)
    if default in (None, False, (), []) or callable(default):
        return ""
    return f"`{default}`"


if __name__ == "__main__":
    sys.exit(main())
