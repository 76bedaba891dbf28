"""Why a file here cannot be read or written, in English and Chinese. In English as the system itself says it."""

from __future__ import annotations

FILES: dict[str, tuple[str, str]] = {
    "error.file": ("{file}: {problem}", "{file}：{problem}"),
    "errno.ENOENT": ("No such file or directory", "没有这个文件或目录"),
    "errno.EACCES": ("Permission denied", "权限不足"),
    "errno.EPERM": ("Operation not permitted", "不允许此操作"),
    "errno.EISDIR": ("Is a directory", "这是目录，不是文件"),
    "errno.ENOTDIR": ("Not a directory", "路径中有一段不是目录"),
    "errno.EEXIST": ("File exists", "文件已存在"),
    "errno.ENAMETOOLONG": ("File name too long", "文件名太长"),
    "errno.ELOOP": ("Too many levels of symbolic links", "符号链接层数太多"),
    "errno.EROFS": ("Read-only file system", "文件系统只读"),
    "errno.ENOSPC": ("No space left on device", "磁盘已满"),
    "errno.EIO": ("Input/output error", "读写出错"),
}
