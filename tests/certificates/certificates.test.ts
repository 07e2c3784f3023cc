// Every service as a process: certificates are replaced under load, and SIGHUP stops none.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { type StagedProcess, stageProcess } from "../stage/process.ts";
import { Client, HTTP, KAFKA, MQTT, type Protocol, SMTP, STOMP } from "./listeners.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const START_MS = 180_000;
/** Two seconds, on a busy machine. */
const RENEWAL_MS = 60_000;

interface Service {
  name: string;
  bin: string;
  args?: readonly string[];
  env: Record<string, string>;
  /** Protocols by the names of listeners. */
  listeners: Readonly<Record<string, Protocol>>;
}

interface Running extends Service {
  process: StagedProcess;
  ports: Map<string, number>;
}

interface LogLine {
  msg: string;
  listeners?: { name: string; port: number }[];
}

const ANY = "127.0.0.1:0";
let folder: string;
let services: Running[] = [];
const processes: StagedProcess[] = [];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "certificates-"));
  if (skip !== false) return;
  issue("first");
  services = await Promise.all(listServices().map(startService));
});

after(async () => {
  await Promise.all(processes.map((process) => process.stop()));
  rmSync(folder, { recursive: true, force: true });
});

function listServices(): Service[] {
  const [cert, key] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  return [
    {
      name: "gateway",
      bin: "platform-gate",
      args: ["--config", join(folder, "gate.json")],
      env: { PLATFORM_GATE_ADDR: ANY, PLATFORM_GATE_TLS_CERT: cert, PLATFORM_GATE_TLS_KEY: key },
      listeners: { https: HTTP },
    },
    {
      name: "identity",
      bin: "platform-auth",
      env: { PLATFORM_AUTH_ADDR: ANY, PLATFORM_AUTH_DATA_DIR: join(folder, "auth") },
      listeners: {},
    },
    {
      name: "mail",
      bin: "platform-notify",
      env: {
        PLATFORM_NOTIFY_ADDR: ANY,
        PLATFORM_NOTIFY_DATA_DIR: join(folder, "notify"),
        PLATFORM_NOTIFY_INBOUND_PORT: "0",
        PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
        PLATFORM_NOTIFY_INBOUND_RATE_PER_MINUTE: "0",
        PLATFORM_NOTIFY_TLS_CERT: cert,
        PLATFORM_NOTIFY_TLS_KEY: key,
        // The former names.
        PLATFORM_NOTIFY_INBOUND_TLS_CERT_FILE: cert,
        PLATFORM_NOTIFY_INBOUND_TLS_KEY_FILE: key,
      },
      listeners: { https: HTTP, smtp: SMTP },
    },
    {
      name: "tunnel",
      bin: "platform-tunnel",
      args: ["server"],
      env: {
        PLATFORM_TUNNEL_ADDR: ANY,
        PLATFORM_TUNNEL_DATA_DIR: join(folder, "tunnel"),
        PLATFORM_TUNNEL_TLS_CERT: cert,
        PLATFORM_TUNNEL_TLS_KEY: key,
      },
      listeners: { https: HTTP },
    },
    {
      name: "storage",
      bin: "platform-vaultd",
      env: {
        PLATFORM_VAULT_ADDR: ANY,
        PLATFORM_VAULT_ADMIN_ADDR: ANY,
        PLATFORM_VAULT_DATA_DIR: join(folder, "vault"),
        PLATFORM_VAULT_TLS_CERT: cert,
        PLATFORM_VAULT_TLS_KEY: key,
      },
      listeners: { http: HTTP, admin: HTTP },
    },
    {
      name: "messaging",
      bin: "platform-pulse",
      env: {
        PLATFORM_PULSE_HTTP_ADDR: ANY,
        PLATFORM_PULSE_KAFKA_ADDR: ANY,
        PLATFORM_PULSE_KAFKA_TLS_ADDR: ANY,
        PLATFORM_PULSE_MQTT_ADDR: ANY,
        PLATFORM_PULSE_MQTT_TLS_ADDR: ANY,
        PLATFORM_PULSE_STOMP_ADDR: ANY,
        PLATFORM_PULSE_STOMP_TLS_ADDR: ANY,
        PLATFORM_PULSE_DATA_DIR: join(folder, "pulse"),
        PLATFORM_PULSE_TLS_CERT_FILE: cert,
        PLATFORM_PULSE_TLS_KEY_FILE: key,
      },
      listeners: {
        https: HTTP,
        "kafka-tls": KAFKA,
        "mqtt-tls": MQTT,
        stomp: STOMP,
        "stomp-tls": STOMP,
      },
    },
  ];
}

/** Makes a self-signed certificate, and replaces the files of the services one after the other. */
function issue(name: string): void {
  const made = makeCertificate(folder, "draft", { subject: `/CN=${name}` });
  renameSync(made.key, join(folder, "tls.key"));
  renameSync(made.cert, join(folder, "tls.crt"));
}

async function startService(service: Service): Promise<Running> {
  const cwd = join(folder, `cwd-${service.name}`);
  mkdirSync(cwd);
  writeFileSync(join(folder, "gate.json"), "{}");
  const process = stageProcess({
    name: service.name,
    command: join(root, "node_modules/.bin/node"),
    args: [join(root, "bin", `${service.bin}.js`), ...(service.args ?? [])],
    env: { PLATFORM_LOG_FORMAT: "json", ...service.env },
    cwd,
  });
  processes.push(process);
  const ready = await waitForLine(process, "ready", START_MS);
  return {
    ...service,
    process,
    ports: new Map(ready.listeners?.map(({ name, port }) => [name, port])),
  };
}

function readLog(process: StagedProcess): LogLine[] {
  return process
    .readOutput()
    .split("\n")
    .flatMap((line) =>
      line.startsWith("{") && line.endsWith("}") ? [JSON.parse(line) as LogLine] : [],
    );
}

function waitForLine(process: StagedProcess, msg: string, ms: number): Promise<LogLine> {
  const describe = (): string => `${process.name} does not log "${msg}": ${process.readOutput()}`;
  const look = (): LogLine | undefined => {
    const found = readLog(process).find((line) => line.msg === msg);
    assert.ok(found !== undefined || !process.hasExited(), describe());
    return found;
  };
  return waitFor(look, describe, ms);
}

/** Asks on one connection, and opens others, until it is stopped; returns the names of certificates in their order. */
async function load(port: number, protocol: Protocol, isStopped: () => boolean, names: string[]) {
  const steady = await Client.open(port, protocol);
  while (!isStopped()) {
    const other = await Client.open(port, protocol);
    await Promise.all([steady.ask(), other.ask()]);
    if (names.at(-1) !== other.serverName) names.push(other.serverName);
    other.close();
    await sleep(50);
  }
  await steady.ask();
  assert.equal(steady.serverName, "first");
  steady.close();
}

test("certificates are replaced under load, and no connection breaks", { skip }, async () => {
  const listeners = services.flatMap(({ name, ports, listeners: protocols }) =>
    Object.entries(protocols).map(([listener, protocol]) => {
      const port = ports.get(listener);
      assert.ok(port !== undefined, `${name} does not report the listener ${listener}`);
      return { label: `${name} ${listener}`, port, protocol, names: [] as string[] };
    }),
  );
  let isStopped = false;
  const loads = listeners.map(({ label, port, protocol, names }) =>
    load(port, protocol, () => isStopped, names).catch((cause: unknown) => {
      throw new Error(`${label} failed under load`, { cause });
    }),
  );
  const all = Promise.all(loads);
  const until = async (name: string): Promise<void> => {
    const deadline = performance.now() + RENEWAL_MS;
    const isSeen = ({ names }: { names: string[] }) => names.includes(name);
    for (; !listeners.every(isSeen); await sleep(20)) {
      const waiting = listeners.filter((one) => !isSeen(one)).map(({ label }) => label);
      assert.ok(performance.now() < deadline, `not seen: ${name} at ${waiting.join(", ")}`);
    }
  };
  try {
    await Promise.race([all, until("first")]);
    issue("second");
    await Promise.race([all, until("second")]);
  } finally {
    isStopped = true;
  }
  await all;
  for (const { label, names } of listeners) assert.deepEqual(names, ["first", "second"], label);
});

test("SIGHUP stops no service", { skip }, async () => {
  const reloads: Readonly<Record<string, string>> = {
    gateway: "configuration reloaded",
    identity: "SIGHUP ignored: this service has nothing to reload",
  };
  issue("third");
  for (const { process } of services) process.kill("SIGHUP");
  for (const { name, process, ports, listeners } of services) {
    const msg = reloads[name] ?? "reloaded";
    await waitForLine(process, msg, START_MS);
    for (const [listener, protocol] of Object.entries(listeners)) {
      const client = await Client.open(ports.get(listener)!, protocol);
      assert.equal(client.serverName, "third", `${name} ${listener}`);
      await client.ask();
      client.close();
    }
    assert.ok(!process.hasExited(), name);
  }
});
