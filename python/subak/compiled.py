"""Senders in Python that numba compiles to machine code: the extra ``subak[compiled]``.

A class that derives from :class:`Scheme` describes the sender of one subflow. Its hooks are compiled without Python
objects: numbers, ``math``, and functions under :func:`function`.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, ClassVar, NamedTuple

import numpy as np

from subak import extras, scheme
from subak.errors import InputError
from subak.outside import loading

try:
    import numba
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic
except ModuleNotFoundError as error:
    what = f"numba is missing; install it: {extras.command('numba')}"
    raise ModuleNotFoundError(what, name="numba") from error

function = numba.njit
"""Decorator of a function that hooks call."""

HOOKS = ("begin", "on_start", "on_ack", "on_loss", "on_timer", "on_reroute")
VERSION = 2
TIMEOUT, REORDERED, OUT_OF_ORDER = 1, 0, 2
"""Values of ``loss.kind``."""


class Scheme(scheme.Scheme):
    """A scheme whose senders are compiled. Each subflow has a sender of its own.

    In every hook, ``self`` has the parameters, the fields of ``state``, and ``subflow``, which begin with zeros:
    ``begin(self, flow, path)``, ``on_start(self, io)``, ``on_ack(self, io, ack)``, ``on_loss(self, io, loss)``,
    ``on_timer(self, io, timer)`` and ``on_reroute(self, io, path)``.
    """

    state: ClassVar[Mapping[str, type]] = {}
    """Fields of a sender: ``float``, ``int`` or ``bool`` by name."""

    @classmethod
    def _compile(cls, text: loading.Text) -> tuple[int, str]:
        """Address of the scheme's table of C functions, and the compiler that results depend on."""
        key = (text.cls, text.text, tuple(text.files.items()))
        if key not in _KEPT:
            _KEPT[key] = _table(cls, text)
        return ctypes.addressof(_KEPT[key][0]), f"numba {numba.__version__}"


class Io(NamedTuple):
    """The simulator, as a compiled hook sees it: for :func:`pace`, :func:`timer` and :func:`random`."""

    address: int
    now_ns: int
    subflow: int


def _struct(*fields: str) -> np.dtype[Any]:
    """A structure of the header; integers of 64 bits are signed, so that they mix with other numbers."""
    kinds = {"f": "f8", "i": "i8", "u": "u4", "b": "u1", "p": "u8", "n": "(8,)f8"}
    return np.dtype([(field[2:], kinds[field[0]]) for field in fields], align=True)


PATH = _struct("f:line_rate_bps", "f:min_capacity_bps", "i:base_rtt_ns", "u:hops", "u:id")
FLOW = _struct(
    *("f:weight", "i:size_bytes", "f:demand_bps", "i:rtt_ns", "i:seed"),
    *("p:paths", "u:subflows", "u:flow", "u:mss_bytes", "u:mtu_bytes"),
)
ACK = _struct(
    *("n:data", "i:acked_bytes", "i:rtt_ns", "i:in_flight_bytes", "i:remaining_bytes", "p:links"),
    *("u:link_count", "u:path_id", "u:segment", "u:next_segment", "b:subflow", "b:ecn"),
)
LOSS = _struct("i:in_flight_bytes", "u:segment", "u:next_segment", "b:subflow", "b:kind")
IO = _struct("i:now_ns", "p:pace", "p:timer", "p:send", "p:pause", "p:random", "p:note", "p:fail", "p:context")
_calloc, _free = ctypes.CDLL(None).calloc, ctypes.CDLL(None).free
_calloc.argtypes, _calloc.restype = (ctypes.c_size_t, ctypes.c_size_t), ctypes.c_size_t


@intrinsic
def _pointer(_context: Any, address: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uint64), code


def _code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Calls the C function at the address ``args[0]``."""
    returns = ir.DoubleType() if signature.return_type == types.float64 else ir.VoidType()
    kind = ir.FunctionType(returns, [one.type for one in args[1:]])
    done = builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
    return done if signature.return_type == types.float64 else context.get_dummy_value()


@intrinsic
def _pace(_context: Any, at: Any, io: Any, subflow: Any, rate: Any, window: Any) -> Any:
    return types.void(types.uint64, types.uint64, types.uint32, types.float64, types.float64), _code


@intrinsic
def _timer(_context: Any, at: Any, io: Any, number: Any, at_ns: Any) -> Any:
    return types.void(types.uint64, types.uint64, types.uint32, types.uint64), _code


@intrinsic
def _random(_context: Any, at: Any, io: Any) -> Any:
    return types.float64(types.uint64, types.uint64), _code


@function
def _at(address: int, kind: Any) -> Any:
    return numba.carray(_pointer(address), 1, kind)[0]


@function
def pace(io: Io, rate: float = math.inf, window: float = math.inf) -> None:
    """Sets the pacing rate (bit/s on the wire) and the window (payload bytes) of the subflow."""
    _pace(_at(io.address, IO).pace, io.address, io.subflow, rate, window)


@function
def timer(io: Io, number: int, at_ns: int) -> None:
    """Calls ``on_timer(number)`` of the subflow at ``at_ns``; a time in the past is now. ``number`` is below 2^24."""
    _timer(_at(io.address, IO).timer, io.address, number << 8 | io.subflow, max(at_ns, io.now_ns))


@function
def random(io: Io) -> float:
    """A random number from 0 to 1, of the flow's own stream."""
    return float(_random(_at(io.address, IO).random, io.address))


class _Table(ctypes.Structure):
    """The table of subak_scheme.h."""

    _fields_ = (
        *[(name, ctypes.c_uint32) for name in ("version", "param_count")],
        *[(name, ctypes.c_char_p) for name in ("name", "about", "paper")],
        ("params", ctypes.c_void_p),
        *[(name, ctypes.c_char_p) for name in ("queue", "mark", "red_high", "red_most", "links")],
        ("flags", ctypes.c_uint64),
        *[(name, ctypes.c_uint32) for name in ("header_bytes", "ack_header_bytes")],
        *[(name, ctypes.c_uint64) for name in ("rto_min_ns", "rto_max_ns")],
        *[(name, ctypes.c_void_p) for name in ("create", "destroy", "source", "source_free", "on_start", "stamp")],
        *[(name, ctypes.c_void_p) for name in ("on_ack", "on_loss", "on_timer", "on_message", "on_weight")],
        *[(name, ctypes.c_void_p) for name in ("on_reroute", "on_finish", "hop", "hop_free")],
        *[(name, ctypes.c_void_p) for name in ("hop_on_start", "hop_on_enqueue", "hop_on_dequeue")],
        *[(name, ctypes.c_void_p) for name in ("hop_on_message", "hop_on_timer", "hop_on_capacity")],
    )


class _Param(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("value", ctypes.c_double),
        ("unit", ctypes.c_char_p),
        ("about", ctypes.c_char_p),
    )


_KEPT: dict[Any, Any] = {}
"""Tables of compiled schemes by their source, with what they point to. Compiled code has no state."""


def _table(cls: type[Scheme], text: loading.Text) -> Any:
    """The table of ``cls``, and what it points to."""
    facts = _facts(cls, text.file)
    params = (_Param * len(cls.params))()
    for place, (name, given) in zip(params, cls.params.items(), strict=True):
        _, value, unit = loading.param(cls, name, given, text.file)
        if isinstance(unit, list) or unit == "flag" or isinstance(value, str):
            raise InputError(text.file, f"params.{name}", "a compiled scheme has numbers alone", "give a number")
        place.name, place.value, place.unit = name.encode(), value, unit.encode()
    hooks = _compiled(cls, text)
    table = _Table(
        version=VERSION,
        param_count=len(params),
        params=ctypes.addressof(params),
        destroy=ctypes.cast(_free, ctypes.c_void_p).value,
        source_free=ctypes.cast(_free, ctypes.c_void_p).value,
        **facts,
        **{name: hook.address for name, hook in hooks.items()},
    )
    return table, params, hooks


def _facts(cls: type[Scheme], file: str) -> dict[str, Any]:
    """Fields of the table but for its functions and parameters."""
    for name in dir(scheme.Scheme):
        known = ("params", "queue", "recovery", "header_bytes", "ack_header_bytes", "paper")
        if not name.startswith("_") and name not in known and getattr(cls, name) is not getattr(scheme.Scheme, name):
            raise InputError(file, f"{cls.__name__}.{name}", "a compiled scheme cannot set it", "leave it away")
    for name in vars(cls):
        if name.startswith("on_") and name not in HOOKS:
            hint = f"hooks are {', '.join(HOOKS)}"
            raise InputError(file, cls.__name__, f"a compiled scheme has no hook {name}", hint)
    plain = scheme.Recovery()
    if any(getattr(cls.recovery, name) != getattr(plain, name) for name in ("reorder", "probe", "go_back")):
        raise InputError(file, "recovery", "a compiled scheme sets rto_min and rto_max alone", "leave the others away")
    made = cls()
    for name, given in cls.params.items():
        setattr(made, name, loading.param(cls, name, given, file)[1])
    facts = loading.facts(made, file)
    mark = facts.get("mark")
    if facts["queue"] != "Fifo" or (mark and mark[0] not in cls.params):
        raise InputError(file, "queue", "a compiled scheme has a Fifo", 'name its mark: subak.Fifo(mark="k")')
    about = (cls.__doc__ if cls.__doc__ != Scheme.__doc__ else None) or "a scheme of the user's, compiled"
    return {
        "name": str(getattr(cls, "name", cls.__name__.lower())).encode(),
        "about": about.strip().splitlines()[0].encode(),
        "paper": (str(cls.paper) or "none").encode(),
        "mark": mark[0].encode() if mark else None,
        **{name: facts[name] for name in ("header_bytes", "ack_header_bytes", "rto_min_ns", "rto_max_ns")},
    }


def _compiled(cls: type[Scheme], text: loading.Text) -> dict[str, Any]:
    """Functions of the table by name, compiled from the hooks that ``cls`` defines."""
    kinds = {float: "f8", int: "i8", bool: "?"}
    for name, kind in cls.state.items():
        if kind not in kinds or name in cls.params or name == "subflow":
            what = f"it is {kind!r}" if kind not in kinds else "there is a parameter of that name"
            raise InputError(text.file, f"state.{name}", what, "give float, int or bool by a name of its own")
    fields = [(name, "f8") for name in cls.params]
    fields += [("subflow", "i8"), *((name, kinds[kind]) for name, kind in cls.state.items())]
    one = np.dtype(fields, align=True)
    params, size, path_size = len(cls.params), one.itemsize, PATH.itemsize
    u64, u32, calloc = types.uint64, types.uint32, _calloc
    hooks = {name: _hook(cls, name) for name in HOOKS}
    begin, on_start, on_ack, on_loss, on_timer, on_reroute = (hook or _nothing for hook in hooks.values())
    made: dict[str, Any] = {}

    @function
    def numbers(address):
        return numba.carray(_pointer(address), params, np.float64)

    @function
    def of(source, subflow):
        return _at(np.uint64(source + np.uint64(8 + subflow * size)), one)

    @function
    def io_of(io, subflow):
        return Io(io, _at(io, IO).now_ns, int(subflow))

    def create(given):
        kept = np.uint64(calloc(8, params + 1))
        if kept != 0:
            numbers(kept)[:] = numbers(given)
        return kept

    def source(scheme, flow):
        shown = _at(flow, FLOW)
        kept = np.uint64(calloc(1, 8 + shown.subflows * size))
        if kept == 0:
            return kept
        numba.carray(_pointer(kept), 1, np.int64)[0] = shown.subflows
        for k in range(shown.subflows):
            self = of(kept, k)
            numbers(np.uint64(kept + np.uint64(8 + k * size)))[:] = numbers(scheme)
            self.subflow = k
            begin(self, shown, _at(np.uint64(shown.paths + np.uint64(k * path_size)), PATH))
        return kept

    def start(source, io):
        for k in range(numba.carray(_pointer(source), 1, np.int64)[0]):
            on_start(of(source, k), io_of(io, k))

    def ack(source, io, ack):
        shown = _at(ack, ACK)
        on_ack(of(source, shown.subflow), io_of(io, shown.subflow), shown)

    def loss(source, io, loss):
        shown = _at(loss, LOSS)
        on_loss(of(source, shown.subflow), io_of(io, shown.subflow), shown)

    def fired(source, io, number):
        on_timer(of(source, number & 255), io_of(io, number & 255), number >> 8)

    def reroute(source, io, subflow, path):
        on_reroute(of(source, subflow), io_of(io, subflow), _at(path, PATH))

    void = types.void
    for name, code, signature, is_there in (
        ("create", create, u64(u64), True),
        ("source", source, u64(u64, u64), True),
        ("on_start", start, void(u64, u64), hooks["on_start"]),
        ("on_ack", ack, void(u64, u64, u64), hooks["on_ack"]),
        ("on_loss", loss, void(u64, u64, u64), hooks["on_loss"]),
        ("on_timer", fired, void(u64, u64, u32), hooks["on_timer"]),
        ("on_reroute", reroute, void(u64, u64, u32, u64), hooks["on_reroute"]),
    ):
        if not is_there:
            continue
        try:
            made[name] = numba.cfunc(signature, error_model="numpy")(code)
        except Exception as error:
            hook = "begin" if name == "source" else name
            raise InputError(text.file, f"{cls.__name__}.{hook}", _line(error, text.file), "") from None
    return made


@function
def _nothing(*_args: Any) -> None:
    pass


def _hook(cls: type[Scheme], name: str) -> Callable[..., Any] | None:
    hook = getattr(cls, name, None)
    return hook and numba.njit(error_model="numpy")(hook)


def _line(error: Exception, file: str) -> str:
    """What numba does not compile, and its line of the file."""
    if isinstance(error, KeyError):
        return f"there is no field {error}; name it in state"
    lines = [line.strip() for line in str(error).splitlines()]
    noise = ("Failed in", "During:", "Overload", "-", ">")
    said = next((one for one in lines if one and not one.startswith(noise)), type(error).__name__)
    found = re.findall(rf'File "{re.escape(file)}", line (\d+)', str(error))
    return f"numba cannot compile it: {said}" + (f" ({PurePath(file).name}, line {found[-1]})" if found else "")
