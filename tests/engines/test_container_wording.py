"""What a container engine refuses is told in our words: a cause to act upon, and no path of the server."""

from __future__ import annotations

import io
import tarfile

import pytest
from tests.engines.containers import ContainerYard, image_of_busybox
from tests.engines.places import replica

from gpuyard.domain.reasons import Code, Reason
from gpuyard.engines.container.wording import why_not_started, without_paths
from gpuyard.words import say

STORE = "/var/lib/gpuyard/containers/store/overlay/9ad6/merged"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (f"creating container storage: mkdir {STORE}: no space left on device", "disk_full"),
        ("OCI runtime error: Cannot allocate memory", "memory"),
        ("setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=7", "device"),
        ("every subnet of 10.231.0.0/16 is taken", "no_subnet"),
        ("netavark: failed to create the bridge", "network"),
        ("iptables is not installed, so that workloads could not be kept apart", "network"),
        ("allocation failed; exhausted all 2048 locks", "crowded"),
        (f"crun: {STORE}: the moon is down", "other"),
    ],
)
def test_a_refused_start_is_told_by_its_cause(said: str, why: str) -> None:
    reason = why_not_started(said, "worker-0")
    assert reason == Reason(Code.CONTAINER_FAILED, {"why": why, "replica": "worker-0"})
    assert "/" not in say(reason, "en")


def test_paths_of_this_machine_are_taken_out_and_names_stay() -> None:
    said = f'writing blob: open "{STORE}/x": denied by https://docker.io/v2/ for docker.io/library/x:1 ({STORE})'
    told = without_paths(said)
    assert told == 'writing blob: open "…": denied by https://docker.io/v2/ for docker.io/library/x:1 (…)'


def _image_with(name: str, link: str) -> bytes:
    """A small image in which a file, or a link, lies where a folder should be."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(image_of_busybox({}))) as plain, tarfile.open(fileobj=made, mode="w") as out:
        for entry in plain.getmembers():
            out.addfile(entry, plain.extractfile(entry) if entry.isreg() else None)
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
        out.addfile(entry)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "link", "at"), [("run", "", "/run"), ("mnt", "/etc/passwd", "/mnt"), ("dev", "", "/dev")]
)
def test_an_image_that_is_in_the_way_is_told_without_a_path_of_the_server(
    container_yard: ContainerYard, name: str, link: str, at: str
) -> None:
    container_yard.host.command("import", "-", "localhost/hostile:1", input=_image_with(name, link))
    seen, _ = container_yard.run("true", replica(), image="localhost/hostile:1")
    assert seen.reason is not None
    assert seen.reason.code is Code.IMAGE_IN_THE_WAY
    assert seen.reason.facts["at"].startswith(at)
    for told in (say(seen.reason, "en"), say(seen.reason, "zh")):
        assert str(container_yard.data) not in told
        assert "overlay" not in told
