"""English for what is met inside a workload: before its command starts, and at its door."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

INSIDE: Mapping[Code, Template] = {
    Code.NO_START_FILE: (
        "The start file was not found[: {path}][ ({replica})]. Check its name and the folder it is in; "
        "upload it if it is not there yet."
    ),
    Code.NO_SUCH_COMMAND: (
        "There is no such command[: `{name}`][ ({replica})]. Check the spelling, or take an image that has it."
    ),
    Code.START_FILE_IS_FOLDER: "The start file is a folder[: {path}][ ({replica})]. Name the file in it.",
    Code.NOT_READABLE: (
        "No permission to read the start file[ {path}][ ({replica})].[ Allow it with: chmod u+r {path}]"
    ),
    Code.NOT_EXECUTABLE: (
        "No permission to execute the start file[ {path}][ ({replica})].[ Allow it with: chmod +x {path}]"
    ),
    Code.NO_INTERPRETER: (
        "The start file[ {path}] names a program in its first line that is not there[: {interpreter}][ ({replica})]. "
        "Correct the line, or take an image that has it."
    ),
    Code.WINDOWS_LINES: (
        "The start file[ {path}] has line ends as on Windows, so it cannot be run[ ({replica})]. "
        "Save it with Unix line ends[, or: sed -i 's/\\r$//' {path}]."
    ),
    Code.NO_WORKING_FOLDER: "The working folder is not there[: {path}][ ({replica})].",
    Code.FOLDER_NOT_WRITABLE: "No permission to write to the working folder[ {path}][ ({replica})].",
    Code.UPLOAD_UNDER_WAY: (
        "An upload to the working folder[ {path}] has not finished[ ({replica})]. Start again when it has."
    ),
    Code.DOOR_CLOSED: "It cannot be entered just now: it does not run, or does not answer[ ({detail})].",
    Code.NOBODY_LISTENS: "Nothing listens there yet[: {what:noun}][ {name}]. Start the program in it, then try again.",
    Code.TOO_MANY_INSIDE: "Too much is open in it already[: {detail}]. Close something and try again.",
    Code.INSIDE_FAILED: "It could not be started inside[: {detail}].",
    Code.GATEWAY_AWAY: "The gateway is not open, or is being started. Try again in a moment.",
    Code.BROKER_AWAY: "The way in is being restarted. Try again in a moment.",
}

INSIDE_NOUNS: Mapping[str, str] = {"service": "service", "program": "program", "terminal": "terminal", "port": "port"}
