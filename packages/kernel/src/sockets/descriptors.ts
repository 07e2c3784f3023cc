// File descriptors: the limit of this process, and errors that report exhaustion.
import { readFileSync } from "node:fs";

/** Fewer descriptors than this are too few for a service that others depend on. */
export const DESCRIPTORS_MIN = 4_096;

/**
 * Returns the process's soft limit, which Node raises to the hard one at startup; undefined if the system does not
 * report it.
 */
export function readDescriptorLimit(): number | undefined {
  let limits: string;
  try {
    limits = readFileSync("/proc/self/limits", "latin1");
  } catch {
    return undefined;
  }
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** True if an error's code means that the process (EMFILE) or the system (ENFILE) has no descriptors left. */
export function isDescriptorShortage(code: string): boolean {
  return code === "EMFILE" || code === "ENFILE";
}
