// Unsubscribing by RFC 8058: fields, page, one click, forged links.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer, type DnsServer } from "../dns-server.ts";
import { findPythonSkip, publish } from "../dkim.ts";
import { startHookServer } from "../receiver.ts";
import { startRelayedStage } from "../relayed-stage.ts";
import { startSink } from "../sink.ts";
import { STAGE_KINDS, startStage, startStageOn } from "../stage.ts";

const BULK = {
  to: "Ada@Example.org",
  subject: "News",
  text: "News",
  stream: "bulk",
  tags: ["november"],
};
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const ONE_CLICK = "List-Unsubscribe=One-Click";
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

/** Returns the path of the unsubscribe link in a mail, at the service itself. */
function pathIn(mail: string): string {
  const found =
    /^List-Unsubscribe:\s+<https:\/\/mail\.test\/notify(\/unsubscribe\/[^>]+)>\r$/m.exec(mail);
  assert.ok(found, mail);
  return found[1]!;
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`one click on ${kind}`, { skip: skip ?? false }, () => {
    test("GET changes nothing, POST with the exact body unsubscribes once, from bulk mail only", async () => {
      const sink = await startSink();
      const stage = await startStageOn({
        ...(await prepare()),
        "smtp.host": "127.0.0.1",
        "smtp.port": sink.port,
        from_domain: "shop.example",
        allow_private_targets: true,
      });
      const receiver = await startHookServer();
      OPEN.push(sink, stage, receiver);
      await stage.call("POST", "/api/v1/webhooks", {
        url: receiver.url,
        events: ["message.unsubscribed"],
      });
      const sent = await stage.call("POST", "/api/v1/send", BULK);
      assert.equal(sent.status, 200, sent.text);
      const mail = sink.accepted[0]!.data;
      assert.match(mail, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
      const path = pathIn(mail);

      const page = await stage.call("GET", path, undefined, { "Accept-Language": "de-AT,en" });
      assert.equal(page.status, 200);
      assert.match(page.text, /<html lang="de">.*Ada@example\.org.*<button>Abmelden/s);
      const policy = page.headers.get("content-security-policy")!;
      assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/);
      assert.doesNotMatch(page.text, /<script|onclick|https?:/);
      assert.equal((await stage.call("HEAD", path)).status, 200);
      assert.equal((await stage.call("POST", "/api/v1/send", BULK)).status, 200);

      const done = await stage.call("POST", path, ONE_CLICK, FORM);
      assert.equal(done.status, 200, done.text);
      assert.match(done.text, /You are unsubscribed/);
      assert.equal((await stage.call("POST", path, ONE_CLICK, FORM)).status, 200);
      const refused = await stage.call("POST", "/api/v1/send", BULK);
      assert.equal(refused.status, 422);
      assert.equal(refused.body.reason, "unsubscribe");
      const code = { ...BULK, stream: "transactional" };
      assert.equal((await stage.call("POST", "/api/v1/send", code)).status, 200);

      const found = await stage.call("GET", `/api/v1/messages/${sent.body.message_id}`);
      const types = found.body.events.map(({ type }: { type: string }) => type);
      assert.deepEqual(types, ["queued", "sent", "unsubscribed"]);
      const list = await stage.call("GET", "/api/v1/suppression?reason=unsubscribe");
      assert.equal(list.body.addresses[0].email, "ada@example.org");
      await stage.callWebhooks();
      const calls = receiver.requests.map(({ body }) => body);
      assert.equal(calls.length, 1, "repetitions are no events");
      assert.equal(calls[0].type, "message.unsubscribed");
      assert.deepEqual(calls[0].data.tags, ["november"]);
      const metrics = await stage.call("GET", "/metrics");
      assert.match(metrics.text, /^platform_notify_unsubscribed_total 1$/m);
    });

    test("a bounce that is removed from the list does not subscribe the address again", async () => {
      const stage = await startStageOn(await prepare());
      OPEN.push(stage);
      const email = "ada@example.org";
      const path = `/api/v1/suppression/${email}`;
      for (const reason of ["unsubscribe", "hard_bounce"]) {
        await stage.call("POST", "/api/v1/suppression", { email, reason });
      }
      assert.equal((await stage.call("GET", path)).body.reason, "hard_bounce");
      assert.equal((await stage.call("DELETE", path)).status, 204);
      assert.equal((await stage.call("GET", path)).body.reason, "unsubscribe");
      assert.equal((await stage.call("DELETE", path)).status, 204);
      assert.equal((await stage.call("GET", path)).status, 404);
    });
  });
}

describe("requests", () => {
  test("the form of mail programs may be multipart; other bodies are refused", async () => {
    const { stage, sink } = await startRelayedStage();
    await stage.call("POST", "/api/v1/send", BULK);
    const path = pathIn(sink.accepted[0]!.data);
    const bodies: [body: string, type: string][] = [
      ["", FORM["Content-Type"]],
      ["List-Unsubscribe=one-click", FORM["Content-Type"]],
      [`${ONE_CLICK}&x=1`, FORM["Content-Type"]],
      [ONE_CLICK, "text/plain"],
      [JSON.stringify({ "List-Unsubscribe": "One-Click" }), "application/json"],
      ["--x\r\nbroken", "multipart/form-data; boundary=x"],
    ];
    for (const [body, type] of bodies) {
      const refused = await stage.call("POST", path, body, { "Content-Type": type });
      assert.equal(refused.status, 400, body);
      assert.match(refused.body.detail, /must be exactly List-Unsubscribe=One-Click/);
    }
    assert.equal((await stage.call("POST", path, "x".repeat(5_000), FORM)).status, 413);
    assert.equal((await stage.call("POST", "/api/v1/send", BULK)).status, 200);
    const part = 'Content-Disposition: form-data; name="List-Unsubscribe"';
    const multipart = `--b1\r\n${part}\r\n\r\nOne-Click\r\n--b1--\r\n`;
    const type = { "Content-Type": "multipart/form-data; boundary=b1" };
    assert.equal((await stage.call("POST", path, multipart, type)).status, 200);
    assert.equal((await stage.call("POST", "/api/v1/send", BULK)).status, 422);
  });

  test("links are open behind the gateway, with a token configured", async () => {
    const { stage, sink } = await startRelayedStage({ token: "operator-token" });
    const operator = { Authorization: "Bearer operator-token" };
    await stage.call("POST", "/api/v1/send", BULK, operator);
    const path = pathIn(sink.accepted[0]!.data);
    const forwarded = { ...FORM, "X-Forwarded-For": "192.0.2.1", Origin: "null" };
    assert.equal((await stage.call("POST", path, ONE_CLICK, forwarded)).status, 200);
  });

  test("forged and incomplete links get one answer, and are throttled; valid ones are not", async () => {
    const { stage, sink } = await startRelayedStage();
    await stage.call("POST", "/api/v1/send", BULK);
    const path = pathIn(sink.accepted[0]!.data);
    const [payload = "", proof = ""] = path.slice("/unsubscribe/".length).split(".");
    const other = Buffer.from(payload, "base64url").toString().replace("Ada@", "Bob@");
    const forged = [
      `${Buffer.from(other).toString("base64url")}.${proof}`,
      `${payload}.${proof.slice(0, -1)}`,
      `${payload}.${"A".repeat(22)}`,
      `${payload.slice(0, -4)}.${proof}`,
      payload,
      `.${proof}`,
      "x",
      `${"A".repeat(9_000)}.${proof}`,
    ];
    const answers = new Set<string>();
    for (const token of forged) {
      const answer = await stage.call("POST", `/unsubscribe/${token}`, ONE_CLICK, FORM);
      assert.equal(answer.status, 404, token);
      answers.add(answer.text);
    }
    assert.equal(answers.size, 1);
    assert.match([...answers][0]!, /This link is not valid/);
    let last = 404;
    for (let count = 0; count < 800 && last === 404; count += 1) {
      last = (await stage.call("GET", "/unsubscribe/x")).status;
    }
    assert.equal(last, 429);
    assert.equal((await stage.call("GET", path)).status, 200);
    assert.equal((await stage.call("GET", "/api/v1/suppression")).body.addresses.length, 0);
  });
});

describe("messages", () => {
  test("each recipient has its own link, and transactional mail has none", async () => {
    const { stage, sink } = await startRelayedStage();
    const to = ["ada@example.org", "bob@example.org"];
    assert.equal((await stage.call("POST", "/api/v1/send", { ...BULK, to })).status, 200);
    const links = sink.accepted.map(({ recipient, data }) => ({ recipient, path: pathIn(data) }));
    assert.equal(new Set(links.map(({ path }) => path)).size, 2);
    for (const { recipient, path } of links) {
      assert.ok((await stage.call("GET", path)).text.includes(recipient));
    }
    await stage.call("POST", "/api/v1/send", { to: to[0], subject: "Code", text: "1" });
    assert.doesNotMatch(sink.accepted[2]!.data, /List-Unsubscribe/);
    const own = { ...BULK, headers: { "List-Unsubscribe": "<https://x.example>" } };
    assert.equal((await stage.call("POST", "/api/v1/send", own)).status, 400);
  });

  test("templates have the variable unsubscribe_url, and repeated requests are recognized", async () => {
    const { stage, sink } = await startRelayedStage();
    await stage.call("POST", "/api/v1/templates", {
      name: "news",
      subject: "News",
      text: "Stop: {{unsubscribe_url}}",
    });
    const request = { template: "news", to: BULK.to, stream: "bulk" };
    const key = { "Idempotency-Key": "one" };
    const first = await stage.call("POST", "/api/v1/send/template", request, key);
    assert.equal(first.status, 200, first.text);
    assert.equal(first.body.warnings, undefined);
    const again = await stage.call("POST", "/api/v1/send/template", request, key);
    assert.deepEqual(again.body, first.body);
    assert.equal(sink.accepted.length, 1);
    const mail = sink.accepted[0]!.data.replaceAll("=\r\n", "");
    const link = /Stop: https:\/\/mail\.test\/notify(\/unsubscribe\/\S+)/.exec(mail)![1]!;
    assert.equal(link, pathIn(sink.accepted[0]!.data));
    const code = await stage.call("POST", "/api/v1/send/template", {
      ...request,
      stream: undefined,
    });
    assert.deepEqual(code.body.warnings, ["the variable unsubscribe_url is missing"]);
  });

  test("bulk mail without a public URL is refused by relays and linked to the API by the inbox", async () => {
    const { stage } = await startRelayedStage({ public_url: undefined });
    const refused = await stage.call("POST", "/api/v1/send", BULK);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /PLATFORM_NOTIFY_PUBLIC_URL/);
    const local = await startStage({ public_url: undefined });
    OPEN.push(local);
    const { body } = await local.call("POST", "/api/v1/send", BULK);
    const raw = await local.call("GET", `/api/v1/inbox/${body.message_id}/raw`);
    const link = /^List-Unsubscribe:\s+<(http:\/\/[^>]+)>\r$/m.exec(raw.text)![1]!;
    assert.equal((await fetch(link)).status, 200);
  });

  test(
    "python3-dkim confirms that both fields are signed",
    { skip: findPythonSkip() },
    async () => {
      const dns = await startDnsServer({});
      OPEN.push(dns);
      const { stage, sink } = await startRelayedStage({ dns_servers: [dns.address] });
      const { body } = await stage.call("GET", "/api/v1/domains/shop.example");
      publish(dns, body.records);
      await stage.call("GET", "/api/v1/domains/shop.example");
      const to = ["ada@example.org", "bob@example.org"];
      await stage.call("POST", "/api/v1/send", { ...BULK, to });
      const mails = await waitFor(() => (sink.accepted.length === 2 ? sink.accepted : undefined));
      for (const { data } of mails) {
        const names = listSignedFields(data, dns);
        assert.ok(names.includes("list-unsubscribe"), names.join());
        assert.ok(names.includes("list-unsubscribe-post"), names.join());
      }
    },
  );
});

// The fields that Debian's python3-dkim finds signed, if the signature is valid.
function listSignedFields(mail: string, dns: DnsServer): string[] {
  const program = `
import dkim, json, sys
zone = json.loads(sys.argv[1])
def txt(name, timeout=5):
    name = name.decode() if isinstance(name, bytes) else name
    found = zone.get(name.rstrip('.').lower(), {}).get('TXT')
    return found[0].encode() if found else None
verifier = dkim.DKIM(sys.stdin.buffer.read())
assert verifier.verify(dnsfunc=txt)
print(json.dumps([name.decode() for name, value in verifier.signed_headers]))
`;
  const output = execFileSync("/usr/bin/python3", ["-c", program, JSON.stringify(dns.zone)], {
    input: Buffer.from(mail, "latin1"),
  });
  return (JSON.parse(output.toString()) as string[]).map((name) => name.toLowerCase());
}
