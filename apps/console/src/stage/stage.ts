// The parts of the frame that a page sets: path, trace and commands.
import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { ServiceId } from "@platform/console/contract";
import { path } from "../router/router.ts";

/** A part of the path in the head. */
export interface Crumb {
  label: string;
  /** Path below `/ui`. */
  to?: string | undefined;
  /** Written by a machine: in the mono font. */
  isName?: boolean | undefined;
}

/** A number in the trace strip. */
export interface Fact {
  value: string;
  unit?: string;
  label: string;
  isBad?: boolean;
}

/** The trace: a figure of a service, or values of the page's own, one a second. */
export interface TraceScope {
  label: string;
  service: ServiceId;
  /** Figure of the service. */
  figure?: string;
  errors?: string;
  /** Values of the page's own in place of the figures, oldest first. */
  values?: readonly (number | null)[];
  failures?: readonly (number | null)[];
  facts?: readonly Fact[];
}

/** An action of the page, in the palette and by key. */
export interface Command {
  label: string;
  key?: string;
  icon?: string;
  /** Permission without which it is disabled. */
  needs?: string;
  run: () => void;
}

/** Path in the head. */
export const crumbs = signal<readonly Crumb[]>([]);
const pageTrace = signal<TraceScope | undefined>(undefined);
const partTrace = signal<TraceScope | undefined>(undefined);
/** Scope of the trace: that of the part that is open, or else of the page. */
export const trace = computed(() => partTrace.value ?? pageTrace.value);
/** Commands of the page and its parts. */
export const commands = signal<readonly Command[]>([]);

/** Sets the path in the head, and the title of the document. */
export function useCrumbs(list: readonly Crumb[]): void {
  const text = JSON.stringify(list);
  useEffect(() => {
    crumbs.value = list;
    const last = list.at(-1)?.label ?? "";
    document.title = `${last} · platform`;
  }, [text]);
}

/** Sets the trace of the page. */
export function useTrace(scope: TraceScope | undefined): void {
  const text = JSON.stringify(scope);
  useEffect(() => {
    pageTrace.value = scope;
  }, [text]);
}

/** Sets the trace while a part of the page is open. */
export function usePartTrace(scope: TraceScope | undefined): void {
  useEffect(() => {
    partTrace.value = scope;
  }, [scope]);
  useEffect(() => () => void (partTrace.value = undefined), []);
}

/** Lists of the mounted components: a page and a part of it have commands of their own. */
const mounted = new Map<symbol, readonly Command[]>();

/** Command that is to run when its page shows it. */
let awaited: { label: string; path: string } | undefined;

/** Runs a command of the page at `to`, which is being opened, as soon as the page has it; never on another page. */
export function runWhenMounted(label: string, to: string): void {
  const [wanted = ""] = to.split("?", 1);
  awaited = path.value === wanted ? { label, path: wanted } : undefined;
  runAwaited();
}

function runAwaited(): void {
  if (awaited === undefined) return;
  const { label } = awaited;
  if (awaited.path !== path.value) awaited = undefined;
  const found = commands.value.find((one) => one.label === label);
  if (awaited === undefined || found === undefined) return;
  awaited = undefined;
  found.run();
}

/** Sets the commands of a component; they add to those of others, and are removed with it. */
export function useCommands(list: readonly Command[]): void {
  const [id] = useState(() => Symbol("commands"));
  // Before the paint: a key works as soon as the page can be seen.
  useLayoutEffect(() => {
    mounted.set(id, list);
    commands.value = [...mounted.values()].flat();
    runAwaited();
  });
  useLayoutEffect(
    () => () => {
      mounted.delete(id);
      commands.value = [...mounted.values()].flat();
    },
    [id],
  );
}
