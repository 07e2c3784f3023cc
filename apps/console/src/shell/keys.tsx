// The keyboard: places by g and a letter, rows by j and k, and the commands of the page.
import { signal } from "@preact/signals";
import { navigate } from "../router/router.ts";
import { preferences } from "../session/preferences.ts";
import { may } from "../session/session.ts";
import { commands } from "../stage/stage.ts";
import { Dialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";
import { isPaletteOpen } from "./palette.tsx";
import { availableAreas } from "./rail.tsx";

/** Time for the letter after `g`. */
const SEQUENCE_MS = 3_000;

/** Pages of no service, by the key after `g`. */
const PLACES: Readonly<Record<string, string>> = { o: "/", a: "/access" };

/** True while the list of keys is shown. */
const isHelpOpen = signal(false);
let prefixUntil = 0;

/** Handles keys of the document. */
export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      isPaletteOpen.value = !isPaletteOpen.value;
      return;
    }
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    if (preferences.value.shortcuts === false || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    if (handle(event)) event.preventDefault();
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)
    ? !(target instanceof HTMLInputElement && target.type === "checkbox")
    : target.shadowRoot !== null;
}

function handle(event: KeyboardEvent): boolean {
  const { key } = event;
  // When they were pressed: a busy page handles keys later.
  const pressedMs = event.timeStamp;
  if (pressedMs < prefixUntil) {
    prefixUntil = 0;
    const place = PLACES[key];
    if (place !== undefined) {
      navigate(place);
      return true;
    }
    const area = availableAreas().find((one) => one.key === key);
    if (area !== undefined) navigate(area.sections[0]!.to);
    return area !== undefined;
  }
  if (key === "g") {
    prefixUntil = pressedMs + SEQUENCE_MS;
    return true;
  }
  if (key === "?") {
    isHelpOpen.value = true;
    return true;
  }
  if (key === "/") return focusFilter();
  if (key === "j" || key === "k") return moveRow(key === "j" ? 1 : -1);
  if (key === "x") return checkRow();
  // A focused button or link handles its own keys.
  if (key === " " && document.activeElement?.closest("button, a, summary") !== null) return false;
  const command = commands.value.find(
    (one) => one.key === (key === " " ? "space" : key.toLowerCase()),
  );
  if (command === undefined || (command.needs !== undefined && !may(command.needs))) return false;
  command.run();
  return true;
}

function focusFilter(): boolean {
  const filter = document.querySelector<HTMLInputElement>("main [data-filter]");
  filter?.focus();
  return filter !== null;
}

function moveRow(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]:not([hidden])")];
  if (rows.length === 0) return false;
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const selected = rows.findIndex((row) => row.classList.contains("sel"));
  const from = focused === -1 ? selected : focused;
  const next = rows[Math.min(rows.length - 1, Math.max(0, from === -1 ? 0 : from + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

function checkRow(): boolean {
  const row = document.activeElement?.closest("[data-row]");
  const box = row?.querySelector<HTMLInputElement>("input[type=checkbox]");
  box?.click();
  return box !== null && box !== undefined;
}

/** The list of all keys, if it is open. */
export function KeysHelp() {
  if (!isHelpOpen.value) return null;
  const general: [keys: string, label: string][] = [
    ["Ctrl K", t("Go to or do…")],
    ["g o", t("Overview")],
    ...availableAreas().map(({ key, label }): [string, string] => [`g ${key}`, label]),
    ["g a", t("Access")],
    ["/", t("Filter")],
    ["j k", t("Next and previous row")],
    ["↵", t("Open the row")],
    ["x", t("Select the row")],
    ["?", t("All keys")],
  ];
  const here = commands.value.flatMap(({ key, label }): [string, string][] =>
    key === undefined ? [] : [[key, label]],
  );
  return (
    <Dialog
      title={t("All keys")}
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <div class="dialog-body">
        <dl class="keys">
          {[...here, ...general].map(([keys, label]) => (
            <div key={keys + label}>
              <dt>
                {keys.split(" ").map((one) => (
                  <kbd key={one}>{one}</kbd>
                ))}
              </dt>
              <dd>{label}</dd>
            </div>
          ))}
        </dl>
        <p class="hint">{t("Keys can be switched off in the settings.")}</p>
      </div>
    </Dialog>
  );
}
