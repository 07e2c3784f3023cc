// Aggregate reports about received mail: daily, to those who may receive them, once.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import PostalMime from "postal-mime";
import { parseAggregate, type AggregateReport } from "../../src/dmarc/aggregate.ts";
import { createFeedback } from "../../src/dmarc/feedback.ts";
import { findPermitted } from "../../src/dmarc/permission.ts";
import { parsePolicyRecord } from "../../src/dmarc/policy-record.ts";
import { startDnsServer, type DnsServer, type Zone } from "../dns-server.ts";
import { startSink, type Received, type Sink } from "../sink.ts";
import { openSmtp } from "../smtp-client.ts";
import { STAGE_KINDS, startStageOn, type Stage, type StageKind } from "../stage.ts";

const DAY_MS = 86_400_000;
const OPEN: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const ZONE: Zone = {
  "bank.example": { TXT: ["v=spf1 ip4:127.0.0.1 -all"] },
  "_dmarc.bank.example": {
    TXT: ["v=DMARC1; p=reject; sp=quarantine; adkim=s; rua=mailto:dmarc@bank.example!10m"],
  },
  "_dmarc.silent.example": { TXT: ["v=DMARC1; p=none"] },
};

interface Started {
  stage: Stage;
  dns: DnsServer;
  sink: Sink;
  /** Receives a mail; returns the reply. */
  receive: (from: string, sender?: string, to?: string) => Promise<string>;
  /** Moves the clock to 00:40 of the next day, and sends what is due. */
  endDay: () => Promise<void>;
  list: () => Promise<
    { domain: string; status: string; messages: number; recipients: string[]; detail: string }[]
  >;
}

async function start(
  zone: Zone = ZONE,
  settings: Record<string, unknown> = {},
  { prepare }: StageKind = STAGE_KINDS[0]!,
): Promise<Started> {
  const dns = await startDnsServer({ ...zone });
  const sink = await startSink();
  const stage = await startStageOn({
    ...(await prepare()),
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    dns_servers: [dns.address],
    ...settings,
  });
  OPEN.push(dns, sink, { close: () => stage.close(500) });
  let nowMs = Date.now();
  const moveTo = (atMs: number): void => {
    stage.advance(atMs - nowMs);
    nowMs = atMs;
  };
  const nextDay = (): number => (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
  // All mails of a test are of one day.
  moveTo(nextDay() + 3_600_000);
  return {
    stage,
    dns,
    sink,
    receive: async (from, sender = from, to = "postmaster@shop.example") => {
      const client = await openSmtp(stage.smtpPort);
      const reply = await client.mail(sender, [to], `From: ${from}\r\nSubject: Hello\r\n\r\nHello`);
      client.close();
      return reply;
    },
    endDay: async () => {
      moveTo(nextDay() + 40 * 60_000);
      await stage.sendReports();
    },
    list: async () => {
      const months = new Set(
        [nowMs - DAY_MS, nowMs].map((ms) => new Date(ms).toISOString().slice(0, 7)),
      );
      const found = [];
      for (const month of months) {
        const { body } = await stage.call("GET", `/api/v1/dmarc/sent-reports?period=${month}`);
        found.push(...body.reports);
      }
      return found;
    },
  };
}

async function open({
  data,
}: Received): Promise<{ xml: string; report: AggregateReport; filename: string; subject: string }> {
  const mail = await PostalMime.parse(data);
  const [part] = mail.attachments;
  assert.equal(part!.mimeType, "application/gzip");
  const xml = gunzipSync(Buffer.from(part!.content as ArrayBuffer)).toString();
  return { xml, report: parseAggregate(xml), filename: part!.filename!, subject: mail.subject! };
}

// The order of elements and the values, as another receiver reads them.
const PYTHON = `
import email, email.policy, gzip, json, sys
import xml.etree.ElementTree as ElementTree
mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
[part] = list(mail.iter_attachments())
root = ElementTree.fromstring(gzip.decompress(part.get_content()))
def show(node):
    return [node.tag, (node.text or "").strip() if len(node) == 0 else [show(one) for one in node]]
print(json.dumps({"subject": mail["Subject"], "filename": part.get_filename(), "tree": show(root)}))
`;

for (const kind of STAGE_KINDS) {
  test(
    `${kind.kind}: the mail of a day is reported to the domain, once, in the standard form`,
    { skip: kind.skip },
    async () => {
      const { stage, sink, receive, endDay, list } = await start(ZONE, {}, kind);
      assert.match(await receive("a@bank.example"), /^250 /);
      assert.match(await receive("b@bank.example"), /^250 /);
      assert.match(await receive("ceo@bank.example", "x@forger.example"), /^550 5\.7\.26 /);
      assert.match(await receive("a@silent.example"), /^250 /);
      await stage.sendReports();
      assert.equal(sink.accepted.length, 0, "not before the end of the day");
      await endDay();
      assert.equal(sink.accepted.length, 1);
      const [mail] = sink.accepted;
      assert.equal(mail!.recipient, "dmarc@bank.example");
      assert.match(mail!.data, /^From: postmaster@shop\.example\r$/m);
      assert.match(mail!.data, /^Auto-Submitted: auto-generated\r$/m);
      assert.doesNotMatch(mail!.data, /List-Unsubscribe/);
      const { report, filename, subject } = await open(mail!);
      const [begin, end] = [report.beginsAt / 1_000, report.endsAt / 1_000];
      assert.equal(begin % 86_400, 0);
      assert.equal(end - begin, 86_399);
      assert.equal(filename, `shop.example!bank.example!${begin}!${end}.xml.gz`);
      assert.equal(
        subject,
        `Report Domain: bank.example Submitter: shop.example Report-ID: <${report.reportId}@shop.example>`,
      );
      assert.equal(report.orgName, "shop.example");
      assert.equal(report.domain, "bank.example");
      assert.deepEqual(report.records, [
        { sourceIp: "127.0.0.1", count: 2, disposition: "none", dkim: "fail", spf: "pass" },
        { sourceIp: "127.0.0.1", count: 1, disposition: "reject", dkim: "fail", spf: "fail" },
      ]);
      const sent = (await list()).map(({ domain, status, messages }) => [domain, status, messages]);
      assert.deepEqual(sent, [
        ["bank.example", "sent", 3],
        ["silent.example", "skipped", 0],
      ]);
      await stage.sendReports();
      await stage.close(500);
      const again = await startStageOn(stage.settings);
      OPEN.push({ close: () => again.close(500) });
      again.advance(2 * DAY_MS);
      await again.sendReports();
      assert.equal(sink.accepted.length, 1, "also after a restart");
    },
  );
}

test("Python's email and ElementTree read the report, in the order of RFC 7489 appendix C", async () => {
  const { sink, receive, endDay } = await start();
  await receive("a@bank.example");
  await endDay();
  const input = Buffer.from(sink.accepted[0]!.data, "latin1");
  const { filename, tree } = JSON.parse(
    execFileSync("python3", ["-c", PYTHON], { input }).toString(),
  ) as { filename: string; tree: unknown };
  const [, , begin = "", end = ""] = filename.replace(".xml.gz", "").split("!");
  assert.deepEqual(tree, [
    "feedback",
    [
      ["version", "1.0"],
      [
        "report_metadata",
        [
          ["org_name", "shop.example"],
          ["email", "postmaster@shop.example"],
          ["report_id", (await open(sink.accepted[0]!)).report.reportId],
          [
            "date_range",
            [
              ["begin", begin],
              ["end", end],
            ],
          ],
        ],
      ],
      [
        "policy_published",
        [
          ["domain", "bank.example"],
          ["adkim", "s"],
          ["aspf", "r"],
          ["p", "reject"],
          ["sp", "quarantine"],
          ["pct", "100"],
          ["fo", "0"],
        ],
      ],
      [
        "record",
        [
          [
            "row",
            [
              ["source_ip", "127.0.0.1"],
              ["count", "1"],
              [
                "policy_evaluated",
                [
                  ["disposition", "none"],
                  ["dkim", "fail"],
                  ["spf", "pass"],
                ],
              ],
            ],
          ],
          [
            "identifiers",
            [
              ["envelope_from", "bank.example"],
              ["header_from", "bank.example"],
            ],
          ],
          [
            "auth_results",
            [
              [
                "spf",
                [
                  ["domain", "bank.example"],
                  ["scope", "mfrom"],
                  ["result", "pass"],
                ],
              ],
            ],
          ],
        ],
      ],
    ],
  ]);
});

describe("recipients", () => {
  const zone = (rua: string, more: Zone = {}): Zone => ({
    ...ZONE,
    "_dmarc.bank.example": { TXT: [`v=DMARC1; p=none; rua=${rua}`] },
    ...more,
  });

  test("other domains receive reports only if they allow it", async () => {
    const permission = "bank.example._report._dmarc";
    const { sink, receive, endDay, list } = await start(
      zone("mailto:victim@other.example,mailto:in@collector.example,mailto:in@moved.example", {
        "other.example": { TXT: ["v=spf1 -all"] },
        [`${permission}.collector.example`]: { TXT: ["v=DMARC1"] },
        [`${permission}.moved.example`]: { TXT: ["v=DMARC1; rua=mailto:new@moved.example"] },
      }),
    );
    await receive("a@bank.example");
    await endDay();
    assert.deepEqual(sink.accepted.map(({ recipient }) => recipient).sort(), [
      "in@collector.example",
      "new@moved.example",
    ]);
    assert.equal((await list())[0]!.status, "sent");
  });

  test("suppressed addresses, too small limits and other URIs get nothing, and are named", async () => {
    const rua =
      "mailto:gone@bank.example,mailto:small@bank.example!1k,https://bank.example/report,mailto:ok@bank.example!10m";
    const { stage, sink, receive, endDay, list } = await start(zone(rua));
    await stage.call("POST", "/api/v1/suppression", {
      email: "gone@bank.example",
      reason: "unsubscribe",
    });
    await receive("a@bank.example");
    await endDay();
    assert.deepEqual(
      sink.accepted.map(({ recipient }) => recipient),
      ["ok@bank.example"],
    );
    const [report] = await list();
    assert.deepEqual(report!.recipients, ["ok@bank.example"]);
    assert.match(
      report!.detail,
      /gone@bank\.example: .*suppression list.*small@bank\.example: .* 1024 bytes/,
    );
  });

  test("a failure of DNS delays the report", async () => {
    const { stage, sink, dns, receive, endDay, list } = await start();
    await receive("a@bank.example");
    stage.advance(120_000);
    dns.zone["_dmarc.bank.example"] = { isFailing: true };
    await endDay();
    assert.equal(sink.accepted.length, 0);
    assert.deepEqual(
      [(await list())[0]!.status, (await list())[0]!.detail],
      ["pending", "DNS: ESERVFAIL"],
    );
    dns.zone["_dmarc.bank.example"] = ZONE["_dmarc.bank.example"]!;
    await stage.sendReports();
    assert.equal(sink.accepted.length, 0, "not before its time");
    stage.advance(3_700_000);
    await stage.sendReports();
    assert.equal(sink.accepted.length, 1);
  });
});

test("mail to dmarc-reports@ is not reported, so that reports about reports end", async () => {
  const { sink, receive, endDay, list } = await start();
  await receive("a@bank.example", "a@bank.example", "dmarc-reports@shop.example");
  await endDay();
  assert.equal(sink.accepted.length, 0);
  assert.deepEqual(await list(), []);
});

test("dmarc_reports: false sends none", async () => {
  const { sink, receive, endDay } = await start(ZONE, { dmarc_reports: false });
  await receive("a@bank.example");
  await endDay();
  assert.equal(sink.accepted.length, 0);
});

test("accepted mail that fails has a reason, and names from senders are escaped", () => {
  const { xml } = createFeedback({
    beginsAt: 0,
    endsAt: DAY_MS,
    orgName: "shop.example",
    email: "postmaster@shop.example",
    domain: "bank.example",
    record: parsePolicyRecord(["v=DMARC1; p=reject"])!,
    observations: [
      {
        clientAddress: "192.0.2.1",
        count: 1,
        status: "accepted",
        kind: "mail",
        dmarc: "fail",
        policy: "reject",
        isSpfAligned: false,
        isDkimAligned: false,
        fromDomain: "bank.example",
        hasNullSender: true,
        spf: "unheard-of",
        spfDomain: "a</domain><x>&\u0000",
        signatures: [{ domain: "d.example", selector: "s\"'", result: "pass" }],
      },
    ],
  });
  assert.deepEqual(parseAggregate(xml).records[0], {
    sourceIp: "192.0.2.1",
    count: 1,
    disposition: "none",
    dkim: "fail",
    spf: "fail",
  });
  assert.match(xml, /<reason><type>local_policy<\/type><comment><\/comment><\/reason>/);
  assert.match(
    xml,
    /<domain>a&#60;\/domain&#62;&#60;x&#62;&#38;\?<\/domain><scope>helo<\/scope><result>none</,
  );
});

test("records are parsed strictly where it matters", () => {
  const parse = (...texts: string[]) => parsePolicyRecord(texts);
  assert.equal(parse("v=spf1 -all"), undefined);
  assert.equal(parse("v=DMARC1; p=none", "v=DMARC1; p=reject"), undefined, "several are none");
  const record = parse(
    "v=DMARC1;p=Quarantine; pct=200; rua= mailto:a%2Bb@x.example!2k , mailto:c@x.example?subject=x, mailto:bad, tel:1",
  );
  assert.deepEqual(record!.rua, [
    { address: "a+b@x.example", host: "x.example", bytesMax: 2_048 },
    { address: "c@x.example", host: "x.example", bytesMax: Number.POSITIVE_INFINITY },
  ]);
  assert.deepEqual([record!.p, record!.sp, record!.pct], ["quarantine", "quarantine", 100]);
  const many = Array.from({ length: 20 }, (_, index) => `mailto:a${index}@x.example`).join(",");
  assert.equal(parse(`v=DMARC1; rua=${many}`)!.rua.length, 5);
});

test("addresses of the same organization need no permission, those of a public suffix do", async () => {
  const records: Record<string, string[]> = {
    "_dmarc.example.org": ["v=DMARC1; p=none"],
    "_dmarc.co.test": ["v=DMARC1; p=none; psd=y"],
  };
  const check = async (domain: string, host: string): Promise<boolean> => {
    const target = { address: `a@${host}`, host, bytesMax: 1 };
    const found = await findPermitted(domain, [target], async (name) => records[name] ?? []);
    return found.length === 1;
  };
  assert.equal(await check("example.org", "example.org"), true);
  assert.equal(await check("example.org", "mail.example.org"), true);
  assert.equal(await check("shop.example.org", "example.org"), true);
  assert.equal(await check("shop.example.org", "mail.example.org"), true);
  assert.equal(await check("a.co.test", "b.co.test"), false);
  assert.equal(await check("a.test", "b.test"), false);
  assert.equal(await check("ample.org", "example.org"), false);
});
