// The lifecycle of a service process, seen from outside.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const script = fileURLToPath(new URL("sample-service.ts", import.meta.url));
const bun = fileURLToPath(
  new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);
const runtimes = [["node", process.execPath] as const, ["bun", bun] as const];
const started = new Set<ChildProcess>();
// The option -e of util-linux; that of BSD means something else.
const withoutScript =
  spawnSync("script", ["-qec", "true", "/dev/null"], { stdio: "ignore" }).status === 0
    ? false
    : "the program script is not installed (Debian: bsdutils)";

after(() => {
  for (const child of started) child.kill("SIGKILL");
});

interface Event {
  msg: string;
  listeners?: { port: number }[];
  [field: string]: unknown;
}

function start(
  runtime: string,
  args: string[],
  options: { ipc?: boolean; supervised?: boolean } = {},
) {
  const child = spawn(runtime, [script, ...args], {
    stdio: ["ignore", "pipe", "pipe", options.ipc === true ? "ipc" : "ignore"],
    env: { ...process.env, ...(options.supervised === true ? { PLATFORM_SUPERVISED: "1" } : {}) },
  });
  started.add(child);
  const events: Event[] = [];
  const waiting = new Map<string, (event: Event) => void>();
  createInterface({ input: child.stdout! }).on("line", (line) => {
    const event = JSON.parse(line) as Event;
    events.push(event);
    waiting.get(event.msg)?.(event);
  });
  let stderr = "";
  child.stderr!.on("data", (data) => void (stderr += String(data)));
  const exit = new Promise<{ code: number | null; signal: string | null; stderr: string }>(
    (resolve) => {
      child.on("close", (code, signal) => {
        started.delete(child);
        resolve({ code, signal, stderr });
      });
    },
  );
  const seen = async (msg: string): Promise<Event> => {
    const found = events.find((event) => event.msg === msg);
    return found ?? new Promise((resolve) => waiting.set(msg, resolve));
  };
  return { child, exit, events, seen };
}

for (const [name, runtime] of runtimes) {
  const skip = existsSync(runtime) ? false : `${name} is not installed`;

  test(
    `${name}: reports the actual port, drains its components in reverse order and exits with 0`,
    { skip },
    async () => {
      const service = start(runtime, []);
      const ready = await service.seen("ready");
      const port = ready.listeners![0]!.port;
      assert.ok(port > 0);
      assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "hello");
      service.child.kill("SIGTERM");
      assert.equal((await service.exit).code, 0);
      assert.deepEqual(
        service.events.map((event) => event.msg),
        ["ready", "stopping", "http closed", "database closed", "stopped"],
      );
    },
  );

  test(
    `${name}: a repeated signal within 500 ms is ignored, a later one exits immediately`,
    { skip },
    async () => {
      const service = start(runtime, ["--drain-work-ms", "20000"]);
      await service.seen("ready");
      service.child.kill("SIGINT");
      service.child.kill("SIGINT");
      await service.seen("stopping");
      await new Promise((resolve) => setTimeout(resolve, 700));
      assert.equal(service.child.exitCode, null);
      service.child.kill("SIGTERM");
      assert.equal((await service.exit).code, 143);
    },
  );

  test(
    `${name}: the deadline aborts remaining work and the exit is still graceful`,
    { skip },
    async () => {
      const service = start(runtime, ["--drain-work-ms", "20000", "--drain-timeout-ms", "100"]);
      await service.seen("ready");
      service.child.kill("SIGTERM");
      assert.equal((await service.exit).code, 0);
      assert.equal(service.events.find((event) => event.msg === "http closed")?.["cut"], true);
    },
  );

  test(
    `${name}: a supervised service exits when its supervisor's channel closes`,
    { skip },
    async () => {
      const service = start(runtime, [], { ipc: true, supervised: true });
      const message = await new Promise<{ type: string; listeners: { port: number }[] }>(
        (resolve) => service.child.once("message", (value) => resolve(value as never)),
      );
      assert.equal(message.type, "ready");
      assert.ok(message.listeners[0]!.port > 0);
      // Node emits no "close" for a child whose channel was closed by the parent.
      const exited = once(service.child, "exit");
      service.child.disconnect();
      assert.deepEqual(await exited, [0, null]);
    },
  );

  test(
    `${name}: a failed start and an uncaught error drain the started components and exit with 1`,
    { skip },
    async () => {
      for (const fail of ["start", "later"]) {
        const service = start(runtime, ["--fail", fail]);
        assert.equal((await service.exit).code, 1, fail);
        assert.ok(
          service.events.some((event) => event.msg === "database closed"),
          fail,
        );
      }
    },
  );
}

test("a signal ends a hanging start, and started components are stopped gracefully", async () => {
  const service = start(process.execPath, ["--fail", "hang"]);
  await service.seen("hanging");
  service.child.kill("SIGTERM");
  assert.equal((await service.exit).code, 0);
  assert.ok(service.events.some(({ msg }) => msg === "database closed"));
});

test("a supervised service stays while its start waits for what keeps no process alive", async () => {
  const service = start(process.execPath, ["--fail", "hang"], { ipc: true, supervised: true });
  await service.seen("hanging");
  const outcome = await Promise.race([service.exit, sleep(500, "running")]);
  assert.equal(outcome, "running");
  service.child.kill("SIGTERM");
  await service.seen("database closed");
});

test("SIGHUP reloads, and stops no service", async () => {
  const reloading = start(process.execPath, ["--reload"]);
  const plain = start(process.execPath, []);
  await reloading.seen("ready");
  await plain.seen("ready");
  reloading.child.kill("SIGHUP");
  plain.child.kill("SIGHUP");
  await reloading.seen("reloaded");
  const { listeners } = await plain.seen("ready");
  await plain.seen("SIGHUP ignored: this service has nothing to reload");
  const answer = await fetch(`http://127.0.0.1:${listeners![0]!.port}/`);
  assert.equal(await answer.text(), "hello");
  for (const { child, exit } of [reloading, plain]) {
    child.kill("SIGTERM");
    assert.equal((await exit).code, 0);
  }
});

test(
  "on a terminal, SIGHUP drains only once the terminal is closed",
  { skip: withoutScript },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "terminal-"));
    const log = join(folder, "log");
    // The standard input is the terminal that `script` opens; the shell prints its process number and becomes the service.
    const command = `echo $$ > ${folder}/pid; exec ${process.execPath} ${script} > ${log} 2>&1`;
    const terminal = spawn("script", ["-qec", command, "/dev/null"], { stdio: "ignore" });
    started.add(terminal);
    const waitFor = async (text: string): Promise<void> => {
      const isThere = () => existsSync(log) && readFileSync(log, "utf8").includes(text);
      for (let waits = 0; !isThere(); waits++) {
        assert.ok(waits < 1_000, `${text} is not logged`);
        await sleep(20);
      }
    };
    await waitFor('"msg":"ready"');
    const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
    process.kill(pid, "SIGHUP");
    await waitFor("SIGHUP ignored");
    terminal.kill("SIGKILL");
    await waitFor('"msg":"stopped"');
    assert.match(readFileSync(log, "utf8"), /"reason":"SIGHUP"/);
    rmSync(folder, { recursive: true });
  },
);

test("the error for a port in use names the process and the flag that changes it", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => holder.once("listening", resolve));
  const { port } = holder.address() as AddressInfo;
  const service = start(process.execPath, ["--addr", `127.0.0.1:${port}`]);
  assert.equal((await service.exit).code, 1);
  holder.close();
  const event = service.events.find(({ msg }) => msg === "startup failed");
  const message = (event!["error"] as { message: string }).message;
  assert.match(message, new RegExp(`^127\\.0\\.0\\.1 port ${port} is in use`));
  assert.match(message, /choose another with --addr$/);
  if (process.platform === "linux")
    assert.ok(message.includes(`(process ${process.pid})`), message);
});

test("an invalid command line is one message on standard error and exit code 2", async () => {
  const service = start(process.execPath, ["--adr", "x"]);
  assert.deepEqual(await service.exit, {
    code: 2,
    signal: null,
    stderr: 'sample: --adr: unknown flag; did you mean --addr?\nsample: see "sample --help"\n',
  });
});

test("a command's exit code is the process's", async () => {
  const child = spawn(process.execPath, [script, "greet", "you"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.on("data", (data) => void (out += String(data)));
  const code = await new Promise((resolve) => child.on("close", resolve));
  assert.deepEqual([code, out], [7, "hello you\n"]);
});

test("a supervisor that exits while its service loads leaves no service behind", async () => {
  // As modules that take a moment to load: the channel's end is seen before the service asks for it.
  const slow = "data:text/javascript,await new Promise((done) => setTimeout(done, 500))";
  const child = spawn(process.execPath, ["--import", slow, script], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, PLATFORM_SUPERVISED: "1" },
  });
  started.add(child);
  const exited = once(child, "exit");
  child.disconnect();
  assert.deepEqual(await exited, [0, null]);
});
