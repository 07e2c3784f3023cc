// The inspector's page: tunnels, the live list with its filters, the chosen request, and the keyboard.
import { formatCurl } from "./curl.js";
import { showDetail, showNothing } from "./detail.js";
import { announce, copy, create, find, formatMs } from "./dom.js";
import { openEditor } from "./edit.js";
import { RequestList } from "./list.js";
import { formatArchiveUrl, getRequest, listRequests, replayRequest } from "./relay.js";
import { openShares } from "./share.js";
import { formatUptime, TraceStrip } from "./trace.js";

/** @typedef {import("./relay.js").Detail} Detail */
/** @typedef {import("./relay.js").Edits} Edits */
/** @typedef {import("./relay.js").State} State */
/** @typedef {import("./relay.js").Trace} Trace */
/** @typedef {import("./relay.js").Tunnel} Tunnel */

const POLL_MS = 5_000;
const TYPING_MS = 150;

const live = find("live", HTMLElement);
const tunnelChoice = find("tunnel", HTMLSelectElement);
const filter = find("filter", HTMLInputElement);
const statuses = find("statuses", HTMLElement);

/** @type {Tunnel[]} */
let tunnels = [];
/** @type {Detail | undefined} */
let shown;
let status = "";
/** Lists and details that arrive after a newer call are dropped. */
let listCalls = 0;
let detailCalls = 0;

/** When the client connected, by this page's clock; 0 while it is not connected. */
let connectedAt = 0;

const strip = new TraceStrip(find("trace", HTMLCanvasElement));
const list = new RequestList((id) => void open(id));

/** The chosen tunnel; undefined before the relay has answered. */
function currentTunnel() {
  return tunnels.find(({ id }) => id === tunnelChoice.value && id !== "");
}

function query() {
  return `${status === "" ? "" : `status:${status} `}${filter.value.trim()}`.trim();
}

async function refresh() {
  const tunnel = currentTunnel();
  if (tunnel === undefined) return;
  const call = ++listCalls;
  try {
    const { requests, captured } = await listRequests(tunnel.id, query());
    if (call !== listCalls) return;
    list.show(requests);
    find("count", HTMLElement).textContent =
      requests.length === captured ? String(captured) : `${requests.length} of ${captured}`;
    find("empty", HTMLElement).textContent = describeEmpty(requests.length, captured, tunnel);
    find("export", HTMLAnchorElement).href = formatArchiveUrl(tunnel.id, query());
    const current = requests.find(({ id }) => id === list.chosen);
    // An open request goes on: its response arrives.
    if (current !== undefined && shown?.state === "open") await open(current.id);
  } catch (error) {
    announce(explain(error));
  }
}

/** @param {number} listed @param {number} captured @param {Tunnel} tunnel */
function describeEmpty(listed, captured, tunnel) {
  if (listed > 0) return "";
  return captured > 0 ? "No captured request matches." : `Waiting for requests to ${tunnel.url}`;
}

/** @param {string} id */
async function open(id) {
  const tunnel = currentTunnel();
  if (tunnel === undefined) return;
  const call = ++detailCalls;
  try {
    const detail = await getRequest(tunnel.id, id);
    if (call !== detailCalls) return;
    shown = detail;
    showDetail(detail, {
      onReplay: () => void replay({}),
      onEdit: edit,
      onCurl: copyCurl,
      onOpen: (original) => list.choose(original, true),
    });
  } catch (error) {
    if (call !== detailCalls) return;
    shown = undefined;
    showNothing(explain(error));
  }
}

/** @param {Edits} edits */
async function send(edits) {
  const tunnel = currentTunnel();
  if (tunnel === undefined || shown === undefined) return;
  const replayed = await replayRequest(tunnel.id, shown.id, edits);
  announce(`Replayed: ${replayed.response_status} in ${replayed.latency_ms} ms`);
  await refresh();
  list.choose(replayed.request_id, false);
}

/** @param {Edits} edits */
async function replay(edits) {
  try {
    await send(edits);
  } catch (error) {
    announce(explain(error));
  }
}

function edit() {
  if (shown !== undefined) openEditor(shown, send);
}

function copyCurl() {
  const tunnel = currentTunnel();
  if (tunnel !== undefined && shown !== undefined) {
    void copy(formatCurl(shown, tunnel.url), "curl command");
  }
}

/** @param {State} state */
function showState({ connected, connected_ms: connectedMs, tunnels: next, relay }) {
  connectedAt = connected ? performance.now() - connectedMs : 0;
  live.textContent = connected ? "live" : `connecting to ${relay}`;
  live.classList.toggle("on", connected);
  const chosen = tunnelChoice.value;
  tunnels = next;
  const usable = tunnels.filter(({ id }) => id !== "");
  tunnelChoice.replaceChildren(
    ...usable.map(({ id, url, target }) => create("option", { value: id }, `${url} → ${target}`)),
  );
  if (usable.some(({ id }) => id === chosen)) tunnelChoice.value = chosen;
  showTunnel(tunnelChoice.value !== chosen);
}

/** The strip and its figures. */
function showTrace() {
  const { perSecond, p50Ms } = strip.show(tunnelChoice.value);
  find("rate", HTMLElement).textContent = `${perSecond}/s`;
  find("p50", HTMLElement).textContent = p50Ms === null ? "—" : formatMs(p50Ms);
  find("up", HTMLElement).textContent =
    connectedAt === 0 ? "—" : formatUptime(performance.now() - connectedAt);
}

/** @param {boolean} isOther */
function showTunnel(isOther) {
  const tunnel = currentTunnel();
  const refused = tunnels.find(({ error }) => error !== "")?.error;
  const link = find("url", HTMLAnchorElement);
  link.textContent = tunnel?.url ?? refused ?? "";
  // The relay names the URL; only web addresses become links.
  if (tunnel !== undefined && /^https?:/.test(tunnel.url)) link.href = tunnel.url;
  else link.removeAttribute("href");
  find("target", HTMLElement).textContent = tunnel?.target ?? "";
  showTrace();
  if (isOther) {
    shown = undefined;
    list.show([]);
    list.choose("", false);
    showNothing("Choose a request to see it with its response.");
  }
  void refresh();
}

/** @param {unknown} error */
function explain(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {() => void} work @param {number} ms */
function delayed(work, ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  };
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("state", ({ data }) => showState(JSON.parse(data)));
  events.addEventListener("requests", ({ data }) => {
    if (JSON.parse(data).tunnels.includes(tunnelChoice.value)) void refresh();
  });
  events.addEventListener("trace", ({ data }) => {
    strip.take(JSON.parse(data));
    showTrace();
  });
  events.addEventListener("error", () => {
    live.textContent = "the client is not running";
    live.classList.remove("on");
  });
  // Requests that are still open are not announced.
  setInterval(() => {
    if (!document.hidden) void refresh();
  }, POLL_MS);
}

/** Keys of the page, outside of fields and dialogs. @type {Readonly<Record<string, () => void>>} */
const KEYS = {
  ArrowDown: () => list.move(1),
  ArrowUp: () => list.move(-1),
  j: () => list.move(1),
  k: () => list.move(-1),
  Home: () => list.move(-Infinity),
  End: () => list.move(Infinity),
  r: () => void replay({}),
  e: edit,
  c: copyCurl,
  "/": () => filter.focus(),
};

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]") !== null) return;
  if (target === filter && (key === "Escape" || key === "ArrowDown")) {
    if (key === "Escape") filter.value = "";
    event.preventDefault();
    filter.dispatchEvent(new Event("input"));
    list.move(0);
    return;
  }
  if (target instanceof Element && target.closest("input, select, textarea") !== null) return;
  const act = KEYS[key];
  if (act === undefined) return;
  event.preventDefault();
  act();
});

filter.addEventListener(
  "input",
  delayed(() => void refresh(), TYPING_MS),
);
tunnelChoice.addEventListener("change", () => showTunnel(true));
statuses.addEventListener("click", ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return;
  status = target.dataset["status"] ?? "";
  for (const button of statuses.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button === target));
  }
  void refresh();
});
find("copy-url", HTMLButtonElement).addEventListener("click", () => {
  void copy(currentTunnel()?.url ?? "", "Address");
});
find("share", HTMLButtonElement).addEventListener("click", () => {
  const tunnel = currentTunnel();
  if (tunnel !== undefined) openShares(tunnel.id);
});
showNothing("Choose a request to see it with its response.");
listen();
