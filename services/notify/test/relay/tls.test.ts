// TLS and authentication at a relay: STARTTLS, implicit TLS, verified certificates, passwords.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, describe, test } from "node:test";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { makeCertificate } from "@platform/testing/certificates";
import { startSink } from "../sink.ts";
import { startStage, type Stage } from "../stage.ts";

const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello" };
const folder = mkdtempSync(join(tmpdir(), "notify-tls-"));
const { cert, key } = makeCertificate(folder, "localhost", { names: "DNS:localhost" });
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Session {
  isSecure: boolean;
  user: string | undefined;
  method: string | undefined;
}

async function startServer(options: SMTPServerOptions = {}) {
  const sessions: Session[] = [];
  let method: string | undefined;
  const server = new SMTPServer({
    key: readFileSync(key),
    cert: readFileSync(cert),
    authOptional: true,
    onAuth: (auth, _session, callback) => {
      method = auth.method;
      const isRight = auth.username === "shop" && auth.password === "p\u00e4ss word";
      callback(isRight ? null : new Error("Invalid credentials"), { user: auth.username ?? "" });
    },
    onData: (stream, session, callback) => {
      stream.resume().on("end", () => {
        const user = typeof session.user === "string" ? session.user : undefined;
        sessions.push({ isSecure: session.secure, user, method });
        callback();
      });
    },
    ...options,
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve());
  });
  OPEN.push({ close: () => new Promise((resolve) => server.close(() => resolve())) });
  return { port: (server.server.address() as AddressInfo).port, sessions };
}

async function start(port: number, settings: Record<string, unknown>): Promise<Stage> {
  const stage = await startStage({
    "smtp.host": "localhost",
    "smtp.port": port,
    "smtp.tls": "auto",
    from_domain: "shop.example",
    ...settings,
  });
  OPEN.push({ close: () => stage.close(500) });
  return stage;
}

const LOGIN = { "smtp.user": "shop", "smtp.pass": "p\u00e4ss word" };

async function sendOne(port: number, settings: Record<string, unknown>) {
  const stage = await start(port, settings);
  const sent = await stage.call("POST", "/api/v1/send", MAIL);
  const { body } = await stage.call("GET", `/api/v1/messages/${sent.body.message_id}`);
  return {
    status: sent.status,
    detail: String(body.recipients[0].detail),
    log: stage.log.join(""),
  };
}

describe("a relay with TLS", () => {
  test("without a user, STARTTLS is used if offered, whatever the certificate", async () => {
    const server = await startServer();
    assert.equal((await sendOne(server.port, {})).status, 200);
    assert.deepEqual(server.sessions, [{ isSecure: true, user: undefined, method: undefined }]);
  });

  test("with a user, the certificate must be valid, and the password is sent over TLS", async () => {
    const server = await startServer();
    const refused = await sendOne(server.port, LOGIN);
    assert.equal(refused.status, 202);
    assert.match(refused.detail, /STARTTLS: .*(?:SELF_SIGNED|CERT)/);
    assert.deepEqual(server.sessions, []);
    const accepted = await sendOne(server.port, { ...LOGIN, "smtp.tls_ca_file": cert });
    assert.equal(accepted.status, 200);
    assert.deepEqual(server.sessions, [{ isSecure: true, user: "shop", method: "PLAIN" }]);
    assert.doesNotMatch(accepted.log, /ss word|AHNob3A/, "the log contains the password");
  });

  test("AUTH LOGIN is used where PLAIN is not offered", async () => {
    const server = await startServer({ authMethods: ["LOGIN"] });
    const { status } = await sendOne(server.port, { ...LOGIN, "smtp.tls_ca_file": cert });
    assert.equal(status, 200);
    assert.equal(server.sessions[0]!.method, "LOGIN");
  });

  test("a relay that refuses AUTH LOGIN is told neither the name nor the password", async () => {
    const lines: string[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.write("220 relay ESMTP\r\n");
      createInterface({ input: socket }).on("line", (line) => {
        lines.push(line);
        if (line.startsWith("EHLO")) socket.write("250-relay\r\n250 AUTH LOGIN\r\n");
        else socket.write(line.startsWith("QUIT") ? "221 bye\r\n" : "504 not now\r\n");
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    OPEN.push({ close: () => new Promise((resolve) => server.close(() => resolve())) });
    const { port } = server.address() as AddressInfo;
    const { status, detail } = await sendOne(port, { ...LOGIN, "smtp.tls": "off" });
    assert.equal(status, 202);
    assert.match(detail, /AUTH: 504/);
    assert.deepEqual(lines.slice(1, 2), ["AUTH LOGIN"]);
    assert.doesNotMatch(lines.join(" "), new RegExp(Buffer.from("shop").toString("base64")));
  });

  test("implicit TLS works", async () => {
    const server = await startServer({ secure: true });
    const { status } = await sendOne(server.port, {
      ...LOGIN,
      "smtp.tls": "implicit",
      "smtp.tls_ca_file": cert,
    });
    assert.equal(status, 200);
    assert.equal(server.sessions[0]!.isSecure, true);
  });

  test("a wrong password defers the mail and names the reason", async () => {
    const server = await startServer();
    const settings = { ...LOGIN, "smtp.pass": "wrong", "smtp.tls_ca_file": cert };
    const { status, detail } = await sendOne(server.port, settings);
    assert.equal(status, 202);
    assert.match(detail, /AUTH: 535/);
  });

  test("a relay without STARTTLS gets no password", async () => {
    const server = await startServer({ hideSTARTTLS: true, disabledCommands: ["STARTTLS"] });
    const { status, detail } = await sendOne(server.port, { ...LOGIN, "smtp.tls_ca_file": cert });
    assert.equal(status, 202);
    assert.match(detail, /does not offer STARTTLS/);
    assert.deepEqual(server.sessions, []);
  });

  test("a failed handshake falls back to plain text only without a user", async () => {
    const sink = await startSink({
      features: ["STARTTLS", "PIPELINING"],
      reply: () => undefined,
    });
    OPEN.push(sink);
    // The sink does not know STARTTLS and answers 500: the opportunistic connection stays plain.
    assert.equal((await sendOne(sink.port, { "smtp.host": "127.0.0.1" })).status, 200);
    assert.equal(sink.accepted.length, 1);
    assert.equal((await sendOne(sink.port, { ...LOGIN, "smtp.host": "127.0.0.1" })).status, 202);
    assert.equal(sink.accepted.length, 1);
  });
});
