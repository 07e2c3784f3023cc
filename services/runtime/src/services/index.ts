// The table of services, in the order in which they start. A new service is one more entry.
import { suggestName } from "@platform/kernel/config";
import { authEntry } from "./auth.ts";
import type { ServiceEntry } from "./entry.ts";
import { gateEntry } from "./gate.ts";
import { helloEntry } from "./hello.ts";
import { pulseEntry } from "./pulse.ts";
import { vaultEntry } from "./vault.ts";

/** Every service there is; the gateway is last, because it leads to the others. */
export const SERVICES: readonly ServiceEntry[] = [
  helloEntry,
  authEntry,
  vaultEntry,
  pulseEntry,
  gateEntry,
];

/** The entries that `--only` names, with what they need, in the order of the table; all of them for an empty list. */
export function selectEntries(only: readonly string[]): readonly ServiceEntry[] {
  if (only.length === 0) return SERVICES;
  const names = SERVICES.map(({ name }) => name);
  const wanted = new Set<string>();
  for (const name of only) {
    const entry = SERVICES.find((item) => item.name === name);
    if (entry === undefined) {
      throw new Error(
        `--only: there is no service ${JSON.stringify(name)}${suggestName(name, names)}`,
      );
    }
    wanted.add(name);
    for (const other of entry.with ?? []) wanted.add(other);
  }
  return SERVICES.filter(({ name }) => wanted.has(name));
}
