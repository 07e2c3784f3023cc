// MTA-STS from end to end: the policy comes from an HTTPS server, and decides about TLS and mail exchangers.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { SMTPServer } from "smtp-server";
import { makeCertificate } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer } from "../../dns-server.ts";
import { startStage, type Stage } from "../../stage.ts";

/** The policy is at port 443 (RFC 8461 section 3.3): an address of its own keeps the port free for others. */
const POLICY_HOST = "127.84.61.1";
const folder = mkdtempSync(join(tmpdir(), "notify-sts-"));
const { cert, key } = makeCertificate(folder, "a.example", {
  names: "DNS:mta-sts.a.example,DNS:mx.a.example",
});
const OPEN: { close(): unknown }[] = [];
let policy = "";

const web = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) =>
  response.writeHead(200, { "Content-Type": "text/plain" }).end(policy),
);
const skip = await new Promise<string | false>((resolve) => {
  web
    .once("error", ({ message }) => resolve(`the policy server cannot listen: ${message}`))
    .listen(443, POLICY_HOST, () => resolve(false));
});
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
  if (web.listening) web.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(mx: string, settings: Record<string, unknown> = {}) {
  policy = `version: STSv1\nmode: enforce\nmx: ${mx}\nmax_age: 86400\n`;
  const secure: boolean[] = [];
  const smtp = new SMTPServer({
    key: readFileSync(key),
    cert: readFileSync(cert),
    authOptional: true,
    onData: (stream, session, done) => {
      secure.push(session.secure);
      stream.resume().on("end", () => done());
    },
  });
  smtp.on("error", () => {});
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", () => resolve()));
  const dns = await startDnsServer({
    "a.example": { MX: ["10 mx.a.example"] },
    "mx.a.example": { A: ["127.0.0.1"] },
    "_mta-sts.a.example": { TXT: ["v=STSv1; id=1"] },
    "mta-sts.a.example": { A: [POLICY_HOST] },
  });
  const stage = await startStage({
    "smtp.mode": "direct",
    "smtp.direct_port": (smtp.server.address() as AddressInfo).port,
    "smtp.tls_ca_file": cert,
    mta_sts_ca: cert,
    dns_servers: [dns.address],
    allow_private_targets: true,
    from_domain: "shop.example",
    send_wait_ms: 2_000,
    ...settings,
  });
  OPEN.push({ close: () => new Promise<void>((resolve) => smtp.close(() => resolve())) }, dns, {
    close: () => stage.close(500),
  });
  return { secure, send: () => send(stage), stage };
}

function send(stage: Stage) {
  return stage.call("POST", "/api/v1/send", { to: "ada@a.example", subject: "Hi", text: "Hi" });
}

async function readDeferral(stage: Stage, id: string): Promise<string> {
  return waitFor(async () => {
    const { body } = await stage.call("GET", `/api/v1/messages/${id}`);
    return body.recipients[0].detail ?? undefined;
  });
}

test("mail goes over verified TLS to an exchanger that the policy names", { skip }, async () => {
  const { secure, send: sendOne } = await start("mx.a.example");
  const sent = await sendOne();
  assert.equal(sent.status, 200, sent.text);
  assert.deepEqual(secure, [true]);
});

test("an exchanger that the policy does not name gets nothing", { skip }, async () => {
  const { secure, send: sendOne, stage } = await start("other.a.example");
  const queued = await sendOne();
  assert.equal(queued.status, 202);
  assert.match(await readDeferral(stage, queued.body.message_id), /no mail server is allowed/);
  assert.deepEqual(secure, []);
});

test("an exchanger whose certificate is not trusted gets nothing", { skip }, async () => {
  const {
    secure,
    send: sendOne,
    stage,
  } = await start("mx.a.example", {
    "smtp.tls_ca_file": undefined,
  });
  const queued = await sendOne();
  assert.equal(queued.status, 202);
  assert.match(
    await readDeferral(stage, queued.body.message_id),
    /STARTTLS|certificate|SELF_SIGNED/,
  );
  assert.deepEqual(secure, []);
});

test("a policy from a server that is not trusted does not count", { skip }, async () => {
  const { secure, send: sendOne } = await start("other.a.example", { mta_sts_ca: undefined });
  assert.equal((await sendOne()).status, 200);
  assert.deepEqual(secure, [true], "TLS is still used");
});
