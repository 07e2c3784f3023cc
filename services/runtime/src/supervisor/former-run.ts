// Services that a killed platform left behind: they drain by themselves, but hold their ports until they have, and one that
// hangs would hold them for ever. Linux only; elsewhere the start reports the ports.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Environment variable of services: the data directory of the platform that started them. */
export const OWNER_VARIABLE = "PLATFORM_SUPERVISOR_DATA";

/**
 * The main module of a service, of its built form, of the sample and of a project: a former run may have used another form,
 * or another installation.
 */
const MAIN =
  /[/\\](?:services[/\\][a-z]+[/\\]src[/\\]main\.ts|dist[/\\]services[/\\][^/\\]+[/\\][a-z]+\.js|examples[/\\]hello[/\\]main\.ts|supervised\.[jt]s)$/;

/** Longer than the drain of a service whose supervisor has exited. */
const DRAIN_MS = 10_000;
const KILL_MS = 5_000;
const POLL_MS = 50;
const PROCESSES_MAX = 65_536;

/**
 * Ends the services of former runs with this data directory, which the caller has locked; resolves when they have exited.
 * Programs that services have started are left alone. Returns their number.
 */
export async function endFormerRun(dataDir: string): Promise<number> {
  const find = (): number[] => findServices(dataDir);
  const left = find();
  if (left.length === 0) return 0;
  await endAll(find, "SIGTERM", DRAIN_MS);
  await endAll(find, "SIGKILL", KILL_MS);
  return left.length;
}

async function endAll(
  find: () => number[],
  signal: "SIGTERM" | "SIGKILL",
  waitMs: number,
): Promise<void> {
  for (const pid of find()) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has exited meanwhile.
    }
  }
  const endsMs = performance.now() + waitMs;
  while (performance.now() < endsMs && find().length > 0) await sleep(POLL_MS);
}

function findServices(dataDir: string): number[] {
  const mark = `${OWNER_VARIABLE}=${dataDir}`;
  return listProcesses().filter((pid) => {
    // Those of other users cannot be read; a process that has exited has no arguments.
    const [, ...args] = readParts(pid, "cmdline");
    const main = args.find((arg) => !arg.startsWith("-"));
    return main !== undefined && MAIN.test(main) && readParts(pid, "environ").includes(mark);
  });
}

function listProcesses(): number[] {
  try {
    const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return names
      .slice(0, PROCESSES_MAX)
      .map(Number)
      .filter((pid) => pid !== process.pid);
  } catch {
    return [];
  }
}

function readParts(pid: number, file: "cmdline" | "environ"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
  } catch {
    return [];
  }
}
