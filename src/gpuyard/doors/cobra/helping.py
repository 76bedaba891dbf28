"""Help and usage as cobra writes them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuyard.doors.cobra.commands import Flag, Path, inherited_flags, own_flags, path_name

LEAST_NAME_WIDTH = 11


def help_text(path: Path) -> str:
    """What `--help` shows: what it is for, then how it is used."""
    return f"{path[-1].long or path[-1].about}\n\n{usage(path)}"


def usage(path: Path) -> str:
    command, name = path[-1], path_name(path)
    lines = ["Usage:"]
    if command.run is not None:
        lines.append(f"  {' '.join(part for part in (name, command.words) if part)} [flags]")
    if command.children:
        lines.append(f"  {name} [command]")
    if command.aliases:
        lines += ["", "Aliases:", f"  {', '.join((command.name, *command.aliases))}"]
    if command.example:
        lines += ["", "Examples:", command.example]
    shown = [child for child in command.children if not child.hidden]
    if shown:
        width = max(LEAST_NAME_WIDTH, *(len(child.name) for child in shown))
        children = sorted(shown, key=lambda child: child.name)
        lines += ["", "Available Commands:", *(f"  {child.name:{width}} {child.about}" for child in children)]
    lines += ["", "Flags:", *_flag_lines(own_flags(path))]
    if inherited := inherited_flags(path):
        lines += ["", "Global Flags:", *_flag_lines(inherited)]
    if shown:
        lines += ["", f'Use "{name} [command] --help" for more information about a command.']
    return "\n".join(lines)


def _flag_lines(flags: Sequence[Flag]) -> list[str]:
    heads = [_head(flag) for flag in flags]
    width = max(map(len, heads))
    return [f"{head:{width}}   {_about(flag)}".rstrip() for head, flag in zip(heads, flags, strict=True)]


def _head(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    return f"  {short}--{flag.name}" + (f" {flag.kind}" if flag.takes_value else "")


def _about(flag: Flag) -> str:
    if not flag.default or flag.default in ("0", "false"):
        return flag.about
    shown = flag.default if flag.kind == "int" else f'"{flag.default}"'
    return f"{flag.about} (default {shown})"
