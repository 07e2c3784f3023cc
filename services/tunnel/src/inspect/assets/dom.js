// Elements of the page. Texts are always text nodes: nothing of a captured request is parsed as HTML.

/** The element with this id; it must exist and be of the class. @template {HTMLElement} T @param {string} id @param {new () => T} kind @returns {T} */
export function find(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
}

/**
 * Creates an element with properties and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Partial<HTMLElementTagNameMap[K]>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function create(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Shows a short message. @param {string} text */
export function announce(text) {
  const toast = find("toast", HTMLParagraphElement);
  toast.textContent = text;
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => {
    toast.textContent = "";
  }, 4_000);
}
/** @type {ReturnType<typeof setTimeout> | undefined} */
let announceTimer;

/** Copies a text. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied`);
  } catch {
    announce(`The browser does not allow copying: ${text.slice(0, 200)}`);
  }
}

/** Class of a status. @param {number} status */
export function classOf(status) {
  if (status === 0 || status >= 500) return "bad";
  if (status >= 400) return "warn";
  return status >= 300 || status < 200 ? "info" : "ok";
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000
    ? `${(bytes / 1_000).toFixed(1)} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** @param {number} ms */
export function formatMs(ms) {
  return ms < 10_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
