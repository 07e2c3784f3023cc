// The dialog for editing a request before it is replayed.
import { create, find } from "./dom.js";

/** @typedef {import("./relay.js").Detail} Detail */
/** @typedef {import("./relay.js").Edits} Edits */

/** Fields that the relay sets itself. */
const RELAY_FIELDS =
  /^(?:connection|content-length|transfer-encoding|expect|keep-alive|te|trailer|traceparent|tracestate|upgrade)$/i;

/**
 * Opens the dialog. `send` rejects with an error whose message is shown; the dialog then stays open.
 * @param {Detail} detail @param {(edits: Edits) => Promise<void>} send
 */
export function openEditor(detail, send) {
  const dialog = find("edit", HTMLDialogElement);
  const { request } = detail;
  const isText = request === null || request.body.encoding === "utf8";
  const headers = (request?.headers ?? [])
    .filter(([name]) => !RELAY_FIELDS.test(name))
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
  const method = create("input", { value: detail.method, required: true, maxLength: 32 });
  const path = create("input", { value: detail.path, required: true, maxLength: 16_384 });
  const fields = create("textarea", { value: headers, rows: 9, spellcheck: false });
  const body = create("textarea", {
    value: isText ? (request?.body.text ?? "") : "",
    rows: 10,
    spellcheck: false,
    disabled: !isText,
    placeholder: isText ? "" : "The binary body is sent as it was captured.",
  });
  const error = create("p", { className: "error" });
  error.setAttribute("role", "alert");
  const submit = create("button", { className: "primary" }, "Send");
  const cancel = create("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const wide = label("Path", path);
  wide.className = "wide";
  const form = create(
    "form",
    {},
    create("div", { className: "row" }, label("Method", method), wide),
    label("Headers", fields),
    label("Body", body),
    create(
      "p",
      { className: "note" },
      "[redacted] stands for the captured value. Length and connection headers are set by the relay.",
    ),
    error,
    create("div", { className: "row" }, submit, cancel),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit.disabled = true;
    error.textContent = "";
    collect({ detail, method, path, fields, body, headers })
      .then(send)
      .then(() => dialog.close())
      .catch((reason) => {
        error.textContent = reason instanceof Error ? reason.message : String(reason);
      })
      .finally(() => {
        submit.disabled = false;
      });
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  dialog.replaceChildren(create("h2", { id: "edit-title" }, "Edit and replay"), form);
  dialog.showModal();
  path.focus();
}

/**
 * Only parts that were changed are sent: the others are replayed exactly as captured.
 * @param {{ detail: Detail, method: HTMLInputElement, path: HTMLInputElement, fields: HTMLTextAreaElement,
 *   body: HTMLTextAreaElement, headers: string }} parts
 * @returns {Promise<Edits>}
 */
async function collect({ detail, method, path, fields, body, headers }) {
  /** @type {Edits} */
  const edits = {};
  if (method.value !== detail.method) edits.method = method.value.trim();
  if (path.value !== detail.path) edits.path = path.value.trim();
  if (fields.value !== headers) edits.headers = readHeaders(fields.value);
  const original = detail.request?.body.text ?? "";
  if (!body.disabled && body.value !== original.replaceAll("\r\n", "\n")) edits.body = body.value;
  return edits;
}

/** @param {string} text @returns {[string, string][]} */
function readHeaders(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`Headers: “${line}” is not of the form Name: value.`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
}

/** @param {string} text @param {HTMLElement} control */
function label(text, control) {
  return create("label", {}, text, control);
}
