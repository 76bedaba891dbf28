"""A look before the start, with the job's own eyes: what plainly cannot run is told in words instead of a number.

Asked in the room or container, as the user, right before the command is started. When in doubt the command runs: it
knows better. A problem is the value of one of the domain's codes (`ended.no_start_file`...) and its facts.
"""

from __future__ import annotations

import os
import re
import stat
import time

UPLOADING = ".yard-uploading"  # lies in a folder while somebody uploads to it, and is touched now and then
_UPLOAD_SECONDS = 3600.0  # one that was not touched for so long was left behind
_MOST_BYTES = 256  # so far the kernel looks for the end of a `#!` line

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?\Z")
_SHELLS = frozenset(("sh", "bash", "dash"))
_TAKE_A_VALUE = (
    "nproc-per-node nnodes node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf master-addr master-port "
    "max-restarts monitor-interval start-method role log-dir redirects tee local-addr local-ranks-filter"
)
_TORCHRUN_VALUES = frozenset(_TAKE_A_VALUE.split())
_TORCHRUN_FLAGS = frozenset(("standalone",))
# What a shell does itself, or what changes the meaning of the words after it.
_DONE_BY_SHELLS = (
    ". : [ alias bg break builtin case cd command continue coproc declare do done echo elif else enable esac eval exec "
    "exit export false fc fg fi for function getopts hash help history if in jobs kill let local logout mapfile popd "
    "printf pushd pwd read readarray readonly return select set shift shopt source suspend test then time times trap "
    "true type typeset ulimit umask unalias unset until wait while [[ ! { }"
)
_SHELL_WORDS = frozenset(_DONE_BY_SHELLS.split())
_NOT_PLAIN = re.compile(r"[;&|<>()$`\n\r*?\[\]#~{}!\\=]")
_DEEPEST = 3

Problem = dict[str, str]


def check(argv: list[str], cwd: str, path: str) -> Problem | None:
    """The first thing that keeps this command from running in this folder with this PATH, or None."""
    try:
        return check_folder(cwd) or _command_problem(argv, cwd, path, _DEEPEST)
    except (OSError, ValueError):  # a disk that does not answer well, or a name no file can have: let it run
        return None


def in_words(problem: Problem) -> str:
    """A line for the log. What people are told in their own language is made of the code."""
    what = problem["code"].partition(".")[2].replace("_", " ")
    facts = ", ".join(value for key, value in problem.items() if key != "code")
    return f"yard: not started: {what}: {facts}"


def _problem(code: str, /, **facts: str) -> Problem:
    return {"code": f"ended.{code}", **{key: value[:1000] for key, value in facts.items()}}


def check_folder(cwd: str) -> Problem | None:
    if not os.path.isdir(cwd):
        return _problem("no_working_folder", path=cwd)
    if not os.access(cwd, os.W_OK | os.X_OK):
        return _problem("folder_not_writable", path=cwd)
    try:
        marked_at = os.lstat(os.path.join(cwd, UPLOADING)).st_mtime
    except OSError:
        return None
    is_under_way = abs(time.time() - marked_at) < _UPLOAD_SECONDS
    return _problem("upload_under_way", path=cwd) if is_under_way else None


def _command_problem(argv: list[str], cwd: str, path: str, depth: int) -> Problem | None:
    program = _find(argv[0], cwd, path)
    if program is None:
        return _problem("no_such_command", name=argv[0])
    found = _program_problem(program, cwd, path)
    if found or depth == 0:
        return found
    name = os.path.basename(argv[0])
    if _PYTHON.match(name):
        return _script_problem(_python_script(argv[1:]), cwd, "")
    if name == "torchrun":
        return _script_problem(_torchrun_script(argv[1:]), cwd, "")
    if name in _SHELLS:
        return _shell_problem(argv[1:], cwd, path, depth)
    return None


def _find(name: str, cwd: str, path: str) -> str | None:
    """Where this command is, the way exec looks for it: one that may not be run counts only when there is no other."""
    if "/" in name:
        return os.path.join(cwd, name)
    others: list[str] = []
    for folder in path.split(":"):
        place = os.path.join(cwd, folder, name)
        if os.path.isfile(place):
            if os.access(place, os.X_OK):
                return place
            others.append(place)
    return others[0] if others else None


def _file_problem(path: str) -> Problem | None:
    """Links are followed; one that leads nowhere is as good as nothing."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _problem("no_start_file", path=path)
    except PermissionError:
        return _problem("not_readable", path=path)
    return _problem("start_file_is_folder", path=path) if stat.S_ISDIR(found.st_mode) else None


def _program_problem(program: str, cwd: str, path: str) -> Problem | None:
    """Of something that is started itself."""
    found = _file_problem(program)
    if found:
        return found
    if not os.access(program, os.X_OK):
        return _problem("not_executable", path=program)
    return _first_line_problem(program, cwd, path)


def _first_line_problem(program: str, cwd: str, path: str) -> Problem | None:
    try:
        with open(program, "rb") as file:
            start = file.read(_MOST_BYTES)
    except OSError:  # what may be run need not be readable
        return None
    line, end, _ = start.partition(b"\n")
    words = os.fsdecode(line[2:]).split()
    if not start.startswith(b"#!") or not end or not words:
        return None
    has_windows_lines = line.endswith(b"\r")
    interpreter = words[0]
    if not os.path.isabs(interpreter):
        return None
    if os.path.basename(interpreter) == "env" and len(words) == 2 and os.path.exists(interpreter):
        interpreter = words[1]
        if _find(interpreter, cwd, path) is not None and not has_windows_lines:
            return None
    elif os.path.exists(interpreter) and not (has_windows_lines and len(words) == 1):
        return None
    if has_windows_lines:
        return _problem("windows_lines", path=program)
    return _problem("no_interpreter", path=program, interpreter=interpreter)


def _script_problem(script: str | None, cwd: str, path: str) -> Problem | None:
    """Of a file that an interpreter is to read. Shells look for it on PATH too, the others do not."""
    if script is None:
        return None
    place = os.path.join(cwd, script)
    found = _file_problem(place)
    if found and found["code"] == "ended.no_start_file" and path and "/" not in script and _find(script, cwd, path):
        return None
    if found and found["code"] == "ended.start_file_is_folder" and os.path.exists(os.path.join(place, "__main__.py")):
        return None
    if found:
        return found
    return None if os.access(place, os.R_OK) else _problem("not_readable", path=place)


def _python_script(words: list[str]) -> str | None:
    """The file among Python's arguments; None when it reads no file, or something else than we know."""
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            return word
        if word in ("-W", "-X"):
            next(left, None)
        elif word.startswith(("-W", "-X")):
            continue
        elif not re.fullmatch(r"-[bBdEiIOPqsSuvx]+", word):
            return None
    return None


def _torchrun_script(words: list[str]) -> str | None:
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            return word
        name, has_value, _ = word.lstrip("-").replace("_", "-").partition("=")
        if name in _TORCHRUN_VALUES:
            if not has_value:
                next(left, None)
        elif name not in _TORCHRUN_FLAGS:
            return None
    return None


def _shell_problem(words: list[str], cwd: str, path: str, depth: int) -> Problem | None:
    for number, word in enumerate(words):
        if not word.startswith(("-", "+")):
            return _script_problem(word, cwd, path)
        if re.fullmatch(r"-[euxv]*c[euxv]*", word):
            line = words[number + 1] if number + 1 < len(words) else ""
            inner = plain_command(line)
            return _command_problem(inner, cwd, path, depth - 1) if inner else None
        if not re.fullmatch(r"[-+][euxv]+", word):
            return None
    return None


def plain_command(line: str) -> list[str] | None:
    """The words of a line that is one plain command for sure; None for anything a shell might read otherwise."""
    import shlex

    line = line.strip()
    while match := re.match(r"([A-Za-z_][A-Za-z0-9_]*)=([A-Za-z0-9_.,:/@%+-]*)[ \t]+", line):
        if match.group(1) in ("PATH", "BASH_ENV", "ENV"):
            return None
        line = line[match.end() :]
    if line.startswith("exec ") and not line.startswith("exec -"):
        line = line[5:].lstrip()
    if not line or _NOT_PLAIN.search(_without_harmless_signs(line)):
        return None
    words = shlex.split(line)
    return words if words and words[0] not in _SHELL_WORDS else None


def _without_harmless_signs(line: str) -> str:
    """What stands in single quotes means nothing to a shell, nor does `=` behind the first word."""
    first, space, others = re.sub(r"'[^']*'", "''", line).partition(" ")
    return first + space + others.replace("=", "")
