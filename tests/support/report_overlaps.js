// Pieces of text in charts that lie on each other, and what runs over the right edge.
const boxes = (list) => [...list].map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
const found = [];
for (const svg of document.querySelectorAll("svg[data-axes]")) {
  const texts = boxes(svg.querySelectorAll(".back text"));
  texts.forEach(([a, boxA], i) => texts.slice(i + 1).forEach(([b, boxB]) => meet(boxA, boxB) && found.push(`${a} on ${b}`)));
}
for (const trial of document.querySelectorAll("td, th, figcaption, h1, h2, button")) {
  const box = trial.getBoundingClientRect();
  if (box.width > 0 && !trial.closest("details:not([open])") && box.right > innerWidth + 1) found.push(`off the screen: ${trial.textContent}`);
}
