"""The allocator through its files, control socket and live page: reloads, requests, and slow or unauthorized
clients."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from typing import Any

import pytest
from allocator_endpoint import (
    SHARE,
    Make,
    graph,
    near,
    run,
    star,
    told,
)
from conftest import ROOT


def test_files_that_are_none(two: Any) -> None:
    daemon, a, b, f, _ = two
    network = daemon.folder / "network.json"

    def put(kind: str) -> None:
        network.rmdir() if network.is_dir() else network.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(network)
        elif kind == "folder":
            network.mkdir()
        elif kind == "endless":
            network.symlink_to("/dev/zero")
        elif kind == "cut":
            network.write_text(json.dumps(daemon.network)[:100])

    says = {"cut": "EOF while parsing", "nothing": "No such file", "pipe": "no ordinary file"}
    says |= {"folder": "no ordinary file", "endless": "no ordinary file"}
    for kind, words in says.items():
        before = len(daemon.logged())
        put(kind)
        told([a, b], lambda before=before, words=words: words in daemon.logged()[before:])
        assert near(a.rates[f], SHARE * 5e9)
    put("nothing")
    daemon.network = star([10e9, 10e9, 1e9, 10e9])
    daemon.write()
    told([a, b], lambda: near(a.rates[f], SHARE * 0.5e9))


def test_a_changed_configuration_holds_or_is_refused(two: Any) -> None:
    daemon, a, b, f, _ = two
    daemon.write(reserve=0.1, interval="400us")
    told([a, b], lambda: near(a.rates[f], (1 - 0.01 - 0.1) * 5e9))
    assert daemon.ask("status")["interval_ns"] == 400_000
    # Tenants are identified by name, not by their order in the file.
    (daemon.folder / "new").write_text("cd" * 32)
    daemon.keys["new"] = "cd" * 32
    daemon.tenants = [{"name": "new", "hosts": ["h3"]}, {"name": "all", "hosts": ["h0", "h1", "h2"], "weight": 1}]
    daemon.write(reserve=0.2)
    told([a, b], lambda: near(a.rates[f], (1 - 0.01 - 0.2) * 5e9))
    assert daemon.ask("flows")[0]["rate_bps"] > 0
    for key, value in (("lease", "600ms"), ("listen", None)):
        before = len(daemon.logged())
        daemon.port += key == "listen"
        daemon.write(**({key: value} if value else {}))
        told([a, b], lambda before=before: "change with a new start only" in daemon.logged()[before:])
        daemon.port -= key == "listen"
        daemon.more["lease"] = "300ms"
    assert daemon.ask("status")["lease_ns"] == 300_000_000
    assert near(a.rates[f], (1 - 0.01 - 0.2) * 5e9)


def test_links_that_go_down_and_away(make: Make) -> None:
    edges = "h0-l0 h1-l0 h2-l1 h3-l1 l0-s0 l0-s1 l1-s0 l1-s1"
    daemon = make(graph("h0 h1 h2 h3", "l0 l1 s0 s1", edges))
    a, b = daemon.endpoint("h0"), daemon.endpoint("h1")
    for path in range(8):
        a.start(daemon.hosts["h2"], path=path)
    local = b.start(daemon.hosts["h0"])
    total = lambda: sum(a.rates.values())  # noqa: E731
    told([a, b], lambda: near(total(), SHARE * 10e9))
    daemon.ask("link", link="l0->s0", capacity="down")
    run([a, b], 0.3)
    told([a, b], lambda: near(total(), SHARE * 10e9))
    # Without a path the flow's rate is revoked; flows on other paths keep theirs.
    daemon.ask("link", link="l0->s1", capacity="down")
    told([a, b], lambda: total() == 0)
    assert near(b.rates[local], SHARE * 10e9)
    assert all(link["promised_bps"] == 0 for link in daemon.ask("links") if link["link"] == "h0->l0")
    for _ in range(40):
        for capacity in ("up", "down"):
            daemon.ask("link", link="l0->s0", capacity=capacity)
            run([a, b], 0.002)
    daemon.ask("link", link="l0->s0", capacity="2Gbps")
    told([a, b], lambda: near(total(), SHARE * 2e9))
    # The file omits the link, then has it again: the link is then up.
    links = daemon.network["links"]
    daemon.network = daemon.network | {"links": [link for link in links if link["source"] != "l0"]}
    daemon.write()
    told([a, b], lambda: total() == 0)
    daemon.network = daemon.network | {"links": links}
    daemon.write()
    told([a, b], lambda: near(total(), SHARE * 10e9))


def test_check_says_what_is_wrong(make: Make) -> None:
    daemon = make([10e9] * 2, start=False)
    path = daemon.folder / "allocator.toml"
    good = path.read_text()
    assert daemon.check().returncode == 0

    def said(text: str) -> str:
        path.write_text(text)
        done = daemon.check()
        assert done.returncode == 2, done.stdout
        assert "panicked" not in done.stderr
        return done.stderr

    h1 = json.dumps(daemon.hosts["h1"])
    assert "give an IPv4 address" in said(good.replace(h1, '"::1"'))
    assert "give an IPv4 address" in said(good.replace(h1, '"nowhere"'))
    assert "it is of no tenant" in said(good.replace('["h0", "h1"]', '["h0"]'))
    assert "there is no node h9" in said(good.replace('"h1"', '"h9"'))
    assert "is of IPv6" in said(good.replace(f"127.0.0.1:{daemon.port}", f"[::1]:{daemon.port}"))
    standby = 'standby = {{peer = "{}", key = "all"}}\n'
    assert "is this allocator" in said(standby.format(f"127.0.0.1:{daemon.port}") + good)
    assert "is of IPv6" in said(standby.format("[::1]:9") + good)
    (daemon.folder / "token").write_text("\n")
    page = f'"127.0.0.1:{daemon.page}"'
    assert "no token in it" in said(good.replace(page, page + ', token = "token"'))
    for key in ("", "short", "z" * 64):
        (daemon.folder / "all").write_text(key)
        assert "64 hexadecimal digits" in said(good) or "not hexadecimal" in said(good)
    (daemon.folder / "all").unlink()
    os.mkfifo(daemon.folder / "all")
    assert "no ordinary file" in said(good)
    path.write_bytes(b"\xff")
    assert "no UTF-8" in daemon.check().stderr


# Requests of users and programs.


def test_who_says_nothing_keeps_nobody_out(two: Any) -> None:
    daemon, a, b, f, _ = two
    silent: list[socket.socket] = []
    for _ in range(700):
        silent.append(socket.create_connection(("127.0.0.1", daemon.page)))
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(daemon.folder / "control"))
        silent.append(one)
    begun = time.monotonic()
    assert daemon.get("/healthz") == (200, "alive\n")
    assert daemon.ask("status")["serving"]
    # Far below the time limit of a single slow client.
    assert time.monotonic() - begun < 3
    # Slow clients send a byte now and then, or send a request and do not read the response.
    slow = [socket.create_connection(("127.0.0.1", daemon.page)) for _ in range(200)]
    for words in (b"G", b"E", b"T", b" /state.json HTTP/1.1\r\n\r\n"):
        for one in slow:
            with contextlib.suppress(OSError):
                one.sendall(words)
        assert daemon.get("/healthz")[0] == 200
    assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 400
    assert len(os.listdir(f"/proc/{daemon.process.pid}/task")) < 12
    run([a, b], 0.1)
    assert near(a.rates[f], SHARE * 5e9)
    for one in silent + slow:
        one.close()


def test_odd_requests(make: Make) -> None:
    daemon = make([10e9] * 2)

    def said(*parts: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", daemon.page), timeout=10) as line:
            answer = b""
            try:
                for part in parts:
                    line.sendall(part)
                    time.sleep(0.005)
                while part := line.recv(65536):
                    answer += part
            except ConnectionError:
                pass
            return answer.split(b"\r\n")[0]

    get = b"GET /healthz HTTP/1.1\r\n"
    assert said(*(bytes([byte]) for byte in get + b"\r\n")) == b"HTTP/1.1 200 OK"
    for wrong in (
        b"GET /\r\n\r\n",
        os.urandom(500) + b"\r\n\r\n",
        bytes(200),
        b"PRI * HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01",
    ):
        assert said(wrong + b"\r\n\r\n") == b"HTTP/1.1 400 Bad Request", wrong
    for method in (b"POST", b"HEAD", b"OPTIONS", b"DELETE"):
        assert said(method + b" / HTTP/1.1\r\n\r\n") == b"HTTP/1.1 405 Method Not Allowed"
    for path in (b"/../../etc/passwd", b"http://localhost/", b"/page.html", b"/%2e"):
        assert said(b"GET " + path + b" HTTP/1.1\r\n\r\n") == b"HTTP/1.1 404 Not Found"
    for huge in (b"GET /" + b"a" * 10_000_000, get + b"X: y\r\n" * 500_000):
        assert said(huge) in (b"HTTP/1.1 400 Bad Request", b"")
    # A foreign page that reaches this machine under its own host name gets no data.
    for host, code in (("evil.example", 403), ("localhost.evil.example:80", 403), ("", 403)):
        assert said(f"GET /state.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).split()[1] == str(code).encode()
    for host in ("localhost", f"LocalHost:{daemon.page}", "127.0.0.1:1", "[::1]:80", "[::1]"):
        assert said(f"GET /state.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()) == b"HTTP/1.1 200 OK"
    assert daemon.get("/healthz")[0] == 200


def test_the_token_is_asked_for(make: Make) -> None:
    daemon = make([10e9] * 2, start=False)
    (daemon.folder / "token").write_text("sesame\n")
    daemon.write(page={"listen": f"127.0.0.1:{daemon.page}", "token": "token"})
    daemon.start()
    for path in ("/", "/state.json", "/metrics", "/readyz", "/?token=", "/?token=sesam", "/?token=sesame%0a"):
        assert daemon.get(path)[0] == 401, path
    for header in ("Basic sesame", "Bearer", "Bearer x", "Bearer sesame2", "sesame"):
        assert daemon.get("/", headers=f"Authorization: {header}\r\n")[0] == 401, header
    for header in (
        "Authorization: Bearer sesame",
        "authorization: bearer sesame ",
        "Host: x\r\nAuthorization: BEARER sesame",
    ):
        assert daemon.get("/metrics", headers=header + "\r\n")[0] == 200, header
    assert daemon.get("/state.json?network=1&token=sesame")[0] == 200
    assert daemon.get("/healthz")[0] == 200


def test_metrics_are_prometheus_text(two: Any) -> None:
    daemon = two[0]
    code, text = daemon.get("/metrics")
    assert code == 200
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    values: dict[str, float] = {}
    for line in text.splitlines():
        if comment := re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line):
            word, name, rest = comment.groups()
            assert name not in (helped if word == "HELP" else kinds)
            helped.add(name) if word == "HELP" else kinds.update({name: rest})
            continue
        sample = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z]+="[^"\\]*"(?:,[a-z]+="[^"\\]*")*\})? (\S+)', line)
        assert sample, line
        name, labels, value = sample.groups()
        base = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        assert base in kinds
        assert base in helped
        assert name + (labels or "") not in values
        assert float(value) >= 0
        values[name + (labels or "")] = float(value)
    assert set(kinds.values()) == {"counter", "gauge", "histogram"}
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    buckets = [value for name, value in values.items() if "_bucket" in name]
    assert buckets == sorted(buckets)
    assert buckets[-1] == values["subak_iteration_seconds_count"] == values["subak_iterations_total"]
    assert (values["subak_flowlets"], values["subak_joined"], values["subak_serving"]) == (2, 2, 1)
    hosts = [values[f'subak_host_joined{{host="h{k}",tenant="all"}}'] for k in range(4)]
    assert hosts == [1, 1, 0, 0]
    assert values['subak_host_silent_seconds{host="h0",tenant="all"}'] < 60
    assert values['subak_host_lapses_total{host="h0",tenant="all"}'] == 0
    link = daemon.ask("links")[0]["link"]
    assert values[f'subak_link_capacity_bps{{link="{link}"}}'] == 10e9
    assert values[f'subak_link_available_bps{{link="{link}"}}'] == pytest.approx(SHARE * 10e9)
    for name in ("promised_bps", "unscheduled_bps", "lost_bps", "lowered"):
        assert f'subak_link_{name}{{link="{link}"}}' in values
    assert [value for name, value in values.items() if name.startswith("subak_build_info{version=")] == [1]
    assert 1e6 < values["process_resident_memory_bytes"] < 1e9


def test_alerts_and_the_dashboard_use_metrics_that_there_are(two: Any) -> None:
    folder = ROOT / "packages/monitoring"
    rules = (folder / "subak.rules.yml").read_text()
    dashboard = json.loads((folder / "subak.dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = set(re.findall(r"\b(?:subak|process)_[a-z_]+", " ".join([*re.findall("expr: (.*)", rules), *panels])))
    there = set(re.findall(r"^([a-z_]+)", two[0].get("/metrics")[1], re.MULTILINE))
    assert named - there == set()
    assert len(re.findall("- alert:", rules)) == 8
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "rules", folder / "subak.rules.yml"], check=True, capture_output=True)


def test_a_host_that_was_silent_is_named(two: Any) -> None:
    daemon, a, b, *_ = two
    # Only the second endpoint continues.
    told([b], lambda: daemon.ask("counters")["lapsed"] == 1)
    assert "silent: h0" in daemon.logged()
    lapses = {peer["host"]: peer["lapses"] for peer in daemon.ask("peers")}
    assert (lapses["h0"], lapses["h1"]) == (1, 0)
    told([a, b], lambda: daemon.ask("status")["joined"] == 2)
    assert 'subak_host_lapses_total{host="h0",tenant="all"} 1' in daemon.get("/metrics")[1]


def test_garbage_on_the_control_socket(two: Any) -> None:
    daemon = two[0]

    def said(question: bytes) -> Any:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(10)
            line.connect(str(daemon.folder / "control"))
            try:
                line.sendall(question)
                return json.loads(line.makefile("rb").readline() or "null")
            except ConnectionError:
                return None

    questions = [b"\xff\xfe", b"", b"nonsense", b"[]", b"null", b"{}", b'{"ask": 5}', b'{"ask": "x"}', b"[" * 60_000]
    questions += [b'{"ask": "flows", "host": "nobody"}', b'{"ask": "flows", "host": 7}']
    quota, link = (
        b'{"ask": "quota", "tenant": "all", "weight": %s}',
        b'{"ask": "link", "link": "h0->s", "capacity": %s}',
    )
    questions += [quota % weight for weight in (b"0", b"-1", b'"a"', b"1e999")]
    questions += [link % rate for rate in (b"5", b"null", b'""', b'"-1Gbps"', b'"nan"', b'"1e400"', b'"UP"')]
    for question in questions:
        assert "error" in said(question + b"\n"), question
    assert said(b"a" * 5_000_000) is None or "error" in said(b"a" * 5_000_000)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(daemon.folder / "control"))
        line.sendall(b'{"ask": "status"}\n{"ask": "peers"}\n{"ask": "fl')
        answers = line.makefile("rb")
        assert json.loads(answers.readline())["ok"]["serving"]
        assert len(json.loads(answers.readline())["ok"]) == 4
        line.sendall(b'ows"}\n')
        assert len(json.loads(answers.readline())["ok"]) == 2
    assert os.stat(daemon.folder / "control").st_mode & 0o777 == 0o600
