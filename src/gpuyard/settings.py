"""Every setting with its unit, its default and the reason for it. Read once, in `wiring`, and passed on.

What `yard up` has no option for is set in DATA/settings.toml, by the names in `IN_FILE`.
"""

from __future__ import annotations

import difflib
import ipaddress
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpuyard.domain.images import read_image_name, registry_of
from gpuyard.domain.people import FIRST_BLOCK
from gpuyard.domain.places import FIRST_ROOT, SYSTEM_FOLDERS, Root, is_below, root_problem, shadows
from gpuyard.domain.resources import GIB, MIB, parse_bytes
from gpuyard.domain.workload import Mount

# Registries that anybody may be sent to: known to all, and none lets a user choose which machine its names lead to.
# Hosts are named one by one: below a cloud's common name, such as aliyuncs.com, are also private machines.
PUBLIC_REGISTRIES = (
    *("docker.io", "quay.io", "ghcr.io", "nvcr.io", "gcr.io", "registry.k8s.io", "mcr.microsoft.com", "public.ecr.aws"),
    *("registry.gitlab.com", "docker.elastic.co", "registry.access.redhat.com", "registry.fedoraproject.org"),
    *(f"registry.cn-{place}.aliyuncs.com" for place in ("hangzhou", "shanghai", "beijing", "shenzhen", "chengdu")),
    *(f"swr.cn-{place}.myhuaweicloud.com" for place in ("south-1", "north-4", "east-3")),
    *("ascendhub.huawei.com", "ccr.ccs.tencentyun.com", "docker.m.daocloud.io"),
)


DOOR_PROGRAMS = {"dlc": "dlc", "vcctl": "volcano"}  # the program, and whose files it brings
# The folder that the users of that platform share by NFS; each finds their own below their name.
USUAL_DOOR_MOUNTS: Mapping[str, tuple[Mount, ...]] = {"volcano": (Mount("home", "/nfs/testdata/code/{user}"),)}


@dataclass(frozen=True, slots=True)
class ControlSettings:
    full_pass_seconds: float = 3.0
    """Everything is looked at again this often, even if nothing woke the loop: a missed wake-up costs at most this."""
    sweep_seconds: float = 20.0
    """How often work that nobody asked for is looked for and ended."""
    audit_seconds: float = 60.0
    """How often the picture in memory is compared with the store."""
    launch_threads: int = 8
    """Replicas started at the same time. A slow start must not hold up the others."""
    stop_again_seconds: float = 5.0
    """A stop that has not led to an end is asked for again after this."""
    sample_seconds: float = 5.0
    """How often the use of running replicas is measured."""
    ledger_seconds: float = 5.0
    """How often the card ledger looks at what waits, and is written: what a crash can take from it."""
    progress_seconds: float = 5.0
    """How often running preemptible work is asked when it last saved."""
    held_card_seconds: float = 60.0
    """Work that holds a card it was not given is warned, and ended when the card has been held for so long: one member
    must not keep it from all others. A minute is plenty to let go, and nobody waits long for the card. 0: it is only
    warned, and named where nodes are listed."""
    keep_days: float = 180.0
    """Ended workloads and their logs are removed after this, so that disks do not fill. 0 keeps them for ever."""
    backup_hour: int = 3
    """Local hour of the nightly backup."""
    backups_kept: int = 7
    workload_env: tuple[tuple[str, str], ...] = ()
    """Variables that every workload gets; its own win."""


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path
    """Everything gpuyard keeps on this machine."""
    host: str = "127.0.0.1"
    """Loopback unless asked for otherwise; beyond it TLS is needed, or `insecure_http`."""
    port: int = 8470
    engine: str = "auto"
    """`auto` takes the best engine this machine has: `container` as root with podman or docker and a toolbox built,
    otherwise `process`."""
    engine_socket: str = ""
    """Where the container engine answers. Empty: it is looked for ($DOCKER_HOST and the usual places), else podman is
    started for us."""
    network_pool: str = "10.231.0.0/16"
    """Every workload in containers gets a small network of its own from these addresses. They must be unused here."""
    denied_networks: tuple[str, ...] = ()
    """Addresses and networks that no workload in containers reaches, besides those where clouds tell a machine's
    secrets: a storage's management, say, or a cloud's own service that is not known yet."""
    host_network_groups: tuple[str, ...] = ()
    """Groups whose containers use the machine's own network, as RDMA needs. They are not kept apart from anybody."""
    insecure_registries: tuple[str, ...] = ()
    """Registries without TLS, such as localhost:5000, for the podman that is started for us. They may be asked, too."""
    registries: tuple[str, ...] = PUBLIC_REGISTRIES
    """Which registries may be asked for images. A user writes the name, and the server asks, from inside the admin's
    network: were any name allowed, 127.0.0.1:6379/x or 169.254.169.254/x would try the doors of machines that the user
    cannot reach. So the usual public ones, and those that the admin has named: here, in `insecure_registries` or by
    `default_image`. A list in the file takes the place of this one; `*.example.com` is every host below that name, `*`
    anything, for teams that trust each other. An image that is here already is used whatever its name says."""
    simulate_cards: str = ""
    """`8` or `8:ascend`: stand-ins for cards on a machine that has none. Always labelled simulated."""
    nodes: str = ""
    """`20x8`: virtual nodes of the simulated engine."""
    database: str = ""
    """Empty: SQLite in the data folder. Otherwise postgresql://user@host/name."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_http: bool = False
    refuse_images: bool = False
    """An engine without images refuses jobs that name one, instead of running them without it."""
    default_image: str = ""
    """Where work runs in images, the one for work that names none. Empty: it has to name one."""
    log_limit_bytes: int = GIB
    """Most disk one replica's log may take; head and tail stay."""
    pids_limit: int = 0
    """Most processes and threads of one replica. 0: 2048 and 256 more for each core it asked for."""
    layer_limit_bytes: int = 100 * GIB
    """Most that one container may write outside of homes and shares: what is installed in it, temporary files, shipped
    folders. It is measured now and then, warned of at 80 %, and what is over is stopped: generous, since environments
    with several frameworks hold tens of GB. Where the disk has project quotas, the engine's own `size` option is
    exact; this one is not. 0: no limit."""
    disk_reserve_bytes: int = 5 * GIB
    """When the disk of the data folder has less left than this (or than 5 % of a small one), nothing new starts and no
    image is fetched: what is left is for the work that runs and for the database."""
    journal_megabytes: int = 1024
    """Most disk for the journal of decisions, from which `yard replay` and `yard what-if` answer; the oldest goes. A
    decision takes some tens of bytes, so this is months of a busy cluster. 0: no journal is kept."""
    journal_days: float = 90.0
    """What is older than this is removed from the journal. 0: only `journal_megabytes` bounds it."""
    workdir_limit_bytes: int = 512 * MIB
    """Largest folder shipped with a job."""
    first_uid: int = FIRST_BLOCK
    """As root, users and groups get blocks of 65,536 system numbers from here on: right above what systemd gives to
    containers (up to 0x6FFFFFFF), far above sub-uid ranges, and below 2^31, which old programs and protocols end at."""
    further_roots: tuple[Root, ...] = ()
    """In the file: a table [roots], such as "/mnt2" = "/nas2". Below each, everyone finds user/NAME and share/GROUP."""
    pip_index_url: str = ""
    """Where pip fetches packages in every workload. Empty: as the image has it."""
    pip_trusted_host: str = ""
    """A mirror without a certificate that can be checked, by its host name."""
    conda_channels: tuple[str, ...] = ()
    """Channels that conda asks first in every workload: names or addresses."""
    gateway: bool = True
    """Whether running work can be entered by browser, terminal and SSH. The simulated engine has nothing to enter."""
    gateway_host: str = ""
    """Where the gateway listens. Empty: as the server does."""
    gateway_port: int | None = None
    """None: 8471, or any that is free when the server's own port is. 0: any that is free."""
    ssh_port: int | None = None
    """None: 8472, or any that is free when the server's own port is. 0: any that is free."""
    apps_domain: str = "localhost"
    """Every visit has a name of its own below this one, `lab-ID.localhost`: pages of different people never meet."""
    gateway_paths: bool = False
    """Visits by paths instead of names, for teams that trust each other: their pages share one origin."""
    visitors_per_address: int = 256
    """Connections to the gateway from one address (of IPv6: a /64) by visitors who have not logged in yet; by SSH never
    more than 48. Enough for a whole office behind one address, and no stranger fills the gateway from one."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies before the gateway's web port. They are not counted as one visitor, and their
    word in X-Forwarded-For is believed where tries to log in are counted and written down. Nobody's, unless named."""
    door_mounts: Mapping[str, tuple[Mount, ...]] = field(default_factory=lambda: dict(USUAL_DOOR_MOUNTS))
    """In the file: tables [doors.vcctl] and [doors.dlc] with `mounts = {"/nfs/testdata/code/{user}" = "home"}`: folders
    that jobs which come through that door find besides, where their scripts have always looked for them. On the right
    `home` or `share`, and perhaps a folder in it, `share/data`. A door named in the file has only what is named."""
    control: ControlSettings = ControlSettings()

    @property
    def web_port(self) -> int:
        return (8471 if self.port else 0) if self.gateway_port is None else self.gateway_port

    @property
    def shell_port(self) -> int:
        return (8472 if self.port else 0) if self.ssh_port is None else self.ssh_port

    @property
    def roots(self) -> tuple[Root, ...]:
        return (Root(FIRST_ROOT, str(self.data / "files")), *self.further_roots)

    @property
    def known_registries(self) -> tuple[str, ...]:
        """Those that may be asked for images; the ones the admin named first."""
        insecure = [place.partition("/")[0] for place in self.insecure_registries]
        default = [registry_of(self.default_image)] if self.default_image else []
        return tuple(dict.fromkeys((*insecure, *default, *self.registries)))

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data / 'gpuyard.db'}"

    @property
    def is_tls(self) -> bool:
        return self.tls_cert is not None


class BadSettings(ValueError):
    """A settings file that cannot be meant."""


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _amount(value: Any) -> int:
    return parse_bytes(str(value))


def _number(least: float, most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"expected a number from {least:g} to {most:g}")
        return value

    return read


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return value

    return read


def _image(value: Any) -> str:
    if not isinstance(value, str) or read_image_name(value) is None:
        raise ValueError("expected the name of an image, such as debian:12")
    return value


def _address(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://", "file:///")) or " " in value:
        raise ValueError("expected an address that begins with http:// or https://")
    return value


def _host(value: Any) -> str:
    if not isinstance(value, str) or not value or "/" in value or " " in value:
        raise ValueError("expected the name of a host, such as mirror.example")
    return value


def _channels(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item and "," not in item for item in value):
        raise ValueError('expected a list of channels, such as ["conda-forge"]')
    return tuple(value)


def _socket(value: Any) -> str:
    if not isinstance(value, str) or not value.removeprefix("unix://").startswith("/"):
        raise ValueError("expected the path of a socket, such as /run/podman/podman.sock")
    return value.removeprefix("unix://")


def _pool(value: Any) -> str:
    pool = ipaddress.IPv4Network(str(value))
    if pool.prefixlen > 24 or not pool.is_private:
        raise ValueError("expected private addresses, at least a /24, such as 10.231.0.0/16")
    return str(pool)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item and '"' not in item for item in value):
        raise ValueError('expected a list of names, such as ["one", "two"]')
    return tuple(value)


def _registries(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if any("/" in name or " " in name for name in names):
        raise ValueError('expected hosts, each with its port if it has one, such as ["docker.io", "reg.example:5000"]')
    return names


def _networks(value: Any) -> tuple[str, ...]:
    try:
        return tuple(str(ipaddress.ip_network(name)) for name in _names(value))
    except ValueError as problem:
        raise ValueError('expected addresses or networks, such as ["127.0.0.1", "10.1.0.0/16"]') from problem


def _roots(value: Any) -> tuple[Root, ...]:
    if not isinstance(value, dict) or not all(isinstance(outside, str) for outside in value.values()):
        raise ValueError('expected a table of paths, such as "/mnt2" = "/nas2"')
    return tuple(Root(inside, outside) for inside, outside in value.items())


def _doors(value: Any) -> dict[str, tuple[Mount, ...]]:
    if not isinstance(value, dict) or not value.keys() <= DOOR_PROGRAMS.keys():
        raise ValueError(f"expected tables of the doors there are: {', '.join(DOOR_PROGRAMS)}")
    given = {DOOR_PROGRAMS[name]: _door_mounts(table) for name, table in value.items()}
    return {**USUAL_DOOR_MOUNTS, **given}


def _door_mounts(table: Any) -> tuple[Mount, ...]:
    mounts = table.get("mounts", {}) if isinstance(table, dict) and table.keys() <= {"mounts"} else None
    if not isinstance(mounts, dict):
        raise ValueError('expected mounts = {"/nfs/data/{user}" = "home"}')
    return tuple(_door_mount(at, where) for at, where in mounts.items())


def _door_mount(at: str, where: Any) -> Mount:
    volume, _, path = where.partition("/") if isinstance(where, str) else ("", "", "")
    parts = at.strip("/").split("/")
    if volume not in ("home", "share") or ".." in path.split("/"):
        raise ValueError(f"{at}: expected home or share, and perhaps a folder in it, such as share/data")
    if not at.startswith("/") or parts[0] in SYSTEM_FOLDERS or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError(f"{at}: expected a whole path that is not the system's own, such as /nfs/data/{{user}}")
    return Mount(volume, at.rstrip("/"), path.strip("/"))


IN_FILE: dict[str, Callable[[Any], Any]] = {
    "refuse_images": _flag,
    "default_image": _image,
    "log_limit": _amount,
    "workdir_limit": _amount,
    "layer_limit": _amount,
    "disk_reserve": _amount,
    "pids_limit": _whole(0, 4_000_000),
    "journal_megabytes": _whole(0, 10_000_000),
    "journal_days": _number(0, 36500),
    "held_card_seconds": _number(0, 86400),
    "keep_days": _number(0, 36500),
    "backup_hour": _number(0, 23),
    "backups_kept": _number(1, 1000),
    "sample_seconds": _number(0.5, 3600),
    "launch_threads": _number(1, 256),
    "roots": _roots,
    "pip_index_url": _address,
    "pip_trusted_host": _host,
    "conda_channels": _channels,
    "gateway": _flag,
    "gateway_host": _host,
    "visitors_per_address": _whole(8, 8192),
    "trusted_proxies": _networks,
    "engine_socket": _socket,
    "network_pool": _pool,
    "denied_networks": _networks,
    "host_network_groups": _names,
    "insecure_registries": _names,
    "registries": _registries,
    "doors": _doors,
}
_ELSEWHERE = {
    "log_limit": "log_limit_bytes",
    "workdir_limit": "workdir_limit_bytes",
    "layer_limit": "layer_limit_bytes",
    "disk_reserve": "disk_reserve_bytes",
    "pids_limit": "pids_limit",
    "journal_megabytes": "journal_megabytes",
    "journal_days": "journal_days",
    "refuse_images": "refuse_images",
    "default_image": "default_image",
    "roots": "further_roots",
    "pip_index_url": "pip_index_url",
    "pip_trusted_host": "pip_trusted_host",
    "conda_channels": "conda_channels",
    "gateway": "gateway",
    "gateway_host": "gateway_host",
    "visitors_per_address": "visitors_per_address",
    "trusted_proxies": "trusted_proxies",
    "engine_socket": "engine_socket",
    "network_pool": "network_pool",
    "denied_networks": "denied_networks",
    "host_network_groups": "host_network_groups",
    "insecure_registries": "insecure_registries",
    "registries": "registries",
    "doors": "door_mounts",
}


def with_file(settings: Settings, text: str) -> Settings:
    """The settings with what the file says. Raises BadSettings for anything it does not know."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise BadSettings(str(problem)) from problem
    for name, value in given.items():
        if name not in IN_FILE:
            near = difflib.get_close_matches(name, IN_FILE, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(IN_FILE)}"
            raise BadSettings(f"there is no setting {name}{hint}")
        try:
            read = IN_FILE[name](value)
        except ValueError as problem:
            raise BadSettings(f"{name} = {value!r}: {problem}") from problem
        if name in _ELSEWHERE:
            settings = replace(settings, **{_ELSEWHERE[name]: read})
        else:
            kind = type(getattr(settings.control, name))
            settings = replace(settings, control=replace(settings.control, **{name: kind(read)}))
    _check_roots(settings.roots)
    _check_doors(settings)
    return settings


def _check_doors(settings: Settings) -> None:
    for mounts in settings.door_mounts.values():
        for number, mount in enumerate(mounts):
            others = [other.at for other in mounts[:number]]
            if shadows(mount.at, settings.roots) or any(is_below(mount.at, o) or is_below(o, mount.at) for o in others):
                raise BadSettings(f'doors: "{mount.at}" would hide folders that everyone finds')


def _check_roots(roots: Sequence[Root]) -> None:
    for number, root in enumerate(roots[1:], 1):
        problem = root_problem(root.inside, root.outside, roots[:number])
        if problem:
            raise BadSettings(f'roots: "{root.inside}" = "{root.outside}": {problem}')
