// Plays the network of a run: one picture a scheme, all at the same time.
"use strict";
(() => {
  const told = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg", STEPS = 8, LARGEST = 16;
  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  const place = Object.fromEntries(told.nodes.map((node) => [node.id, node]));
  const most = Math.max(1, ...told.schemes.map((scheme) => Math.max(...scheme.queue.map((frame) => Math.max(...frame)))));
  const size = (bytes) => bytes >= 1e6 ? `${(bytes / 1e6).toPrecision(3)} MB` : bytes >= 1e3 ? `${(bytes / 1e3).toPrecision(3)} kB` : `${bytes} B`;
  const rate = (bps) => bps >= 1e9 ? `${(bps / 1e9).toPrecision(3)} Gb/s` : `${(bps / 1e6).toPrecision(3)} Mb/s`;

  const heat = document.getElementById("heat");
  for (let step = 0; step < STEPS; step++) heat.append(Object.assign(document.createElement("i"), { className: `h${step}` }));
  heat.append(`100%. The largest disc: ${size(most)}.`);

  const wires = new Map();
  told.links.forEach((link, i) => {
    const key = [link.from, link.to].sort().join("\n");
    if (!wires.has(key)) wires.set(key, { a: place[link.from], b: place[link.to], links: [] });
    wires.get(key).links.push(i);
  });
  const stages = told.schemes.map((scheme) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    figure.append(caption);
    document.getElementById("stage").append(figure);
    const svg = make("svg", { viewBox: `0 0 ${told.width} ${told.height}`, class: "net", role: "img", "aria-label": scheme.label }, figure);
    const lines = [...wires.values()].map(({ a, b, links }) => {
      const line = make("line", { class: "wire hot", x1: a.x, y1: a.y, x2: b.x, y2: b.y }, svg);
      return { line, links, said: make("title", {}, line) };
    });
    for (const node of told.nodes) {
      const dot = node.kind === "host"
        ? make("circle", { class: "host", cx: node.x, cy: node.y, r: told.nodes.length > 60 ? 2 : 4 }, svg)
        : make("rect", { class: "switch", x: node.x - 4, y: node.y - 3, width: 8, height: 6 }, svg);
      make("title", {}, dot).textContent = node.id;
    }
    const discs = told.links.map((link) => {
      const [from, to] = [place[link.from], place[link.to]], far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
      const near = Math.min(12, far / 3) / far;
      const disc = make("circle", { class: "queue", cx: from.x + (to.x - from.x) * near, cy: from.y + (to.y - from.y) * near, r: 0 }, svg);
      return { disc, said: make("title", {}, disc) };
    });
    return { scheme, caption, lines, discs };
  });

  // All schemes are at one time: that of the one with the most frames.
  const times = told.schemes.reduce((longest, scheme) => scheme.times.length > longest.length ? scheme.times : longest, []);
  const slider = document.getElementById("time"), now = document.getElementById("now"), fault = document.getElementById("fault");
  slider.max = times.length - 1;
  const show = (frame) => {
    const time = times[frame];
    now.textContent = time >= 1 ? `${time.toFixed(3)} s` : `${(time * 1e3).toFixed(3)} ms`;
    fault.textContent = told.faults.filter((one) => one.from <= time && time <= one.to).map((one) => one.said).join("; ") || "\u00a0";
    for (const { scheme, caption, lines, discs } of stages) {
      let at = scheme.times.findIndex((t) => t >= time);
      if (at < 0) at = scheme.times.length - 1;
      const load = scheme.load[at], queue = scheme.queue[at];
      const more = scheme.rate ? `: ${scheme.flows[at]} flows, ${rate(scheme.rate[at])}` : "";
      caption.textContent = scheme.label + more;
      for (const { line, links, said } of lines) {
        const busiest = Math.max(...links.map((i) => load[i]));
        line.setAttribute("class", `wire hot h${Math.min(Math.floor((busiest / 100) * STEPS), STEPS - 1)}`);
        said.textContent = links.map((i) => `${told.links[i].id} ${load[i]}%`).join("; ");
      }
      discs.forEach(({ disc, said }, i) => {
        disc.setAttribute("r", queue[i] ? Math.max(1, LARGEST * Math.sqrt(queue[i] / most)).toFixed(1) : 0);
        said.textContent = `${told.links[i].id}: ${size(queue[i])}`;
      });
    }
  };
  slider.addEventListener("input", () => show(Number(slider.value)));

  // At speed 1 the whole takes twenty seconds.
  const button = document.getElementById("play"), WHOLE_MS = 20000;
  let playing = false, last = 0, exact = 0;
  const step = (stamp) => {
    if (!playing) return;
    exact += ((stamp - last) / WHOLE_MS) * times.length * Number(document.getElementById("speed").value);
    last = stamp;
    if (exact >= times.length - 1) { exact = times.length - 1; stop(); }
    slider.value = Math.floor(exact);
    show(Number(slider.value));
    requestAnimationFrame(step);
  };
  const stop = () => { playing = false; button.textContent = "Play"; };
  button.addEventListener("click", () => {
    if (playing) return stop();
    playing = true;
    button.textContent = "Pause";
    exact = Number(slider.value) >= times.length - 1 ? 0 : Number(slider.value);
    last = performance.now();
    requestAnimationFrame(step);
  });
  const asked = new URLSearchParams(location.hash.slice(1)).get("frame");
  if (asked !== null) slider.value = Math.min(Number(asked) || 0, times.length - 1);
  show(Number(slider.value));
})();
