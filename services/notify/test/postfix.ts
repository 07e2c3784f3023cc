// A private Postfix for tests: its own configuration, queue and port; stopped by its own process.
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";

/** A running Postfix. */
export interface Postfix {
  port: number;
  /** Process that all daemons descend from. */
  pid: number;
  /** Number of messages in its queue. */
  countQueued(): number;
  /** The lines of its log. */
  readLog(): string;
  stop(): Promise<void>;
}

/** Options of {@link startPostfix}. */
export interface PostfixOptions {
  /** Port on this machine to which all mail is forwarded. */
  relayPort: number;
  /** Replies to RCPT by address, such as `550 5.1.1 User unknown`. */
  recipients?: Readonly<Record<string, string>>;
  /** Additional lines of main.cf. */
  settings?: readonly string[];
  /** Program and arguments that run it, such as `taskset -c 1`. */
  prefix?: readonly string[];
}

const PROGRAM = "/usr/sbin/postfix";
const SERVICES = `
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
local unix - n n - - local
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`;

/** Returns the reason to skip tests of Postfix; with `PLATFORM_TEST_PEERS=required` they are never skipped. */
export function findPostfixSkip(): string | undefined {
  if (process.env["PLATFORM_TEST_PEERS"] === "required") return undefined;
  if (!existsSync(PROGRAM)) return "the Debian package postfix is not installed";
  return process.getuid?.() === 0 ? undefined : "Postfix is started as root only";
}

/** Starts Postfix on a free port. */
export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const folder = mkdtempSync(join(tmpdir(), "postfix-"));
  chmodSync(folder, 0o755);
  const port = await findFreePort();
  const [config, queue, data] = ["etc", "queue", "data"].map((name) => join(folder, name));
  for (const path of [config!, queue!, data!]) mkdirSync(path);
  execFileSync("chown", ["postfix", data!]);
  const log = join(folder, "mail.log");
  const access = Object.entries(options.recipients ?? {}).map(
    ([to, reply]) => `{${to} = ${reply}}`,
  );
  const restrictions = [
    ...(access.length === 0 ? [] : [`check_recipient_access inline:{${access.join(", ")}}`]),
    "permit_mynetworks",
    "reject",
  ];
  const settings = [
    "compatibility_level = 3.6",
    `queue_directory = ${queue}`,
    `data_directory = ${data}`,
    `maillog_file = ${log}`,
    `maillog_file_prefixes = ${folder}`,
    "inet_interfaces = 127.0.0.1",
    "inet_protocols = ipv4",
    "mynetworks = 127.0.0.0/8",
    "myhostname = relay.test",
    "mydestination =",
    "alias_maps =",
    "smtpd_tls_security_level = none",
    // Clients are not slowed down after errors.
    "smtpd_error_sleep_time = 0",
    `relayhost = [127.0.0.1]:${options.relayPort}`,
    `smtpd_recipient_restrictions = ${restrictions.join(", ")}`,
    ...(options.settings ?? []),
  ];
  writeFileSync(join(config!, "main.cf"), `${settings.join("\n")}\n`);
  writeFileSync(join(config!, "master.cf"), `127.0.0.1:${port} inet n - n - - smtpd\n${SERVICES}`);
  const [command, ...args] = [...(options.prefix ?? []), PROGRAM, "-c", config!, "start-fg"];
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  // The master leads a group of its own, which its daemons belong to.
  const signal = (name: NodeJS.Signals): void => {
    const path = join(queue!, "pid", "master.pid");
    const master = existsSync(path) ? Number(readFileSync(path, "utf8")) : 0;
    for (const leader of [master, hasEnded() ? 0 : (child.pid ?? 0)]) {
      if (leader > 0) signalGroup(leader, name);
    }
  };
  const kill = (): void => signal("SIGKILL");
  process.once("exit", kill);
  const readLog = (): string => (existsSync(log) ? readFileSync(log, "utf8") : "");
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    signal("SIGTERM");
    for (let i = 0; i < 250 && !hasEnded(); i += 1) await sleep(20);
    if (!hasEnded()) kill();
    // A daemon that outlives its master would keep the pipe and with it this process.
    child.stderr.destroy();
    child.unref();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await waitForPort(port, () => (hasEnded() ? `${errors}\n${readLog()}` : undefined));
  } catch (error) {
    await stop();
    throw error;
  }
  const countQueued = (): number =>
    ["incoming", "active", "deferred"].reduce(
      (sum, name) => sum + countFiles(join(queue!, name)),
      0,
    );
  return { port, pid: child.pid ?? 0, countQueued, readLog, stop };
}

// The queue may be hashed into folders.
function countFiles(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

function signalGroup(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function waitForPort(port: number, readFailure: () => string | undefined): Promise<void> {
  // Its start script runs hundreds of programs, which take long on a busy machine.
  const endsMs = performance.now() + 90_000;
  while (performance.now() < endsMs) {
    const failure = readFailure();
    if (failure !== undefined) throw new Error(`Postfix did not start: ${failure}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("data", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
    if (isOpen) return;
    await sleep(50);
  }
  throw new Error("Postfix did not start in time");
}
