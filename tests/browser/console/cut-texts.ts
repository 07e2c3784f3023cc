// Texts that a page cuts off.
import type { Page } from "playwright-core";

/** Texts that a box cuts off without an ellipsis or without room for some letters, and those of the ledger that are cut off at all. */
const CUT = `(() => {
  const cut = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.data.trim();
    const parent = node.parentElement;
    if (text === "" || !parent.checkVisibility() || parent.closest(".hidden, .trace") !== null) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const inLedger = parent.closest(".ledger") !== null;
    for (const box of range.getClientRects()) {
      if (box.width === 0) continue;
      for (let outer = parent; outer !== null && outer.tagName !== "MAIN"; outer = outer.parentElement) {
        const style = getComputedStyle(outer);
        if (style.overflowX !== "hidden" && style.overflowX !== "clip") continue;
        const edge = outer.getBoundingClientRect();
        if (box.right <= edge.right + 1 && box.left >= edge.left - 1) continue;
        if (style.textOverflow === "ellipsis" && !inLedger && edge.width >= 32) break;
        cut.push(text);
        break;
      }
    }
  }
  return [...new Set(cut)];
})()`;

/** Finds them in the content of the page. */
export async function findCutTexts(page: Page): Promise<string[]> {
  return (await page.evaluate(CUT)) as string[];
}
