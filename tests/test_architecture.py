"""The shape of the house: who may import whom, which rooms stay pure, who speaks SQL, and how large things may grow.

The rules read the source as text, every import included: lazy ones inside functions, ones for types only, and ones by
name. Each rule is also shown a small tree that breaks it, so that a rule that has gone blind is noticed.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
SOURCE = PROJECT / "src" / "gpuyard"

MAX_FUNCTION_LINES = 80
MAX_FILE_LINES = 600

# --- the map ------------------------------------------------------------------------------------------------------

GROUND = {"domain"}
FIRST_FLOOR = {
    *("scheduling", "dialects", "words", "store", "engines", "devices", "files", "images", "metrics", "console"),
    *("ledger", "journal", "forecast"),
}
SECOND_FLOOR = {"world", "access", "rehearsal"}
MAY_IMPORT: dict[str, set[str]] = {
    "domain": set(),
    **dict.fromkeys(FIRST_FLOOR, GROUND),
    "engines": GROUND | {"devices"},
    **dict.fromkeys(SECOND_FLOOR, GROUND | FIRST_FLOOR),
    "rehearsal": GROUND | {"scheduling"},
    "forecast": GROUND | {"scheduling"},
    "journal": GROUND | {"scheduling", "rehearsal"},
    **dict.fromkeys(("control", "api", "gateway"), GROUND | FIRST_FLOOR | SECOND_FLOOR),
    "sdk": GROUND,
    "cli": GROUND | {"sdk", "words"},
    "doors": GROUND | {"sdk", "words", "dialects"},
    "settings": GROUND,
    "gpuyard": {"sdk"},  # the package itself: what `import gpuyard` gives
}
BUILDS_THE_WHOLE = "wiring"
STANDALONE = {"supervision", "inside"}
# Lazily, and for a reason: a database is brought back while no server runs that could be asked to.
MAY_IMPORT_LAZILY = {("cli", "gpuyard.store.restore"), ("cli", "gpuyard.images.toolbox.build")}
OPEN_TO_ALL = {"gpuyard.__version__"}
PURE = {"domain", "scheduling", "dialects", "words", "ledger", "rehearsal", "forecast"}
CLIENT = {"domain", "words", "sdk", "cli", "doors", "gpuyard"}

# What a pure room may use: nothing here reads a clock, a disk, a network or a random number.
PURE_MODULES = {
    *(
        "__future__",
        "abc",
        "array",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
    ),
    *("enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "posixpath", "re"),
    *("shlex", "string", "textwrap", "types", "typing", "unicodedata", "yaml"),
}
PURE_PATHS = {"PurePath", "PurePosixPath"}
IMPURE_CALLS = {"open", "input", "print", "now", "today", "utcnow", "fromtimestamp"}
IMPURE_UNLESS_ZONED = {"fromtimestamp"}  # without a time zone it asks the machine where it stands
SQL_LIBRARIES = {"sqlalchemy", "alembic", "psycopg", "sqlite3"}
SQL_SPEAKERS = {"store": SQL_LIBRARIES, "metrics": {"sqlite3"}}
# Written large, as people write it: a sentence may well begin with "select".
SQL_STATEMENT = re.compile(r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|CREATE INDEX|ALTER TABLE)\s")
RUNS_SQL = {"execute", "executemany", "executescript", "exec_driver_sql"}


# --- reading the source -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    module: str  # dotted, absolute
    line: int
    lazy: bool

    @property
    def top(self) -> str:
        return self.module.split(".")[0]

    @property
    def room(self) -> str | None:
        """The room of gpuyard it leads to; None for anything that is not gpuyard."""
        parts = self.module.split(".")
        return None if parts[0] != "gpuyard" else parts[1] if len(parts) > 1 else "gpuyard"


@dataclass(frozen=True)
class Module:
    path: Path
    root: Path

    @property
    def parts(self) -> tuple[str, ...]:
        return ("gpuyard", *self.path.relative_to(self.root).with_suffix("").parts)

    @property
    def room(self) -> str:
        """Its folder under the package, or its own name for `settings` and `wiring`."""
        return self.parts[1] if self.parts[1] != "__init__" else "gpuyard"

    @property
    def is_standalone(self) -> bool:
        """Supervisor and porter: started by path, they must run while the rest of gpuyard is being replaced."""
        return self.room == "engines" and bool({"supervisor", *STANDALONE} & set(self.parts))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(self.root.parent)}:{line}"

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self._imports(self.tree, lazy=False))

    def _imports(self, node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from (Import(name, child.lineno, lazy) for name in self._imported(child))  # type: ignore[attr-defined]
            yield from self._imports(child, inside)

    def _imported(self, node: ast.AST) -> list[str]:
        match node:
            case ast.Import(names=names):
                return [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                package = self.parts[: -level or None] if level else ()
                base = ".".join([*package, *([module] if module else [])])
                # `from gpuyard import store` leads to the room, `from gpuyard.store import feed` too.
                return [f"{base}.{alias.name}" for alias in names] if base == "gpuyard" else [base]
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(target)), *_]
            ):
                return [target] if name in {"import_module", "__import__"} else []
        return []


def modules(root: Path) -> list[Module]:
    return [Module(path, root) for path in sorted(root.rglob("*.py"))]


def third_party(imported: Import) -> bool:
    return imported.top not in sys.stdlib_module_names and imported.top != "gpuyard"


def client_libraries() -> set[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in project["dependencies"]}


# --- the rules: each yields what breaks it ------------------------------------------------------------------------


def imports_go_one_way(module: Module) -> Iterator[str]:
    if module.room == BUILDS_THE_WHOLE:
        return
    if module.room not in MAY_IMPORT:
        yield f"{module.at(1)}: the room {module.room} has no place on the map"
        return
    allowed = MAY_IMPORT[module.room] | {module.room, "settings"}
    for imported in module.imports:
        if imported.module in OPEN_TO_ALL or (imported.lazy and (module.room, imported.module) in MAY_IMPORT_LAZILY):
            continue
        if imported.room not in allowed | {None, BUILDS_THE_WHOLE}:
            yield f"{module.at(imported.line)}: {module.room} imports {imported.module}"


def only_the_cli_starts_the_whole(module: Module) -> Iterator[str]:
    """Lazily, so that the client runs where the server is not installed."""
    for imported in module.imports:
        if imported.room == BUILDS_THE_WHOLE and not (module.room == "cli" and imported.lazy):
            yield f"{module.at(imported.line)}: {module.room} imports wiring"


def pure_rooms_touch_nothing(module: Module) -> Iterator[str]:
    if module.room not in PURE:
        return
    for imported in module.imports:
        if imported.top not in PURE_MODULES | {"gpuyard", "pathlib"}:
            yield f"{module.at(imported.line)}: {module.room} is pure and imports {imported.module}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "pathlib":
            if impure := {alias.name for alias in node.names} - PURE_PATHS:
                yield f"{module.at(node.lineno)}: {module.room} is pure and imports {', '.join(sorted(impure))}"
        elif isinstance(node, ast.Import) and any(alias.name == "pathlib" for alias in node.names):
            yield f"{module.at(node.lineno)}: {module.room} is pure and imports pathlib as a whole"
        elif isinstance(node, ast.Call) and calls_outside(node):
            yield f"{module.at(node.lineno)}: {module.room} is pure and calls {called_name(node)}()"


def calls_outside(call: ast.Call) -> bool:
    has_zone = len(call.args) + len(call.keywords) > 1
    return called_name(call) in (IMPURE_CALLS - IMPURE_UNLESS_ZONED if has_zone else IMPURE_CALLS)


def called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def only_the_store_speaks_sql(module: Module) -> Iterator[str]:
    spoken = SQL_SPEAKERS.get(module.room, set())
    for imported in module.imports:
        if imported.top in SQL_LIBRARIES - spoken:
            yield f"{module.at(imported.line)}: {module.room} imports {imported.module}"
    if spoken:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL_STATEMENT.match(node.value):
            yield f"{module.at(node.lineno)}: {module.room} holds SQL"
        elif isinstance(node, ast.Call) and called_name(node) in RUNS_SQL:
            yield f"{module.at(node.lineno)}: {module.room} runs SQL"


def the_client_needs_no_server_library(module: Module) -> Iterator[str]:
    if module.room not in CLIENT:
        return
    for imported in module.imports:
        if third_party(imported) and imported.top not in client_libraries():
            yield f"{module.at(imported.line)}: {module.room} is part of the client and imports {imported.module}"


def supervisor_and_porter_stand_alone(module: Module) -> Iterator[str]:
    if not module.is_standalone:
        return
    for imported in module.imports:
        if third_party(imported) or (imported.top == "gpuyard" and not STANDALONE & set(imported.module.split("."))):
            yield f"{module.at(imported.line)}: what stands alone imports {imported.module}"


def everything_says_what_it_is_for(module: Module) -> Iterator[str]:
    if not ast.get_docstring(module.tree):
        yield f"{module.at(1)}: no docstring"


def nothing_grows_too_large(module: Module) -> Iterator[str]:
    lines = len(module.path.read_text(encoding="utf-8").splitlines())
    if lines > MAX_FILE_LINES:
        yield f"{module.at(lines)}: {lines} lines in one file"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{module.at(node.lineno)}: {node.name} has {length} lines"


Rule = Callable[[Module], Iterator[str]]
RULES: tuple[Rule, ...] = (
    imports_go_one_way,
    only_the_cli_starts_the_whole,
    pure_rooms_touch_nothing,
    only_the_store_speaks_sql,
    the_client_needs_no_server_library,
    supervisor_and_porter_stand_alone,
    everything_says_what_it_is_for,
    nothing_grows_too_large,
)


def broken(rule: Rule, root: Path) -> list[str]:
    return [complaint for module in modules(root) for complaint in rule(module)]


# --- the house obeys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_obeys(rule: Rule) -> None:
    assert broken(rule, SOURCE) == []


def test_every_folder_with_source_is_a_package() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


# --- the rules see ------------------------------------------------------------------------------------------------

PLANTED: list[tuple[Rule, str, str]] = [
    (imports_go_one_way, "domain/a.py", "from gpuyard.store import feed"),
    (imports_go_one_way, "domain/a.py", "def f():\n    import gpuyard.engines.seam"),
    (imports_go_one_way, "domain/a.py", "from ..store import feed"),
    (imports_go_one_way, "domain/deep/a.py", "from ...store import feed"),
    (imports_go_one_way, "domain/__init__.py", "from ..store import feed"),
    (imports_go_one_way, "scheduling/a.py", "from gpuyard import store"),
    (imports_go_one_way, "scheduling/a.py", "import importlib\nimportlib.import_module('gpuyard.store.feed')"),
    (imports_go_one_way, "store/a.py", "if TYPE_CHECKING:\n    from gpuyard.engines.seam import Engine"),
    (imports_go_one_way, "devices/a.py", "from gpuyard.engines.seam import Engine"),
    (imports_go_one_way, "store/a.py", "from gpuyard.access.rights import may"),
    (imports_go_one_way, "world/a.py", "from gpuyard.access.rights import may"),
    (imports_go_one_way, "api/a.py", "async def f():\n    from gpuyard.control.loop import Loop"),
    (imports_go_one_way, "control/a.py", "from gpuyard.api.models import Job"),
    (imports_go_one_way, "sdk/a.py", "from gpuyard.store import feed"),
    (imports_go_one_way, "cli/a.py", "def f():\n    from gpuyard.api.app import app"),
    (imports_go_one_way, "cli/a.py", "from gpuyard.store.restore import restore"),
    (imports_go_one_way, "api/a.py", "from gpuyard import Client"),
    (imports_go_one_way, "settings.py", "from gpuyard.store import feed"),
    (imports_go_one_way, "utils/a.py", "x = 1"),
    (only_the_cli_starts_the_whole, "api/a.py", "from gpuyard.wiring import build"),
    (only_the_cli_starts_the_whole, "api/a.py", "def f():\n    from gpuyard import wiring"),
    (only_the_cli_starts_the_whole, "cli/a.py", "from gpuyard.wiring import build"),
    (only_the_cli_starts_the_whole, "cli/a.py", "from ..wiring import build"),
    (pure_rooms_touch_nothing, "domain/a.py", "import time"),
    (pure_rooms_touch_nothing, "domain/a.py", "def f():\n    import random"),
    (pure_rooms_touch_nothing, "scheduling/a.py", "import os.path"),
    (pure_rooms_touch_nothing, "scheduling/a.py", "from datetime import datetime\nx = datetime.now()"),
    (pure_rooms_touch_nothing, "words/a.py", "import datetime\nx = datetime.date.today()"),
    (pure_rooms_touch_nothing, "words/a.py", "from datetime import datetime\nx = datetime.fromtimestamp(0)"),
    (pure_rooms_touch_nothing, "words/a.py", "from pathlib import Path"),
    (pure_rooms_touch_nothing, "words/a.py", "import pathlib"),
    (pure_rooms_touch_nothing, "dialects/a.py", "x = open('/etc/passwd')"),
    (pure_rooms_touch_nothing, "dialects/a.py", "import socket"),
    (pure_rooms_touch_nothing, "dialects/a.py", "import httpx2"),
    (only_the_store_speaks_sql, "api/a.py", "import sqlalchemy as sa"),
    (only_the_store_speaks_sql, "control/a.py", "def f():\n    from sqlalchemy.engine import Connection"),
    (only_the_store_speaks_sql, "control/a.py", "import sqlite3"),
    (only_the_store_speaks_sql, "metrics/a.py", "import sqlalchemy"),
    (only_the_store_speaks_sql, "api/a.py", "conn.execute('select * from workloads where id = 1')"),
    (only_the_store_speaks_sql, "api/a.py", "statement = f'UPDATE workloads SET state = {state}'"),
    (the_client_needs_no_server_library, "sdk/a.py", "import yaml"),
    (the_client_needs_no_server_library, "cli/a.py", "def f():\n    import uvicorn"),
    (the_client_needs_no_server_library, "doors/dlc/a.py", "import yaml"),
    (imports_go_one_way, "doors/dlc/a.py", "from gpuyard.store import feed"),
    (imports_go_one_way, "doors/dlc/a.py", "from gpuyard.cli.output import note"),
    (supervisor_and_porter_stand_alone, "engines/supervision/a.py", "import psutil"),
    (supervisor_and_porter_stand_alone, "engines/supervision/a.py", "from gpuyard.domain.workload import Seen"),
    (supervisor_and_porter_stand_alone, "engines/supervision/a.py", "from ..seam import Engine"),
    (supervisor_and_porter_stand_alone, "engines/inside/a.py", "from ..seam import Engine"),
    (imports_go_one_way, "gateway/a.py", "from gpuyard.api.models import Job"),
    (imports_go_one_way, "control/a.py", "from gpuyard.gateway.broker import main"),
    (everything_says_what_it_is_for, "store/__init__.py", ""),
    (nothing_grows_too_large, "store/a.py", "x = 1\n" * (MAX_FILE_LINES + 1)),
    (nothing_grows_too_large, "store/a.py", "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES),
]

FINE: list[tuple[str, str]] = [
    ("scheduling/a.py", "from gpuyard.domain.workload import Spec\nfrom gpuyard.scheduling import b\nfrom . import c"),
    ("engines/a.py", "from gpuyard.devices.probe import Probe\nfrom gpuyard.settings import Settings"),
    ("control/a.py", "from gpuyard.world.picture import Picture\nfrom gpuyard.engines.seam import Engine"),
    ("gateway/a.py", "from gpuyard.store import gates\nfrom gpuyard.access.rights import may"),
    ("engines/process/supervision/a.py", "from ...inside import preflight"),
    ("cli/up.py", "def up():\n    from gpuyard.wiring import build\n    import gpuyard.sdk.client"),
    ("cli/keeping.py", "def restore():\n    from gpuyard.store.restore import restore"),
    ("api/a.py", "from gpuyard import __version__"),
    ("wiring.py", "from gpuyard.api.app import app\nfrom gpuyard.control.loop import Loop"),
    ("doors/dlc/a.py", "from gpuyard.dialects.dlc import telling\nfrom gpuyard.sdk.finding import Door"),
    ("words/a.py", "from datetime import UTC, datetime\nx = datetime.fromtimestamp(0, UTC)"),
    ("dialects/a.py", "from pathlib import PurePosixPath\nimport yaml"),
    ("metrics/a.py", "import sqlite3\nx = 'SELECT a FROM b'"),
    ("store/a.py", "import sqlalchemy\nx = 'DELETE FROM b'"),
    ("api/a.py", "x = 'select a job from the list'\ny = 'update set'"),
    ("engines/supervision/a.py", "import os\nfrom .tree import kill\nfrom gpuyard.engines.supervision import log"),
]


def plant(root: Path, path: str, text: str) -> Path:
    file = root / "gpuyard" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return root / "gpuyard"


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_planted_fault_is_seen(tmp_path: Path, rule: Rule, path: str, text: str) -> None:
    assert len(broken(rule, plant(tmp_path, path, text))) == 1


@pytest.mark.parametrize(("path", "text"), FINE)
def test_what_is_allowed_is_not_complained_about(tmp_path: Path, path: str, text: str) -> None:
    tree = plant(tmp_path, path, '"""What this is for."""\n' + text)
    assert [complaint for rule in RULES for complaint in broken(rule, tree)] == []
