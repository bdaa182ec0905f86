// Heads of columns whose words do not each stand on one line.
const found = [];
for (const head of document.querySelectorAll("table.cards thead th")) {
  const text = head.firstChild;
  if (!text || text.nodeType !== Node.TEXT_NODE || head.closest("details:not([open])")) continue;
  for (const word of text.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (range.getClientRects().length > 1) found.push(word[0]);
  }
}
