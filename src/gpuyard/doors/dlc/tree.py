"""Every command of dlc with its flags. What a command does is loaded when it is run."""

from __future__ import annotations

from importlib import import_module

from gpuyard.dialects.dlc import keys
from gpuyard.doors.cobra import Command, Flag, Given
from gpuyard.doors.cobra.commands import Run

CREATE_EXAMPLE = """\
  dlc create job --params_file ./sample_job.params
  dlc create job --name hello --kind PyTorchJob --worker_count 1 --worker_cpu 4 --worker_memory 4 \\
      --worker_image pytorch/pytorch --command 'echo "hello world"'"""
CREATE_LONG = """\
Create a job.

Every key of a params file is also a flag. What the params file says wins over the flags beside it."""
LIST_LONG = """\
Show jobs, or one job as JSON.

On a terminal the list is a table; otherwise its columns are divided by spaces, without borders (-o decides)."""


def _lazily(room: str, name: str) -> Run:
    def run(given: Given) -> int:
        code: int = getattr(import_module(f"gpuyard.doors.dlc.{room}"), name)(given)
        return code

    return run


def _create_flags() -> tuple[Flag, ...]:
    file = Flag("params_file", "file with one key=value per line; wins over flags")
    shown = {*keys.JOB_KEYS, *(key for key in keys.ROLE_KEYS if not key.endswith("_spec"))}
    return (
        file,
        *(
            Flag(
                key,
                keys.about(key),
                kind="bool" if key in keys.BOOLEANS else "string",
                default="1" if key == "priority" else "",
                hidden=key not in shown,
            )
            for key in keys.ALL_KEYS
        ),
    )


LIST_FLAGS = (
    Flag("workspace_id", "only jobs of this workspace, by id or name"),
    Flag("display_name", "only jobs with this in their names", short="n"),
    Flag("display_name_regex", "only jobs whose names match this regular expression"),
    Flag("job_type", "only jobs of this kind"),
    Flag("status", "only jobs with one of these statuses, comma separated"),
    Flag("resource_id", "not used here"),
    Flag("start_time", "only jobs created since then, like 2026-11-16T09:30:00Z"),
    Flag("end_time", "only jobs created until then"),
    Flag("page_num", "which page", kind="int", default="1"),
    Flag("page_size", "jobs on a page", kind="int", default="10"),
    Flag("max_events_num", "how many events at most", kind="int", default="2000"),
    Flag("events", "one job with its events", kind="bool"),
    Flag("events_only", "only the events of one job", kind="bool"),
    Flag("show_detail", "every job of the page as JSON", kind="bool"),
    Flag("output", "table, plain or json", short="o"),
)
_EVENTS = Flag("max_events_num", "how many events at most", kind="int", default="2000")

GET = Command(
    "get",
    "Get jobs, pods, workspaces, quotas or specs",
    children=(
        Command(
            "job",
            "Get jobs, or one job as JSON",
            _lazily("jobs", "get"),
            LIST_FLAGS,
            words="[JOBID]",
            most=1,
            aliases=("jobs",),
            long=LIST_LONG,
        ),
        Command(
            "pod",
            "Get the pods of a job, or one pod with its events",
            _lazily("pods", "get"),
            (_EVENTS,),
            words="JOBID [PODID]",
            least=1,
            most=2,
            aliases=("pods",),
        ),
        Command("workspace", "Get workspaces", _lazily("workspaces", "get"), aliases=("workspaces",)),
        Command(
            "quota",
            "Get quotas",
            _lazily("workspaces", "quota"),
            (Flag("workspace_id", "only of this workspace, by id or name"),),
            aliases=("quotas",),
        ),
        Command("specs", "Get the models of card there are", _lazily("workspaces", "specs"), aliases=("spec",)),
    ),
)
CREATE = Command(
    "create",
    "Create a job",
    children=(
        Command(
            "job",
            "Create a job by flags or a params file",
            _lazily("creating", "run"),
            _create_flags(),
            example=CREATE_EXAMPLE,
            long=CREATE_LONG,
        ),
    ),
)
LOGS = Command(
    "logs",
    "Get the logs of a pod",
    _lazily("pods", "logs"),
    (
        Flag("max_events_num", "how many lines at most, from the end", kind="int", default="2000"),
        Flag("start_time", "only of pods that ran after this time (default: 7 days ago)"),
        Flag("end_time", "only of pods that ran before this time"),
    ),
    words="JOBID [PODID]",
    least=1,
    most=2,
)
STOP = Command(
    "stop",
    "Stop a job",
    children=(
        Command(
            "job",
            "Stop a job",
            _lazily("jobs", "stop"),
            (
                Flag("force", "do not ask", short="f", kind="bool"),
                Flag("quiet", "do not ask", kind="bool"),
            ),
            words="JOBID",
            least=1,
            most=1,
        ),
    ),
)
CONFIG = Command(
    "config",
    "Log in and keep the configuration",
    _lazily("login", "run"),
    (
        Flag("username", "name of your account"),
        Flag("password", "password of your account; asked for when it is not given"),
        Flag("region", "kept, and not used here", short="r"),
        Flag("endpoint", "host of the server, with its port if it has one", short="e"),
        Flag("protocol", "http or https (default: https; http for this machine itself)"),
        Flag("access_id", "", short="a", hidden=True),
        Flag("access_key", "", short="k", hidden=True),
    ),
    long="Log in and keep the configuration.\n\nWithout flags, everything is asked for.",
)
ROOT = Command(
    "dlc",
    "Submit and manage training jobs",
    flags=(Flag("config", "configuration file (default: ~/.dlc/config)", short="c"),),
    children=(CONFIG, CREATE, GET, LOGS, STOP),
)
