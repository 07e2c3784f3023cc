// Text that is cut at the edge of its place: the whole of it is shown while the pointer is over it.

/** Shows the whole of each cut text that the pointer enters, as its `title`. */
export function startCutText(): void {
  document.addEventListener("pointerover", ({ target }) => {
    if (!(target instanceof Element)) return;
    const cut = findCut(target);
    if (cut === undefined || cut.closest("[title]") !== null) return;
    cut.title = cut.innerText;
    // Removed again: the text may change, and a later one may fit.
    cut.addEventListener("pointerleave", () => cut.removeAttribute("title"), { once: true });
  });
}

/** The nearest element that cuts its text, beginning at `start`. */
function findCut(start: Element): HTMLElement | undefined {
  for (let each: Element | null = start; each !== null; each = each.parentElement) {
    if (
      each instanceof HTMLElement &&
      each.scrollWidth > each.clientWidth &&
      getComputedStyle(each).textOverflow === "ellipsis"
    ) {
      return each;
    }
  }
  return undefined;
}
