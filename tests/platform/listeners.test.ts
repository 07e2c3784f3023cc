// Listeners without a host: all addresses of IPv6 and IPv4, all of IPv4 on machines without IPv6; and how they drain.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { isAdmitted, type Probe } from "../stage/local-probe.ts";
import { SECRETS, SERVICE_NAMES, stageService, type StagedService } from "../stage/services.ts";

const withoutIpv6 = fileURLToPath(new URL("../stage/without-ipv6.py", import.meta.url));
/** A second on an idle machine; the deadline of the drain is 30 s. */
const DRAIN_MS = 10_000;
const folder = mkdtempSync(join(tmpdir(), "platform-listeners-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("services serve IPv4 and IPv6, and end with live feeds and idle clients", async (t) => {
  const running = await startAll(t, "both");
  const hasIpv6 = listAddresses().includes("::1");
  for (const { name, listeners } of running) {
    for (const [listener, { host, port }] of listeners) {
      assert.equal(host, hasIpv6 ? "::" : "0.0.0.0", `${name} ${listener}`);
      for (const address of hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"]) {
        const socket = await open(port, address);
        socket.destroy();
      }
    }
  }
  await t.test("messaging admits programs of this machine over both", () =>
    probeMessaging(running),
  );
  for (const service of running) {
    await t.test(`${service.name} drains`, async (st) => {
      const idle = await leaveClients(service);
      const feed = await openFeed(service);
      const startedMs = performance.now();
      const ended = once(feed, "close");
      const code = await service.process.stop();
      const tookMs = performance.now() - startedMs;
      st.diagnostic(`${Math.round(tookMs)} ms`);
      assert.equal(code, 0, service.process.readOutput());
      assert.ok(tookMs < DRAIN_MS, `${tookMs} ms: ${service.process.readOutput()}`);
      await ended;
      for (const socket of idle) socket.destroy();
    });
  }
});

test(
  "without a host, every listener is on 0.0.0.0 on a machine without IPv6",
  { skip: skipSeccomp() },
  async (t) => {
    const running = await startAll(t, "without", ["python3", withoutIpv6]);
    for (const { name, listeners } of running) {
      assert.ok(listeners.size > 0, name);
      for (const [listener, { host, port }] of listeners) {
        assert.equal(host, "0.0.0.0", `${name} ${listener}`);
        (await open(port, "127.0.0.1")).destroy();
      }
    }
  },
);

async function startAll(
  t: { after: (hook: () => Promise<void>) => void },
  label: string,
  launcher?: readonly string[],
): Promise<StagedService[]> {
  const place = mkdtempSync(join(folder, label));
  const started = await Promise.allSettled(
    SERVICE_NAMES.map((name) => stageService(name, place, launcher)),
  );
  const running = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  t.after(async () => {
    await Promise.all(running.map(({ process }) => process.stop()));
  });
  const failed = started.find((one) => one.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return running;
}

/** Opens idle connections to all listeners: one that sent nothing, one that keeps its connection after a request. */
async function leaveClients({ listeners }: StagedService): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (const [name, { port }] of listeners) {
    sockets.push(await open(port, "127.0.0.1"));
    if (!["http", "admin", "console"].includes(name)) continue;
    const kept = await open(port, "127.0.0.1");
    kept.write(`GET /healthz HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`);
    await once(kept, "data");
    sockets.push(kept);
  }
  return sockets;
}

async function openFeed(service: StagedService): Promise<WebSocket> {
  const { port } = service.listeners.get("admin") ?? service.listeners.get("http")!;
  const origin = `http://localhost:${port}`;
  const cookie = await signIn(service.name, origin);
  const path = cookie === undefined ? "/api/v1/admin/live" : "/console/live";
  const socket = new WebSocket(`ws://localhost:${port}${path}`, {
    headers: { origin, ...(cookie === undefined ? {} : { cookie }) },
  });
  socket.on("error", (error) => assert.fail(`${service.name}: ${error.message}`));
  await once(socket, "message");
  return socket;
}

/** Signs in to the console of services whose programs on this machine need credentials. */
async function signIn(name: string, origin: string): Promise<string | undefined> {
  const { user: username, password, key: access_key, secret: secret_key } = SECRETS;
  const logins: Record<string, object> = {
    identity: { username, password },
    storage: { access_key, secret_key },
  };
  const login = logins[name];
  if (login === undefined) return undefined;
  const answer = await fetch(`${origin}/console/login`, {
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify(login),
  });
  assert.equal(answer.status, 200, await answer.text());
  return answer.headers.getSetCookie()[0]!.split(";")[0]!;
}

async function probeMessaging(running: readonly StagedService[]): Promise<void> {
  const { listeners } = running.find(({ name }) => name === "messaging")!;
  const portOf = (name: string) => listeners.get(name)!.port;
  const port = portOf("http");
  const headers = { host: `localhost:${port}` };
  for (const address of listAddresses()) {
    const probes: Probe[] = [
      { kind: "get", address, port, path: "/api/v1/topics", headers },
      { kind: "mqtt-websocket", address, port, path: "/mqtt", headers },
      { kind: "kafka", address, port: portOf("kafka") },
      { kind: "mqtt", address, port: portOf("mqtt") },
      { kind: "stomp", address, port: portOf("stomp") },
    ];
    const admitted = await Promise.all(probes.map(isAdmitted));
    const kinds = probes.map(({ kind }, at) => [kind, admitted[at]]);
    const wanted = probes.map(({ kind }) => [kind, true]);
    assert.deepEqual(kinds, wanted, address);
  }
}

async function open(port: number, host: string): Promise<Socket> {
  const socket = connect(port, host);
  await once(socket, "connect");
  socket.on("error", () => undefined);
  return socket;
}

function listAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flat();
  return ["127.0.0.1", "::1"].filter((one) => all.some((item) => item?.address === one));
}

function skipSeccomp(): string | false {
  try {
    execFileSync("python3", [withoutIpv6, "/bin/true"], { stdio: "pipe" });
    return false;
  } catch {
    return "requires python3, and seccomp of Linux";
  }
}
