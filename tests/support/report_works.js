// Schemes hidden and shown again, a choice of sizes, a zoom there and back, a value read.
const found = [];
const live = document.querySelector("section .legend.live [data-name]"), name = live.dataset.name;
const curves = () => [...document.querySelectorAll("svg .series")].filter((g) => g.dataset.name === name && !g.matches(".off")).length;
const before = curves();
live.click();
found.push(before > 0 && curves() === 0);
live.click();
found.push(curves() === before);
const section = document.querySelector(".choose").closest("section"), choices = section.querySelectorAll(".choose button");
const shown = () => [...section.querySelectorAll("figure[data-choice]")].filter((f) => !f.hidden).map((f) => f.dataset.choice);
found.push(new Set(shown()).size === 1 && shown()[0] === "all sizes");
choices[1].click();
found.push(new Set(shown()).size === 1 && shown()[0] === choices[1].textContent);
const svg = [...document.querySelectorAll("svg[data-axes]")].find((s) => !JSON.parse(s.dataset.axes).x.named);
svg.scrollIntoView();
const box = svg.getBoundingClientRect(), at = (x, y) => ({
  clientX: box.left + box.width * x, clientY: box.top + box.height * y, button: 0, pointerId: 1, bubbles: true });
svg.setPointerCapture = () => {};
const ticks = () => [...svg.querySelectorAll(".back text")].map((t) => t.textContent).join();
const whole = ticks(), drawn = svg.querySelector("polyline").getAttribute("points");
for (const [kind, ...place] of [["down", 0.4, 0.3], ["move", 0.7, 0.6], ["up", 0.7, 0.6]]) svg.dispatchEvent(new PointerEvent("pointer" + kind, at(...place)));
found.push(ticks() !== whole && svg.querySelector("polyline").getAttribute("points") !== drawn);
svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
found.push(ticks() === whole && svg.querySelector("polyline").getAttribute("points") === drawn);
const point = svg.querySelector("polyline").getAttribute("points").split(" ").at(-1).split(",").map(Number);
svg.dispatchEvent(new PointerEvent("pointermove", at(point[0] / 460, point[1] / 290)));
found.push(/: .* at /.test(svg.querySelector(".readout")?.textContent ?? ""));
