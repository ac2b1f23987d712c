"""Read a space file, what it extends and its CSV tables into one checked declaration."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Folders
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from dse.errors import Diagnostic, Location, SpaceError, nearest
from dse.space import nodes
from dse.space.checks import check_tree
from dse.space.document import parse, read_text
from dse.space.merging import merge, overlay_rows
from dse.space.messages import explain
from dse.space.nodes import Mapping, Node, Scalar, Sequence, describe
from dse.space.overrides import apply_override
from dse.space.ranges import Values
from dse.space.schema import SpaceDecl
from dse.space.tables import columns_of, read_csv_table

__all__ = ["Declaration", "load_declaration"]

Resolve = Callable[[str], Path | None]
Packages = Callable[[], Folders[str, Path]]
_SHOWN = 100  # diagnostics of one error


@dataclass(frozen=True, slots=True)
class Declaration:
    """A space file that was read and checked.

    Attributes:
        model: the content; expressions and quantities are text.
        root: the tree it came from, after ``extends``, CSV tables and overrides.
        path: the file.
        warnings: what is allowed but probably not meant.
        ranges: the values of every dimension given by a range, in its unit.
        files: every file that was read, the space file first.
    """

    model: SpaceDecl
    root: Mapping
    path: Path
    warnings: tuple[Diagnostic, ...]
    ranges: dict[str, Values]
    files: tuple[Path, ...]

    def locate(self, path: nodes.Path, offset: int = 0) -> Location:
        """Where the value at ``path`` starts, or its nearest ancestor that exists.

        For a text in quotes that is inside the quotes. ``offset`` moves to that character of the text, for a
        place inside an expression; where lines were folded or characters escaped, the start is returned.
        A cell's last step may be its column or its position: ``("tables", t, "rows", row, column)``.
        """
        return nodes.locate(self.root, self._steps(path), offset)

    def locate_key(self, path: nodes.Path) -> Location:
        """Where the key that ends ``path`` stands, or the key of its nearest ancestor that has one."""
        return nodes.locate_key(self.root, self._steps(path))

    def text(self, path: nodes.Path) -> str:
        """The source text of the scalar at ``path``: ``0.1``, ``1e-3``, ``10 ms``, an expression.

        Numbers come as a decimal number that reads exactly (``0x1F`` as ``31``), truth values in lower case.

        Raises:
            KeyError: there is no scalar.
        """
        node = self.node(path)
        if not isinstance(node, Scalar):
            raise KeyError(path)
        return nodes.number_text(node)

    def node(self, path: nodes.Path) -> Node | None:
        """The node at ``path``, or None."""
        return nodes.find(self.root, self._steps(path))

    def _steps(self, path: nodes.Path) -> nodes.Path:
        """The path with the last step of a table cell in the form in which its row is written."""
        if len(path) < 5 or path[0] != "tables" or path[2] != "rows":
            return path
        columns = list(columns_of(nodes.find(self.root, path[:2])))
        row, step = nodes.find(self.root, path[:4]), path[4]
        if isinstance(row, Sequence) and step in columns:
            step = columns.index(str(step))
        elif isinstance(row, Mapping) and isinstance(step, int) and step < len(columns):
            step = columns[step]
        return (*path[:4], step, *path[5:])


def load_declaration(
    path: Path,
    overrides: Items[tuple[str, str]] = (),
    *,
    resolve: Resolve | None = None,
    packages: Packages | None = None,
    text: str | None = None,
) -> Declaration:
    """Read and check a space file.

    Args:
        path: the file.
        overrides: ``--set`` names and texts, applied in order (see :func:`dse.space.overrides.apply_override`).
        resolve: finds the file of a space that ``extends`` gives by name; None for an unknown name.
        packages: the folders of installed packages by name, for tables whose file is ``package:name.csv``.
        text: read this instead of the file; ``path`` still names it and anchors relative paths.

    Raises:
        SpaceError: everything that is wrong, each with its place.
    """
    loading = _Loading(resolve, packages)
    root = loading.file(path, text, ())
    tables = root.entries.get("tables")
    files = {f"tables.{name}.file" for name in tables.entries} if isinstance(tables, Mapping) else set()
    root = loading.override(root, [item for item in overrides if item[0] in files])
    root = loading.with_csv_rows(root)
    root = loading.override(root, [item for item in overrides if item[0] not in files])
    checked = check_tree(root)
    model, wrong = None, []
    try:
        model = SpaceDecl.model_validate(nodes.plain(root))
    except ValidationError as error:
        wrong = explain(error, root)
    found = _in_order(loading.found, [*checked.errors, *wrong], loading.files)
    if found or model is None:
        raise SpaceError(found)
    return Declaration(model, root, path, tuple(checked.warnings), checked.ranges, tuple(loading.files))


def _in_order(read: Items[Diagnostic], checked: Items[Diagnostic], files: Items[Path]) -> list[Diagnostic]:
    """Each diagnostic once, in the order of the files and of the lines; the first hundred.

    What the checks say about a value that could not even be read is left out.
    """
    order = {str(path): position for position, path in enumerate(files)}
    unread = {diagnostic.location for diagnostic in read if diagnostic.location.column}
    unique = sorted(
        dict.fromkeys([*read, *(d for d in checked if d.location not in unread)]),
        key=lambda d: (order.get(d.location.file, len(order)), d.location.line, d.location.column),
    )
    if len(unique) > _SHOWN:
        more = len(unique) - _SHOWN
        unique[_SHOWN:] = [Diagnostic(Location(unique[0].location.file), "", f"and {more} more")]
    return unique


class _Loading:
    """One reading: the files it has read and what it has found so far."""

    def __init__(self, resolve: Resolve | None, packages: Packages | None) -> None:
        self.found: list[Diagnostic] = []
        self.files: list[Path] = []
        self._resolve = resolve
        self._packages = packages

    def override(self, root: Mapping, overrides: Items[tuple[str, str]]) -> Mapping:
        """The tree with overrides applied; one that fails is kept out."""
        for name, value in overrides:
            try:
                root = apply_override(root, name, value)
            except SpaceError as error:
                self.found += error.diagnostics
        return root

    def file(self, path: Path, text: str | None, above: tuple[Path, ...]) -> Mapping:
        """The tree of a file, merged over what it extends."""
        self.files.append(path)
        try:
            root, found = parse(read_text(path) if text is None else text, str(path))
        except SpaceError as error:
            raise SpaceError([*self.found, *error.diagnostics]) from None
        self.found += found
        if not isinstance(root, Mapping):
            message = f"found {describe(root)}, expected a mapping that starts with 'dse: 1'"
            raise SpaceError([*self.found, Diagnostic(root.location, "", message)])
        extends = root.entries.get("extends")
        if not isinstance(extends, Scalar) or not isinstance(extends.value, str):
            return root
        try:
            base_path = self._base_path(path, extends, above)
        except SpaceError as error:
            raise SpaceError([*self.found, *error.diagnostics]) from None
        base = self.file(base_path, None, (*above, path.resolve()))
        merged, problems = merge(base, root)
        self.found += problems
        return merged

    def _base_path(self, path: Path, extends: Scalar, above: tuple[Path, ...]) -> Path:
        name = extends.text
        known = self._resolve(name) if self._resolve else None
        target = known or _below(path.parent, extends, "extends")
        if target.resolve() in {*above, path.resolve()}:
            raise SpaceError(
                [Diagnostic(extends.location, "extends", f"found {name!r}, which extends this file again")]
            )
        if not target.is_file():
            raise SpaceError([Diagnostic(extends.location, "extends", _no_file(target, name, ".yaml"))])
        return target

    def with_csv_rows(self, root: Mapping) -> Mapping:
        """The tree with the rows of every table's CSV file in place."""
        tables = root.entries.get("tables")
        if not isinstance(tables, Mapping):
            return root
        entries = dict(tables.entries)
        for name, table in tables.entries.items():
            if isinstance(table, Mapping) and isinstance(table.entries.get("file"), Scalar):
                try:
                    entries[name] = self._with_rows(table, name)
                except SpaceError as error:
                    self.found += error.diagnostics
        return replace(root, entries={**root.entries, "tables": replace(tables, entries=entries)})

    def _data_file(self, file: Scalar, key: str) -> Path:
        """The file that a table's ``file`` names: beside the space file, or in the package before a colon."""
        package, colon, inside = file.text.partition(":")
        if not colon:
            beside = self.files[0] if file.location.file.startswith("--set ") else Path(file.location.file)
            return _below(beside.parent, file, key)
        folders = self._packages() if self._packages else {}
        if package not in folders:
            message = (
                f"found {describe(file)}, expected a file or package:file; there is no package {package!r}"
            )
            raise SpaceError([Diagnostic(file.location, key, message + nearest(package, folders))])
        return _below(folders[package], file, key, inside)

    def _with_rows(self, table: Mapping, name: str) -> Mapping:
        file = table.entries["file"]
        assert isinstance(file, Scalar)
        if not isinstance(file.value, str) or not file.value:
            return table
        key = f"tables.{name}.file"
        path = self._data_file(file, key)
        if not path.is_file():
            raise SpaceError([Diagnostic(file.location, key, _no_file(path, file.value, ".csv"))])
        self.files.append(path)
        rows, found = read_csv_table(path, table)
        self.found += [replace(diagnostic, key=f"tables.{name}") for diagnostic in found]
        over = table.entries.get("rows")
        if isinstance(over, Mapping):
            rows = overlay_rows(table, rows, over)
        return replace(
            table, entries={**table.entries, "rows": rows}, keys={**table.keys, "rows": rows.location}
        )


def _below(folder: Path, node: Scalar, key: str, name: str | None = None) -> Path:
    """The file that a node (or ``name``, a part of it) names, which must stand in the folder or below it.

    Raises:
        SpaceError: it stands elsewhere.
    """
    try:
        target = folder / (node.text if name is None else name)
        inside = target.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        of = "this one" if name is None else "the package"
        message = f"found {describe(node)}, expected a file below the folder of {of}"
        raise SpaceError([Diagnostic(node.location, key, message)])
    return target


def _no_file(path: Path, name: str, suffix: str) -> str:
    try:
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix == suffix)
    except OSError:
        names = []
    return f"found no file {name!r}, expected one{nearest(path.name, names)}"
