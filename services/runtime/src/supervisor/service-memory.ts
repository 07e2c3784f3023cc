// The memory that services need when they are idle, to say before a start which of them fit.
import { formatSize } from "@platform/kernel/backup";
import type { Memory } from "./memory.ts";

const MIB = 1024 * 1024;
/** Proportional set sizes in the built form some seconds after a start, rounded up; a project with its spare process. */
const NEEDED_MIB: Readonly<Record<string, number>> = {
  gate: 90,
  auth: 65,
  vault: 65,
  pulse: 60,
  notify: 60,
  tunnel: 45,
  hello: 15,
};
const PROJECT_MIB = 120;
const SUPERVISOR_MIB = 45;

/** Returns a warning if the memory does not suffice for these services; undefined if it does. */
export function describeShortage(
  services: readonly { name: string; label: string }[],
  { availableBytes, limitBytes }: Memory,
): string | undefined {
  const needOf = (name: string): number => (NEEDED_MIB[name] ?? PROJECT_MIB) * MIB;
  const needed = services.reduce((sum, { name }) => sum + needOf(name), SUPERVISOR_MIB * MIB);
  if (needed <= availableBytes) return undefined;
  let left = availableBytes - SUPERVISOR_MIB * MIB;
  const fitting = services.filter(({ name }) => {
    if (needOf(name) > left) return false;
    left -= needOf(name);
    return true;
  });
  const limit = limitBytes === undefined ? "" : ` of the limit of ${formatSize(limitBytes)}`;
  const names = fitting.map(({ label }) => label).join(",");
  const choice = names === "" ? "" : `; --only ${names} fits`;
  return `memory: ${formatSize(availableBytes)}${limit} is available, and ${services.map(({ label }) => label).join(", ")} need about ${formatSize(needed)} when they are idle${choice}`;
}
