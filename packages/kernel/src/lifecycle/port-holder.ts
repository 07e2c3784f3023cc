// The process that holds a port or a file, where the system says so (only Linux does).
import { readFile, readdir, readlink, realpath } from "node:fs/promises";

const LISTEN_STATE = "0A";
const PROCESSES_MAX = 4096;

/** A process that listens on a port or has a file open. */
export interface Holder {
  pid: number;
  /** The program's short name. */
  name: string;
}

/** The process that listens on a TCP port here; undefined when there is none or the system does not tell (only Linux does). */
export async function findPortHolder(port: number): Promise<Holder | undefined> {
  const inodes = new Set([
    ...(await readListeners("/proc/net/tcp", port)),
    ...(await readListeners("/proc/net/tcp6", port)),
  ]);
  if (inodes.size === 0) return undefined;
  return findHolder((link) => inodes.has(/^socket:\[([0-9]+)\]$/.exec(link)?.[1] ?? ""));
}

/** Another process that has a file open; undefined if there is none, it belongs to another user, or off Linux. */
export async function findFileHolder(path: string): Promise<Holder | undefined> {
  const real = await realpath(path).catch(() => undefined);
  return real === undefined ? undefined : findHolder((link) => link === real);
}

/**
 * A listening error in words: what is taken, by whom, and the flag or key that changes it. Errors of another kind keep
 * their own message.
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

// proc_net_tcp(5): local address and port in hex in the second column, state in the fourth, inode in the tenth.
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
