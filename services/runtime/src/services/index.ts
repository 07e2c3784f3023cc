// The table of services in start order. To add a service, add an entry.
import { suggestName } from "@platform/kernel/config";
import { authEntry } from "./auth.ts";
import type { ServiceEntry } from "./entry.ts";
import { gateEntry } from "./gate.ts";
import { helloEntry } from "./hello.ts";
import { notifyEntry } from "./notify.ts";
import { pulseEntry } from "./pulse.ts";
import { tunnelEntry } from "./tunnel.ts";
import { vaultEntry } from "./vault.ts";

/** All services. The gateway starts last because it forwards to the others. */
export const SERVICES: readonly ServiceEntry[] = [
  helloEntry,
  notifyEntry,
  authEntry,
  vaultEntry,
  pulseEntry,
  tunnelEntry,
  gateEntry,
];

/** True if this is the built form of the platform, which starts that of the services. */
export const IS_BUILT = !gateEntry.main.endsWith(".ts");

/** Services that send their own backup, in the order in which they are saved: messages before the objects they refer to. */
export const BACKED_UP: readonly ServiceEntry[] = [
  authEntry,
  pulseEntry,
  vaultEntry,
  notifyEntry,
  tunnelEntry,
];

/**
 * Selects the services that `--only` names, by `name` or `label`, and the services they require, in start order. An empty
 * list selects all.
 */
export function selectServices(only: readonly string[]): readonly ServiceEntry[] {
  if (only.length === 0) return SERVICES;
  const names = new Set<string>();
  for (const word of only) {
    const entry = findEntry(word, "--only");
    names.add(entry.name);
    for (const other of entry.requires ?? []) names.add(other);
  }
  return SERVICES.filter(({ name }) => names.has(name));
}

/** A service by `name` or `label`. Throws an error that begins with `place` and suggests a name. */
export function findEntry(word: string, place: string): ServiceEntry {
  const entry = SERVICES.find(({ name, label }) => name === word || label === word);
  if (entry !== undefined) return entry;
  const known = [...new Set(SERVICES.flatMap(({ name, label }) => [label, name]))];
  const labels = SERVICES.map(({ label }) => label);
  const hint = suggestName(word, known) || `; known are ${labels.join(", ")}`;
  throw new Error(`${place}: unknown service ${JSON.stringify(word)}${hint}`);
}
