// A row of the tail, filled by text nodes: rows are reused, and payloads are data of strangers.
import { formatTime } from "../format/format.ts";
import type { Message } from "./messages.ts";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
const SHOWN_MAX = 220;

/** Fills a pooled element with a message. */
export function fillRow(
  element: HTMLElement,
  message: Message,
  mark: string,
  isPhone: boolean,
): void {
  const cells = element.children.length === 5 ? element.children : createCells(element);
  setText(cells[0]!, formatTime(message.timestamp, true));
  setText(cells[1]!, String(message.partition));
  setText(cells[2]!, String(message.offset));
  setText(cells[3]!, message.key ?? (isPhone ? "" : "–"));
  const payload = message.payload.slice(0, SHOWN_MAX);
  cells[4]!.replaceChildren(...colour(payload, mark));
}

function createCells(element: HTMLElement): HTMLCollection {
  element.replaceChildren();
  for (const kind of ["tail-time", "tail-part", "tail-offset", "tail-key", "tail-payload"]) {
    const cell = document.createElement("span");
    cell.className = kind;
    cell.setAttribute("role", "gridcell");
    element.append(cell);
  }
  return element.children;
}

function setText(cell: Element, text: string): void {
  if (cell.textContent !== text) cell.textContent = text;
}

function colour(text: string, mark: string): Node[] {
  const parts: Node[] = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > end) parts.push(document.createTextNode(text.slice(end, found.index)));
    const [whole, string, colon] = found;
    parts.push(
      create(string ?? whole, string === undefined ? "js-n" : colon ? "js-k" : "js-s", mark),
    );
    if (colon !== undefined) parts.push(document.createTextNode(colon));
    end = found.index + whole.length;
  }
  if (end < text.length) {
    parts.push(end === 0 ? create(text, "", mark) : document.createTextNode(text.slice(end)));
  }
  return parts;
}

function create(text: string, kind: string, mark: string): Node {
  const span = document.createElement("span");
  span.className = kind;
  const at = mark === "" ? -1 : text.toLowerCase().indexOf(mark.toLowerCase());
  if (at === -1) {
    span.textContent = text;
    return span;
  }
  const marked = document.createElement("mark");
  marked.textContent = text.slice(at, at + mark.length);
  span.append(text.slice(0, at), marked, text.slice(at + mark.length));
  return span;
}
