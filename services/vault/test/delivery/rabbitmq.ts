// RabbitMQ with its STOMP listener, from its Debian package, with its own folder and ports.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort } from "@platform/kernel/testing";

const SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const START_MS_MAX = 60_000;

/** The reason why RabbitMQ cannot run here, or false. */
export const rabbitMissing = existsSync(SERVER)
  ? false
  : "rabbitmq-server is not installed (tools/install-peers events)";
if (rabbitMissing !== false && process.env["PLATFORM_TEST_PEERS"] === "required")
  throw new Error(rabbitMissing);

/** A running broker with the user `vault`, password `s3cret:pass`. */
export interface RabbitMq {
  stompPort: number;
  stop: () => Promise<void>;
}

/** Starts a broker, which takes some seconds. */
export async function startRabbitMq(): Promise<RabbitMq> {
  const folder = mkdtempSync(join(tmpdir(), "rabbitmq-"));
  const [amqpPort, stompPort, distPort, epmdPort] = await Promise.all(
    Array.from({ length: 4 }, findFreePort),
  );
  writeFileSync(join(folder, "plugins"), "[rabbitmq_stomp].\n");
  writeFileSync(
    join(folder, "rabbitmq.conf"),
    [
      `listeners.tcp.default = 127.0.0.1:${amqpPort}`,
      `stomp.listeners.tcp.1 = 127.0.0.1:${stompPort}`,
      "default_user = vault",
      "default_pass = s3cret:pass",
      "",
    ].join("\n"),
  );
  const env = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: folder,
    RABBITMQ_NODENAME: `vault${process.pid}@localhost`,
    RABBITMQ_MNESIA_BASE: join(folder, "mnesia"),
    RABBITMQ_LOG_BASE: join(folder, "log"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq"),
    RABBITMQ_PID_FILE: join(folder, "pid"),
    RABBITMQ_DIST_PORT: String(distPort),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: "127.0.0.1",
  };
  // The port mapper as our own child process: RabbitMQ would leave one running.
  const mapper = spawn("epmd", ["-port", String(epmdPort)], { env, stdio: "ignore" });
  mapper.once("error", () => undefined);
  const child = spawn(SERVER, { env, stdio: "ignore", detached: true });
  const stop = async () => {
    await endGroup(child);
    mapper.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await waitForPort(stompPort!, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stompPort: stompPort!, stop };
}

async function waitForPort(port: number, child: ChildProcess): Promise<void> {
  const end = performance.now() + START_MS_MAX;
  while (performance.now() < end && child.exitCode === null) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => (socket.destroy(), resolve(true)));
      socket.once("error", () => resolve(false));
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("RabbitMQ did not start");
}

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  process.kill(-child.pid!, "SIGKILL");
  await exited;
}
