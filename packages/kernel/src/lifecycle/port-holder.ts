// Finds the process that holds a port or a file (Linux only).
import { existsSync } from "node:fs";
import { readFile, readdir, readlink, realpath } from "node:fs/promises";

const LISTEN_STATE = "0A";
const PROCESSES_MAX = 4096;

/** A process that listens on a port, or has a file open. */
export interface Holder {
  pid: number;
  /** Short name of the program. */
  name: string;
}

/** Finds the process that listens on a local TCP port; undefined if there is none, or on other systems than Linux. */
async function findPortHolder(port: number): Promise<Holder | undefined> {
  const inodes = new Set([
    ...(await readListeners("/proc/net/tcp", port)),
    ...(await readListeners("/proc/net/tcp6", port)),
  ]);
  if (inodes.size === 0) return undefined;
  return findHolder((link) => inodes.has(/^socket:\[([0-9]+)\]$/.exec(link)?.[1] ?? ""));
}

/**
 * Finds another process that has a file open; undefined if there is none, it belongs to another user, or on other
 * systems than Linux.
 */
export async function findFileHolder(path: string): Promise<Holder | undefined> {
  const real = await realpath(path).catch(() => undefined);
  return real === undefined ? undefined : findHolder((link) => link === real);
}

/**
 * True if a process has a file open; undefined if the system does not tell: the process belongs to another user, or the
 * system is not Linux.
 */
export async function holdsFile(pid: number, path: string): Promise<boolean | undefined> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return false;
  if (!existsSync("/proc/self/fd")) return undefined;
  if (!existsSync(`/proc/${pid}`)) return false;
  try {
    await readdir(`/proc/${pid}/fd`);
  } catch {
    return undefined;
  }
  return hasOpen(String(pid), (link) => link === real);
}

/**
 * Explains a listening error: the port, the process that holds it, and the flag or key that changes it (`remedy`).
 * Other errors are returned unchanged.
 */
export async function explainListenError(
  error: unknown,
  address: { host: string | undefined; port: number },
  remedy: string,
): Promise<Error> {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const place =
    address.host === undefined ? `port ${address.port}` : `${address.host} port ${address.port}`;
  if (code === "EADDRINUSE") {
    const holder = await findPortHolder(address.port);
    const by = holder === undefined ? "" : ` by ${holder.name} (process ${holder.pid})`;
    return new Error(`${place} is in use${by}; choose another with ${remedy}`, { cause: error });
  }
  if (code === "EACCES") {
    return new Error(`${place}: permission denied; choose another with ${remedy}`, {
      cause: error,
    });
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new Error(
      `${place}: this machine does not have the address; choose another with ${remedy}`,
      {
        cause: error,
      },
    );
  }
  return error instanceof Error ? error : new Error(String(error));
}

// proc_net_tcp(5): the second column is local address and port in hex, the fourth the state, the tenth the inode.
async function readListeners(path: string, port: number): Promise<string[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return text.split("\n").flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    return columns[3] === LISTEN_STATE && columns[1]?.endsWith(suffix) === true
      ? [columns[9] ?? ""]
      : [];
  });
}

async function findHolder(matches: (link: string) => boolean): Promise<Holder | undefined> {
  const entries = await readdir("/proc").catch(() => []);
  for (const entry of entries.filter((name) => /^[0-9]+$/.test(name)).slice(0, PROCESSES_MAX)) {
    if (Number(entry) === process.pid || !(await hasOpen(entry, matches))) continue;
    const name = await readFile(`/proc/${entry}/comm`, "utf8").catch(() => "");
    return { pid: Number(entry), name: name.trim() };
  }
  return undefined;
}

async function hasOpen(pid: string, matches: (link: string) => boolean): Promise<boolean> {
  const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(
    fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")),
  );
  return links.some(matches);
}
