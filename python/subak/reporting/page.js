// What the page can do beyond being read: choose schemes and sizes, zoom into a chart, read values. Without it all is there.
"use strict";
(() => {
  const LEFT = 70, RIGHT = 448, TOP = 10, BOTTOM = 244, SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };

  // Schemes: a legend's names are switches for the whole run.
  const off = new Set();
  const choose = (name) => {
    if (!off.delete(name)) off.add(name);
    for (const element of document.querySelectorAll("[data-name]")) element.classList.toggle("off", off.has(element.dataset.name));
    for (const element of document.querySelectorAll(".legend [data-name]")) element.setAttribute("aria-pressed", !off.has(element.dataset.name));
  };
  for (const legend of document.querySelectorAll(".legend")) {
    legend.classList.add("live");
    for (const item of legend.querySelectorAll("[data-name]")) {
      Object.assign(item, { tabIndex: 0, title: "Show or hide it in every chart" });
      item.setAttribute("role", "button");
      item.setAttribute("aria-pressed", "true");
      item.addEventListener("click", () => choose(item.dataset.name));
      item.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(item.dataset.name); }
      });
    }
  }

  // Choices: of the charts that are one each of a few, one is shown.
  for (const section of document.querySelectorAll("section")) {
    const figures = [...section.querySelectorAll("figure[data-choice]")];
    const choices = [...new Set(figures.map((figure) => figure.dataset.choice))];
    if (choices.length < 2) continue;
    const bar = document.createElement("div");
    bar.className = "choose";
    const buttons = choices.map((choice) => {
      const button = document.createElement("button");
      button.textContent = choice;
      button.addEventListener("click", () => show(choice));
      bar.append(button);
      return button;
    });
    const show = (wanted) => {
      for (const figure of figures) figure.hidden = figure.dataset.choice !== wanted;
      for (const button of buttons) button.setAttribute("aria-pressed", button.textContent === wanted);
    };
    section.querySelector(".legend, .charts").before(bar);
    show(choices[0]);
  }

  // A number with an SI prefix, as the page's own axes have it.
  const short = (value) => {
    if (value === 0 || !Number.isFinite(value)) return "0";
    const size = Math.abs(value);
    for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= factor * 0.9995) return `${Number((value / factor).toPrecision(3))}${prefix}`;
    }
    return size >= 1e-3 ? `${Number(value.toPrecision(3))}` : value.toExponential(0);
  };

  class Axis {
    constructor(about, begin, end) {
      Object.assign(this, { ...about, begin, end });
      this.turn = about.log ? Math.log10 : (value) => value;
      this.back = about.log ? (value) => 10 ** value : (value) => value;
    }
    at(value) {
      const [low, high] = [this.turn(this.low), this.turn(this.high)];
      return this.begin + ((this.turn(value) - low) / (high - low)) * (this.end - this.begin);
    }
    value(place) {
      const [low, high] = [this.turn(this.low), this.turn(this.high)];
      return this.back(low + ((place - this.begin) / (this.end - this.begin)) * (high - low));
    }
    ticks() {
      if (this.log && this.high / this.low > 20) {
        const ticks = [];
        for (let power = Math.floor(Math.log10(this.low)); power <= Math.log10(this.high); power++) {
          for (const m of this.high / this.low > 2000 ? [1] : [1, 2, 5]) ticks.push(m * 10 ** power);
        }
        return ticks.filter((tick) => tick >= this.low && tick <= this.high);
      }
      const raw = (this.high - this.low) / 5, base = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 2.5, 5, 10].map((m) => m * base).find((m) => m >= raw);
      const ticks = [];
      for (let k = Math.ceil(this.low / step); k * step <= this.high; k++) ticks.push(k * step);
      return ticks;
    }
  }

  let clips = 0;
  for (const svg of document.querySelectorAll("svg[data-axes]")) {
    const about = JSON.parse(svg.dataset.axes);
    const first = { x: new Axis(about.x, LEFT, RIGHT), y: new Axis(about.y, BOTTOM, TOP) };
    let now = first;
    const plot = svg.querySelector(".plot"), grid = svg.querySelector(".back"), whole = grid.innerHTML;
    const labels = [...grid.querySelectorAll(".label")].map((label) => label.outerHTML).join("");
    const clip = make("clipPath", { id: `clip${clips++}` }, svg);
    make("rect", { x: LEFT - 6, y: TOP - 6, width: RIGHT - LEFT + 12, height: BOTTOM - TOP + 12 }, clip);
    svg.classList.add("live");

    // Where everything stands at first, so that each view is drawn from there.
    const curves = [...plot.querySelectorAll("polyline")].map((line) => ({
      line, name: line.closest("[data-name]").dataset.name,
      points: line.getAttribute("points").split(" ").map((pair) => pair.split(",").map(Number)),
    }));
    const number = (element, key) => Number(element.getAttribute(key));
    const sticks = [...plot.querySelectorAll("line")].map((line) => ({ line, x: number(line, "x1"), y: [number(line, "y1"), number(line, "y2")] }));
    const spans = [...plot.querySelectorAll("rect.span")].map((rect) => ({ rect, x: number(rect, "x"), width: number(rect, "width") }));
    const dots = [...plot.querySelectorAll(".mark, .series .pt")].map((dot) => {
      const centre = dot.querySelector("circle") ?? dot, box = centre.getBBox();
      return { dot, x: box.x + box.width / 2, y: box.y + box.height / 2 };
    });
    const moved = (axis, place) => now[axis].at(first[axis].value(place));

    const redraw = () => {
      for (const { line, points } of curves) line.setAttribute("points", points.map(([x, y]) => `${moved("x", x).toFixed(1)},${moved("y", y).toFixed(1)}`).join(" "));
      for (const { line, x, y } of sticks) {
        for (const [key, value] of Object.entries({ x1: moved("x", x), x2: moved("x", x), y1: moved("y", y[0]), y2: moved("y", y[1]) })) line.setAttribute(key, value);
      }
      for (const { rect, x, width } of spans) {
        rect.setAttribute("x", moved("x", x));
        rect.setAttribute("width", Math.max(moved("x", x + width) - moved("x", x), 1.5));
      }
      for (const { dot, x, y } of dots) dot.setAttribute("transform", `translate(${moved("x", x) - x} ${moved("y", y) - y})`);
      if (now === first) {
        grid.innerHTML = whole;
        plot.removeAttribute("clip-path");
        return;
      }
      plot.setAttribute("clip-path", `url(#${clip.id})`);
      let drawn = "";
      for (const tick of now.y.ticks()) {
        const at = now.y.at(tick);
        drawn += `<line class="grid" x1="${LEFT}" y1="${at}" x2="${RIGHT}" y2="${at}"/><text x="${LEFT - 6}" y="${at + 3.8}" text-anchor="end">${short(tick)}</text>`;
      }
      for (const tick of now.x.ticks()) {
        const at = now.x.at(tick);
        drawn += `<line class="tick" x1="${at}" y1="${BOTTOM}" x2="${at}" y2="${BOTTOM + 4}"/><text x="${at}" y="${BOTTOM + 19}" text-anchor="middle">${short(tick)}</text>`;
      }
      grid.innerHTML = `${drawn}<line class="axis" x1="${LEFT}" y1="${BOTTOM}" x2="${RIGHT}" y2="${BOTTOM}"/>${labels}`;
    };

    const place = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [Math.min(Math.max(point.x, LEFT), RIGHT), Math.min(Math.max(point.y, TOP), BOTTOM)];
    };
    let from = null, brush = null;
    const mark = make("g", { "pointer-events": "none" }, svg);

    const read = ([x, y]) => {
      mark.replaceChildren();
      let nearest = null;
      for (const { line, name, points } of curves) {
        if (line.closest(".off")) continue;
        for (const [a, b] of points) {
          const [c, d] = [moved("x", a), moved("y", b)];
          const far = Math.hypot(c - x, (d - y) / 2);
          if (c >= LEFT - 1 && c <= RIGHT + 1 && d >= TOP - 1 && d <= BOTTOM + 1 && (!nearest || far < nearest.far)) nearest = { far, name, x: c, y: d };
        }
      }
      if (!nearest || nearest.far > 40) return;
      make("line", { class: "cursor", x1: nearest.x, y1: TOP, x2: nearest.x, y2: BOTTOM }, mark);
      make("circle", { cx: nearest.x, cy: nearest.y, r: 4, fill: "none", stroke: "currentColor" }, mark);
      const right = nearest.x > (LEFT + RIGHT) / 2;
      const text = make("text", { class: "readout", x: nearest.x + (right ? -8 : 8), y: Math.max(nearest.y - 10, TOP + 12), "text-anchor": right ? "end" : "start" }, mark);
      text.textContent = `${nearest.name}: ${short(now.y.value(nearest.y))} at ${short(now.x.value(nearest.x))}`;
    };

    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || about.x.named) return;
      from = place(event);
      brush = make("rect", { class: "brush", x: from[0], y: from[1], width: 0, height: 0 }, svg);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const to = place(event);
      if (!from) {
        if (!about.x.named) read(to);
        return;
      }
      for (const [key, value] of Object.entries({
        x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]),
      })) brush.setAttribute(key, value);
    });
    svg.addEventListener("pointerup", (event) => {
      if (!from) return;
      const to = place(event), [width, height] = [Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])];
      brush.remove();
      const start = from;
      from = null;
      if (width < 8) return;
      const part = (axis, a, b) => {
        const ends = [now[axis].value(a), now[axis].value(b)].sort((p, q) => p - q);
        return new Axis({ ...now[axis], low: ends[0], high: ends[1] }, now[axis].begin, now[axis].end);
      };
      now = { x: part("x", start[0], to[0]), y: height < 8 ? now.y : part("y", start[1], to[1]) };
      redraw();
    });
    svg.addEventListener("pointerleave", () => mark.replaceChildren());
    svg.addEventListener("dblclick", () => { now = first; redraw(); });
    const title = make("title", {}, svg);
    title.textContent = about.x.named ? "" : "Drag to zoom in, double click to zoom out";
  }
})();
