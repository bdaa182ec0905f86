"""Loads a user's scheme from its source text, in a new module each time, and reads its declarations."""

from __future__ import annotations

import builtins
import difflib
import inspect
import linecache
import sys
import traceback
import types
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from subak import _subak, scheme
from subak.errors import InputError
from subak.outside.text import beside

HOOKS: dict[str, tuple[str, ...]] = {
    "source": (
        "on_start",
        "stamp",
        "on_ack",
        "on_loss",
        "on_timer",
        "on_message",
        "on_weight",
        "on_reroute",
        "on_finish",
    ),
    "hop": ("on_start", "on_enqueue", "on_dequeue", "on_message", "on_timer", "on_capacity"),
    "sink": ("on_data", "on_message", "on_timer"),
    "node": ("on_start", "admits", "on_leave", "on_controller", "on_flow", "on_message", "on_timer"),
    "controller": ("on_start", "on_place", "on_flow", "on_node", "on_link", "on_timer"),
}
"""Hooks (callbacks) of each kind of state machine, in the order that the core expects."""

BASES = {
    "source": scheme.Source,
    "hop": scheme.Hop,
    "sink": scheme.Sink,
    "node": scheme.Node,
    "controller": scheme.Controller,
}
BUILT_IN_HOPS = (scheme.Telemetry, scheme.LargestWait)
"""What a scheme may have as ``hop`` in place of a method."""
UNITS = ("", "packets", "bytes", "s", "bit/s", "flag")
GOALS = ("own", "max-min", "equal-max-min", "utility", "alpha-fair")
QUEUES = (scheme.Fifo, scheme.Priority, scheme.Rank, scheme.Stfq, scheme.FairCodel)
KNOWN = ("name", *(name for name in vars(scheme.Scheme) if not name.startswith("_")))
"""Attributes of a scheme's class that Subak reads."""


class Text(NamedTuple):
    """Source text of a scheme, the files that it may import, and the names of other files beside it."""

    file: str
    cls: str
    text: bytes
    files: dict[str, bytes]
    unlisted: list[str]


class Failed(Exception):  # noqa: N818
    """Error in a user's scheme. The core reports the message as an input error."""


def read(target: str) -> Text:
    """The text of ``FILE.py:CLASS``, with the files beside it that it imports."""
    file, _, cls = target.rpartition(":")
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        raise InputError(file, "", f"it cannot be read: {error.strerror}", "name a file of Python") from None
    return Text(file, cls, source, dict(beside(source, Path(file).parent)), [])


def define(text: Text) -> dict[str, Any]:
    """Declarations of the scheme of ``text`` without parameters. Raises ``InputError``."""
    cls = _class_of(text)
    if hasattr(cls, "_compile"):
        return {"compiled": cls._compile(text), "goal": "own", "settles": None}
    if cls.source is scheme.Scheme.source:
        raise InputError(text.file, cls.__name__, "the class has no source", "define source(self, flow)")
    for kind in ("source", "sink", "node", "controller"):
        given = getattr(cls, kind)
        if given is not None and not callable(given):
            argument = next(iter(list(inspect.signature(getattr(scheme.Scheme, kind)).parameters)[1:]))
            raise InputError(
                text.file, f"{cls.__name__}.{kind}", f"it is {given!r}", f"define {kind}(self, {argument})"
            )
    _refuse_misspelled(cls, text.file)
    about = (cls.__doc__ if cls.__doc__ != scheme.Scheme.__doc__ else None) or "a scheme of the user's"
    return {
        "name": str(getattr(cls, "name", cls.__name__.lower())),
        "about": about.strip().splitlines()[0],
        "paper": str(cls.paper) or "none",
        "compiled": None,
        "goal": _one_of(cls.goal, GOALS, "goal", text.file),
        "settles": _settles(cls.settles, text.file),
        "params": [param(cls, name, given, text.file) for name, given in _table(cls.params, text.file).items()],
    }


def make(text: Text, params: dict[str, Any]) -> tuple[scheme.Scheme, dict[str, Any]]:
    """A new scheme of ``text`` with ``params``, and its declarations."""
    cls = _class_of(text)
    try:
        made = cls()
        for name, value in params.items():
            setattr(made, name, value)
        check: Callable[[], object] = made.check
        answer = check()
    except Exception as error:
        raise InputError(None, "params", f"{cls.__name__} refuses them: {error_line(error, text)}", "") from None
    if answer is not None:
        hint = 'raise ValueError("what is wrong") to refuse parameters'
        raise InputError(text.file, "check", f"{cls.__name__}.check returned {answer!r}", hint)
    return made, facts(made, text.file)


def facts(made: scheme.Scheme, file: str) -> dict[str, Any]:
    """The declarations of a scheme with values of its parameters."""
    recovery = made.recovery
    if not isinstance(recovery, scheme.Recovery):
        raise InputError(file, "recovery", f"it is {recovery!r}", "give subak.Recovery(...)")
    return {
        "data_share": _number(made.data_share, "data_share", 1e-6, 1.0, file),
        "recovers": bool(made.recovers),
        "path_dependent": bool(made.path_dependent),
        "header_bytes": int(_number(made.header_bytes, "header_bytes", 0, 1000, file)),
        "ack_header_bytes": int(_number(made.ack_header_bytes, "ack_header_bytes", 0, 1000, file)),
        "ack_class": made.ack_class and _one_of(made.ack_class, ("control", "high", "low"), "ack_class", file),
        "nic": made.nic and _one_of(made.nic, ("queue", "round-robin"), "nic", file),
        "reorder": recovery.reorder and int(_number(recovery.reorder, "recovery.reorder", 1, 1e6, file)),
        "rto_min_ns": _ns(recovery.rto_min, "recovery.rto_min", file),
        "rto_max_ns": _ns(recovery.rto_max, "recovery.rto_max", file),
        "probe": bool(recovery.probe),
        "go_back": bool(recovery.go_back),
        "built_in": _built_in(made, file),
        "has_controller": has("controller", made),
        "pfc": _pfc(made, file),
        **_queue(made, file),
    }


def _queue_of(made: scheme.Scheme) -> Any:
    """The queue of the scheme; of a class of queues, one with its defaults."""
    return made.queue() if isinstance(made.queue, type) else made.queue


def _built_in(made: scheme.Scheme, file: str) -> tuple[str, int] | None:
    """Name and number of the built-in state at links, if ``hop`` is no method."""
    hop: Any = made.hop
    if isinstance(hop, type) and issubclass(hop, BUILT_IN_HOPS):
        hop = hop()
    if isinstance(hop, scheme.Telemetry):
        queue = _queue_of(made)
        if isinstance(queue, scheme.Rank | scheme.Stfq):
            what = f"subak.{type(queue).__name__} reads packet[0], and packets with telemetry have no numbers"
            raise InputError(file, "hop", what, "choose another queue, or define hop(self, port)")
        if has("sink", made):
            what = "a sink beside subak.Telemetry(): packets have no numbers for it"
            raise InputError(file, "hop", what, "leave sink away, or define hop(self, port)")
        return "Telemetry", 0
    if isinstance(hop, scheme.LargestWait):
        queue = _queue_of(made)
        if isinstance(queue, scheme.Rank | scheme.Stfq) and hop.number == 0:
            what = f"subak.{type(queue).__name__} reads packet[0], and subak.LargestWait(number=0) writes it"
            raise InputError(file, "hop", what, "give another number")
        return "LargestWait", int(_number(hop.number, "hop.number", 0, 7, file))
    if not callable(hop):
        names = ", ".join(f"subak.{one.__name__}()" for one in BUILT_IN_HOPS)
        raise InputError(file, "hop", f"it is {hop!r}", f"define hop(self, port), or give one of: {names}")
    return None


def _pfc(made: scheme.Scheme, file: str) -> dict[str, Any] | None:
    pfc = made.lossless() if isinstance(made.lossless, type) else made.lossless
    if pfc is None:
        return None
    if not isinstance(pfc, scheme.Pfc):
        raise InputError(file, "lossless", f"it is {made.lossless!r}", "give subak.Pfc(...) or None")
    queue = _queue_of(made)
    if not isinstance(queue, scheme.Priority):
        what = f"a subak.{type(queue).__name__} cannot be paused"
        raise InputError(file, "lossless", what, "write queue = subak.Priority()")

    def of(name: str, low: float, high: float = 1e12) -> float | None:
        value = getattr(pfc, name)
        return None if value is None else _number(value, f"lossless.{name}", low, high, file)

    return {
        "threshold": of("threshold", 1),
        "alpha": _number(pfc.alpha, "lossless.alpha", 1e-6, 1e3, file),
        "resume": int(_number(pfc.resume, "lossless.resume", 0, 1e12, file)),
        "reserve": int(_number(pfc.reserve, "lossless.reserve", 0, 1e12, file)),
        "buffer": of("buffer", 1),
        "headroom": of("headroom", 1),
    }


def _queue(made: scheme.Scheme, file: str) -> dict[str, Any]:
    queue = _queue_of(made)
    if not isinstance(queue, QUEUES):
        names = ", ".join(f"subak.{one.__name__}" for one in QUEUES)
        raise InputError(file, "queue", f"it is {queue!r}", f"give one of: {names}")
    found: dict[str, Any] = {"queue": type(queue).__name__}
    if isinstance(queue, scheme.FairCodel):
        found["target_ns"] = _ns(queue.target, "queue.target", file)
        found["interval_ns"] = _ns(queue.interval, "queue.interval", file)
        found["bins"] = int(_number(queue.bins, "queue.bins", 1, 65535, file))
        found["quantum"] = int(_number(queue.quantum, "queue.quantum", 0, 1e6, file))
    mark = getattr(queue, "mark", None)
    if isinstance(mark, scheme.Red):
        low, high = (_length(made, getattr(mark, end), f"queue.mark.{end}", file) for end in ("low", "high"))
        most = mark.most
        if isinstance(most, str):
            if most not in made.params or made.params[most][1] != "":
                what = f'"{most}" is no parameter of the unit ""'
                raise InputError(file, "queue.mark.most", what, "declare it in params, as a number without a unit")
            most = getattr(made, most)
        if low[2] != high[2]:
            what = f"low is in {low[2]}, and high in {high[2]}"
            raise InputError(file, "queue.mark", what, "give both in the same unit")
        if low[1] > high[1]:
            raise InputError(
                file, "queue.mark", f"low is {low[1]:g}, above high, {high[1]:g}", "give a low of at most high"
            )
        found |= {"mark": low, "red": (high[1], high[2], _number(most, "queue.mark.most", 0, 1, file))}
    elif mark is not None:
        found["mark"] = _length(made, mark, "queue.mark", file)
    return found


def _length(made: scheme.Scheme, given: object, name: str, file: str) -> tuple[str, float, str]:
    """A queue length: the name in warnings, the value and its unit."""
    unit = "packets"
    if isinstance(given, str):
        name, given, unit = _mark(made, given, file)
    return name, _number(given, name, 0, 1e12, file), unit


def _mark(made: scheme.Scheme, name: str, file: str) -> tuple[str, Any, str]:
    unit = made.params[name][1] if name in made.params else None
    if unit not in ("packets", "bytes"):
        known = [one for one, (_, of) in made.params.items() if of in ("packets", "bytes")]
        hint = f"name one of: {', '.join(known)}" if known else "declare it in params, in packets or bytes"
        raise InputError(file, "queue.mark", f'"{name}" is no parameter in packets or bytes', hint)
    return name, getattr(made, name), str(unit)


def hooks(kind: str, machine: object) -> tuple[Callable[..., Any] | None, ...]:
    """The hooks that ``machine`` defines, ``None`` for the others, in the core's order."""
    names, base = HOOKS[kind], BASES[kind]
    for name in dir(machine):
        if name.startswith("on_") and name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"hooks are {', '.join(names)}"
            raise Failed(f"{type(machine).__name__} has a hook {name}, which a {kind} does not have; {hint}")
        if name not in names and not name.startswith("_") and difflib.get_close_matches(name, ["admits"], 1, 0.8):
            hint = 'did you mean "admits"?' if kind == "node" else "a node has admits"
            raise Failed(f"{type(machine).__name__} has {name}, which a {kind} does not have; {hint}")
    found = []
    for name in names:
        hook = getattr(machine, name, None)
        inherited = getattr(hook, "__func__", hook) is getattr(base, name)
        found.append(None if hook is None or inherited else hook)
    if not any(found) and not isinstance(machine, base):
        raise Failed(
            f"{kind} returned {machine!r}, which has no hook; return an object of a class subak.{base.__name__}"
        )
    if type(machine) not in _CHECKED:
        for name, hook in zip(names, found, strict=True):
            if hook is not None:
                _refuse_parameters(f"{type(machine).__name__}.{name}", hook, getattr(base, name))
        _CHECKED.add(type(machine))
    return tuple(found)


_CHECKED: weakref.WeakSet[type] = weakref.WeakSet()
"""Classes of machines whose hooks accept the arguments that the core passes."""


def _refuse_parameters(name: str, hook: Callable[..., Any], known: Callable[..., None]) -> None:
    """Raises an error for a hook that cannot be called with the arguments of the hook ``known`` of a base class."""
    wanted = list(inspect.signature(known).parameters)
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*wanted[1:])
    except TypeError:
        code = getattr(inspect.unwrap(hook), "__code__", None)
        place = f" ({PurePath(code.co_filename).name}, line {code.co_firstlineno})" if code else ""
        takes = ", ".join(str(one.replace(annotation=one.empty)) for one in signature.parameters.values())
        what = f"{name} takes ({takes}), without self{place}"
        raise Failed(f"{what}; write def {known.__name__}({', '.join(wanted)})") from None


def machine(kind: str, made: scheme.Scheme, view: object) -> tuple[Callable[..., Any] | None, ...] | None:
    """The hooks of a new state machine of the scheme; ``None`` if the scheme has none of this kind."""
    one = getattr(made, kind)(view)
    if one is None and kind not in ("source", "controller"):
        return None
    if one is None:
        what = "the sender of the flow" if kind == "source" else "the controller"
        raise Failed(f"{kind} returned None; return {what}")
    if isinstance(one, BUILT_IN_HOPS):
        name = type(one).__name__
        raise Failed(
            f"{kind} returned subak.{name}; write {kind} = subak.{name}() in the class, in place of the method"
        )
    if isinstance(one, type):
        raise Failed(f"{kind} returned the class {one.__name__}; return an object, such as {one.__name__}()")
    found = hooks(kind, one)
    if kind == "source" and found[0] is None:
        what = f"{type(one).__name__} has no on_start, and a source sends nothing before its first io.pace"
        raise Failed(f"{what}; define on_start(self, io)")
    hop: Any = made.hop
    telemetry = hop is scheme.Telemetry or isinstance(hop, scheme.Telemetry)
    if telemetry and kind == "node" and (found[1] is not None or found[2] is not None):
        what = f"{type(one).__name__} has admits or on_leave, and nodes do not see packets with telemetry"
        raise Failed(f"{what}; leave them away, or define hop(self, port) in the scheme")
    if kind == "source" and found[1] is not None and telemetry:
        what = f"{type(one).__name__} has stamp, and packets with telemetry have no numbers"
        raise Failed(f"{what}; leave stamp away, or define hop(self, port) in the scheme")
    return found


def has(kind: str, made: scheme.Scheme) -> bool:
    """Whether the scheme defines state machines of this kind."""
    given = getattr(made, kind)
    is_built_in = isinstance(given, BUILT_IN_HOPS) or (isinstance(given, type) and issubclass(given, BUILT_IN_HOPS))
    is_inherited = getattr(given, "__func__", given) is getattr(scheme.Scheme, kind)
    return given is not None and not is_inherited and not is_built_in


def error_line(error: BaseException, text: Text) -> str:
    """The exception in one line, with the last line of the user's text in its traceback."""
    if isinstance(error, Failed):
        return str(error)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    said += _near_attribute(error)
    ours = {text.file, *text.files}
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename in ours]
    if isinstance(error, SyntaxError) and error.filename in ours:
        said = f"{type(error).__name__}: {error.msg}"
        return f"{said} ({PurePath(error.filename).name}, line {error.lineno})"
    if not frames:
        return said
    return f"{said} ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})"


def _near_attribute(error: BaseException) -> str:
    """A hint for an attribute that an object does not have: the nearest name, or all fields of an object of Subak."""
    if not isinstance(error, AttributeError) or error.name is None or error.obj is None:
        return ""
    names = [name for name in dir(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(error.name, names, 1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are {', '.join(names)}" if type(error.obj).__module__ == "subak" else ""


def _class_of(text: Text) -> type[scheme.Scheme]:
    """The class of ``text``, from a new module that shares no state with modules loaded before."""
    try:
        module = _Modules(text).execute(text.file, text.text)
    except Exception as error:
        raise InputError(text.file, "", f"it cannot be loaded: {error_line(error, text)}", "") from None
    found: Any = module
    for name in text.cls.split("."):
        found = getattr(found, name, None)
    if not (isinstance(found, type) and issubclass(found, scheme.Scheme)):
        classes = [n for n, one in vars(module).items() if isinstance(one, type) and issubclass(one, scheme.Scheme)]
        own = [name for name in classes if getattr(module, name) is not scheme.Scheme]
        if isinstance(found, type):
            hint = f"write class {found.__name__}(subak.Scheme)"
            raise InputError(text.file, text.cls, "the class is not derived from subak.Scheme", hint)
        hint = f"choose one of: {', '.join(own)}" if own else "write class Mine(subak.Scheme)"
        raise InputError(text.file, "", f"there is no scheme {text.cls} in it", hint)
    return found


class _Modules:
    """The modules of one scheme. Files that the scheme imports are loaded anew, too."""

    def __init__(self, text: Text) -> None:
        self._files = {PurePath(name).stem: (name, held) for name, held in text.files.items()}
        self._unlisted = {PurePath(name).stem: name for name in text.unlisted}
        self._loaded: dict[str, types.ModuleType] = {}

    def execute(self, file: str, text: bytes) -> types.ModuleType:
        module = types.ModuleType(PurePath(file).stem)
        module.__file__ = file
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        lines = text.decode("utf-8", "replace").splitlines(keepends=True)
        linecache.cache[file] = (len(text), None, lines, file)
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
        return module

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and name in self._files:
            if name not in self._loaded:
                self._loaded[name] = self.execute(*self._files[name])
            return self._loaded[name]
        if level == 0 and name in self._unlisted and name not in sys.stdlib_module_names:
            raise Failed(f'it imports {name}, which files does not list; write files = ["{self._unlisted[name]}"]')
        return builtins.__import__(name, globals, locals, fromlist, level)


def _refuse_misspelled(cls: type, file: str) -> None:
    """Raises an error for an attribute that Subak would ignore: a hook, or a name that nearly equals a known one."""
    for name in vars(cls):
        kinds = [kind for kind, names in HOOKS.items() if name in names]
        if kinds and not issubclass(cls, tuple(BASES.values())):
            what = f"the scheme has a hook {name}, which only machines have"
            makers = " or ".join(f"{kind}()" for kind in kinds)
            raise InputError(file, cls.__name__, what, f"define it in the class that {makers} returns")
        near = difflib.get_close_matches(name, KNOWN, 1, cutoff=0.8)
        if near and name not in KNOWN and not name.startswith("_") and name not in getattr(cls, "params", {}):
            hint = f'did you mean "{near[0]}"? if not, choose a name that differs more'
            raise InputError(file, cls.__name__, f'unknown attribute "{name}"', hint)


def _table(params: object, file: str) -> Mapping[str, Any]:
    if not isinstance(params, Mapping):
        raise InputError(file, "params", f"it is {params!r}", 'write params = {"k": (65, "packets")}')
    return params


def param(cls: type, name: object, given: object, file: str) -> tuple[str, Any, Any]:
    """Name, default and unit of a declared parameter."""
    place = f"params.{name}"
    if not (isinstance(name, str) and name.isidentifier()):
        raise InputError(file, place, "it is no name of an attribute", "use letters, digits and _")
    if name in KNOWN or hasattr(cls, name):
        raise InputError(file, place, "the class has an attribute of that name", "call the parameter otherwise")
    if not (isinstance(given, tuple) and len(given) == 2):
        raise InputError(file, place, f"it is {given!r}", 'give default and unit, such as (65, "packets")')
    default, unit = given
    words = isinstance(unit, tuple) and unit != () and all(isinstance(word, str) for word in unit)
    if not words and unit not in UNITS:
        units = ", ".join(f'"{one}"' for one in UNITS)
        raise InputError(file, place, f"unknown unit {unit!r}", f"give one of {units}, or a tuple of words")
    return name, default, list(unit) if words else unit


def _settles(given: object, file: str) -> tuple[float, float] | None:
    if given is None:
        return None
    if not (isinstance(given, tuple) and len(given) == 2):
        raise InputError(file, "settles", f"it is {given!r}", "give a tolerance and RTTs, such as (0.05, 100)")
    within, rtts = (_number(one, "settles", 0, 1e9, file) for one in given)
    return within, rtts


def _number(given: object, place: str, low: float, high: float, file: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not low <= given <= high:
        raise InputError(file, place, f"it is {given!r}", f"give a number from {low:g} to {high:g}")
    return given


def _ns(given: object, place: str, file: str) -> int:
    if isinstance(given, str):
        try:
            return _subak.nanoseconds(given)
        except ValueError as error:
            raise InputError(file, place, f"it is {given!r}", 'give a time, such as "1ms"') from error
    return round(1e9 * _number(given, place, 0, 1e6, file))


def _one_of(given: object, known: tuple[str, ...], place: str, file: str) -> str:
    if not isinstance(given, str) or given not in known:
        near = difflib.get_close_matches(str(given), known, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"choose one of: {', '.join(known)}"
        raise InputError(file, place, f"it is {given!r}", hint)
    return given
