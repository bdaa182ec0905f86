// The network, its flows and what the allocator does, as it goes. State comes every half second; nothing is sent back.
"use strict";

const EVERY_MS = 500;
const KEPT = 120; // A minute.
const MOST_ROWS = 60;
const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");

let network = null; // nodes, links, hosts, places
let state = null;
let hovered = null;
const history = new Map(); // flow -> rates, newest last
let turn = 0;

const COLOURS = ["--ink", "--soft", "--low", "--mid", "--full", "--down"];
let palette = {}; // Asked for once a frame: the browser's theme may change.
const colour = (name) => palette[name];

async function ask() {
  const query = new URLSearchParams();
  if (token) query.set("token", token);
  if (!network) query.set("network", "1");
  const answer = await fetch("state.json?" + query);
  if (!answer.ok) throw new Error(await answer.text());
  const told = await answer.json();
  if (told.nodes) {
    if (network?.turn !== told.network) history.clear();
    network = { nodes: told.nodes, links: told.links, hosts: told.hosts, turn: told.network };
    network.places = places(network);
  } else if (told.network !== network.turn) {
    network = null; // It has changed: all of it comes with the next answer.
    return;
  }
  state = told;
  remember();
  draw();
}

function remember() {
  turn += 1;
  for (const [from, to, flowlet, bps] of state.flows) {
    const key = from + ":" + flowlet;
    let kept = history.get(key);
    if (!kept) history.set(key, (kept = { rates: [], turn: 0, to }));
    kept.rates.push(bps);
    if (kept.rates.length > KEPT) kept.rates.shift();
    kept.turn = turn;
  }
  for (const [key, kept] of history) if (turn - kept.turn > 4) history.delete(key);
}

// Hosts stand at the bottom, each switch one row above what it is nearest to; rows keep neighbours together.
function places({ nodes, links }) {
  const near = nodes.map(() => []);
  for (const [a, b] of links) if (a !== null && b !== null) { near[a].push(b); near[b].push(a); }
  const row = nodes.map(([, isHost]) => (isHost ? 0 : -1));
  let edge = nodes.flatMap(([, isHost], k) => (isHost ? [k] : []));
  while (edge.length) {
    const next = [];
    for (const node of edge) for (const other of near[node]) if (row[other] < 0) { row[other] = row[node] + 1; next.push(other); }
    edge = next;
  }
  const rows = [];
  row.forEach((r, k) => (rows[Math.max(r, 0)] ??= []).push(k));
  const x = new Float64Array(nodes.length);
  const top = rows[rows.length - 1] ?? [];
  top.forEach((node, k) => (x[node] = (k + 0.5) / top.length));
  for (let r = rows.length - 2; r >= 0; r--) {
    const mean = (node) => {
      const above = near[node].filter((other) => row[other] === r + 1);
      return above.length ? above.reduce((sum, other) => sum + x[other], 0) / above.length : 0.5;
    };
    const order = rows[r].map((node) => [mean(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    order.forEach(([, node], k) => (x[node] = (k + 0.5) / order.length));
  }
  const height = Math.max(rows.length - 1, 1);
  return nodes.map((_, k) => [x[k], 1 - Math.max(row[k], 0) / height]);
}

function mix(load) {
  return colour(load < 0.35 ? "--low" : load < 0.8 ? "--mid" : "--full");
}

function at(node, width, height) {
  const [x, y] = network.places[node];
  return [10 + x * (width - 20), 22 + y * (height - 40)];
}

function drawNetwork() {
  const canvas = $("network");
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio)) { canvas.width = width * ratio; canvas.height = height * ratio; }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const wanted = $("search").value.trim();
  // By colour, so that each is set once: idle links first, full ones over them.
  const groups = new Map();
  network.links.forEach(([a, b], k) => {
    if (a === null || b === null) return;
    const capacity = state.capacity[k];
    const load = capacity > 0 ? (state.load[k] || 0) / capacity : -1;
    const key = load < 0 ? "down" : mix(load);
    (groups.get(key) ?? groups.set(key, []).get(key)).push([a, b]);
  });
  const order = ["--low", "--mid", "--full"].map(colour).concat("down");
  for (const key of order.filter((one) => groups.has(one))) {
    pen.beginPath();
    pen.setLineDash(key === "down" ? [4, 3] : []);
    pen.strokeStyle = key === "down" ? colour("--down") : key;
    pen.lineWidth = key === colour("--low") ? 1 : 2;
    for (const [a, b] of groups.get(key)) {
      const [ax, ay] = at(a, width, height), [bx, by] = at(b, width, height);
      // The two directions stand side by side.
      const shift = a < b ? 1.2 : -1.2;
      pen.moveTo(ax + shift, ay);
      pen.lineTo(bx + shift, by);
    }
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.fillStyle = colour("--ink");
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  const label = network.nodes.length <= 60;
  network.nodes.forEach(([name, isHost], k) => {
    const [x, y] = at(k, width, height);
    const found = wanted && name.includes(wanted);
    pen.beginPath();
    pen.arc(x, y, found ? 5 : isHost ? 2 : 4, 0, 7);
    pen.fill();
    if (found || label) pen.fillText(name, x, isHost ? y + 13 : y - 7);
  });
}

function rate(bps) {
  return (bps / 1e6).toLocaleString("en", { maximumFractionDigits: bps < 1e8 ? 2 : 0 });
}

function drawFlows() {
  const wanted = $("search").value.trim();
  const name = (k) => network.hosts[k] ?? "?";
  let flows = state.flows;
  if (wanted) flows = flows.filter(([from, to]) => name(from).includes(wanted) || name(to).includes(wanted));
  $("count").textContent = `${flows.length.toLocaleString("en")}${flows.length > MOST_ROWS ? `, the ${MOST_ROWS} largest are shown` : ""}`;
  const shown = [...flows].sort((a, b) => b[3] - a[3] || a[0] - b[0] || a[2] - b[2]).slice(0, MOST_ROWS);
  const body = $("flows");
  while (body.rows.length > shown.length) body.deleteRow(-1);
  while (body.rows.length < shown.length) {
    const row = body.insertRow();
    for (let k = 0; k < 4; k++) row.insertCell().className = k > 1 ? "n" : "";
    const canvas = document.createElement("canvas");
    canvas.width = 240;
    canvas.height = 36;
    row.insertCell().append(canvas);
  }
  shown.forEach(([from, to, flowlet, bps, weight], k) => {
    const cells = body.rows[k].cells;
    [name(from), name(to), weight, rate(bps)].forEach((text, c) => (cells[c].textContent = text));
    spark(cells[4].firstChild, history.get(from + ":" + flowlet)?.rates ?? []);
  });
}

function spark(canvas, rates) {
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const most = Math.max(...rates, 1);
  pen.beginPath();
  pen.strokeStyle = colour("--soft");
  pen.lineWidth = 2;
  rates.forEach((bps, k) => {
    const x = (KEPT - rates.length + k) * (canvas.width / KEPT);
    pen.lineTo(x, canvas.height - 2 - (bps / most) * (canvas.height - 4));
  });
  pen.stroke();
}

// What a run tells of itself, or what an allocator does.
function figuresOf({ status, counters, figures }) {
  if (figures) return figures.map(([term, value]) => [term, value.toLocaleString("en")]);
  const us = (ns) => (ns === null ? "longer than 30 ms" : `at most ${ns / 1000} us`);
  return [
    ["hosts", `${status.joined} of ${status.hosts} have joined`],
    ["links down", status.down],
    ["iteration, half of them", us(status.iteration_p50_ns)],
    ["iteration, 99 of 100", us(status.iteration_p99_ns)],
    ["iterations left out", counters.skipped],
    ["rates told", counters.updates.toLocaleString("en")],
    ["datagrams", `${counters.received.toLocaleString("en")} in, ${counters.sent.toLocaleString("en")} out`],
    ["not taken", `${counters.forged} forged, ${counters.unknown} unknown, ${counters.limited} too many, ${counters.malformed} malformed, ${counters.stale} stale`],
  ];
}

function drawFigures() {
  const { status } = state;
  const figures = figuresOf(state);
  $("subject").textContent = state.figures ? "Run" : "Allocator";
  $("figures").replaceChildren(...figures.flatMap(([term, text]) => [element("dt", term), element("dd", text)]));
  const events = state.events.slice(-50).reverse();
  $("events").replaceChildren(...events.map(([ms, kind, what]) => {
    const item = document.createElement("li");
    item.append(element("time", new Date(ms).toLocaleTimeString("en-GB")), `${kind} ${what}`);
    return item;
  }));
  const flows = `${status.flowlets.toLocaleString("en")} flows`;
  if (status.says) return ($("state").textContent = `${status.says}; ${flows}`);
  const says = status.serving ? (status.holding_back ? "holds rates back" : "serves") : "stands by";
  $("state").textContent = `${says}; ${flows}, up ${Math.round(status.up_s)} s`;
}

function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function drawHover() {
  if (hovered === null || !state) return ($("hover").textContent = "");
  const [, , id] = network.links[hovered];
  const load = state.load[hovered] || 0, capacity = state.capacity[hovered];
  const [a, b] = network.links[hovered].map((k) => network.nodes[k]?.[0] ?? "?");
  $("hover").textContent = capacity > 0 ? `${id}: ${a} to ${b}, ${rate(load)} of ${rate(capacity)} Mb/s` : `${id}: ${a} to ${b}, down`;
}

function draw() {
  if (!state || !network) return;
  const style = getComputedStyle(document.documentElement);
  palette = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(name).trim()]));
  drawNetwork();
  drawFlows();
  drawFigures();
  drawHover();
}

$("network").addEventListener("mousemove", (event) => {
  if (!network) return;
  const { width, height, left, top } = $("network").getBoundingClientRect();
  const [x, y] = [event.clientX - left, event.clientY - top];
  let best = 8;
  hovered = null;
  network.links.forEach(([a, b], k) => {
    if (a === null || b === null) return;
    const [ax, ay] = at(a, width, height), [bx, by] = at(b, width, height);
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const along = Math.min(Math.max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length ** 2, 0), 1);
    const away = Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)) + (a < b ? (x < ax ? 0.1 : 0) : 0.05);
    if (away < best) [best, hovered] = [away, k];
  });
  drawHover();
});
$("search").addEventListener("input", draw);
window.addEventListener("resize", draw);

async function run() {
  for (;;) {
    try {
      await ask();
    } catch (error) {
      $("state").textContent = `no answer: ${error.message}`;
    }
    await new Promise((go) => setTimeout(go, EVERY_MS));
  }
}
run();
