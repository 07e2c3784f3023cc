// `platform up --auto-tls` beside pebble: the gateway obtains certificates for its hosts, mail, messaging and tunnels.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as requestSecurely } from "node:https";
import { connect as connectPlainly, type Socket } from "node:net";
import { test } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { findFreePort } from "@platform/kernel/testing";
import { pebbleSkip as skip, startPebble } from "@platform/testing/pebble";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { waitFor } from "@platform/testing/wait";

const DOMAIN = "example.test";
const ONLY = "gateway,identity,mail,messaging,tunnel";

/** Serial number of the certificate of a name, verified with `ca`; the code of the error if the handshake fails. */
async function readSerial(options: ConnectionOptions): Promise<string> {
  const socket = connect({ host: "127.0.0.1", ...options });
  try {
    await once(socket, "secureConnect");
    return socket.getPeerCertificate().serialNumber;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    socket.destroy();
  }
}

const isSerial = (text: string): boolean => /^[0-9A-F]{8,}$/.test(text);

async function readReply(socket: Socket): Promise<string> {
  let text = "";
  while (!/^\d{3} [^\n]*\n/m.test(text)) text += String((await once(socket, "data"))[0]);
  return text;
}

/** The serial of the certificate after STARTTLS; what the server says if it does not offer that. */
async function readMailSerial(port: number, servername: string, ca: string): Promise<string> {
  const socket = connectPlainly({ host: "127.0.0.1", port });
  try {
    await readReply(socket);
    socket.write("EHLO client.test\r\n");
    const offer = await readReply(socket);
    if (!offer.includes("STARTTLS")) return offer;
    socket.write("STARTTLS\r\n");
    await readReply(socket);
    return await readSerial({ socket, servername, ca });
  } finally {
    socket.destroy();
  }
}

/** The body of a page at the public name. */
async function readPage(port: number, host: string, path: string, ca: string): Promise<string> {
  const place = { host: "127.0.0.1", port, servername: host, ca, path, headers: { host } };
  const [answer] = await once(requestSecurely({ ...place, agent: false }).end(), "response");
  let body = "";
  for await (const piece of answer) body += String(piece);
  return body;
}

function findPort(started: Started, service: string, listener: string): number {
  const found = find(started, service).listeners.find(({ name }) => name === listener);
  assert.ok(found, `${service} has no listener ${listener}`);
  return found.port;
}

async function startPlatform() {
  const folder = makeFolder();
  const [port, plainPort, mailPort] = [
    await findFreePort(),
    await findFreePort(),
    await findFreePort(),
  ];
  const pebble = await startPebble({ folder, tlsPort: port, httpPort: plainPort });
  const data = join(folder, "data");
  const address = anyPort.indexOf("--gate-addr");
  const flags = anyPort.toSpliced(address, 2, "--gateway-addr", `127.0.0.1:${port}`);
  const args = ["up", "--json", "--data", data, "--domain", DOMAIN, "--auto-tls", "--only", ONLY];
  const up = run([...args, ...flags], {
    PLATFORM_ACME_DIRECTORY_URL: pebble.directoryUrl,
    PLATFORM_ACME_CA: pebble.caPath,
    PLATFORM_GATE_HTTP_ADDR: `127.0.0.1:${plainPort}`,
    PLATFORM_NOTIFY_INBOUND_PORT: String(mailPort),
    PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
    PLATFORM_PULSE_KAFKA_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_MQTT_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_STOMP_TLS_ADDR: "127.0.0.1:0",
  });
  const started = await up.waitFor(findStarted);
  return { pebble, up, started, data, port, mailPort };
}

async function readIssuer(port: number, ca: string): Promise<string> {
  const path = "/.well-known/openid-configuration";
  const page = await readPage(port, `identity.${DOMAIN}`, path, ca);
  return (JSON.parse(page) as { issuer: string }).issuer;
}

/** Resolves to the address of a tunnel `demo`. */
async function reserveTunnel(relay: string, headers: Record<string, string>): Promise<string> {
  const reserved = await fetch(`${relay}/api/v1/tunnels`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ subdomain: "demo" }),
  });
  return ((await reserved.json()) as { url: string }).url;
}

test(
  "the domain, mail, messaging and tunnels get certificates, and renewed ones",
  { skip },
  async (context) => {
    const { pebble, up, started, data, port, mailPort } = await startPlatform();
    context.after(() => pebble.stop());
    const ca = await pebble.readRoot();
    const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
    const bearer = (name: string) => ({ authorization: `Bearer ${credentials[name]}` });
    const relayPort = findPort(started, "tunnel", "https");
    const demo = `demo.tunnel.${DOMAIN}`;
    const places: Record<string, () => Promise<string>> = {
      gateway: () => readSerial({ port, servername: DOMAIN, ca }),
      identity: () => readSerial({ port, servername: `identity.${DOMAIN}`, ca }),
      mail: () => readMailSerial(mailPort, `mail.${DOMAIN}`, ca),
      mqtt: () =>
        readSerial({ port: findPort(started, "pulse", "mqtt-tls"), servername: DOMAIN, ca }),
      stomp: () =>
        readSerial({ port: findPort(started, "pulse", "stomp-tls"), servername: DOMAIN, ca }),
      kafka: () =>
        readSerial({ port: findPort(started, "pulse", "kafka-tls"), servername: DOMAIN, ca }),
      tunnel: () => readSerial({ port: relayPort, servername: demo, ca }),
    };
    assert.match(await places["tunnel"]!(), /UNRECOGNIZED_NAME/);
    const relay = `http://127.0.0.1:${findPort(started, "tunnel", "local")}`;
    const url = await reserveTunnel(relay, bearer("PLATFORM_TUNNEL_AUTH_TOKEN"));
    assert.equal(url, `https://${demo}:${relayPort}`);
    const serials = new Map<string, string>();
    for (const [name, read] of Object.entries(places)) {
      let last = "";
      await waitFor(
        async () => isSerial((last = await read())),
        () => `${name}: ${last}; ${up.output().out}`,
      );
      serials.set(name, last);
    }
    assert.equal(serials.get("mqtt"), serials.get("gateway"), "one certificate of the domain");
    assert.equal(new Set(serials.values()).size, 4);
    assert.equal(await readIssuer(port, ca), `https://identity.${DOMAIN}`);
    // Calls of the platform itself need no certificate.
    assert.equal(find(started, "gate").url, `https://${DOMAIN}:${port}`);
    const status = run(["status", "--data", data]);
    assert.equal(await status.exit, 0, status.output().out);
    assert.match(status.output().out, /gateway +up +https:\/\/example\.test/);
    const gate = `http://127.0.0.1:${findPort(started, "gate", "local")}`;
    for (const name of [DOMAIN, `mail.${DOMAIN}`, demo]) {
      const renewed = await fetch(`${gate}/api/v1/admin/certificates/${name}/renew`, {
        method: "POST",
        headers: bearer("PLATFORM_GATE_AUTH_TOKEN"),
      });
      assert.ok(renewed.ok, `${name}: ${renewed.status} ${await renewed.text()}`);
    }
    for (const name of ["gateway", "mail", "mqtt", "stomp", "kafka", "tunnel"]) {
      await waitFor(
        async () => {
          const serial = await places[name]!();
          assert.ok(isSerial(serial), `${name}: ${serial}`);
          return serial !== serials.get(name);
        },
        () => `a new certificate of ${name}; ${up.output().out}`,
      );
    }
    up.child.kill("SIGTERM");
    assert.equal(await up.exit, 0);
  },
);

test("without a domain there is nothing to obtain", async () => {
  const up = run(["up", "--auto-tls", "--data", join(makeFolder(), "data"), ...anyPort]);
  assert.equal(await up.exit, 1);
  assert.match(up.output().err, /--auto-tls requires --domain/);
});
