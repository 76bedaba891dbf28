"""The program `vcctl`: its commands and their flags. What a command needs is loaded when it is run."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from importlib import import_module

from gpuyard.doors.cobra import Command, Flag, Given, Program
from gpuyard.doors.cobra import run as run_program

_COMMON = (
    Flag("master", "the address of apiserver", "s"),
    Flag("kubeconfig", "(optional) absolute path to the kubeconfig file", "k"),
)
_NAMESPACE = Flag("namespace", "the namespace of job", "n", default="default")
_JOB = Flag("name", "the name of job", "N")
_FILE = Flag("filename", "the yaml file of job", "f")
_QUEUE = Flag("name", "the name of queue", "n")
_USUAL_AMOUNTS = "cpu=1000m,memory=100Mi"
_RUN_FLAGS = (
    *(_FILE, _JOB, _NAMESPACE),
    Flag("image", "the container image of job", "i", default="busybox"),
    Flag("min", "the minimal available tasks of job", "m", "int", "1"),
    Flag("replicas", "the total tasks of job", "r", "int", "1"),
    Flag("requests", "the resource request of the task", "R", default=_USUAL_AMOUNTS),
    Flag("limits", "the resource limit of the task", "L", default=_USUAL_AMOUNTS),
    Flag("scheduler", "the scheduler for this job", "S", default="volcano"),
)
_LIST_FLAGS = (
    _NAMESPACE,
    Flag("scheduler", "list job with specified scheduler name", "S"),
    Flag("all-namespaces", "list jobs in all namespaces", kind="bool"),
    Flag("selector", "fuzzy matching jobName"),
    Flag("queue", "list job with specified queue name", "q"),
)
_LINES = Flag("lines", "the last lines of the log to show; left out: all", "L", "int")


def _leaf(parent: str, name: str, about: str, function: str, *flags: Flag) -> Command:
    """A command whose work is done by a function of another module here: `jobs.view`."""

    def run(given: Given) -> int:
        from gpuyard.doors.vcctl.failing import reported

        module, _, attribute = function.partition(".")
        work: Callable[[Given], None] = getattr(import_module(f"gpuyard.doors.vcctl.{module}"), attribute)
        return reported(name, parent, work)(given)

    return Command(name, about, run, (*_COMMON, *flags), most=None)


def _version(given: Given) -> int:
    import platform

    from gpuyard.sdk.version import VERSION

    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    print("API Version: v1alpha1")
    print(f"Version: gpuyard {VERSION}")
    print("Git SHA: Not provided.")
    print("Built At: Not provided.")
    print(f"Go Version: none (Python {platform.python_version()})")
    print(f"Go OS/Arch: {sys.platform}/{machine}")
    return 0


_JOB_COMMANDS = (
    _leaf("job", "create", "create a job from a yaml file", "submitting.create", _FILE, _NAMESPACE),
    _leaf("job", "run", "run job by parameters from the command line", "submitting.run", *_RUN_FLAGS),
    _leaf("job", "list", "list job information", "jobs.list_jobs", *_LIST_FLAGS),
    _leaf("job", "view", "show job information", "jobs.view", _JOB, _NAMESPACE),
    _leaf("job", "logs", "show the output of a job, or why it waits", "logs.logs", _JOB, _NAMESPACE, _LINES),
    _leaf("job", "suspend", "abort a job", "jobs.suspend", _JOB, _NAMESPACE),
    _leaf("job", "resume", "resume a job", "jobs.resume", _JOB, _NAMESPACE),
    _leaf("job", "delete", "delete a job", "jobs.delete", _JOB, _NAMESPACE),
)
_QUEUE_COMMANDS = (
    _leaf(
        *("queue", "create", "creates queue", "queues.create"),
        Flag("name", "the name of queue", "n", default="test"),
        Flag("weight", "the weight of the queue", "w", "int", "1"),
        Flag("state", "the state of queue", "S", default="Open"),
    ),
    _leaf("queue", "delete", "delete queue", "queues.delete", _QUEUE),
    _leaf(
        *("queue", "operate", "operate queue", "queues.operate", _QUEUE),
        Flag("weight", "the weight of the queue", "w", "int", "0"),
        Flag("action", "operate action to queue, valid actions are open, close, update", "a"),
    ),
    _leaf("queue", "list", "lists all the queue", "queues.list_queues"),
    _leaf("queue", "get", "get a queue", "queues.get", _QUEUE),
)
ROOT = Command(
    "vcctl",
    "vcctl runs jobs on gpuyard with the commands and files of Volcano",
    children=(
        Command("job", "vcctl command line operation job", children=_JOB_COMMANDS),
        Command("queue", "Queue Operations", children=_QUEUE_COMMANDS),
        Command("version", "Print the version information", _version, example="vcctl version", most=None),
    ),
)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = run_program(Program(ROOT), sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # whoever read along has enough
        _leave_output()
        code = 0
    except OSError as problem:
        _leave_output()
        print(f"Error: write /dev/stdout: {(problem.strerror or str(problem)).lower()}", file=sys.stderr)
        code = 1
    sys.exit(code)


def _leave_output() -> None:
    """What could not be written is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
