// The list of captured requests: rows are kept and moved, so that focus and selection stay.
import { classOf, create, find, formatMs } from "./dom.js";

/** @typedef {import("./relay.js").Summary} Summary */
/** @typedef {{ element: HTMLTableRowElement, cells: HTMLTableCellElement[] }} Row */

const NAMES = ["time", "method", "path", "status", "latency"];

/** The list; `onChoose` is called with the id of a chosen request. */
export class RequestList {
  #body = find("rows", HTMLTableSectionElement);
  /** @type {Map<string, Row>} */
  #rows = new Map();
  #onChoose;
  #chosen = "";

  /** @param {(id: string) => void} onChoose */
  constructor(onChoose) {
    this.#onChoose = onChoose;
    this.#body.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("tr") : null;
      if (row !== null) this.choose(row.dataset["id"] ?? "", true);
    });
  }

  /** Id of the chosen request, "" if none is. */
  get chosen() {
    return this.#chosen;
  }

  /** Shows these requests, newest first. @param {readonly Summary[]} requests */
  show(requests) {
    const longestMs = Math.max(
      1,
      ...requests.map(({ latency_ms: ms, state }) => (state === "open" ? 0 : ms)),
    );
    const kept = new Set(requests.map(({ id }) => id));
    for (const [id, { element }] of this.#rows) {
      if (kept.has(id)) continue;
      element.remove();
      this.#rows.delete(id);
    }
    let next = this.#body.firstElementChild;
    for (const request of requests) {
      const row = this.#rows.get(request.id) ?? this.#create(request.id);
      fill(row.cells, request, longestMs);
      if (row.element === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row.element, next);
    }
    this.#settleTabStop();
  }

  /** Chooses a request. @param {string} id @param {boolean} hasFocus moves the focus to its row */
  choose(id, hasFocus) {
    const isSame = id === this.#chosen;
    this.#mark(this.#chosen, false);
    this.#chosen = id;
    this.#mark(id, true);
    this.#settleTabStop();
    if (hasFocus) this.#rows.get(id)?.element.focus();
    this.#rows.get(id)?.element.scrollIntoView({ block: "nearest" });
    if (!isSame) this.#onChoose(id);
  }

  /** Moves the choice up or down. @param {number} step rows; Infinity for the ends */
  move(step) {
    const rows = [...this.#body.rows];
    if (rows.length === 0) return;
    const at = rows.findIndex((row) => row.dataset["id"] === this.#chosen);
    const wanted = at === -1 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step));
    this.choose(rows[wanted]?.dataset["id"] ?? "", true);
  }

  /** @param {string} id @returns {Row} */
  #create(id) {
    const element = create("tr", { tabIndex: -1 });
    element.dataset["id"] = id;
    element.setAttribute("aria-selected", String(id === this.#chosen));
    const cells = NAMES.map((name) => create("td", { className: name }));
    element.append(...cells);
    const row = { element, cells };
    this.#rows.set(id, row);
    return row;
  }

  /** @param {string} id @param {boolean} isChosen */
  #mark(id, isChosen) {
    this.#rows.get(id)?.element.setAttribute("aria-selected", String(isChosen));
  }

  /** One row can be reached with Tab: the chosen one, or the first. */
  #settleTabStop() {
    const stop = this.#rows.get(this.#chosen)?.element ?? this.#body.rows[0];
    for (const row of this.#body.rows) row.tabIndex = row === stop ? 0 : -1;
  }
}

/** @param {HTMLTableCellElement[]} cells @param {Summary} request @param {number} longestMs */
function fill(cells, request, longestMs) {
  const { method, path, status, state, latency_ms: latencyMs, timestamp } = request;
  const texts = [
    new Date(timestamp).toLocaleTimeString("en-GB"),
    method,
    path,
    status === 0 ? (state === "open" ? "…" : "—") : String(status),
    state === "open" ? "open" : formatMs(latencyMs),
  ];
  for (const [index, cell] of cells.entries()) {
    const text = texts[index] ?? "";
    if (cell.textContent !== text) cell.textContent = text;
  }
  const [, , pathCell, statusCell, latencyCell] = cells;
  const share = state === "open" ? 0 : latencyMs / longestMs;
  latencyCell?.style.setProperty("--part", share.toFixed(2));
  if (pathCell !== undefined) pathCell.title = path;
  if (statusCell !== undefined) {
    statusCell.className = `status ${state === "open" && status === 0 ? "" : classOf(status)}`;
  }
}
