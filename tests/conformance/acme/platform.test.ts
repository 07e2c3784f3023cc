// `platform up --auto-tls` beside pebble: the gateway obtains certificates for its hosts, mail, messaging and tunnels.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { Agent, request as requestSecurely } from "node:https";
import { type AddressInfo, connect as connectPlainly, type Socket } from "node:net";
import { after, test, type TestContext } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  CreateBucketCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import stompit from "stompit";
import { findFreePort } from "@platform/kernel/testing";
import { presignTarget } from "@platform/s3/signature";
import { type Bind, bindSkip, startBind } from "@platform/testing/bind";
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
import { stageProcess } from "../../stage/process.ts";
import { createPublicFetch } from "./public-client.ts";

const DOMAIN = "example.test";
const ADMIN = { username: "root", password: "correct horse battery staple" };
const TUNNEL_PROGRAM = fileURLToPath(new URL("../../../bin/platform-tunnel.js", import.meta.url));
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
const TUNNEL = anyPort.indexOf("--tunnel-addr");
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

test("a STOMP client verifies the domain's certificate, sends and receives", { skip }, async () => {
  const { started, port, ca, credentials } = await openPlatform();
  await waitForName(port, DOMAIN, ca);
  const stompPort = findPort(started, "pulse", "stomp-tls");
  await waitForName(stompPort, DOMAIN, ca);
  const passcode = credentials["PLATFORM_PULSE_TOKEN"] ?? "";
  const connectHeaders = { host: "/", login: "operator@default", passcode };
  const place = { host: "127.0.0.1", port: stompPort, servername: DOMAIN, ssl: true };
  const client = await promisify(stompit.connect)({ ...place, ca, connectHeaders });
  const received = new Promise<string>((resolve, reject) => {
    client.subscribe(
      { destination: "/queue/orders", ack: "client-individual" },
      (error, message) => {
        if (error !== null) return reject(error);
        message.readString("utf8", (failure, body) => {
          if (failure !== null) return reject(failure);
          client.ack(message);
          resolve(body ?? "");
        });
      },
    );
  });
  client.send({ destination: "/queue/orders" }).end("of a client");
  assert.equal(await received, "of a client");
  await new Promise<void>((resolve) => client.disconnect(() => resolve()));
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

/** The port of tunnels that users know; another one if something else has it. */
async function chooseRelayPort(): Promise<number> {
  const server = createServer().listen(8_443, "127.0.0.1");
  const isFree = await once(server, "listening").then(
    () => true,
    () => false,
  );
  server.close();
  return isFree ? 8_443 : findFreePort();
}

/** Starts gateway and tunnels beside pebble and bind9, which has the records of challenges; `describe` makes `acme_dns`. */
async function startWithDns(
  context: TestContext,
  describe: (bind: Bind, folder: string) => object,
  more: object = {},
) {
  const folder = makeFolder();
  const data = join(folder, "data");
  const [port, relayPort] = [await findFreePort(), await chooseRelayPort()];
  const bind = await startBind(folder, [DOMAIN]);
  context.after(() => bind.stop());
  bind.update(DOMAIN, `add ${DOMAIN} 60 A 127.0.0.1`, `add *.${DOMAIN} 60 A 127.0.0.1`);
  const places = { tlsPort: port, httpPort: await findFreePort(), dnsPort: bind.port };
  const pebble = await startPebble({ folder, ...places });
  context.after(() => pebble.stop());
  mkdirSync(join(data, "gate"), { recursive: true });
  const config = { acme_dns: describe(bind, folder), routes: [], ...more };
  writeFileSync(join(data, "gate", "config.json"), JSON.stringify(config));
  const only = ["--only", "gateway,tunnel", "--domain", DOMAIN, "--auto-tls"];
  const flags = [
    ...anyPort.toSpliced(TUNNEL, 2).toSpliced(GATEWAY, 2),
    "--gateway-addr",
    `127.0.0.1:${port}`,
    "--tunnel-addr",
    `127.0.0.1:${relayPort}`,
  ];
  const up = run(["up", "--json", "--data", data, ...only, ...flags], {
    PLATFORM_ACME_DIRECTORY_URL: pebble.directoryUrl,
    PLATFORM_ACME_CA: pebble.caPath,
    PLATFORM_GATE_HTTP_ADDR: `127.0.0.1:${places.httpPort}`,
  });
  const started = await up.waitFor(findStarted);
  assert.equal(findPort(started, "tunnel", "https"), relayPort);
  const ca = await pebble.readRoot();
  return { up, started, data, port, relayPort, ca, bind };
}

/** Writes a program that sets and removes records by nsupdate, and notes how it was called. */
function writeHook(bind: Bind, folder: string): string {
  const hook = join(folder, "hook");
  const update = `server 127.0.0.1 ${bind.port}\\nzone ${DOMAIN}\\nupdate %s %s 60 TXT %s\\nsend\\n`;
  const lines = [
    "#!/bin/sh",
    'verb=add; [ "$1" = cleanup ] && verb=delete',
    `echo "$1 $2" >>${join(folder, "calls")}`,
    `printf '${update}' "$verb" "$2" "$3" | nsupdate -y ${bind.tsigKey}`,
  ];
  writeFileSync(hook, `${lines.join("\n")}\n`, { mode: 0o755 });
  return hook;
}

/** Platforms of their own, each of which takes ten seconds of processor time, are part of the long form. */
if (process.env["PLATFORM_ACME_PLATFORMS"] === "all") {
  const dnsSkip = skip === false ? bindSkip : skip;

  test(
    "with acme_dns, tunnels have one wildcard; tls_cert of the operator is for all other names",
    { skip: dnsSkip },
    async (context) => {
      const own = makeCertificate(makeFolder(), "own", { names: "DNS:other.test" });
      const pair = { tls_cert: own.cert, tls_key: own.key };
      const describe = ({ port, tsigKey: tsig_key }: Bind) => ({
        type: "rfc2136",
        server: `127.0.0.1:${port}`,
        zone: DOMAIN,
        tsig_key,
      });
      const { up, data, port, relayPort, ca } = await startWithDns(context, describe, pair);
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
    "with a hook for records, a public request reaches the service of a tunnel's client",
    { skip: dnsSkip },
    async (context) => {
      let calls = "";
      const describe = (bind: Bind, folder: string) => {
        calls = join(folder, "calls");
        return { type: "hook", command: [writeHook(bind, folder)] };
      };
      const { up, started, data, relayPort, ca, bind } = await startWithDns(context, describe);
      const service = createServer((_request, response) => response.end("of the client"));
      context.after(() => service.close());
      await once(service.listen(0, "127.0.0.1"), "listening");
      const { port: servicePort } = service.address() as AddressInfo;
      const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
      const local = findPort(started, "tunnel", "local");
      const place = ["--subdomain", "demo", "--relay", `ws://127.0.0.1:${local}/ws/connect`];
      const client = stageProcess({
        name: "tunnel client",
        command: process.execPath,
        args: [TUNNEL_PROGRAM, String(servicePort), ...place],
        env: { PLATFORM_TUNNEL_TOKEN: credentials["PLATFORM_TUNNEL_AUTH_TOKEN"] ?? "" },
      });
      context.after(() => client.stop());
      const host = `demo.tunnel.${DOMAIN}`;
      await waitForName(relayPort, host, ca);
      await waitFor(
        async () => (await readPage(relayPort, host, "/", ca)) === "of the client",
        () => client.readOutput(),
      );
      assert.match(client.readOutput(), new RegExp(`https://${host}:${relayPort}`));
      await waitFor(
        () => bind.dig(`_acme-challenge.tunnel.${DOMAIN}`, "TXT") === "",
        "the end of the record",
      );
      const names = readFileSync(calls, "utf8").trim().split("\n");
      for (const action of ["present", "cleanup"]) {
        assert.ok(names.includes(`${action} _acme-challenge.tunnel.${DOMAIN}`), names.join());
      }
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
