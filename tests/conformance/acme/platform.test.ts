// `platform up --auto-tls` beside pebble: the gateway obtains certificates for its hosts, mail, messaging and tunnels.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { Agent, request as requestSecurely } from "node:https";
import { connect as connectPlainly, type Socket } from "node:net";
import { after, test } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  CreateBucketCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { findFreePort } from "@platform/kernel/testing";
import { presignTarget } from "@platform/s3/signature";
import { bindSkip, startBind } from "@platform/testing/bind";
import { makeCertificate } from "@platform/testing/certificates";
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
import { Browser } from "@platform/testing/browser";
import { createPublicFetch } from "./public-client.ts";

const DOMAIN = "example.test";
const ADMIN = { username: "root", password: "correct horse battery staple" };
const NOTES = fileURLToPath(new URL("../../../examples/notes", import.meta.url));

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

const GATEWAY = anyPort.indexOf("--gate-addr");
const CONSOLE = anyPort.indexOf("--console-addr");

async function startPlatform() {
  const folder = makeFolder();
  const [port, plainPort, mailPort] = [
    await findFreePort(),
    await findFreePort(),
    await findFreePort(),
  ];
  const pebble = await startPebble({ folder, tlsPort: port, httpPort: plainPort });
  after(() => pebble.stop());
  const data = join(folder, "data");
  const consoleUrl = `https://console.${DOMAIN}:${port}`;
  const flags = [
    ...anyPort.toSpliced(CONSOLE, 2).toSpliced(GATEWAY, 2),
    "--gateway-addr",
    `127.0.0.1:${port}`,
    "--project-addr",
    "127.0.0.1:0",
    "--console-addr",
    "shared",
    "--console-url",
    consoleUrl,
  ];
  const args = ["up", "--json", "--alone", "--data", data, "--domain", DOMAIN, "--auto-tls"];
  const env = {
    PLATFORM_ACME_DIRECTORY_URL: pebble.directoryUrl,
    PLATFORM_ACME_CA: pebble.caPath,
    PLATFORM_GATE_HTTP_ADDR: `127.0.0.1:${plainPort}`,
    PLATFORM_NOTIFY_INBOUND_PORT: String(mailPort),
    PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
    PLATFORM_PULSE_KAFKA_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_MQTT_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_STOMP_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
    PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
  };
  const up = run([...args, ...flags], env, "", NOTES);
  const started = await up.waitFor(findStarted);
  const ca = await pebble.readRoot();
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  return { up, started, data, port, plainPort, mailPort, consoleUrl, ca, credentials };
}

let opened: ReturnType<typeof startPlatform> | undefined;

/** The platform that most tests share. */
function openPlatform(): ReturnType<typeof startPlatform> {
  opened ??= startPlatform();
  return opened;
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
  async () => {
    const { up, started, data, port, mailPort, ca, credentials } = await openPlatform();
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
  },
);

/** Resolves when a name has its certificate. */
async function waitForName(port: number, servername: string, ca: string): Promise<void> {
  let last = "";
  await waitFor(
    async () => isSerial((last = await readSerial({ port, servername, ca }))),
    () => `${servername}: ${last}`,
  );
}

test(
  "people sign in to the console at the public names, with cookies for https only",
  { skip },
  async () => {
    const { port, consoleUrl, ca } = await openPlatform();
    await waitForName(port, `console.${DOMAIN}`, ca);
    const cookies: string[] = [];
    const browser = new Browser(
      undefined,
      createPublicFetch(port, ca, (_url, { headers }) => cookies.push(...headers.getSetCookie())),
    );
    const isBack = (url: URL): boolean =>
      url.origin === consoleUrl && url.pathname.startsWith("/ui/");
    const form = await browser.open(`${consoleUrl}/console/oidc/start?to=/ui/identity/users`);
    assert.equal(form.url.origin, `https://identity.${DOMAIN}`);
    // The page begins with a form for passkeys.
    const begin = form.text.lastIndexOf("<form", form.text.indexOf('name="password"'));
    const signedIn = await browser.submit({ ...form, text: form.text.slice(begin) }, ADMIN, isBack);
    const next = /http-equiv="refresh" content="0; ?url=([^"]+)"/.exec(signedIn.text)?.[1] ?? "";
    const inside = await browser.open(new URL(next.replaceAll("&amp;", "&"), signedIn.url), isBack);
    assert.equal(inside.url.href, `${consoleUrl}/ui/identity/users`);
    const session = await browser.open(`${consoleUrl}/console/session`);
    assert.equal(session.status, 200, session.text);
    assert.match(session.text, /root/);
    assert.ok(cookies.length >= 2, cookies.join());
    for (const cookie of cookies) assert.match(cookie, /^__(?:Host|Secure)-.*; secure(?:;|$)/i);
  },
);

test("an S3 client uses storage at its public name, and a link opens there", { skip }, async () => {
  const { port, ca, credentials } = await openPlatform();
  const host = `vault.${DOMAIN}`;
  await waitForName(port, host, ca);
  const client = new S3Client({
    endpoint: `https://${host}:${port}`,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: {
      accessKeyId: credentials["STORE_ACCESS_KEY_ID"]!,
      secretAccessKey: credentials["STORE_SECRET_ACCESS_KEY"]!,
    },
    requestHandler: {
      httpsAgent: new Agent({
        ca,
        lookup: (_name, { all }, done) => {
          if (all === true) done(null, [{ address: "127.0.0.1", family: 4 }]);
          else done(null, "127.0.0.1", 4);
        },
      }),
    },
  });
  const object = { Bucket: "public", Key: "a folder/ä.txt" };
  await client.send(new CreateBucketCommand({ Bucket: object.Bucket }));
  await client.send(new PutObjectCommand({ ...object, Body: "text" }));
  const { Body } = await client.send(new GetObjectCommand(object));
  assert.equal(await Body?.transformToString(), "text");
  const target = presignTarget(
    {
      accessKey: credentials["STORE_ACCESS_KEY_ID"]!,
      secret: credentials["STORE_SECRET_ACCESS_KEY"]!,
      region: "us-east-1",
    },
    {
      method: "GET",
      target: "/public/a%20folder/%C3%A4.txt",
      headers: { host: `${host}:${port}` },
      expiresSeconds: 600,
      timeMs: Date.now(),
    },
  );
  const link = new URL(target, `https://${host}:${port}`);
  const answer = await createPublicFetch(port, ca)(link, {
    method: "GET",
    redirect: "manual",
    headers: {},
  });
  assert.deepEqual([answer.status, await answer.text()], [200, "text"]);
  client.destroy();
});

test("a project has its host and certificate; plain HTTP leads there", { skip }, async () => {
  const { port, plainPort, ca, up } = await openPlatform();
  const host = `notes.${DOMAIN}`;
  await waitForName(port, host, ca);
  const get = createPublicFetch(port, ca);
  const page = await get(new URL(`https://${host}/`), {
    method: "GET",
    redirect: "manual",
    headers: {},
  });
  assert.equal(page.status, 200, up.output().out);
  assert.match(await page.text(), /<title>Notes/i);
  const place = { host: "127.0.0.1", port: plainPort, path: "/a?b=c", headers: { host } };
  const [answer] = await once(request(place).end(), "response");
  answer.resume();
  assert.equal(answer.statusCode, 308);
  assert.equal(answer.headers.location, `https://${host}:${port}/a?b=c`);
});

test("it ends, and so does all that it has started", { skip }, async () => {
  const { up } = await openPlatform();
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0);
});

test("without a domain there is nothing to obtain", async () => {
  const up = run(["up", "--auto-tls", "--data", join(makeFolder(), "data"), ...anyPort]);
  assert.equal(await up.exit, 1);
  assert.match(up.output().err, /--auto-tls requires --domain/);
});

/** Platforms of their own, each of which takes ten seconds of processor time, are part of the long form. */
if (process.env["PLATFORM_ACME_PLATFORMS"] === "all") {
  test(
    "with acme_dns, tunnels have one wildcard; tls_cert of the operator is for all other names",
    { skip: skip === false ? bindSkip : skip },
    async (context) => {
      const folder = makeFolder();
      const data = join(folder, "data");
      const port = await findFreePort();
      const bind = await startBind(folder, [DOMAIN]);
      context.after(() => bind.stop());
      bind.update(DOMAIN, `add ${DOMAIN} 60 A 127.0.0.1`, `add *.${DOMAIN} 60 A 127.0.0.1`);
      const places = { tlsPort: port, httpPort: await findFreePort(), dnsPort: bind.port };
      const pebble = await startPebble({ folder, ...places });
      context.after(() => pebble.stop());
      const own = makeCertificate(folder, "own", { names: "DNS:other.test" });
      mkdirSync(join(data, "gate"), { recursive: true });
      const dns = { type: "rfc2136", server: `127.0.0.1:${bind.port}`, zone: DOMAIN };
      const config = {
        tls_cert: own.cert,
        tls_key: own.key,
        acme_dns: { ...dns, tsig_key: bind.tsigKey },
        routes: [],
      };
      writeFileSync(join(data, "gate", "config.json"), JSON.stringify(config));
      const only = ["--only", "gateway,tunnel", "--domain", DOMAIN, "--auto-tls"];
      const flags = [...anyPort.toSpliced(GATEWAY, 2), "--gateway-addr", `127.0.0.1:${port}`];
      const up = run(["up", "--json", "--data", data, ...only, ...flags], {
        PLATFORM_ACME_DIRECTORY_URL: pebble.directoryUrl,
        PLATFORM_ACME_CA: pebble.caPath,
        PLATFORM_GATE_HTTP_ADDR: `127.0.0.1:${places.httpPort}`,
      });
      const started = await up.waitFor(findStarted);
      const ca = await pebble.readRoot();
      const relayPort = findPort(started, "tunnel", "https");
      await waitForName(relayPort, `any.tunnel.${DOMAIN}`, ca);
      await waitForName(port, DOMAIN, ca);
      const serials = new Set<string>();
      for (const name of ["any", "other", "third"]) {
        const servername = `${name}.tunnel.${DOMAIN}`;
        serials.add(await readSerial({ port: relayPort, servername, ca }));
      }
      assert.deepEqual([serials.size, isSerial([...serials][0] ?? "")], [1, true]);
      const trust = readFileSync(own.cert);
      assert.match(await readSerial({ port, servername: "other.test", ca: trust }), /^[0-9A-F]+$/);
      const status = run(["status", "--data", data]);
      assert.equal(await status.exit, 0, status.output().out);
      up.child.kill("SIGTERM");
      assert.equal(await up.exit, 0);
    },
  );

  test(
    "with tls_cert alone, the gateway has TLS, and the platform's own calls have none",
    { skip },
    async () => {
      const folder = makeFolder();
      const data = join(folder, "data");
      const own = makeCertificate(folder, "own", { names: `DNS:${DOMAIN},DNS:identity.${DOMAIN}` });
      const only = ["--only", "gateway,identity", "--domain", DOMAIN];
      const up = run(["up", "--json", "--data", data, ...only, ...anyPort], {
        PLATFORM_GATE_TLS_CERT: own.cert,
        PLATFORM_GATE_TLS_KEY: own.key,
      });
      const started = await up.waitFor(findStarted);
      const port = findPort(started, "gate", "https");
      assert.equal(find(started, "gate").url, `https://localhost:${port}`);
      const ca = readFileSync(own.cert, "utf8");
      assert.equal(await readIssuer(port, ca), `https://identity.${DOMAIN}`);
      const added = run(["user", "add", "ada", "--data", data]);
      assert.equal(await added.exit, 0, JSON.stringify(added.output()));
      up.child.kill("SIGTERM");
      assert.equal(await up.exit, 0);
    },
  );
}
