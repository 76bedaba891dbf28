"""How this tool fails: one line on standard output, `Failed to <what> <of what>: <why>`, and its own exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpuyard.doors.cobra import Given

if TYPE_CHECKING:
    from gpuyard.sdk.errors import Problem, YardApiError

FAILED = 2  # as version 1.1 of the tool has it
JOBS, QUEUES = "jobs.batch.volcano.sh", "queues.scheduling.volcano.sh"
_DENIED = 'admission webhook "validatejob.volcano.sh" denied the request:'


class Failure(Exception):
    """Something is wrong; the message says what, in the tool's words."""


def not_found(kind: str, name: str) -> Failure:
    return Failure(f'{kind} "{name}" not found')


def already_exists(kind: str, name: str) -> Failure:
    return Failure(f'{kind} "{name}" already exists')


def reported(leaf: str, parent: str, run: Callable[[Given], None]) -> Callable[[Given], int]:
    """The same, with every failure told as the tool tells it."""

    def told(given: Given) -> int:
        from gpuyard.sdk.errors import YardApiError

        try:
            run(given)
        except Failure as failure:
            return _tell(leaf, parent, str(failure))
        except YardApiError as refusal:
            return _tell(leaf, parent, in_words(refusal))
        except UnicodeEncodeError:
            return _tell(leaf, parent, "what was typed is not UTF-8 text")
        return 0

    return told


def _tell(leaf: str, parent: str, words: str) -> int:
    print(f"Failed to {leaf} {parent}: {_printable(words)}")
    return FAILED


def in_words(refusal: YardApiError) -> str:
    """What the tool would have said, where the server knows or the case is known; otherwise the server's sentences."""
    if refusal.code == "refused.name_taken":
        return f'{JOBS} "{refusal.facts.get("name")}" already exists'
    if _is_about_a_group(refusal):
        return f'{_DENIED} unable to find job queue: {QUEUES} "{refusal.facts.get("name")}" not found;'
    told = [_sentence(problem) for problem in refusal.problems]
    return "\n".join(dict.fromkeys(told)) or _one(refusal.message, refusal.facts)


def _is_about_a_group(refusal: YardApiError) -> bool:
    return refusal.code == "refused.not_found" and refusal.facts.get("what") == "group"


def _sentence(problem: Problem) -> str:
    return _one(problem.message, problem.facts)


def _one(message: str, facts: Mapping[str, Any]) -> str:
    """The tool's own words, with the line unless they name it themselves."""
    if facts.get("at") == "priority" and facts.get("allowed"):
        there = ", ".join(map(str, facts["allowed"]))
        return f"no PriorityClass with name {facts.get('value')} was found; there are: {there}"
    text, line = facts.get("text"), facts.get("line")
    if not text:
        return message
    return f"{text} (line {line})" if line and f"line {line}" not in str(text) else str(text)


def note(lines: Iterable[str]) -> None:
    """Beside the answer, so that it stays what scripts expect."""
    for line in lines:
        print(f"note: {_printable(line)}", file=sys.stderr)


def _printable(words: str) -> str:
    """Without what a terminal would obey: it may come from a file, or from whoever answered."""
    return "".join(character if character.isprintable() or character in "\n\t" else "�" for character in words)
