"""What `yard doctor` says of a machine that is to run containers, in English and Chinese."""

from __future__ import annotations

CONTAINERS: dict[str, tuple[str, str]] = {
    "doctor.socket": ("containers can be run: {socket}", "可以运行容器：{socket}"),
    "doctor.podman": ("containers can be run: the server starts podman", "可以运行容器：服务会启动 podman"),
    "doctor.could_run": (
        "containers could be run ({what}); the server does so as root with `--engine auto` and a toolbox",
        "可以运行容器（{what}）；服务以 root 和 `--engine auto` 启动并已构建工具箱时会使用",
    ),
    "doctor.engine.process": (
        "work runs as processes of this machine, with the programs installed on it",
        "任务作为本机进程运行，使用机器上安装的程序",
    ),
    "doctor.engine.container": ("work runs in containers", "任务在容器中运行"),
    "doctor.engine.simulated": ("nothing really runs: the engine is simulated", "任务不会真正运行：引擎是模拟的"),
    "doctor.no_containers": (
        "neither podman nor docker is here: work runs as processes, without images. On Debian: apt install podman",
        "没有 podman 或 docker：任务以进程方式运行，不能使用镜像。Debian 上请执行 apt install podman",
    ),
    "doctor.runc": ("runc {version} has no known holes", "runc {version} 没有已知漏洞"),
    "doctor.old_runc": (
        "runc {version} may let a container reach the machine (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881): take "
        "1.2.8, 1.3.3 or newer, unless your distribution has mended this one",
        "runc {version} 可能让容器触及主机（CVE-2025-31133、CVE-2025-52565、CVE-2025-52881）："
        "请升级到 1.2.8、1.3.3 或更新版本，除非发行版已修补",
    ),
    "doctor.nvidia_toolkit": (
        "NVIDIA Container Toolkit {version} has no known holes",
        "NVIDIA Container Toolkit {version} 没有已知漏洞",
    ),
    "doctor.old_nvidia_toolkit": (
        "NVIDIA Container Toolkit {version} lets an image's variables run code as root on the machine (CVE-2025-23266, "
        "CVE-2025-23267): take 1.17.8 or newer",
        "NVIDIA Container Toolkit {version} 会让镜像中的环境变量在主机上以 root 执行代码"
        "（CVE-2025-23266、CVE-2025-23267）：请升级到 1.17.8 或更新版本",
    ),
    "doctor.netavark": ("netavark keeps containers' networks apart", "netavark 可隔离容器网络"),
    "doctor.no_netavark": (
        "netavark is not here: podman cannot keep containers' networks apart. "
        "On Debian: apt install netavark aardvark-dns",
        "没有 netavark：podman 无法隔离容器网络。Debian 上请执行 apt install netavark aardvark-dns",
    ),
    "doctor.user_namespaces": (
        "user namespaces are there: root in a container is nobody outside",
        "支持用户命名空间：容器内的 root 在主机上没有特权",
    ),
    "doctor.no_user_namespaces": (
        "user namespaces are switched off: containers cannot be used. sysctl user.max_user_namespaces=65536",
        "用户命名空间已关闭：不能使用容器。请执行 sysctl user.max_user_namespaces=65536",
    ),
    "doctor.access_lists": ("groups can share folders in {folder}", "组可以在 {folder} 中共享目录"),
    "doctor.no_access_lists": (
        "the file system of {folder} keeps no access lists: groups share by their number alone, and containers cannot",
        "{folder} 所在文件系统不支持访问控制列表：组只能按组编号共享，容器中无法共享",
    ),
    "doctor.toolbox": (
        "the toolbox is built: Lab, VS Code and SSH run in any image",
        "工具箱已构建：任何镜像都可使用 Lab、VS Code 和 SSH",
    ),
    "doctor.no_toolbox": (
        "the toolbox is not built: JupyterLab and VS Code come from it, and containers need it. yard toolbox build",
        "工具箱尚未构建：JupyterLab 和 VS Code 由它提供，容器也需要它。请执行 yard toolbox build",
    ),
}
