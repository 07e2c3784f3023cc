// The explanation of ports that are in use: in one line if a platform has them.
import { readFileSync } from "node:fs";
import { nameProgram, quoteShell } from "@platform/kernel/config";
import type { HeldPort } from "../control/ports.ts";
import { formatCommand, formatFolder } from "../data-folder/data-folder.ts";
import { findPlatforms, type ListedPlatform } from "../data-folder/platform-list.ts";
import { SERVICES } from "../services/index.ts";
import { formatUrl } from "../services/entry.ts";

const PROBE_MS = 1_000;
const ANSWER_BYTES_MAX = 65_536;

/**
 * The error of a start. If a platform of this user has one of the ports, it names that platform and the commands that join
 * and stop it; if one of another user has it, it says so; otherwise it has a line for each port.
 */
export async function explainHeldPorts(held: readonly HeldPort[]): Promise<Error> {
  const ports = held.map(({ address }) => address.port);
  const own = findPlatforms().find((platform) =>
    listPorts(platform).some((port) => ports.includes(port)),
  );
  if (own !== undefined) return new Error(describePlatform(own));
  for (const { address, message } of held) {
    if (!isOfOtherUser(address.port) || !(await isPlatform(formatUrl(address)))) continue;
    return new Error(
      `another user's platform is running on this machine and has port ${address.port}: ${message.replace(/^[^;]*; /, "")}, and so for the other ports, or use --alone`,
    );
  }
  return new Error(held.map(({ message }) => message).join("\n"));
}

// In one line, with the commands that join and stop it.
function describePlatform({ dataDir, state }: ListedPlatform): string {
  const since = state.started_at.replace("T", " ").replace(/\.\d+Z$/, " UTC");
  const folder = quoteShell(formatFolder(dataDir));
  const join = `${nameProgram("platform")} up --data ${folder}`;
  return `a platform is running with the data folder ${folder} since ${since} (process ${state.pid}): "${join}" in a project's folder joins it, and "${formatCommand(dataDir, "down")}" stops it`;
}

function listPorts({ state }: ListedPlatform): number[] {
  const api = state.api_url === undefined ? [] : [Number(new URL(state.api_url).port)];
  return [...api, ...state.services.flatMap(({ listeners }) => listeners.map(({ port }) => port))];
}

// proc_net_tcp(5): the second column is local address and port in hex, the fourth the state (0A: it listens), the eighth the
// user. False on other systems than Linux.
function isOfOtherUser(port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const users = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((path) =>
    readLines(path).flatMap((line) => {
      const columns = line.trim().split(/\s+/);
      return columns[3] === "0A" && columns[1]?.endsWith(suffix) === true ? [columns[7]] : [];
    }),
  );
  return users.length > 0 && users.every((user) => user !== String(process.getuid?.()));
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}

// Probes are public: services answer with their name.
async function isPlatform(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(PROBE_MS) });
    const text = await answer.text();
    if (text.length > ANSWER_BYTES_MAX) return false;
    const { service } = JSON.parse(text) as { service?: unknown };
    return service === "runtime" || SERVICES.some(({ name }) => name === service);
  } catch {
    return false;
  }
}
