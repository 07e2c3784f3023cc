// Connections: versions, credentials, heart-beats, faults of clients, limits.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { makeCertificate } from "@platform/testing/certificates";
import { PulseHere, startPulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { StompClient } from "./client.ts";

/** Without credentials. */
let pulse: PulseHere;
/** With users. */
let guarded: PulseHere;
/** A client that has promised heart-beats and sends none. */
let silent: StompClient;
const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));

before(async () => {
  const users = join(folder, "users.json");
  writeFileSync(users, JSON.stringify([{ name: "anna", password: "horse", tenant: "red" }]));
  pulse = new PulseHere(join(folder, "data"), {
    PLATFORM_PULSE_STOMP_IDLE_TIMEOUT_MS: "1500",
    PLATFORM_PULSE_STALL_TIMEOUT_MS: "1000",
  });
  guarded = new PulseHere(join(folder, "guarded"), {
    PLATFORM_PULSE_USERS_FILE: users,
    PLATFORM_PULSE_STOMP_USER: "root",
    PLATFORM_PULSE_STOMP_PASSWORD: "secret",
    PLATFORM_PULSE_TOKEN: "operator-token",
    PLATFORM_PULSE_STOMP_CONNECTIONS_PER_USER_MAX: "20",
  });
  await Promise.all([pulse.start(), guarded.start()]);
  silent = await StompClient.connect(pulse.stompPort, "1.2", { "heart-beat": "1000,1000" });
});

after(async () => {
  await Promise.all([pulse.end(), guarded.end()]);
  rmSync(folder, { recursive: true, force: true });
});

describe("CONNECT", () => {
  test("chooses the newest common version", async () => {
    for (const [accepted, version] of [
      ["1.2", "1.2"],
      ["1.0,1.1", "1.1"],
      ["1.0", undefined],
      [undefined, undefined],
    ] as const) {
      const sessions = new Set<string>();
      for (const name of ["CONNECT", "STOMP"]) {
        const client = StompClient.open(pulse.stompPort);
        client.send(name, accepted === undefined ? {} : { "accept-version": accepted });
        const { command, headers } = await client.next();
        assert.equal(command, "CONNECTED", name);
        assert.equal(headers["version"], version, name);
        sessions.add(headers["session"]!);
        client.close();
      }
      assert.ok(sessions.size === 2 && !sessions.has(""), "each session has an identifier");
    }
  });

  test("names the supported versions if there is no common one", async () => {
    const client = StompClient.open(pulse.stompPort);
    client.send("CONNECT", { "accept-version": "2.1" });
    const { headers, body } = await client.error();
    assert.equal(headers["version"], "1.0,1.1,1.2");
    assert.match(body, /CONNECT: none of the versions/);
  });

  test("accepts users of the file, the configured user and the operator's token, for a tenant by the login", async (t) => {
    for (const headers of [
      { login: "anna", passcode: "horse" },
      { login: "root", passcode: "secret" },
      { login: "any", passcode: "operator-token" },
      { login: "operator@red", passcode: "operator-token" },
    ]) {
      const client = await StompClient.connect(guarded.stompPort, "1.2", headers);
      t.after(() => client.close());
    }
    for (const [login, passcode] of [
      ["anna", "horse"],
      ["operator@red", "operator-token"],
      ["operator", "operator-token"],
    ] as const) {
      const client = await StompClient.connect(guarded.stompPort, "1.2", { login, passcode });
      t.after(() => client.close());
      await client.ask("SEND", { destination: `of.${login.replace("@", "-")}` }, "x");
    }
    const list = async (query: string) => {
      const { body } = await guarded.get(`/api/v1/topics${query}`);
      return body.topics.map(({ name }: { name: string }) => name);
    };
    assert.deepEqual(await list("?tenant=red"), ["of.anna", "of.operator-red"]);
    assert.deepEqual(await list(""), ["of.operator"]);
  });

  test("refuses wrong credentials without saying which part is wrong", async () => {
    for (const headers of [
      { login: "anna", passcode: "wrong" },
      { login: "carl", passcode: "horse" },
      { login: "guest", passcode: "guest" },
      { login: "operator@", passcode: "operator-token" },
      { login: "operator@a b", passcode: "operator-token" },
      {},
      { login: "anna" },
      { passcode: "horse" },
    ]) {
      const client = StompClient.open(guarded.stompPort);
      client.send("CONNECT", { "accept-version": "1.2", ...headers });
      const { headers: answer } = await client.error();
      assert.equal(answer["message"], "the login or the passcode is wrong");
    }
  });

  test("limits the connections of a user", async (t) => {
    const login = { login: "root", passcode: "secret" };
    const open: StompClient[] = [];
    for (let count = 0; count < 20; count++) {
      open.push(await StompClient.connect(guarded.stompPort, "1.2", login));
    }
    t.after(() => open.forEach((client) => client.close()));
    const client = StompClient.open(guarded.stompPort);
    client.send("CONNECT", { "accept-version": "1.2", ...login });
    assert.match((await client.error()).body, /the user has too many connections/);
    open[0]!.close();
    await sleep(50);
    (await StompClient.connect(guarded.stompPort, "1.2", login)).close();
  });
});

describe("faults", () => {
  const afterConnect: [name: string, frame: string, fault: RegExp][] = [
    ["an unknown command", "HELLO\n\n\0", /unknown command "HELLO"/],
    ["a second CONNECT", "CONNECT\n\n\0", /connected already/],
    ["no destination", "SEND\n\nx\0", /SEND needs the header destination/],
    ["an unknown kind of destination", "SEND\ndestination:/exchange/x\n\n\0", /a destination is/],
    ["a wildcard to send to", "SEND\ndestination:a.*\n\n\0", /may not hold/],
    ["a reserved name", "SEND\ndestination:__state\n\n\0", /broker's own/],
    ["a name with a slash", "SEND\ndestination:/topic/a/b\n\n\0", /may not hold/],
    ["no id", "SUBSCRIBE\ndestination:a\n\n\0", /SUBSCRIBE needs the header id/],
    ["an unknown ack mode", "SUBSCRIBE\nid:1\ndestination:a\nack:maybe\n\n\0", /the header ack is/],
    [
      "a selector",
      "SUBSCRIBE\nid:1\ndestination:a\nselector:x=1\n\n\0",
      /selectors are not supported/,
    ],
    ["a wildcard within a level", "SUBSCRIBE\nid:1\ndestination:a.b*\n\n\0", /whole levels/],
    ["a group of a pattern", "SUBSCRIBE\nid:1\ndestination:a.*\ngroup:g\n\n\0", /not to a pattern/],
    ["an unknown subscription", "UNSUBSCRIBE\nid:1\n\n\0", /does not exist/],
    ["an unknown ack", "ACK\nid:1\n\n\0", /no message with the ack 1 waits/],
    ["an unknown transaction", "COMMIT\ntransaction:t\n\n\0", /has not begun/],
    [
      "a transaction that was not begun",
      "SEND\ndestination:a\ntransaction:t\n\n\0",
      /has not begun/,
    ],
    ["an invalid priority", "SEND\ndestination:a\npriority:high\n\n\0", /priority is an integer/],
    [
      "an unknown header of the broker",
      "SEND\ndestination:a\nplatform-x:1\n\n\0",
      /no header of the broker/,
    ],
    ["a body where none belongs", "BEGIN\ntransaction:t\n\nbody\0", /BEGIN has no body/],
    ["an undefined escape", "SEND\ndestination:a\\t\n\n\0", /undefined escape/],
    [
      "a message that is too large",
      "SEND\ndestination:a\ncontent-length:1048577\n\n",
      /1048576 bytes at most/,
    ],
    [
      "a second subscription of an id",
      "SUBSCRIBE\nid:1\ndestination:a\n\n\0SUBSCRIBE\nid:1\ndestination:b\n\n\0",
      /exists already/,
    ],
  ];
  for (const [name, frame, fault] of afterConnect) {
    test(`${name}: an ERROR that says so, then the end`, async () => {
      const client = await StompClient.connect(pulse.stompPort);
      client.write(frame);
      const { headers, body } = await client.error();
      assert.match(body, fault);
      assert.match(headers["message"]!, fault);
      assert.equal(headers["content-type"], "text/plain");
    });
  }

  test("the first frame must be CONNECT", async () => {
    for (const bytes of ["SEND\ndestination:a\n\n\0", "GET / HTTP/1.1\r\nHost: x\r\n\r\n\0"]) {
      const client = StompClient.open(pulse.stompPort);
      client.write(bytes);
      assert.match((await client.error()).body, /first frame must be CONNECT/);
    }
  });

  test("frames after an ERROR have no effect, and an ERROR names the receipt of its frame", async () => {
    const client = await StompClient.connect(pulse.stompPort);
    client.write("ACK\nid:9\nreceipt:r1\n\n\0SEND\ndestination:after-error\n\nx\0");
    assert.equal((await client.error()).headers["receipt-id"], "r1");
    assert.equal((await pulse.get("/api/v1/topics/after-error")).status, 404);
  });

  test("endless headers and lines end the connection at their limit", async () => {
    for (const part of ["a:b\n", "x".repeat(1_000)]) {
      const client = await StompClient.connect(pulse.stompPort);
      client.write("SEND\n");
      for (let count = 0; count < 200; count++) client.write(part);
      assert.match((await client.error()).body, /at most/);
    }
  });
});

describe("times", () => {
  test("the server sends heart-beats as often as the client wants", async () => {
    const client = await StompClient.connect(pulse.stompPort, "1.1", { "heart-beat": "0,1000" });
    await client.ask("SUBSCRIBE", { destination: "quiet", id: "1" });
    const startedMs = performance.now();
    while (client.beats < 3 && performance.now() - startedMs < 30_000) await sleep(50);
    assert.ok(client.beats >= 3, `${client.beats} heart-beats`);
    client.close();
  });

  test("a connection without heart-beats and subscriptions ends when it is idle", async () => {
    const idle = await StompClient.connect(pulse.stompPort);
    const subscribed = await StompClient.connect(pulse.stompPort);
    await subscribed.ask("SUBSCRIBE", { destination: "quiet", id: "1" });
    assert.match((await idle.error()).body, /was idle for 1500 ms/);
    await sleep(600);
    await subscribed.ask("UNSUBSCRIBE", { id: "1" });
    subscribed.close();
  });

  test("DISCONNECT is answered and closes", async () => {
    const client = await StompClient.connect(pulse.stompPort);
    client.send("SEND", { destination: "bye", receipt: "1" }, "x");
    client.send("DISCONNECT", { receipt: "2" });
    assert.equal((await client.next()).headers["receipt-id"], "1");
    assert.equal((await client.next()).headers["receipt-id"], "2");
    await client.closed();
  });
});

describe("load", () => {
  test("a client that does not read is disconnected and delays nobody", async (t) => {
    const stalled = await StompClient.connect(pulse.stompPort);
    await stalled.ask("SUBSCRIBE", { destination: "flood", id: "1" });
    stalled.socket.pause();
    const reader = await StompClient.connect(pulse.stompPort);
    const publisher = await StompClient.connect(pulse.stompPort);
    t.after(() => [reader, publisher, stalled].forEach((client) => client.close()));
    await reader.ask("SUBSCRIBE", { destination: "flood", id: "1" });
    const body = Buffer.alloc(100_000, "x");
    for (let count = 0; count < 200; count++)
      publisher.send("SEND", { destination: "flood" }, body);
    for (let count = 0; count < 200; count++)
      assert.equal((await reader.message()).bytes.length, 100_000);
    let faults = "";
    for (let turn = 0; turn < 1_000 && !faults.includes('kind="silent"'); turn++) {
      await sleep(50);
      faults = (await pulse.get("/metrics")).body as string;
      faults = faults
        .split("\n")
        .filter((line) => line.startsWith("platform_pulse_stomp_faults_total"))
        .join();
    }
    assert.match(faults, /kind="silent"/);
  });

  test("a thousand subscriptions of a connection are the limit", async () => {
    const client = await StompClient.connect(pulse.stompPort);
    for (let id = 0; id <= 1_000; id++) {
      client.send("SUBSCRIBE", { destination: `many.${id % 10}`, id: String(id) });
    }
    assert.match((await client.error()).body, /1000 subscriptions at most/);
    const metrics = (await pulse.get("/metrics")).body as string;
    assert.match(metrics, /platform_pulse_stomp_subscriptions 0/);
  });

  test("a flood of connections that never send CONNECT is harmless", async () => {
    const sockets = Array.from({ length: 300 }, () => connectTcp(pulse.stompPort, "127.0.0.1"));
    for (const socket of sockets) socket.on("error", () => undefined).write("CONN");
    (await StompClient.connect(pulse.stompPort)).close();
    for (const socket of sockets) socket.destroy();
  });
});

test("WebSockets speak the same protocol, in text or binary frames", async () => {
  for (const isBinary of [false, true]) {
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/stomp`, [
      "v12.stomp",
      "v11.stomp",
    ]);
    const frames: { data: Buffer; isBinary: boolean }[] = [];
    const next = async () => {
      for (let turn = 0; turn < 1_500 && frames.length === 0; turn++) await sleep(20);
      return frames.shift()!;
    };
    socket.on("message", (data, binary) => frames.push({ data: data as Buffer, isBinary: binary }));
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    assert.equal(socket.protocol, "v12.stomp");
    const send = (text: string) => socket.send(isBinary ? Buffer.from(text) : text);
    send("CONNECT\naccept-version:1.2\n\n\0");
    assert.match((await next()).data.toString(), /^CONNECTED\nversion:1.2\n/);
    send("SUBSCRIBE\nid:1\ndestination:ws\nreceipt:1\n\n\0");
    assert.equal((await next()).data.toString(), "RECEIPT\nreceipt-id:1\n\n\0");
    send("SEND\ndestination:ws\n\nhällo\0");
    const message = await next();
    assert.equal(message.isBinary, isBinary);
    assert.match(message.data.toString(), /^MESSAGE\n[^]*\n\nhällo\0$/);
    await pulse.publish({ topic: "ws", payload: "//4=", encoding: "base64" });
    assert.equal((await next()).isBinary, true, "bytes that are not text");
    socket.close();
  }
});

test("clients of this machine need no credentials while none are configured, or those of other brokers", async () => {
  for (const headers of [{}, { login: "guest", passcode: "guest" }]) {
    (await StompClient.connect(pulse.stompPort, "1.2", headers)).close();
  }
});

test("a page of another site may not use the rights of this machine", async () => {
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/stomp`, ["v12.stomp"], {
    headers: { origin: "http://evil.example" },
  });
  const answer = new Promise<Buffer>((resolve) =>
    socket.once("message", (data: Buffer) => resolve(data)),
  );
  await new Promise((resolve) => socket.once("open", resolve));
  socket.send("CONNECT\naccept-version:1.2\n\n\0");
  assert.match((await answer).toString(), /^ERROR\nmessage:the login or the passcode is wrong/);
});

test("with a certificate the listener speaks TLS", async (t) => {
  const { key, cert } = makeCertificate(folder, "localhost", { names: "IP:127.0.0.1" });
  const secure = await startPulseHere(t, { TLS_CERT_FILE: cert, TLS_KEY_FILE: key });
  const client = await StompClient.connect(secure.stompPort, "1.2", {}, { ca: readFileSync(cert) });
  t.after(() => client.close());
  await client.ask("SEND", { destination: "tls" }, "x");
});

test("tokens are passcodes: tenant, rights, topic rules, revocation", async (t) => {
  const feed = await startFeed(t);
  const followed = await startPulseHere(t, feed.env);
  const rules = { rules: [{ topics: "notes.#", allow: ["publish", "subscribe"] }] };
  const put = {
    method: "PUT",
    body: JSON.stringify(rules),
    headers: { "content-type": "application/json" },
  };
  assert.equal((await followed.get("/api/v1/access/roles/writer", put)).status, 200);
  const connect = (claims: Record<string, unknown>) =>
    StompClient.connect(followed.stompPort, "1.2", { login: "app", passcode: makeToken(claims) });
  const scoped = await connect({ scope: "pulse:publish" });
  await scoped.ask("SEND", { destination: "any" }, "x");
  scoped.send("SUBSCRIBE", { destination: "any", id: "1" });
  assert.match((await scoped.error()).body, /subscribing to any is not allowed/);
  const ruled = await connect({ roles: ["writer"], sid: "s-1" });
  await ruled.ask("SUBSCRIBE", { destination: "#", id: "1" });
  await ruled.ask("SEND", { destination: "notes.a" }, "x").catch(() => undefined);
  const strict = await connect({ roles: ["writer"] });
  strict.send("SEND", { destination: "other" }, "x");
  assert.match((await strict.error()).body, /publishing to other is not allowed/);
  feed.revoke("s-1");
  for (let turn = 0; turn < 3; turn++) {
    const answer = await ruled.next();
    if (answer.command !== "ERROR") continue;
    assert.match(answer.body, /the token was revoked/);
    break;
  }
  await ruled.closed();
  const refused = StompClient.open(followed.stompPort);
  refused.send("CONNECT", { "accept-version": "1.2", login: "guest", passcode: "guest" });
  await refused.error();
});

test("receipts are delayed for a tenant over its quota", async (t) => {
  const limited = await startPulseHere(t, { PLATFORM_PULSE_STOMP_SEND_BYTES_RATE: "100000" });
  const client = await StompClient.connect(limited.stompPort);
  t.after(() => client.close());
  await client.ask("SEND", { destination: "q" }, Buffer.alloc(100_000));
  const startedMs = performance.now();
  await client.ask("SEND", { destination: "q" }, Buffer.alloc(50_000));
  assert.ok(performance.now() - startedMs > 300);
});

test("a stopping broker finishes what it has begun, and says that it stops", async (t) => {
  const stopping = await startPulseProcess(t);
  const client = await StompClient.connect(stopping.stompPort);
  client.send("SEND", { destination: "last", receipt: "1" }, "x");
  assert.equal((await client.next()).command, "RECEIPT");
  const stopped = stopping.stop();
  assert.match((await client.error()).body, /the broker is stopping/);
  assert.equal(await stopped, 0);
});

test("a client that stops its heart-beats is disconnected", async () => {
  const untilMs = performance.now() + 25_000;
  while (silent.waiting === 0 && performance.now() < untilMs) await sleep(100);
  assert.match((await silent.error()).body, /no heart-beat has arrived/);
});

// STOMP 1.0 says nothing of the bodies of CONNECT; old clients end all frames with a line end before the NUL.
test("CONNECT of 1.0 may have a line end as its body, and nothing else", async (t) => {
  for (const body of ["\n", "\r\n"]) {
    const client = StompClient.open(pulse.stompPort);
    t.after(() => client.close());
    client.speak("1.0");
    client.write(`CONNECT\nlogin:guest\npasscode:guest\n\n${body}\0`);
    assert.equal((await client.next()).command, "CONNECTED");
  }
  for (const frame of ["CONNECT\n\nx\0", "CONNECT\naccept-version:1.2\nhost:x\n\n\n\0"]) {
    const client = StompClient.open(pulse.stompPort);
    t.after(() => client.close());
    client.write(frame);
    await client.error();
  }
});
