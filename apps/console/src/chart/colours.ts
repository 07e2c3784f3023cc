// Colours of the current theme for canvases.

/** Value of a custom property, such as `--accent`, at an element. */
export function colourOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** Calls `redraw` when the theme changes; returns the end of it. */
export function watchTheme(redraw: () => void): () => void {
  const observer = new MutationObserver(redraw);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}
