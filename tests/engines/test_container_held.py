"""A machine tells which images it holds, so that work that runs in them comes here."""

from __future__ import annotations

from tests.engines.containers import IMAGE, ContainerYard
from tests.engines.places import replica

from gpuyard.engines.container import names


def held(yard: ContainerYard) -> tuple[str, ...]:
    (node,) = yard.engine.nodes()
    return node.images


def test_it_tells_what_it_holds_and_what_comes_and_goes(container_yard: ContainerYard) -> None:
    container_yard.wait_for(lambda: IMAGE in held(container_yard), "the first look")
    name, path = "localhost/comes-and-goes:7", container_yard.data.parent / "held.tar"
    container_yard.host.command("tag", IMAGE, name)
    container_yard.host.command("save", "--output", str(path), name)
    container_yard.host.command("rmi", name)
    with path.open("rb") as archive:
        container_yard.engine.load_image(iter(lambda: archive.read(65536), b""))
    container_yard.wait_for(lambda: name in held(container_yard), "the new one")
    assert container_yard.engine.remove_image(name)
    container_yard.wait_for(lambda: name not in held(container_yard), "its removal")
    assert IMAGE in held(container_yard)


def test_one_that_others_brought_is_known_once_work_runs_in_it(container_yard: ContainerYard) -> None:
    container_yard.wait_for(lambda: IMAGE in held(container_yard), "the first look")
    name = "localhost/brought:1"
    container_yard.host.command("tag", IMAGE, name)
    assert container_yard.run("echo ran", replica(), image="brought:1")[1] == "ran\n"
    container_yard.wait_for(lambda: name in held(container_yard), "the one that was brought")
    container_yard.host.command("rmi", name)


def test_as_long_as_nothing_changes_the_very_same_answer_is_given(container_yard: ContainerYard) -> None:
    """It is asked for all the time, and compared with what was told before."""
    container_yard.wait_for(lambda: IMAGE in held(container_yard), "the first look")
    assert held(container_yard) is held(container_yard)


def test_what_keeps_somebodys_environment_is_told_to_nobody(container_yard: ContainerYard) -> None:
    kept, plain = f"{names.KEPT_IMAGES}/somebody:1", "localhost/plain:1"
    container_yard.host.load(kept, files={"etc/own": "mine"})
    container_yard.host.command("tag", IMAGE, plain)
    container_yard.run("true", replica(), image="plain:1")
    container_yard.wait_for(lambda: plain in held(container_yard), "the look after it was tagged")
    assert not [name for name in held(container_yard) if "somebody" in name]
    for name in (kept, plain):
        container_yard.host.command("rmi", name)
