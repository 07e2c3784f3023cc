// The address of the page: path below /ui, and query. Views keep their filters and selection in it.
import { computed, signal } from "@preact/signals";

/** Prefix of all pages. */
const BASE = "/ui";

/** Path below `/ui` without a trailing slash, and query. */
export interface Address {
  path: string;
  search: string;
}

/** Returns false to keep the page; `leave` opens the other one nevertheless. */
type Guard = (from: Address, to: Address, leave: () => void) => boolean;

const address = signal(read(location));
/** Number of the entry in the history of this tab: a step back is undone by as many steps. */
let place = readPlace(history.state) ?? 0;
let isAllowed: Guard = () => true;

/** Path below `/ui`, without a trailing slash: `/gateway/routes`, or `/`. */
export const path = computed(() => address.value.path);
/** The query. */
const query = computed(() => new URLSearchParams(address.value.search));

function read({ pathname, search }: { pathname: string; search: string }): Address {
  const below = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : pathname;
  return { path: below.replace(/\/+$/, "") || "/", search };
}

/** Parameters that links keep between the pages below a path. */
const kept: { prefix: string; name: string }[] = [];

/** Lets links between pages below `prefix` keep a parameter of the query; call it once. */
export function keepParameter(prefix: string, name: string): void {
  kept.push({ prefix, name });
}

/** Opens a page: a path below `/ui`, with its query. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  open(withKept(to.startsWith("/") ? to : `/${to}`), options);
}

/** Sets who is asked before another address is opened. */
export function guardLeaving(guard: Guard): void {
  isAllowed = guard;
}

function open(to: string, options: { replace?: boolean }): void {
  const target = new URL(BASE + to, location.origin);
  const next = read(target);
  const go = (): void => {
    if (options.replace !== true) place += 1;
    const state = { place };
    if (options.replace === true) history.replaceState(state, "", target);
    else history.pushState(state, "", target);
    address.value = next;
  };
  if (isAllowed(address.value, next, go)) go();
}

// The browser has moved already.
function onMoved({ state }: PopStateEvent): void {
  let to = readPlace(state);
  // A fragment was added, for example.
  if (to === undefined) history.replaceState({ place: (to = place + 1) }, "");
  const steps = to - place;
  const next = read(location);
  if (isAllowed(address.value, next, () => history.go(steps))) {
    place = to;
    address.value = next;
  } else {
    history.go(-steps);
  }
}

function readPlace(state: unknown): number | undefined {
  const found = (state as { place?: unknown } | null)?.place;
  return typeof found === "number" ? found : undefined;
}

/** Sets parameters of the query; undefined and "" delete one. */
export function setQuery(
  changes: Readonly<Record<string, string | undefined>>,
  options: { replace?: boolean } = {},
): void {
  const next = new URLSearchParams(address.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  open(address.value.path + (text === "" ? "" : `?${text}`), options);
}

function withKept(to: string): string {
  let target = to;
  for (const { prefix, name } of kept) {
    const value = findParameter(name);
    if (value === undefined || !isBelow(prefix, path.value) || !isBelow(prefix, to)) continue;
    const [own, search = ""] = target.split("?", 2);
    const parameters = new URLSearchParams(search);
    if (parameters.has(name)) continue;
    parameters.set(name, value);
    target = `${own}?${parameters.toString()}`;
  }
  return target;
}

function isBelow(prefix: string, target: string): boolean {
  return target === prefix || target.startsWith(`${prefix}/`) || target.startsWith(`${prefix}?`);
}

/** Value of a parameter of the query, or "". */
export function queryValue(name: string): string {
  return query.value.get(name) ?? "";
}

/** Value of a parameter of the query, "" included; undefined if it is not there. */
export function findParameter(name: string): string | undefined {
  return query.value.get(name) ?? undefined;
}

/** Address of a page for `href`. */
export function href(to: string): string {
  return BASE + withKept(to);
}

/** Handles links to pages of the console without loading the document again. */
export function startRouter(): void {
  history.replaceState({ place }, "");
  addEventListener("popstate", onMoved);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link === null || link === undefined || link.target !== "" || link.hasAttribute("download"))
      return;
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${BASE}/`)) return;
    event.preventDefault();
    navigate(link.pathname.slice(BASE.length) + link.search);
  });
}

/** Parameters of a path that matches a pattern such as `/gateway/routes/:id`; undefined if it does not match. */
export function matchPath(pattern: string, actual: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = actual.split("/");
  const isOpen = wanted.at(-1) === "*";
  if (isOpen ? given.length < wanted.length - 1 : given.length !== wanted.length) return undefined;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part === "*") {
      found["rest"] = given.slice(index).map(decodePart).join("/");
      return found;
    }
    if (part.startsWith(":")) found[part.slice(1)] = decodePart(given[index] ?? "");
    else if (part !== given[index]) return undefined;
  }
  return found;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
