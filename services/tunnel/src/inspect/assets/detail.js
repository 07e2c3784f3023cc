// Request and response of the chosen entry, side by side.
import { releaseImages, showContent, showFields } from "./content.js";
import { classOf, create, find, formatBytes, formatMs } from "./dom.js";

/** @typedef {import("./relay.js").Detail} Detail */
/** @typedef {import("./relay.js").Message} Message */
/** @typedef {{ onReplay: () => void, onEdit: () => void, onCurl: () => void, onOpen: (id: string) => void }} Actions */

const FIELDS_SHOWN = 6;
const ERRORS = /** @type {Readonly<Record<string, string>>} */ ({
  tunnel_offline: "the tunnel's client was not connected",
  client_unresponsive: "the tunnel's client did not respond",
  target_refused: "the local service refused the connection",
  target_unreachable: "the local service could not be reached",
  target_tls_failed: "the TLS handshake with the local service failed",
  target_broke_off: "the local service closed the connection without a response",
  target_timeout: "the local service did not respond in time",
  invalid_response: "the response of the local service is not valid HTTP",
});

/** Shows a request. @param {Detail} detail @param {Actions} actions */
export function showDetail(detail, actions) {
  releaseImages();
  const section = find("detail", HTMLElement);
  section.replaceChildren(
    showHead(detail, actions),
    create(
      "div",
      { className: "pair" },
      showMessage("Request", detail.request, `from ${detail.client}`, detail.request_bytes),
      showMessage("Response", detail.response, describeAnswer(detail), detail.response_bytes),
    ),
  );
  section.scrollTop = 0;
}

/** Shows a text instead of a request. @param {string} text */
export function showNothing(text) {
  releaseImages();
  find("detail", HTMLElement).replaceChildren(create("p", { className: "empty" }, text));
}

/** @param {Detail} detail @param {Actions} actions */
function showHead(
  { method, path, status, state, latency_ms: latencyMs, replay_of: original },
  actions,
) {
  const isOpen = state === "open";
  const shown = status === 0 ? (isOpen ? "open" : "none") : String(status);
  const head = create(
    "div",
    { className: "head" },
    create("h2", {}, `${method} ${path}`),
    create("span", { className: `tag ${isOpen ? "info" : classOf(status)}` }, shown),
    create("span", { className: "quiet" }, isOpen ? "in progress" : formatMs(latencyMs)),
  );
  if (original !== undefined) {
    head.append(button("Replay of…", () => actions.onOpen(original)));
  }
  const replay = button("Replay ", actions.onReplay);
  replay.classList.add("primary");
  replay.append(create("kbd", {}, "r"));
  head.append(button("curl", actions.onCurl), button("Edit…", actions.onEdit), replay);
  return head;
}

/** @param {string} text @param {() => void} onClick */
function button(text, onClick) {
  return create("button", { type: "button", className: "small", onclick: onClick }, text);
}

/** @param {Detail} detail */
function describeAnswer({ state, error, response }) {
  if (error !== "") return `by the relay: ${ERRORS[error] ?? error}`;
  if (state === "broken") return "broken off";
  return response === null ? "" : (response.line.replace(/^\S+ /, "") ?? "");
}

/** @param {string} title @param {Message | null} message @param {string} note @param {number} bytes */
function showMessage(title, message, note, bytes) {
  const size = bytes > 0 ? `${formatBytes(bytes)} ` : "";
  const heading = create("h3", {}, `${title} `, create("small", {}, size + note));
  const section = create("section", { className: "message" }, heading);
  section.setAttribute("aria-label", title);
  if (message === null) {
    section.append(create("p", { className: "note" }, "Nothing was captured."));
    return section;
  }
  const { headers, body } = message;
  section.append(...showHeaders(headers));
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  section.append(...showContent(body, type));
  return section;
}

/** @param {[string, string][]} headers */
function showHeaders(headers) {
  const shown = headers.map(([name, value]) => /** @type {const} */ ([name.toLowerCase(), value]));
  if (shown.length <= FIELDS_SHOWN) return [showFields(shown)];
  const rest = create("details", {}, create("summary", {}, `All ${shown.length} headers`));
  rest.append(showFields(shown));
  const main = shown.filter(([name]) =>
    /^(?:content-type|user-agent|authorization|cookie|set-cookie|location|accept)$|signature|^x-(?!forwarded)/.test(
      name,
    ),
  );
  return [showFields(main.slice(0, FIELDS_SHOWN)), rest];
}
