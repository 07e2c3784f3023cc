// File descriptors: how many this process may have, and errors that say that none is left.
import { readFileSync } from "node:fs";

/** The process's soft limit, which Node raises to the hard one when it starts; undefined where the system does not report it. */
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

/** Whether an error's code says that the process (EMFILE) or the system (ENFILE) has no descriptor left. */
export function isDescriptorShortage(code: string): boolean {
  return code === "EMFILE" || code === "ENFILE";
}
