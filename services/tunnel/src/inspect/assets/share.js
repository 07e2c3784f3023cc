// The dialog for share links: create, list, revoke.
import { copy, create, find } from "./dom.js";
import { createShare, listShares, revokeShare } from "./relay.js";

/** @typedef {import("./relay.js").Share} Share */

const DURATIONS = [
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
];

/** Opens the dialog. @param {string} tunnelId */
export function openShares(tunnelId) {
  const dialog = find("shares", HTMLDialogElement);
  const expires = create("select");
  for (const [value = "", text = ""] of DURATIONS) {
    expires.append(create("option", { value, selected: value === "1h" }, text));
  }
  const oneTime = create("input", { type: "checkbox" });
  const error = create("p", { className: "error" });
  error.setAttribute("role", "alert");
  const result = create("div", { className: "row" });
  const links = create("ul", { className: "links" });
  /** @param {Promise<unknown>} work */
  const report = (work) => {
    error.textContent = "";
    work.catch((reason) => {
      error.textContent = reason instanceof Error ? reason.message : String(reason);
    });
  };
  const refresh = async () => {
    const { shares } = await listShares(tunnelId);
    links.replaceChildren(
      ...shares.map((share) =>
        showShare(share, () => report(revokeShare(tunnelId, share.id).then(refresh))),
      ),
    );
  };
  const form = create(
    "form",
    {},
    create(
      "div",
      { className: "row" },
      create("label", {}, "Valid for", expires),
      create("label", { className: "inline" }, oneTime, "works once"),
      create("button", { className: "primary" }, "Create link"),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wish = { expires_in: expires.value, one_time: oneTime.checked };
    report(
      createShare(tunnelId, wish).then(({ url }) => {
        result.replaceChildren(...showUrl(url));
        return refresh();
      }),
    );
  });
  dialog.replaceChildren(
    create("h2", { id: "shares-title" }, "Share links"),
    create("p", { className: "note" }, "A link opens the tunnel without other credentials."),
    form,
    create("div", { className: "stack" }, error, result, links),
    create(
      "div",
      { className: "stack" },
      create("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    ),
  );
  report(refresh());
  dialog.showModal();
}

/** @param {string} url */
function showUrl(url) {
  const field = create("input", { value: url, readOnly: true });
  const wide = create("label", { className: "wide" }, "Link, shown only now", field);
  field.addEventListener("focus", () => field.select());
  const button = create("button", { type: "button", onclick: () => copy(url, "Link") }, "Copy");
  return [wide, button];
}

/** @param {Share} share @param {() => void} onRevoke */
function showShare({ status, one_time: isOneTime, expires_at: expiresAt }, onRevoke) {
  const until = new Date(expiresAt).toLocaleString();
  const tag = create("span", { className: `tag ${status === "active" ? "ok" : ""}` }, status);
  const text = `${isOneTime ? "once, " : ""}until ${until}`;
  const item = create("li", {}, tag, create("span", { className: "wide" }, text));
  if (status !== "revoked") {
    const revoke = create(
      "button",
      { type: "button", className: "small", onclick: onRevoke },
      "Revoke",
    );
    item.append(create("span", { className: "grow" }), revoke);
  }
  return item;
}
