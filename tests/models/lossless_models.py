"""Independent models of HPCC, DCQCN and TIMELY, from the papers and from the documentation of the schemes.

A model replays the packets that a sender received, and computes the pacing rate after each of them. The models were
written without knowledge of the simulator's source.
"""

# ruff: noqa: N803, N806
from __future__ import annotations

import bisect
import heapq
import re

import polars as pl

REC = re.compile(r"at_ns: (\d+), sent_bytes: (\d+), queued_bytes: (\d+), bytes_per_ns: ([0-9.e]+)")
HOPS = re.compile(r"hops: (\d+)")


def hpcc(pk, flow, src, *, B, T, eta=0.95, max_stage=5, wai=None, payload=1446, wmin=0.0, u0=1.0):
    """HPCC's windows as (time in ns, bytes on the wire); B in bytes/ns, T in ns."""
    win0 = B * T
    wai = (1 - eta) / 100 * win0 if wai is None else wai
    f = pk.filter(pl.col("flow") == flow)
    data = f.filter(
        (pl.col("packet") == "data") & (pl.col("event") == "enqueue") & (pl.col("src") == src) & (pl.col("hop") == 0)
    ).sort("time_ns")
    st = data["time_ns"].to_list()
    sseg = data["segment"].to_list()
    acks = f.filter((pl.col("packet") == "ack") & (pl.col("event") == "deliver") & (pl.col("way") == "back"))
    W = Wc = win0
    U = u0
    stage = 0
    L = None
    last = None
    out = [(0, W)]
    for r in acks.sort("time_ns", maintain_order=True).iter_rows(named=True):
        h = [(int(a), int(b), int(c), float(d)) for a, b, c, d in REC.findall(r["header"])][
            : int(HOPS.search(r["header"]).group(1))
        ]
        k = bisect.bisect_right(st, r["time_ns"] - 1e-9)  # Packets sent so far.
        nxt = max(sseg[:k]) + 1 if k else 0
        if L is None:
            L = h
            last = nxt
            continue
        u = 0
        tau = 0
        for (t1, s1, q1, b), (t0, s0, q0, _) in zip(h, L, strict=False):
            if t1 == t0:
                continue
            x = min(q1, q0) / (b * T) + (s1 - s0) / (t1 - t0) / b
            if x > u:
                u = x
                tau = t1 - t0
        tau = min(tau, T)
        U = (1 - tau / T) * U + tau / T * u
        upd = r["cumulative"] > last
        if eta <= U or stage >= max_stage:
            W = Wc * eta / U + wai
            ns = 0
        else:
            W = Wc + wai
            ns = stage + 1
        W = min(max(W, wmin), win0)
        if upd:
            Wc = W
            stage = ns
            last = nxt
        L = h
        out.append((r["time_ns"], W))
    return out


def dcqcn_sim(
    pk,
    flow,
    *,
    C,
    g=1 / 256,
    at=1000,
    cut=4000,
    timer=300_000,
    fast=1,
    ai=0.0002,
    hai=0.002,
    rmin=0.0,
    clamp=False,
    end=10**9,
):
    """Rates as (time in ns, bytes/ns) of DCQCN as in HPCC's simulator, from marked ACKs."""
    f = pk.filter(
        (pl.col("flow") == flow)
        & (pl.col("packet") == "ack")
        & (pl.col("event") == "deliver")
        & (pl.col("way") == "back")
    )
    marks = f.filter(pl.col("ecn"))["time_ns"].to_list()
    R = T = C
    out = [(0, R)]
    if not marks:
        return out
    alpha = 1.0
    acnp = False
    dcnp = True
    stage = 0
    t0 = marks[0]
    ev = [(m, 9, "mark") for m in marks[1:]]  # A marked ACK at the time of a tick counts for the next tick.
    ev.append((t0 + at, 1, "alpha"))
    ev.append((t0 + cut, 2, "cut"))
    heapq.heapify(ev)
    tgen = 0
    while ev:
        t, _o, k, *x = heapq.heappop(ev)
        if t > end:
            break
        if k == "mark":
            acnp = dcnp = True
        elif k == "alpha":
            alpha = (1 - g) * alpha + (g if acnp else 0)
            acnp = False
            heapq.heappush(ev, (t + at, 1, "alpha"))
        elif k == "cut":
            heapq.heappush(ev, (t + cut, 2, "cut"))
            if dcnp:
                if clamp or stage != 0:
                    T = R
                R = max(rmin * C, R * (1 - alpha / 2))
                stage = 0
                dcnp = False
                tgen += 1
                heapq.heappush(ev, (t + timer, 1.5, "timer", tgen))
                out.append((t, R))
        else:
            if x[0] != tgen:
                continue
            heapq.heappush(ev, (t + timer, 1.5, "timer", tgen))
            if stage >= fast:
                T = min(C, T + (ai if stage == fast else hai) * C)
            R = (R + T) / 2
            stage += 1
            out.append((t, R))
    return out


def dcqcn_paper(
    pk,
    flow,
    *,
    C,
    g=1 / 256,
    at=55_000,
    timer=55_000,
    counter=10**7,
    fast=5,
    ai=0.001,
    hai=0.005,
    rmin=0.001,
    clamp=True,
    end=10**9,
    payload=1446,
):
    """Rates as (time in ns, bytes/ns) of DCQCN as in its paper: from CNPs, a timer, and a counter of ACKed payload.

    Alpha decreases from the first CNP on. The numbers of earlier expiries determine the phase of increase.
    """
    f = pk.filter(pl.col("flow") == flow)
    cnps = f.filter((pl.col("packet") == "ctl") & (pl.col("event") == "deliver") & (pl.col("way") == "back"))[
        "time_ns"
    ].to_list()
    a = f.filter((pl.col("packet") == "ack") & (pl.col("event") == "deliver") & (pl.col("way") == "back")).sort(
        "time_ns", maintain_order=True
    )
    c = a["cumulative"].to_list()
    sent = [(t, (y - x) * payload) for t, x, y in zip(a["time_ns"].to_list(), [0, *c], c, strict=False)]
    R = T = C
    out = [(0, R)]
    alpha = 1.0
    if not cnps:
        return out
    ev = [(t, 0, "cnp") for t in cnps] + [(t, 1, "sent", b) for t, b in sent if counter]
    heapq.heapify(ev)
    ag = tg = 0
    bt = bb = 0
    by = 0

    def inc(byte=False):
        nonlocal R, T
        before = (bt - (not byte), bb - byte)
        if max(before) < fast:
            d = 0
        elif not counter:
            d = ai if bt == fast + 1 else hai
        elif min(before) > fast:
            d = hai
        else:
            d = ai
        T = min(C, T + d * C)
        R = (R + T) / 2

    while ev:
        t, _o, k, *x = heapq.heappop(ev)
        if t > end:
            break
        if k == "cnp":
            if clamp or bt:
                T = R
            R = max(rmin * C, R * (1 - alpha / 2))
            alpha = (1 - g) * alpha + g
            ag += 1
            tg += 1
            bt = bb = by = 0
            heapq.heappush(ev, (t + at, 2, "alpha", ag))
            heapq.heappush(ev, (t + timer, 3, "timer", tg))
            out.append((t, R))
        elif k == "alpha":
            if x[0] == ag:
                alpha *= 1 - g
                heapq.heappush(ev, (t + at, 2, "alpha", ag))
        elif k == "timer":
            if x[0] == tg:
                bt += 1
                inc()
                out.append((t, R))
                heapq.heappush(ev, (t + timer, 3, "timer", tg))
        else:
            by += x[0]
            if by >= counter:
                by %= counter
                bb += 1
                inc(True)
                out.append((t, R))
    return out


LEFT = re.compile(r"Left\((\d+)\)")


def timely(
    pk,
    flow,
    *,
    C,
    alpha=0.875,
    beta=0.8,
    tl=50_000,
    th=500_000,
    mr=20_000,
    look="segment",
    interval=20_000,
    seg=16_000,
    delta=0.001,
    hai_after=5,
    hai_below=False,
    hai=5,
    rmin=0.001,
    patched=False,
    payload=1446,
):
    f = pk.filter(pl.col("flow") == flow)
    acks = f.filter((pl.col("packet") == "ack") & (pl.col("event") == "deliver") & (pl.col("way") == "back")).sort(
        "time_ns", maintain_order=True
    )
    data = f.filter((pl.col("packet") == "data") & (pl.col("event") == "enqueue") & (pl.col("hop") == 0)).sort(
        "time_ns"
    )
    st = data["time_ns"].to_list()
    sseg = data["segment"].to_list()
    R = C
    d = 0.0
    prev = None
    bytes_ = 0
    lastlook = st[0] if st else None
    n = 0
    out = [(0, R)]
    lastseq = 0
    first = True
    for r in acks.iter_rows(named=True):
        t = r["time_ns"]
        rtt = t - int(LEFT.search(r["header"]).group(1))
        nxt = bisect.bisect_right(st, t - 1e-9)
        nxt = max(sseg[:nxt]) + 1 if nxt else 0
        bytes_ += payload
        if look == "segment":
            if bytes_ < seg or (lastlook is not None and t - lastlook < interval):
                continue
            bytes_ = 0
        else:
            if first:
                first = False
                lastseq = nxt
                prev = rtt
                continue
            if r["cumulative"] <= lastseq:
                continue
            lastseq = nxt
        lastlook = t
        if prev is None:
            prev = rtt
            d = 0
            continue
        d = (1 - alpha) * d + alpha * (rtt - prev)
        prev = rtt
        gr = d / mr
        if rtt < tl:
            if hai_below:
                n += 1
                R += delta * C * (hai if n >= hai_after else 1)
            else:
                n = 0
                R += delta * C
        elif rtt > th:
            n = 0
            R *= 1 - beta * (1 - th / rtt)
        elif patched:
            w = min(1, max(0, 2 * gr + 0.5))
            R = delta * C * (1 - w) + R * (1 - beta * w * (rtt - tl) / tl)
        elif gr <= 0:
            n += 1
            R += delta * C * (hai if n >= hai_after else 1)
        else:
            n = 0
            R *= 1 - beta * gr
        R = min(C, max(rmin * C, R))
        out.append((t, R))
    return out


def compare(out, pace):
    """Largest relative deviation of pacing rates (time, value) and its place, number of rates compared, and number
    of deviations."""
    ts = [o[0] for o in out]
    worst = (0, None, None, None)
    n = 0
    bad = 0
    for t, v in pace:
        i = bisect.bisect_left(ts, t) - 1
        m = out[max(i, 0)][1]
        e = abs(v - m) / max(m, 1e-9)
        n += 1
        bad += e > 1e-3
        if e > worst[0]:
            worst = (e, t, v, m)
    return worst, n, bad
