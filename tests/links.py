"""What each file of the project stands on, read from the source as text: the map of `tests.near` and `tests.fast`.

A file stands on what it imports (lazily too), on what it opens by a path that begins at `__file__` or by its whole
name, and, when it is a file of tests, on the conftest whose fixtures it asks for. A program that is started, or loaded,
by its module's name is a link of its own kind, since much more may hang on it than the test is about.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

PACKAGES = {"gpuyard": "src/gpuyard", "tests": "tests", "lab": "lab"}
FOLDERS = ("docs", *PACKAGES.values())
MADE = frozenset({"__pycache__", "built"})
# Who names one of these means where programs are looked for, and stands on none of what is in there by that alone.
WHOLE_TREES = frozenset({".", "src", *PACKAGES.values()})
MODULE_NAME = re.compile(r"\b(?:gpuyard|tests|lab)(?:\.[A-Za-z_]\w*)+\.?")
FILE_NAME = re.compile(r"[\w./-]+\.\w+|Makefile")


@dataclass(frozen=True)
class Links:
    """From one file to others."""

    imports: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()  # what is not ours, by its first name


@dataclass
class Tree:
    """The project's files. Where `texts` has none for a path it is no Python, or it is gone and still asked for."""

    texts: Mapping[str, str]
    sources: dict[str, Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, text in self.texts.items():
            try:
                self.sources[path] = Source(path, ast.parse(text), self)
            except SyntaxError:  # whoever stands on it will say so
                continue

    def __contains__(self, path: str) -> bool:
        return path in self.texts

    def below(self, folder: str) -> Iterator[str]:
        return (path for path in self.texts if path.startswith(f"{folder}/"))

    def modules_in(self, folder: str) -> Iterator[str]:
        return (path for path in self.sources if path.rpartition("/")[0] == folder)

    def file_of(self, module: str) -> str | None:
        """The longest beginning of the name that is a module of ours."""
        parts = module.split(".")
        for length in range(len(parts), 0, -1) if parts[0] in PACKAGES else ():
            place = "/".join([PACKAGES[parts[0]], *parts[1:length]])
            for path in (f"{place}.py", f"{place}/__init__.py"):
                if path in self:
                    return path
        return None

    def links(self) -> dict[str, Links]:
        found = {path: self.sources[path].links() if path in self.sources else Links() for path in self.texts}
        for path, source in self.sources.items():
            used = {above for above in self._conftests_above(path) if self.sources[above].fixtures & source.names}
            found[path] = Links(found[path].imports | used, found[path].starts, found[path].libraries)
        return found

    def _conftests_above(self, path: str) -> list[str]:
        above = [str(folder / "conftest.py") for folder in PurePosixPath(path).parents]
        return [conftest for conftest in above if conftest in self.sources and conftest != path]


def read(project: Path, gone: Iterable[str] = ()) -> Tree:
    """All that is there, and what is gone and may still be asked for."""
    there = (file for folder in FOLDERS for file in (project / folder).rglob("*") if not MADE & set(file.parts))
    files = [file for file in (*project.iterdir(), *there) if file.is_file()]
    gc.disable()  # a million small objects that all stay: looking through them again and again takes half of the time
    try:
        return Tree({**dict.fromkeys(gone, ""), **{str(file.relative_to(project)): _text(file) for file in files}})
    finally:
        gc.enable()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.suffix == ".py" else ""


def is_test(path: str) -> bool:
    return path.startswith("tests/") and path.endswith(".py") and path.rpartition("/")[2].startswith("test_")


class Source:
    """One file of Python."""

    def __init__(self, path: str, module: ast.Module, tree: Tree) -> None:
        self.path = path
        self._tree = tree
        self._places: dict[str, PurePosixPath] | None = None
        nodes = list(ast.walk(module))
        prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        self._strings = {
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        }
        self._imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        self._paths = [node for node in nodes if isinstance(node, ast.BinOp | ast.Attribute | ast.Call)]
        self._assigned = [node for node in module.body if isinstance(node, ast.Assign)]
        self._functions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self.names = self._strings | {node.arg for node in nodes if isinstance(node, ast.arg)}  # fixtures among them

    def links(self) -> Links:
        modules = [module for node in self._imports for _, module in self._imported(node)]
        ours = {file for module in modules if (file := self._tree.file_of(module))}
        libraries = {module.split(".")[0] for module in modules} - PACKAGES.keys()
        beside = {*ours, *self._opened(), *self._named()} - {self.path}
        return Links(frozenset(beside), frozenset(set(self._started()) - {self.path}), frozenset(libraries))

    @property
    def tests(self) -> int:
        """How many functions are tests, whatever they are tried with."""
        return sum(node.name.startswith("test_") for node in self._functions)

    @cached_property
    def fixtures(self) -> set[str]:
        """What a conftest offers."""
        return {node.name for node in self._functions if any("fixture" in ast.unparse(d) for d in node.decorator_list)}

    # --- by name ------------------------------------------------------------------------------------------------------

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        """What it is called here, and its whole name."""
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
            return
        package = PurePosixPath(self.path.removeprefix("src/")).parts[: -node.level] if node.level else ()
        base = ".".join([*package, *([node.module] if node.module else [])])
        yield from ((alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names)

    def _started(self) -> Iterator[str]:
        """`"-m", "gpuyard.cli.main"`; and all in a package that one is chosen from: `f"gpuyard.doors.{name}"`."""
        for name in {found for text in self._strings for found in MODULE_NAME.findall(text)}:
            file = self._tree.file_of(name.rstrip("."))
            folder, _, base = (file or "").rpartition("/")
            if file is None or (base == "__init__.py" and folder in WHOLE_TREES):
                continue  # some other name: gpuyard.db
            if base == "__init__.py" and name.endswith("."):
                yield from self._tree.modules_in(folder)
            yield f"{folder}/__main__.py" if f"{folder}/__main__.py" in self._tree and base == "__init__.py" else file

    def _named(self) -> Iterator[str]:
        """`"docs/architecture.md"`, and the name of a file beside this one."""
        folder = self.path.rpartition("/")[0]
        for text in self._strings:
            if FILE_NAME.fullmatch(text):
                yield from (path for path in (text, f"{folder}/{text}") if path in self._tree)

    # --- by path ------------------------------------------------------------------------------------------------------

    def _opened(self) -> Iterator[str]:
        """What lies where a path leads that begins at `__file__`; a folder that this file is in says nothing."""
        if not self.places:
            return
        for place in {str(there) for node in self._paths if (there := self._place(node, self.places))}:
            if place in self._tree:
                yield place
            elif place not in WHOLE_TREES and not self.path.startswith(f"{place}/"):
                yield from self._tree.below(place)

    @property
    def places(self) -> dict[str, PurePosixPath]:
        """Names that stand for a path: `__file__`, `cli.__file__`, a constant here, or one of another file of ours."""
        if self._places is None:
            self._places = {}  # for whoever asks meanwhile: files may import one another in a circle
            self._places = self._find_places()
        return self._places

    def _find_places(self) -> dict[str, PurePosixPath]:
        found = {"__file__": PurePosixPath(self.path)} if "__file__" in self._used else {}
        for name, module in (pair for node in self._imports for pair in self._imported(node)):
            if file := self._tree.file_of(module):
                theirs = self._tree.sources[file].places if name.isupper() and file in self._tree.sources else {}
                found |= {name: theirs[constant]} if (constant := module.rpartition(".")[2]) in theirs else {}
                found |= {key: PurePosixPath(file)} if (key := f"{name}.__file__") in self._used else {}
        for node in self._assigned:
            if isinstance(node.targets[0], ast.Name) and (there := self._place(node.value, found)):
                found[node.targets[0].id] = there
        return found

    @cached_property
    def _used(self) -> set[str]:
        """Whether `__file__`, or that of a module, is spoken of at all."""
        calls = [node for node in self._paths if isinstance(node, ast.Call) and node.args]
        return {ast.unparse(node.args[0]) for node in calls if isinstance(node.args[0], ast.Name | ast.Attribute)}

    def _place(self, node: ast.AST, known: Mapping[str, PurePosixPath]) -> PurePosixPath | None:
        match node:
            case ast.Name(id=name):
                return known.get(name)
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Name() | ast.Attribute() as file]):
                return known.get(ast.unparse(file))
            case ast.Call(func=ast.Attribute(value=base, attr="with_name"), args=[ast.Constant(value=str(name))]):
                return there.with_name(name) if (there := self._place(base, known)) else None
            case ast.Call(func=ast.Attribute(value=base, attr="resolve")):
                return self._place(base, known)
            case ast.Attribute(value=base, attr="parent"):
                return there.parent if (there := self._place(base, known)) else None
            case ast.Subscript(value=ast.Attribute(value=base, attr="parents"), slice=ast.Constant(value=int(number))):
                there = self._place(base, known)
                return there.parents[number] if there and number < len(there.parents) else None
            case ast.BinOp(left=base, op=ast.Div(), right=ast.Constant(value=str(name))):
                return there / name if (there := self._place(base, known)) else None
        return None
