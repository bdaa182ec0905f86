"""Source text of a scheme's class that a Python program passes to ``run``, which loads it anew for each trial."""

from __future__ import annotations

import ast
import builtins
import linecache
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

from subak.errors import InputError
from subak.scheme import Scheme

PLAIN = (int, float, str, bool, bytes, type(None))


def of_class(name: str, cls: object) -> tuple[str, str, str, dict[str, bytes]]:
    """Source text of the class, its name there, the file, and the files beside it that the text imports."""
    if not isinstance(cls, type):
        raise InputError(None, f"schemes.{name}", f"it is {cls!r}", "give a class, class Mine(subak.Scheme)")
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file and cls.__module__ != "__main__" and "<locals>" not in cls.__qualname__ and Path(file).is_file():
        text = Path(file).read_bytes()
        return text.decode(), cls.__qualname__, file, dict(beside(text, Path(file).parent))
    collected = _Collected(name, vars(module) if module else {})
    collected.take(cls)
    return "\n".join(collected.parts), cls.__name__, f"<{name}>", {}


def beside(text: bytes, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of ``folder`` that the text imports, directly or through other files of the folder."""
    seen: set[str] = set()
    waiting = [text]
    while waiting:
        for name in _imported(waiting.pop()):
            file = folder / f"{name}.py"
            if name not in seen and file.is_file():
                seen.add(name)
                waiting.append(file.read_bytes())
                yield file.name, waiting[-1]


def _imported(text: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


def _globals(table: symtable.SymbolTable) -> set[str]:
    """Names that the text reads and does not define: arguments and local variables are others."""
    found = {one.get_name() for one in table.get_symbols() if one.is_referenced() and _is_global(table, one)}
    return found.union(*(_globals(inner) for inner in table.get_children()))


def _is_global(table: symtable.SymbolTable, one: symtable.Symbol) -> bool:
    return one.is_global() if table.get_type() != "module" else not one.is_assigned()


class _Collected:
    """Source text of a class of a notebook and of the definitions it uses, in an order that can be executed."""

    def __init__(self, name: str, known: dict[str, object]) -> None:
        self.parts: list[str] = []
        self._place = f"schemes.{name}"
        self._known = known
        self._taken: set[str] = set()

    def take(self, one: type | types.FunctionType) -> None:
        source = self._source(one)
        own = one.__name__
        self._taken.add(own)
        for used in sorted(_globals(symtable.symtable(source, "<class>", "exec"))):
            if used not in self._taken:
                self._use(used)
        self.parts.append(source)

    def _use(self, name: str) -> None:
        if name not in self._known or (hasattr(builtins, name) and name not in self._known):
            return
        self._taken.add(name)
        one = self._known[name]
        if isinstance(one, types.ModuleType):
            self.parts.append(f"import {one.__name__} as {name}")
        elif isinstance(one, (type, types.FunctionType)) and one.__module__ == "__main__":
            self.take(one)
        elif isinstance(one, (type, types.FunctionType, types.BuiltinFunctionType)):
            self.parts.append(f"from {one.__module__} import {one.__name__} as {name}")
        elif _is_plain(one):
            self.parts.append(f"{name} = {one!r}")
        else:
            hint = "put it into the class, or write the scheme to a file"
            raise InputError(None, self._place, f"it uses {name}, a {type(one).__name__}", hint)

    def _source(self, one: type | types.FunctionType) -> str:
        """Source lines of a class or function. Its code names the file: a notebook has one file for each cell."""
        functions = [one] if isinstance(one, types.FunctionType) else _functions(one)
        if not functions:
            is_scheme = isinstance(one, type) and issubclass(one, Scheme)
            hint = "define source(self, flow)" if is_scheme else "write the scheme to a file"
            raise InputError(None, self._place, f"{one.__name__} defines no method", hint)
        for function in functions:
            text = "".join(linecache.getlines(function.__code__.co_filename))
            for node in ast.walk(ast.parse(text)) if text else ():
                kinds = (ast.ClassDef, ast.FunctionDef)
                if isinstance(node, kinds) and node.name == one.__name__ and _holds(node, function):
                    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]))
        hint = 'write the scheme to a file, and name it in the spec: python = "mine.py:Mine"'
        raise InputError(None, self._place, f"the text of {one.__name__} cannot be found", hint)


def _functions(cls: type) -> list[types.FunctionType]:
    return [one for one in vars(cls).values() if isinstance(one, types.FunctionType)]


def _holds(node: ast.AST, function: types.FunctionType) -> bool:
    end = getattr(node, "end_lineno", 0) or 0
    return getattr(node, "lineno", 0) - 10 <= function.__code__.co_firstlineno <= end


def _is_plain(one: object) -> bool:
    return isinstance(one, PLAIN) or (isinstance(one, tuple) and all(map(_is_plain, one)))
