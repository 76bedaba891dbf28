"""Completion in shells: the words that may come next, and the scripts that ask for them with `__complete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuyard.doors.cobra.commands import Command, UsageError, inherited_flags, own_flags
from gpuyard.doors.cobra.parsing import find

SHELLS = ("bash", "fish", "powershell", "zsh")

_BASH = """\
# bash completion for %(program)s: source <(%(program)s completion bash)
_%(program)s_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(%(program)s __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _%(program)s_completion %(program)s
"""
_ZSH = """\
#compdef %(program)s
# zsh completion for %(program)s: source <(%(program)s completion zsh)
_%(program)s() {
    local -a found
    found=(${(f)"$(%(program)s __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then compadd -a found; else _files; fi
}
compdef _%(program)s %(program)s
"""
_FISH = """\
# fish completion for %(program)s: %(program)s completion fish | source
function __%(program)s_complete
    set -l typed (commandline -opc) (commandline -ct)
    %(program)s __complete $typed[2..-1] 2>/dev/null
end
complete -c %(program)s -a '(__%(program)s_complete)'
"""
_POWERSHELL = """\
# powershell completion for %(program)s: %(program)s completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName '%(program)s' -ScriptBlock {
    param($word, $command, $position)
    $typed = @($command.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($word -eq '') { $typed += '""' }
    & '%(program)s' __complete @typed 2>$null | Where-Object { $_ -like "$word*" } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
"""
_SCRIPTS: Mapping[str, str] = {"bash": _BASH, "fish": _FISH, "powershell": _POWERSHELL, "zsh": _ZSH}


def script(program: str, shell: str) -> str:
    return _SCRIPTS[shell] % {"program": program}


def candidates(root: Command, typed: Sequence[str]) -> list[str]:
    """What may stand in place of the last word, which may be unfinished or empty."""
    begun = typed[-1] if typed else ""
    try:
        path, _ = find(root, list(typed[:-1]))
    except UsageError:
        return []
    if begun.startswith("-"):
        words = [f"--{flag.name}" for flag in (*own_flags(path), *inherited_flags(path))]
    else:
        words = [child.name for child in path[-1].children if not child.hidden]
    return sorted(word for word in words if word.startswith(begun))
