// `platform doctor`: checks the machine, the data directory and the running services, and says what to do.
import { constants, existsSync, statSync } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ConfigError, type ListenAddress } from "@platform/kernel/config";
import { formatCount } from "@platform/kernel/backup";
import { DESCRIPTORS_MIN, readDescriptorLimit } from "@platform/kernel/sockets";
import { connectIdentity } from "../client/connect.ts";
import type { Target } from "../client/target.ts";
import { readCredentials } from "../credentials/credentials.ts";
import { formatCommand, formatFolder } from "../data-folder/data-folder.ts";
import { getConfigPath } from "../services/gate.ts";
import { readMemory } from "../supervisor/memory.ts";
import { describeShortage } from "../supervisor/service-memory.ts";
import { suggestStep } from "./status.ts";
import { readRunning, type RunningState } from "../data-folder/running-file.ts";
import { SERVICES } from "../services/index.ts";
import { RUNTIME_LISTENER } from "../services/runtime.ts";
import { findHeldPorts } from "../control/ports.ts";
import { readStatus } from "../control/service-status.ts";

const NODE_MAJOR = 26;
const DISK_BYTES_MIN = 2 * 1024 ** 3;
const MEMORY_BYTES_MIN = 128 * 1024 ** 2;
const CLOCK_SKEW_MS = 60_000;
/** Folder of messaging's log; see `wal_path`. */
const LOG_FOLDER = "queue.wal";
const TOPICS_SHOWN = 5;

/** One result. */
interface Finding {
  level: "ok" | "warn" | "fail";
  text: string;
  /** The next step. */
  remedy?: string;
}

/** Options of {@link runDoctor}. */
export interface DoctorOptions {
  data: string;
  json: boolean;
  addresses: ReadonlyMap<string, ListenAddress>;
}

/** Prints all findings; exit code 1 if one of them is a failure. */
export async function runDoctor(options: DoctorOptions): Promise<number> {
  const dataDir = resolve(options.data);
  const findings = [
    checkRuntime(),
    checkMemory(dataDir),
    await checkDescriptors(dataDir),
    ...(await checkFolder(dataDir)),
    ...(await checkServices(dataDir, options.addresses)),
  ];
  if (options.json) process.stdout.write(`${JSON.stringify({ findings }, null, 2)}\n`);
  else process.stdout.write(findings.map(format).join(""));
  return findings.some(({ level }) => level === "fail") ? 1 : 0;
}

function format({ level, text, remedy }: Finding): string {
  const next = remedy === undefined ? "" : `\n      → ${remedy}`;
  return `${level.padEnd(5)} ${text}${next}\n`;
}

function checkRuntime(): Finding {
  const { bun, node } = process.versions;
  if (bun !== undefined) return { level: "ok", text: `runtime: Bun ${bun}` };
  if (Number.parseInt(node, 10) >= NODE_MAJOR)
    return { level: "ok", text: `runtime: Node ${node}` };
  const remedy = "run npm ci, which installs the pinned one";
  return { level: "fail", text: `runtime: Node ${node} is too old`, remedy };
}

function checkMemory(dataDir: string): Finding {
  const memory = readMemory();
  const { availableBytes, limitBytes } = memory;
  const limit = limitBytes === undefined ? "" : ` of a limit of ${formatSize(limitBytes)}`;
  const text = `memory: ${formatSize(availableBytes)} available${limit}`;
  // Services that run have what they need; the next burst may not.
  if (!isRunning(dataDir)) {
    const shortage = describeShortage(SERVICES, memory);
    return shortage === undefined
      ? { level: "ok", text }
      : { level: "warn", text, remedy: shortage };
  }
  if (availableBytes >= MEMORY_BYTES_MIN) return { level: "ok", text };
  return { level: "warn", text, remedy: "give the platform more memory, or stop some services" };
}

// The folder of another user is a finding of its own.
function isRunning(dataDir: string): boolean {
  try {
    return readRunning(dataDir) !== undefined;
  } catch {
    return false;
  }
}

async function checkDescriptors(dataDir: string): Promise<Finding> {
  const limit = readDescriptorLimit();
  if (limit !== undefined && limit < DESCRIPTORS_MIN) {
    return {
      level: "warn",
      text: `file descriptors: the limit is ${limit}`,
      remedy: `raise it to ${DESCRIPTORS_MIN} or more: ulimit -n 65536, or LimitNOFILE= in systemd`,
    };
  }
  const shortage = await findGatewayShortage(dataDir, limit);
  if (shortage === undefined || !shortage.isFault)
    return { level: "ok", text: `file descriptors: ${limit ?? "not limited"}` };
  const { needed, connectionsMax, workers } = shortage;
  const each = workers === 1 ? "" : ` for each of ${workers} workers`;
  return {
    level: "warn",
    text: `file descriptors: the limit is ${limit}, and max_connections ${connectionsMax} of the gateway${each} needs ${needed}`,
    remedy: `raise it with ulimit -n or LimitNOFILE= in systemd, or lower max_connections or workers`,
  };
}

// The gateway is configured by the environment of `platform up`, and by its file once it has been started.
async function findGatewayShortage(dataDir: string, limit: number | undefined) {
  const path = getConfigPath({ dataDir });
  const { checkDescriptorLimit } = await import("@platform/gate/descriptor-check");
  try {
    const argv = existsSync(path) ? ["--config", path] : [];
    return checkDescriptorLimit({ argv, env: process.env }, limit);
  } catch (error) {
    // The gateway reports an invalid configuration when it starts.
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

async function checkFolder(dataDir: string): Promise<Finding[]> {
  const shown = formatFolder(dataDir);
  if (!existsSync(dataDir))
    return [{ level: "ok", text: `data folder: ${shown} will be created by the first start` }];
  const isOpen = (statSync(dataDir).mode & 0o077) !== 0 && process.platform !== "win32";
  const findings: Finding[] = [
    isOpen
      ? {
          level: "warn",
          text: `data folder: other users may open ${shown}`,
          remedy: `chmod 700 ${shown}`,
        }
      : { level: "ok", text: `data folder: ${shown}` },
  ];
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    findings.push({
      level: "fail",
      text: `data folder: no permission to write ${shown}`,
      remedy: `run as its owner (uid ${statSync(dataDir).uid}), or choose another one with --data`,
    });
    return findings;
  }
  findings.push(
    await checkDisk(dataDir),
    await checkCredentials(dataDir),
    ...checkClock(dataDir),
    ...(await checkApplications(dataDir)),
    ...(await checkRoutes(dataDir)),
    ...(await checkTopics(dataDir)),
  );
  return findings;
}

async function checkDisk(dataDir: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const text = `disk: ${formatSize(free)} free`;
  if (free >= DISK_BYTES_MIN) return { level: "ok", text };
  return { level: "warn", text, remedy: "free some space; services stop writing below a reserve" };
}

async function checkCredentials(dataDir: string): Promise<Finding> {
  const path = join(dataDir, "credentials.env");
  const shown = formatFolder(path);
  if (!existsSync(path)) {
    const isUsed = existsSync(join(dataDir, "platform.json"));
    const remedy =
      "restore it from a backup, or restart the platform, which creates new tokens and keys";
    return isUsed
      ? { level: "fail", text: `credentials: ${shown} is missing`, remedy }
      : { level: "ok", text: "credentials: will be created by the first start" };
  }
  try {
    const count = (await readCredentials(dataDir)).size;
    return {
      level: "ok",
      text: `credentials: ${shown}, ${formatCount(count, "entry", "entries")}`,
    };
  } catch (error) {
    const remedy = "restore it from a backup, or correct the line";
    return { level: "fail", text: `credentials: ${describeError(error)}`, remedy };
  }
}

// Files that are newer than now were written before the clock was set back.
function checkClock(dataDir: string): Finding[] {
  const marker = join(dataDir, "platform.json");
  if (!existsSync(marker)) return [];
  const aheadMs = statSync(marker).mtimeMs - Date.now();
  if (aheadMs < CLOCK_SKEW_MS) return [{ level: "ok", text: `clock: ${new Date().toISOString()}` }];
  return [
    {
      level: "fail",
      text: `clock: it is ${Math.round(aheadMs / 1000)} s behind the last run`,
      remedy: "set it with timedatectl; tokens and certificates depend on it",
    },
  ];
}

// Applications that were added before tokens of users were limited to roles which the application may act with.
async function checkApplications(dataDir: string): Promise<Finding[]> {
  const { findApplicationsWithoutRoles } = await import("@platform/auth/upgrade-check");
  return findApplicationsWithoutRoles(join(dataDir, "auth")).map((name) => ({
    level: "warn",
    text: `application ${name}: its users' tokens carry no role, so that topic rules and storage policies do not apply`,
    remedy: `${formatCommand(dataDir, `app allow ${name}`)}, and request the scope platform:use at the sign-in`,
  }));
}

// Routes that users set through the API before such routes were limited in the files, variables and addresses they name.
async function checkRoutes(dataDir: string): Promise<Finding[]> {
  const path = getConfigPath({ dataDir });
  if (!existsSync(path)) return [];
  const { findUnlimitedRoutes } = await import("@platform/gate/upgrade-check");
  try {
    const routes = await findUnlimitedRoutes({ argv: ["--config", path], env: process.env });
    return routes.map(({ route, field }) => ({
      level: "warn",
      text: `route ${route}: ${field} names something that only the operator may name; a user may have set it`,
      remedy: `check who set it; remove it in the console, or move it to routes of ${formatFolder(path)}`,
    }));
  } catch (error) {
    const remedy = "correct or restore the file that is named";
    return [{ level: "fail", text: `gateway: ${describeError(error)}`, remedy }];
  }
}

// Clients of this machine could use the operator's topics without credentials.
async function checkTopics(dataDir: string): Promise<Finding[]> {
  const { findOperatorTopics } = await import("@platform/pulse/upgrade-check");
  const place = { data_dir: join(dataDir, "pulse"), wal_path: LOG_FOLDER };
  const topics = await findOperatorTopics(place);
  if (topics.length === 0) return [];
  const more = topics.length > TOPICS_SHOWN ? ", …" : "";
  const names = `${topics.slice(0, TOPICS_SHOWN).join(", ")}${more}`;
  return [
    {
      level: "ok",
      text: `messaging: ${formatCount(topics.length, "topic")} of the operator (${names})`,
      remedy: `clients on this machine need credentials, too: ${formatCommand(dataDir, "app add NAME")}, or the user operator with PLATFORM_PULSE_TOKEN of ${formatFolder(join(dataDir, "credentials.env"))}`,
    },
  ];
}

async function checkServices(
  dataDir: string,
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<Finding[]> {
  let state: RunningState | undefined;
  try {
    state = readRunning(dataDir);
  } catch (error) {
    const remedy = "run as the user that runs the platform";
    return [{ level: "fail", text: `services: ${describeError(error)}`, remedy }];
  }
  if (state === undefined) {
    const held = await findHeldPorts([...SERVICES, { listeners: [RUNTIME_LISTENER] }], addresses);
    const taken = held.map(({ message }): Finding => ({ level: "fail", text: `port: ${message}` }));
    const free: Finding = { level: "ok", text: "ports: all are free" };
    return [
      {
        level: "ok",
        text: `services: not running; start them with ${formatCommand(dataDir, "up")}`,
      },
      ...(taken.length === 0 ? [free] : taken),
    ];
  }
  const statuses = await Promise.all(state.services.map(readStatus));
  const findings = statuses.map(({ label, status, restarts, detail }): Finding => {
    const text = `${label}: ${status}${detail === "" ? "" : ` (${detail})`}`;
    const remedy = suggestStep(label, status, dataDir);
    if (status !== "up") return { level: "fail", text, remedy };
    if (detail !== "") return { level: "warn", text, remedy };
    if (restarts === 0) return { level: "ok", text };
    return {
      level: "warn",
      text: `${label}: up, restarted ${formatCount(restarts, "time")}`,
      remedy,
    };
  });
  const credentials = await readCredentials(dataDir).catch(() => new Map<string, string>());
  return [...findings, ...(await checkIdentity({ dataDir, state, credentials }))];
}

async function checkIdentity(target: Target): Promise<Finding[]> {
  if (!target.state.services.some(({ name }) => name === "auth")) return [];
  try {
    await connectIdentity(target);
    return [{ level: "ok", text: "command line: identity accepts its credential" }];
  } catch (error) {
    const text = `command line: ${describeError(error)}`;
    return [{ level: "fail", text, remedy: "restart the platform" }];
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function formatSize(bytes: number): string {
  const gibibytes = bytes / 1024 ** 3;
  return gibibytes >= 1 ? `${gibibytes.toFixed(1)} GiB` : `${Math.round(bytes / 1024 ** 2)} MiB`;
}
