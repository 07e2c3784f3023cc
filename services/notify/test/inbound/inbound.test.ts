// Inbound mail: recipient check, SPF, DKIM and DMARC, storage, forwards to webhooks.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer, type Zone } from "../dns-server.ts";
import { startHookServer, type HookServer } from "../receiver.ts";
import { openSmtp } from "../smtp-client.ts";
import { STAGE_KINDS, startStageOn, type Stage, type StageKind } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const ZONE: Zone = {
  "sender.example": { TXT: ["v=spf1 ip4:127.0.0.1 -all"] },
  "_dmarc.sender.example": { TXT: ["v=DMARC1; p=reject"] },
  "strict.example": { TXT: ["v=spf1 -all"] },
  "_dmarc.strict.example": { TXT: ["v=DMARC1; p=reject"] },
  "careful.example": { TXT: ["v=spf1 -all"] },
  "_dmarc.careful.example": { TXT: ["v=DMARC1; p=quarantine"] },
};

const CONTENT = [
  "From: Ada <ada@sender.example>",
  "To: support@shop.example",
  "Cc: Bob <bob@shop.example>",
  "Subject: =?utf-8?B?R3LDvMOfZQ==?=",
  "Message-ID: <1@sender.example>",
  "MIME-Version: 1.0",
  'Content-Type: multipart/mixed; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain; charset=utf-8",
  "",
  "Hello",
  "..dot",
  "--b",
  "Content-Type: application/pdf",
  "Content-Disposition: attachment; filename=bill.pdf",
  "Content-Transfer-Encoding: base64",
  "",
  "JVBERi0=",
  "--b--",
].join("\r\n");

interface Started {
  stage: Stage;
  hooks: HookServer;
  /** Creates a rule and returns its secret. */
  addRule: (
    pattern: string,
    path: string,
    priority?: number,
  ) => Promise<{ id: string; secret: string }>;
  send: (sender: string, recipients: readonly string[], content?: string) => Promise<string>;
}

async function start(
  settings: Record<string, unknown> = {},
  kind: StageKind = STAGE_KINDS[0]!,
): Promise<Started> {
  const dns = await startDnsServer({ ...ZONE });
  const hooks = await startHookServer();
  const stage = await startStageOn({
    ...(await kind.prepare()),
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
    ...settings,
  });
  OPEN.push(dns, hooks, stage);
  return {
    stage,
    hooks,
    addRule: async (pattern, path, priority = 0) => {
      const { status, body, text } = await stage.call("POST", "/api/v1/inbound/rules", {
        name: path,
        match: { to_pattern: pattern },
        forward_to: `${hooks.url}${path}`,
        priority,
      });
      assert.equal(status, 201, text);
      assert.equal(body.status, "created");
      return { id: body.rule_id, secret: body.secret };
    },
    send: async (sender, recipients, content = CONTENT) => {
      const client = await openSmtp(stage.smtpPort);
      const reply = await client.mail(sender, recipients, content);
      client.close();
      return reply;
    },
  };
}

for (const kind of STAGE_KINDS) {
  test(
    `${kind.kind}: mail for a rule is stored and posted to its target, signed`,
    { skip: kind.skip },
    async () => {
      const { stage, hooks, addRule, send } = await start({}, kind);
      const { id, secret } = await addRule("support@shop.example", "/support");
      const reply = await send("ada@sender.example", ["Support+42@shop.example"]);
      assert.match(reply, /^250 2\.0\.0 Stored as [0-9a-f-]{36}$/);
      const { headers, text, body } = await waitFor(() => hooks.requests[0]);
      assert.doesNotThrow(() =>
        new Webhook(secret).verify(text, headers as Record<string, string>),
      );
      assert.equal(body.from, "Ada <ada@sender.example>");
      assert.deepEqual(body.to, ["support@shop.example"]);
      assert.deepEqual(body.cc, ["bob@shop.example"]);
      assert.equal(body.subject, "Grüße");
      assert.equal(body.text.trim(), "Hello\n.dot");
      assert.equal(body.rule_id, id);
      assert.deepEqual(body.envelope, {
        from: "ada@sender.example",
        to: ["Support+42@shop.example"],
      });
      assert.deepEqual(body.attachments, [
        {
          filename: "bill.pdf",
          content_type: "application/pdf",
          content_id: null,
          method: null,
          content: "JVBERi0=",
        },
      ]);
      assert.deepEqual([body.spf, body.dkim, body.dmarc], ["pass", "none", "pass"]);
      assert.equal(body.message_id, "<1@sender.example>");
      const stored = reply.split(" ").at(-1)!;
      const detail = await waitFor(async () => {
        const found = await stage.call("GET", `/api/v1/inbound/messages/${stored}`);
        return found.body.forwards[0].status === "delivered" ? found.body : undefined;
      });
      assert.equal(detail.status, "accepted");
      const raw = await stage.call("GET", `/api/v1/inbound/messages/${stored}/raw`);
      assert.match(raw.text, /^Return-Path: <ada@sender\.example>\r\n/);
      assert.match(raw.text, /^Authentication-Results: notify\.test;/m);
      assert.match(raw.text, /^Received: from client\.test \(\[127\.0\.0\.1\]\)\r$/m);
      assert.ok(raw.text.endsWith(`${CONTENT.replace("\r\n..dot", "\r\n.dot")}\r\n`));
    },
  );
}

describe("recipients", () => {
  test("unknown ones are refused with 550, and many of them end the connection", async () => {
    const { stage, addRule } = await start();
    await addRule("*@shop.example", "/all");
    const client = await openSmtp(stage.smtpPort);
    await client.command("MAIL FROM:<ada@sender.example>");
    assert.match(await client.command("RCPT TO:<ada@elsewhere.example>"), /^550 5\.1\.1 /);
    assert.match(await client.command("RCPT TO:<ada@shop.example>"), /^250 /);
    for (let index = 0; index < 19; index += 1) {
      assert.match(await client.command(`RCPT TO:<a${index}@elsewhere.example>`), /^550 /);
    }
    assert.match(await client.command("RCPT TO:<b@elsewhere.example>"), /^421 4\.7\.0 /);
    assert.equal(await client.reply(), "");
  });

  test("the rule with the highest priority gets the mail, one request per rule", async () => {
    const { hooks, addRule, send } = await start();
    await addRule("*@shop.example", "/low", 1);
    await addRule("sales-*@shop.example", "/high", 10);
    const recipients = ["sales-de@shop.example", "sales-fr@shop.example", "ada@shop.example"];
    assert.match(await send("ada@sender.example", recipients), /^250 /);
    await waitFor(() => hooks.requests[1]);
    const byPath = new Map(hooks.requests.map(({ path, body }) => [path, body.envelope.to]));
    assert.deepEqual(byPath.get("/high"), recipients.slice(0, 2));
    assert.deepEqual(byPath.get("/low"), recipients.slice(2));
    assert.equal(hooks.requests.length, 2);
  });

  test("too many get 452", async () => {
    const { stage, addRule } = await start({ inbound_recipients_max: 2 });
    await addRule("*@shop.example", "/all");
    const client = await openSmtp(stage.smtpPort);
    await client.command("MAIL FROM:<ada@sender.example>");
    await client.command("RCPT TO:<a@shop.example>");
    await client.command("RCPT TO:<b@shop.example>");
    assert.match(await client.command("RCPT TO:<c@shop.example>"), /^452 /);
    client.close();
  });

  test("a forged bounce address is refused, a real one is accepted", async () => {
    const { send } = await start({ bounce_domain: "shop.example" });
    const forged = `bounce+${"0".repeat(32)}-0-zz.${"0".repeat(16)}@shop.example`;
    assert.match(
      await send("", [forged]),
      /^550 5\.1\.1 This bounce address is invalid or expired$/,
    );
  });
});

describe("DMARC", () => {
  const from = (domain: string): string => CONTENT.replace("sender.example", domain);

  test("reject: the mail is refused, and counted", async () => {
    const { stage, hooks, addRule, send } = await start();
    await addRule("*@shop.example", "/all");
    const reply = await send("ada@strict.example", ["a@shop.example"], from("strict.example"));
    assert.match(reply, /^550 5\.7\.26 Rejected by the DMARC policy of strict\.example$/);
    const { body } = await stage.call("GET", "/api/v1/inbound/messages?status=rejected");
    assert.deepEqual([body.messages.length, body.messages[0].dmarc], [1, "fail"]);
    assert.equal(hooks.requests.length, 0);
  });

  test("a second author does not bypass the policy of the first", async () => {
    const { stage, send } = await start();
    const body = "Subject: x\r\n\r\nx";
    for (const from of [
      "From: a@strict.example\r\nFrom: b@forger.example",
      "From: b@forger.example\r\nFrom: a@strict.example",
      "From: a@strict.example, b@forger.example",
    ]) {
      const reply = await send(
        "a@sender.example",
        ["postmaster@shop.example"],
        `${from}\r\n${body}`,
      );
      assert.match(reply, /^550 5\.7\.26 The addresses in From have several domains$/, from);
    }
    const same = "From: a@sender.example, b@sender.example";
    const reply = await send("a@sender.example", ["postmaster@shop.example"], `${same}\r\n${body}`);
    assert.match(reply, /^250 /);
    const { messages } = (await stage.call("GET", "/api/v1/inbound/messages")).body;
    assert.equal(messages.length, 1);
  });

  test("quarantine: the mail is kept, and forwarded only on request", async () => {
    const { stage, hooks, addRule, send } = await start();
    await addRule("*@shop.example", "/all");
    const reply = await send("ada@careful.example", ["a@shop.example"], from("careful.example"));
    assert.match(reply, /^250 /);
    const path = `/api/v1/inbound/messages/${reply.split(" ").at(-1)}`;
    assert.equal((await stage.call("GET", path)).body.status, "quarantined");
    assert.equal(hooks.requests.length, 0);
    assert.equal((await stage.call("POST", `${path}/forward`)).status, 202);
    await waitFor(() => hooks.requests[0]);
    assert.equal((await stage.call("GET", path)).body.status, "accepted");
  });

  test("dmarc_enabled: false only records the result", async () => {
    const { hooks, addRule, send } = await start({ dmarc_enabled: false });
    await addRule("*@shop.example", "/all");
    assert.match(
      await send("ada@strict.example", ["a@shop.example"], from("strict.example")),
      /^250 /,
    );
    assert.equal((await waitFor(() => hooks.requests[0])).body.dmarc, "fail");
  });

  test("silent DNS servers cost at most 3 s, and the mail is accepted with temperror", async () => {
    const dns = await startDnsServer({});
    dns.isSilent = true;
    OPEN.push(dns);
    const { hooks, addRule, send } = await start({ dns_servers: [dns.address] });
    await addRule("*@shop.example", "/all");
    const startedMs = performance.now();
    assert.match(await send("ada@sender.example", ["a@shop.example"]), /^250 /);
    assert.ok(performance.now() - startedMs < 30_000);
    const { body } = await waitFor(() => hooks.requests[0]);
    assert.deepEqual([body.spf, body.dmarc], ["temperror", "temperror"]);
  });

  test("Authentication-Results in the name of this host are removed", async () => {
    const { stage, addRule, send } = await start();
    await addRule("*@shop.example", "/all");
    const forged = `Authentication-Results: Notify.Test; dkim=pass\r\n header.d=bank.example\r\nAuthentication-Results: other.example; spf=pass\r\n${CONTENT}`;
    const reply = await send("ada@sender.example", ["a@shop.example"], forged);
    const raw = await stage.call("GET", `/api/v1/inbound/messages/${reply.split(" ").at(-1)}/raw`);
    assert.doesNotMatch(raw.text, /bank\.example/);
    assert.match(raw.text, /^Authentication-Results: other\.example; spf=pass\r$/m);
  });
});

describe("forwards", () => {
  test("a failing target is tried again, also after a restart; another rule is not delayed", async () => {
    const { stage, hooks, addRule, send } = await start();
    const broken = await addRule("a@shop.example", "/broken");
    hooks.status = 503;
    const reply = await send("ada@sender.example", ["a@shop.example"]);
    const path = `/api/v1/inbound/messages/${reply.split(" ").at(-1)}`;
    const failed = await waitFor(async () => {
      const { body } = await stage.call("GET", path);
      return body.forwards[0].attempts === 1 ? body.forwards[0] : undefined;
    });
    assert.equal(failed.status, "pending");
    assert.equal(failed.detail, "the target returned 503");
    await stage.close();
    hooks.status = 200;
    const again = await startStageOn(stage.settings);
    OPEN.push(again);
    again.advance(60_000);
    const repeated = await waitFor(() => hooks.requests[1]);
    assert.equal(repeated.headers["webhook-id"], hooks.requests[0]!.headers["webhook-id"]);
    assert.equal(repeated.body.rule_id, broken.id);
  });

  test("one that was planned while the clock was ahead is not late by the jump", async () => {
    const DAY_MS = 86_400_000;
    const { stage, hooks, addRule, send } = await start();
    await addRule("a@shop.example", "/hook");
    stage.setCalendar(DAY_MS);
    hooks.status = 503;
    const reply = await send("ada@sender.example", ["a@shop.example"]);
    const path = `/api/v1/inbound/messages/${reply.split(" ").at(-1)}`;
    await waitFor(async () => {
      const { body } = await stage.call("GET", path);
      return body.forwards[0].attempts === 1;
    });
    hooks.status = 200;
    stage.setCalendar(-DAY_MS);
    await waitFor(() => hooks.requests[1]);
  });

  test("410 ends the attempts", async () => {
    const { stage, hooks, addRule, send } = await start();
    await addRule("a@shop.example", "/gone");
    hooks.status = 410;
    const reply = await send("ada@sender.example", ["a@shop.example"]);
    const path = `/api/v1/inbound/messages/${reply.split(" ").at(-1)}`;
    await waitFor(async () => {
      const { body } = await stage.call("GET", path);
      return body.forwards[0].status === "failed";
    });
  });

  test("a rotated secret signs together with the previous one", async () => {
    const { stage, hooks, addRule, send } = await start();
    const { id, secret } = await addRule("a@shop.example", "/hook");
    const rotated = await stage.call("POST", `/api/v1/inbound/rules/${id}/rotate-secret`);
    await send("ada@sender.example", ["a@shop.example"]);
    const { text, headers } = await waitFor(() => hooks.requests[0]);
    for (const one of [secret, rotated.body.secret]) {
      assert.doesNotThrow(() => new Webhook(one).verify(text, headers as Record<string, string>));
    }
  });

  test("targets on private addresses are refused when the rule is made", async () => {
    const { stage } = await start({ allow_private_targets: false });
    for (const url of ["http://127.0.0.1/", "http://[::1]:80/", "http://169.254.169.254/x"]) {
      const { status, body } = await stage.call("POST", "/api/v1/inbound/rules", {
        name: "x",
        match: { to_pattern: "a@shop.example" },
        forward_to: url,
      });
      assert.equal(status, 422, url);
      assert.match(body.detail, /^forward_to: .*not allowed/);
    }
  });
});

describe("rules", () => {
  test("are listed in their order, replaced and deleted", async () => {
    const { stage, hooks, addRule, send } = await start();
    const low = await addRule("*@shop.example", "/low");
    const high = await addRule("a@shop.example", "/high", 5);
    const list = await stage.call("GET", "/api/v1/inbound/rules");
    assert.deepEqual(
      list.body.rules.map((rule: { name: string }) => rule.name),
      ["/high", "/low"],
    );
    assert.equal(JSON.stringify(list.body).includes("whsec_"), false);
    const attempt = async (id: string, to: string): Promise<unknown[]> => {
      const { status, body } = await stage.call("POST", `/api/v1/inbound/rules/${id}/test`, { to });
      assert.equal(status, 200);
      return [body.matches, body.applies, body.applied_rule_id];
    };
    assert.deepEqual(await attempt(low.id, "B@shop.example"), [true, true, low.id]);
    assert.deepEqual(await attempt(low.id, "a+1@shop.example"), [true, false, high.id]);
    assert.deepEqual(await attempt(high.id, "b@shop.example"), [false, false, low.id]);
    assert.deepEqual(await attempt(high.id, "a@other.example"), [false, false, null]);
    const unknown = await stage.call("POST", "/api/v1/inbound/rules/none/test", {
      to: "a@b.example",
    });
    assert.equal(unknown.status, 404);
    const changed = await stage.call("PUT", `/api/v1/inbound/rules/${low.id}`, {
      name: "low",
      match: { to_pattern: "b@shop.example" },
      forward_to: `${hooks.url}/b`,
    });
    assert.equal(changed.body.match.to_pattern, "b@shop.example");
    assert.match(await send("", ["c@shop.example"]), /^550 /);
    assert.equal((await stage.call("DELETE", `/api/v1/inbound/rules/${low.id}`)).status, 204);
    assert.match(await send("", ["b@shop.example"]), /^550 /);
    assert.equal((await stage.call("GET", `/api/v1/inbound/rules/${low.id}`)).status, 404);
  });

  test("fields of a rule are changed, unless it changed in between or its target is forbidden", async () => {
    const { stage, addRule, hooks } = await start();
    const { id } = await addRule("a@shop.example", "/a");
    const path = `/api/v1/inbound/rules/${id}`;
    const read = await stage.call("GET", path);
    const tag = { "If-Match": read.headers.get("etag")! };
    const changed = await stage.call("PATCH", path, { priority: 7 }, tag);
    assert.equal(changed.status, 200, changed.text);
    assert.equal(changed.body.priority, 7);
    assert.equal(changed.body.match.to_pattern, "a@shop.example");
    assert.equal(changed.body.forward_to, `${hooks.url}/a`);
    assert.equal((await stage.call("PATCH", path, { priority: 8 }, tag)).status, 412);
    const next = { "If-Match": changed.headers.get("etag")! };
    const racers = await Promise.all(
      [1, 2, 3].map((priority) => stage.call("PATCH", path, { priority }, next)),
    );
    assert.deepEqual(
      racers.map(({ status }) => status).sort((a, b) => a - b),
      [200, 412, 412],
    );
    assert.equal((await stage.call("PATCH", path, { match: { to_pattern: "x" } })).status, 400);
    assert.equal((await stage.call("PATCH", path, { forward_to: "file:///etc" })).status, 400);
    assert.equal((await stage.call("PATCH", path, { secret: "x" })).status, 400);
    assert.equal((await stage.call("PATCH", "/api/v1/inbound/rules/none", {})).status, 404);
    await stage.close();
    const strict = await startStageOn({ ...stage.settings, allow_private_targets: false });
    const refused = await strict.call("PATCH", path, { forward_to: "http://127.0.0.1:9/" });
    assert.equal(refused.status, 422, refused.text);
    assert.equal((await strict.call("PATCH", path, { name: "still private" })).status, 422);
    await strict.close();
  });

  test("all rules that match an address are found in their order", async () => {
    const { stage, addRule } = await start();
    const low = await addRule("*@shop.example", "/low");
    const high = await addRule("a@shop.example", "/high", 5);
    const find = async (to: string) =>
      (await stage.call("POST", "/api/v1/inbound/rules/test", { to })).body;
    const both = await find("A+tag@shop.example");
    assert.equal(both.applied_rule_id, high.id);
    assert.deepEqual(
      both.rules.map((rule: { rule_id: string }) => rule.rule_id),
      [high.id, low.id],
    );
    assert.deepEqual(await find("a@other.example"), { applied_rule_id: null, rules: [] });
  });

  test("invalid patterns and URLs are refused with the place of the fault", async () => {
    const { stage } = await start();
    const create = (pattern: string, url: string) =>
      stage.call("POST", "/api/v1/inbound/rules", {
        name: "x",
        match: { to_pattern: pattern },
        forward_to: url,
      });
    for (const pattern of ["support", "a b@shop.example", "**********@shop.example", "a@b@c d"]) {
      const { status, text } = await create(pattern, "https://example.com/");
      assert.equal(status, 400, pattern);
      assert.match(text, /match\.to_pattern/);
    }
    assert.equal((await create("a@shop.example", "ftp://example.com/")).status, 400);
  });
});
