"""The job file that is named, as text, and one made of flags."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import Failure

MOST_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BUSYBOX = "busybox"
BUSYBOX_RUNS = ("sh",)  # what that image runs by itself


def read_file(name: str) -> str:
    if ".yaml" not in name and ".yml" not in name:
        raise Failure("only support yaml file")
    try:
        with open(name, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise Failure(f"failed to read file, err: {name} is larger than {MOST_BYTES >> 20} MiB")
        return content.removeprefix(BYTE_ORDER_MARK).decode()
    except OSError as error:
        raise Failure(f"failed to read file, err: open {name}: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise Failure("failed to unmarshal file, err:  error converting YAML to JSON: yaml: not UTF-8 text") from error


def job_of_flags(given: Given) -> str:
    """What `job run` makes of its flags. Words after `--` are the command."""
    name, image = given.text("name"), given.text("image")
    command: Sequence[str] = given.words
    if not command and image.rpartition("/")[2].partition(":")[0] == BUSYBOX:
        command = BUSYBOX_RUNS
    amounts = {"limits": _amounts(given.text("limits")), "requests": _amounts(given.text("requests"))}
    container = {"name": name, "image": image, "command": list(command), "resources": amounts}
    task = {
        "replicas": given.number("replicas"),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    spec = {"schedulerName": given.text("scheduler"), "minAvailable": given.number("min"), "tasks": [task]}
    meta = {"name": name, "namespace": given.text("namespace")}
    return json.dumps({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": spec})


def _amounts(written: str) -> dict[str, str]:
    """`cpu=1000m,memory=100Mi`."""
    from gpuyard.dialects.volcano import quantities  # not needed to read a file

    amounts = {}
    for part in written.split(",") if written else ():
        pieces = part.split("=")
        if len(pieces) != 2:
            raise Failure(f"invalid argument syntax {part}, expected <resource>=<value>")
        try:
            quantities.parse(pieces[1])
        except quantities.WrongQuantity as error:
            raise Failure(str(error)) from error
        amounts[pieces[0]] = pieces[1]
    return amounts
