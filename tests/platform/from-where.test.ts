// Listeners and the clients that they take for programs on this machine: each listener of `platform up`, and of a broker without
// credentials, from this machine, from another address, through the gateway, through a tunnel and as a proxy would ask.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { FORWARDING_HEADERS } from "@platform/kernel/http";
import { PulseProcess } from "../../services/pulse/test/fixture/pulse-process.ts";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { Cleanup, startTestClient } from "../../services/tunnel/test/fixture/stage.ts";
import { isAdmitted, readStatus, type Probe, type ProbeKind } from "../stage/local-probe.ts";
import { findProgram } from "../stage/program.ts";

/**
 * Clients that are admitted without credentials:
 * - `machine`: programs on this machine.
 * - `nobody`.
 */
type Admitted = "machine" | "nobody";

/** A listener, what is asked of it, and who gets it. `at` is the place behind the gateway, if there is one. */
interface Row {
  service: string;
  listener: string;
  kind: ProbeKind;
  path?: string;
  admitted: Admitted;
  at?: { prefix: string } | { host: string };
}

const BARE = "broker without credentials";
const AT_PULSE = { prefix: "/pulse" };
const AT_BARE = { prefix: "/bare" };

// Under `platform up` every service has credentials: this machine gets metrics and the first page, nothing else.
const rows: readonly Row[] = [
  { service: "gate", listener: "http", kind: "get", path: "/", admitted: "machine" },
  { service: "gate", listener: "http", kind: "get", path: "/api/v1/routes", admitted: "nobody" },
  {
    service: "gate",
    listener: "http",
    kind: "websocket",
    path: "/api/v1/admin/live",
    admitted: "nobody",
  },
  {
    service: "gate",
    listener: "console",
    kind: "websocket",
    path: "/console/live",
    admitted: "nobody",
  },
  {
    service: "auth",
    listener: "http",
    kind: "get",
    path: "/metrics",
    admitted: "machine",
    at: { host: "identity.localhost" },
  },
  {
    service: "auth",
    listener: "http",
    kind: "get",
    path: "/api/v1/users",
    admitted: "nobody",
    at: { host: "identity.localhost" },
  },
  {
    service: "notify",
    listener: "http",
    kind: "get",
    path: "/metrics",
    admitted: "machine",
    at: { prefix: "/notify" },
  },
  {
    service: "notify",
    listener: "http",
    kind: "get",
    path: "/api/v1/inbox",
    admitted: "nobody",
    at: { prefix: "/notify" },
  },
  {
    service: "vault",
    listener: "http",
    kind: "get",
    path: "/",
    admitted: "nobody",
    at: { host: "vault.localhost" },
  },
  { service: "vault", listener: "admin", kind: "get", path: "/metrics", admitted: "machine" },
  {
    service: "vault",
    listener: "admin",
    kind: "get",
    path: "/api/v1/buckets",
    admitted: "nobody",
  },
  { service: "tunnel", listener: "http", kind: "get", path: "/metrics", admitted: "machine" },
  { service: "tunnel", listener: "http", kind: "get", path: "/api/v1/tunnels", admitted: "nobody" },
  {
    service: "tunnel",
    listener: "http",
    kind: "websocket",
    path: "/ws/connect",
    admitted: "nobody",
  },
  { service: "runtime", listener: "http", kind: "get", path: "/metrics", admitted: "machine" },
  {
    service: "runtime",
    listener: "http",
    kind: "get",
    path: "/api/v1/services",
    admitted: "nobody",
  },
  {
    service: "pulse",
    listener: "http",
    kind: "get",
    path: "/metrics",
    admitted: "machine",
    at: AT_PULSE,
  },
  {
    service: "pulse",
    listener: "http",
    kind: "get",
    path: "/api/v1/topics",
    admitted: "nobody",
    at: AT_PULSE,
  },
  {
    service: "pulse",
    listener: "http",
    kind: "websocket",
    path: "/ws/subscribe/t",
    admitted: "nobody",
    at: AT_PULSE,
  },
  {
    service: "pulse",
    listener: "http",
    kind: "websocket",
    path: "/api/v1/admin/live",
    admitted: "nobody",
    at: AT_PULSE,
  },
  {
    service: "pulse",
    listener: "http",
    kind: "mqtt-websocket",
    path: "/mqtt",
    admitted: "nobody",
    at: AT_PULSE,
  },
  {
    service: "pulse",
    listener: "http",
    kind: "stomp-websocket",
    path: "/stomp",
    admitted: "nobody",
    at: AT_PULSE,
  },
  { service: "pulse", listener: "kafka", kind: "kafka", admitted: "nobody" },
  { service: "pulse", listener: "mqtt", kind: "mqtt", admitted: "nobody" },
  { service: "pulse", listener: "stomp", kind: "stomp", admitted: "nobody" },
  {
    service: BARE,
    listener: "http",
    kind: "get",
    path: "/api/v1/topics",
    admitted: "machine",
    at: AT_BARE,
  },
  {
    service: BARE,
    listener: "http",
    kind: "websocket",
    path: "/ws/subscribe/t",
    admitted: "machine",
    at: AT_BARE,
  },
  {
    service: BARE,
    listener: "http",
    kind: "websocket",
    path: "/api/v1/admin/live",
    admitted: "machine",
    at: AT_BARE,
  },
  {
    service: BARE,
    listener: "http",
    kind: "mqtt-websocket",
    path: "/mqtt",
    admitted: "machine",
    at: AT_BARE,
  },
  {
    service: BARE,
    listener: "http",
    kind: "stomp-websocket",
    path: "/stomp",
    admitted: "machine",
    at: AT_BARE,
  },
  { service: BARE, listener: "kafka", kind: "kafka", admitted: "machine" },
  { service: BARE, listener: "mqtt", kind: "mqtt", admitted: "machine" },
  { service: BARE, listener: "stomp", kind: "stomp", admitted: "machine" },
];

/** A way to this machine's listener: how it is asked, and whether that is a program on this machine. */
interface Way {
  name: string;
  address: string;
  headers: (port: number) => Record<string, string>;
  isMachine: boolean;
  /** False if only header fields tell it apart: the protocols on TCP have none. */
  isForTcp: boolean;
}

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((item) => item?.address === "::1");
const local = (port: number) => ({ host: `localhost:${port}` });
const ways: readonly Way[] = [
  { name: "this machine", address: "127.0.0.1", headers: local, isMachine: true, isForTcp: true },
  {
    name: "this machine over IPv6",
    address: "::1",
    headers: (port: number) => ({ host: `[::1]:${port}` }),
    isMachine: true,
    isForTcp: true,
  },
  {
    name: "this machine, IPv4-mapped",
    address: "::ffff:127.0.0.1",
    // As browsers write it.
    headers: (port: number) => ({ host: `[::ffff:7f00:1]:${port}` }),
    isMachine: true,
    isForTcp: true,
  },
  {
    name: "localhost.",
    address: "127.0.0.1",
    headers: (port: number) => ({ host: `localhost.:${port}` }),
    isMachine: true,
    isForTcp: false,
  },
  {
    name: "a name that resolves to loopback",
    address: "127.0.0.1",
    headers: (port: number) => ({ host: `rebound.example:${port}` }),
    isMachine: false,
    isForTcp: false,
  },
  {
    name: "a page of such a name",
    address: "127.0.0.1",
    headers: (port: number) => ({
      host: `rebound.example:${port}`,
      origin: `http://rebound.example:${port}`,
    }),
    isMachine: false,
    isForTcp: false,
  },
  {
    name: "a page of another origin",
    address: "127.0.0.1",
    headers: (port: number) => ({ ...local(port), origin: "https://page.example" }),
    isMachine: false,
    isForTcp: false,
  },
  ...FORWARDING_HEADERS.map((name) => ({
    name: `a proxy that adds ${name}`,
    address: "127.0.0.1",
    headers: (port: number) => ({
      ...local(port),
      [name]: name === "forwarded" ? "for=127.0.0.1" : "127.0.0.1",
    }),
    isMachine: false,
    isForTcp: false,
  })),
].filter(({ address }) => hasIpv6 || !address.includes(":"));

const everywhere = anyPort.map((value) => (value === "127.0.0.1:0" ? anyAddress() : value));
const cleanup = new Cleanup();
let up: ReturnType<typeof run>;
let started: Started;
let bare: PulseProcess;
/** The public host of the tunnel to each port. */
let tunnels: Map<number, string>;

before(async () => {
  const data = makeFolder();
  up = run(["up", "--json", "--data", data, ...everywhere]);
  bare = new PulseProcess(makeFolder(), {
    PLATFORM_PULSE_HTTP_ADDR: anyAddress(),
    PLATFORM_PULSE_KAFKA_ADDR: anyAddress(),
    PLATFORM_PULSE_MQTT_ADDR: anyAddress(),
    PLATFORM_PULSE_STOMP_ADDR: anyAddress(),
  });
  await bare.start();
  started = await up.waitFor(findStarted);
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  await addRoute(credentials["PLATFORM_GATE_AUTH_TOKEN"] ?? "");
  tunnels = await openTunnels(credentials["PLATFORM_TUNNEL_AUTH_TOKEN"] ?? "");
});
after(async () => {
  await cleanup.run();
  await bare.kill();
  up.child.kill("SIGTERM");
  await up.exit;
});

for (const row of rows) {
  test(`${titleOf(row)}: ${row.admitted === "nobody" ? "nobody" : "only this machine"}`, async () => {
    const port = portOf(row);
    const asked = ways.filter(({ isForTcp }) => isForTcp || row.path !== undefined);
    const probes = asked.map(({ address, headers }) => toProbe(row, address, port, headers(port)));
    const through = [...throughGateway(row), ...throughTunnel(row)];
    // A path that does not exist would be refused as well.
    if (row.kind === "get" && row.admitted === "nobody") {
      assert.ok([401, 403].includes(await readStatus(probes[0]!)));
    }
    const answers = await Promise.all(
      [...probes, ...through.map(({ probe }) => probe)].map(isAdmitted),
    );
    const names = [...asked, ...through].map(({ name }) => name);
    const expected = [
      ...asked.map(({ isMachine }) => isMachine && row.admitted === "machine"),
      ...through.map(() => false),
    ];
    assert.deepEqual(pair(names, answers), pair(names, expected));
  });
}

describe("from another address", { skip: skipNamespaces() }, () => {
  test("nobody is admitted by any listener, whatever the Host", async () => {
    const { hostAddress, ask } = openNamespace();
    const hosts = rows.flatMap((row) => [
      { row, host: "localhost" },
      ...(row.path === undefined ? [] : [{ row, host: hostAddress }]),
    ]);
    const probes = hosts.map(({ row, host }) => {
      const port = portOf(row);
      return toProbe(row, hostAddress, port, { host: `${host}:${port}` });
    });
    const answers = await ask(probes);
    const names = hosts.map(({ row, host }) => `${titleOf(row)} at ${host}`);
    assert.deepEqual(
      pair(names, answers),
      pair(
        names,
        names.map(() => false),
      ),
    );
  });
});

function pair(names: readonly string[], answers: readonly boolean[]): Record<string, boolean> {
  return Object.fromEntries(names.map((name, at) => [name, answers[at]!]));
}

function titleOf({ service, listener, kind, path }: Row): string {
  return `${service} ${listener} ${kind}${path === undefined ? "" : ` ${path}`}`;
}

function toProbe(row: Row, address: string, port: number, headers: Record<string, string>): Probe {
  const { kind, path } = row;
  return { kind, address, port, headers, ...(path === undefined ? {} : { path }) };
}

function anyAddress(): string {
  return hasIpv6 ? "[::]:0" : "0.0.0.0:0";
}

function portOf({ service, listener }: Pick<Row, "service" | "listener">): number {
  if (service === BARE) {
    return { http: bare.port, kafka: bare.kafkaPort, mqtt: bare.mqttPort, stomp: bare.stompPort }[
      listener
    ]!;
  }
  if (service === "runtime") return Number(new URL(started.api_url).port);
  return find(started, service).listeners.find(({ name }) => name === listener)!.port;
}

async function addRoute(token: string): Promise<void> {
  const gateway = portOf({ service: "gate", listener: "http" });
  const response = await fetch(`http://127.0.0.1:${gateway}/api/v1/routes`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({
      prefix: AT_BARE.prefix,
      target: bare.url,
      strip_prefix: true,
      auth: { type: "none" },
    }),
  });
  assert.equal(response.status, 200, await response.text());
}

/** One client with a tunnel to each HTTP listener. */
async function openTunnels(tokens: string): Promise<Map<number, string>> {
  const ports = [...new Set(rows.filter(({ path }) => path !== undefined).map(portOf))];
  const port = portOf({ service: "tunnel", listener: "http" });
  const { welcomes, losses, refusals } = await startTestClient(cleanup, {
    port,
    token: tokens.split(",")[0]!.replace(/^[^:]*:/, ""),
    tunnels: ports.map((target) => ({ target: String(target) })),
  });
  const [welcome] = welcomes;
  assert.ok(welcome !== undefined, [...losses, ...refusals].join(", "));
  return new Map(
    welcome.tunnels.map((tunnel, at) => {
      assert.ok("url" in tunnel, JSON.stringify(tunnel));
      return [ports[at]!, new URL(tunnel.url).host];
    }),
  );
}

function throughGateway({ kind, path, at }: Row): { name: string; probe: Probe }[] {
  if (at === undefined) return [];
  const port = portOf({ service: "gate", listener: "http" });
  const host = "host" in at ? `${at.host}:${port}` : `localhost:${port}`;
  const below = "prefix" in at ? `${at.prefix}${path}` : path!;
  return [
    {
      name: "through the gateway",
      probe: { kind, address: "127.0.0.1", port, path: below, headers: { host } },
    },
  ];
}

function throughTunnel(row: Row): { name: string; probe: Probe }[] {
  const host = tunnels.get(portOf(row));
  if (host === undefined || row.path === undefined) return [];
  const port = portOf({ service: "tunnel", listener: "http" });
  return [{ name: "through a tunnel", probe: toProbe(row, "127.0.0.1", port, { host }) }];
}

function skipNamespaces(): string | false {
  if (process.getuid?.() !== 0) return "network namespaces require root";
  const missing = ["ip", "nsenter", "unshare"].find((name) => findProgram(name) === undefined);
  if (missing !== undefined) return `${missing} is not installed`;
  try {
    execFileSync("unshare", ["--net", "true"], { stdio: "pipe" });
    return false;
  } catch {
    return "network namespaces are not allowed here";
  }
}

/** A network namespace with one link to this machine: its programs come from another address. */
function openNamespace() {
  const holder = spawn("unshare", ["--net", "sleep", "600"], { stdio: "ignore" });
  cleanup.add(() => void holder.kill("SIGKILL"));
  const link = `pf${process.pid}`;
  const [hostAddress, otherAddress] = ["198.18.77.1", "198.18.77.2"];
  const ip = (...args: string[]) => execFileSync("ip", args, { stdio: "pipe" });
  const inside = (...args: string[]) => ["--target", String(holder.pid), "--net", ...args];
  ip("link", "add", `${link}a`, "type", "veth", "peer", "name", `${link}b`);
  // The other end goes with it.
  cleanup.add(() => ip("link", "del", `${link}a`));
  ip("link", "set", `${link}b`, "netns", String(holder.pid));
  ip("address", "add", `${hostAddress}/30`, "dev", `${link}a`);
  ip("link", "set", `${link}a`, "up");
  const nsenter = (...args: string[]) =>
    execFileSync("nsenter", inside(...args), { stdio: "pipe" });
  nsenter("ip", "address", "add", `${otherAddress}/30`, "dev", `${link}b`);
  nsenter("ip", "link", "set", `${link}b`, "up");
  const program = fileURLToPath(new URL("../stage/local-probe.ts", import.meta.url));
  const ask = async (probes: readonly Probe[]): Promise<boolean[]> => {
    const child = spawn("nsenter", inside(process.execPath, program), {
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdin.end(JSON.stringify(probes));
    return JSON.parse(await text(child.stdout)) as boolean[];
  };
  return { hostAddress, ask };
}
