// Aggregate reports: read from mail in every packing, counted once, refused if forged or harmful.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer } from "../dns-server.ts";
import { openSmtp } from "../smtp-client.ts";
import { startStage, type Stage } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function start(): Promise<Stage> {
  const dns = await startDnsServer({
    "reporter.example": { TXT: ["v=spf1 ip4:127.0.0.1 -all"] },
  });
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    dns_servers: [dns.address],
  });
  OPEN.push(dns, stage);
  return stage;
}

const BEGIN = Date.UTC(2026, 9, 3) / 1000;

function createXml(id: string, domain = "shop.example", begin = BEGIN): string {
  const record = (count: number, spf: string, dkim: string): string =>
    `<record><row><source_ip>192.0.2.1</source_ip><count>${count}</count><policy_evaluated><disposition>none</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row><identifiers><header_from>${domain}</header_from></identifiers></record>`;
  return `<?xml version="1.0"?><feedback><report_metadata><org_name>Reporter</org_name><email>a@reporter.example</email><report_id>${id}</report_id><date_range><begin>${begin}</begin><end>${begin + 86_399}</end></date_range></report_metadata><policy_published><domain>${domain}</domain><p>none</p></policy_published>${record(10, "pass", "pass")}${record(5, "fail", "pass")}${record(3, "fail", "fail")}</feedback>`;
}

function createZip(files: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const file of files) {
    const data = deflateRawSync(file);
    const fields = Buffer.alloc(22);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(8, 4);
    fields.writeUInt32LE(crc32(file), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(file.length, 18);
    const name = Buffer.from("r.xml");
    const nameLength = Buffer.from([name.length, 0]);
    const local = Buffer.concat([
      Buffer.from("PK\x03\x04"),
      fields,
      nameLength,
      Buffer.alloc(2),
      name,
      data,
    ]);
    const position = Buffer.alloc(16);
    position.writeUInt32LE(offset, 12);
    central.push(
      Buffer.concat([
        Buffer.from("PK\x01\x02"),
        Buffer.alloc(2),
        fields,
        nameLength,
        position,
        name,
      ]),
    );
    parts.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, directory, Buffer.from("PK\x05\x06"), end]);
}

async function sendReport(
  stage: Stage,
  content: Buffer,
  {
    type = "application/gzip",
    sender = "a@reporter.example",
    from,
  }: { type?: string; sender?: string; from?: string } = {},
): Promise<void> {
  const client = await openSmtp(stage.smtpPort);
  const body = content.toString("base64").replaceAll(/.{76}/g, "$&\r\n");
  const mail = `From: ${from ?? sender}\r\nSubject: Report\r\nMIME-Version: 1.0\r\nContent-Type: ${type}\r\nContent-Disposition: attachment; filename=r\r\nContent-Transfer-Encoding: base64\r\n\r\n${body}`;
  const reply = await client.mail(sender, ["dmarc-reports@shop.example"], mail);
  assert.match(reply, /^250 /);
  client.close();
}

const readMonth = async (stage: Stage) =>
  (await stage.call("GET", "/api/v1/dmarc/report?period=2026-10")).body;

async function waitForRefusal(stage: Stage, pattern: RegExp): Promise<void> {
  await waitFor(() =>
    stage.log.some((line) => line.includes("a report could not be read") && pattern.test(line)),
  );
  assert.equal((await readMonth(stage)).total_messages, 0);
}

test("sources are summed over reports, filtered and paged", async () => {
  const stage = await start();
  const xml = (id: string): Buffer =>
    gzipSync(
      createXml(id)
        .replace("<source_ip>192.0.2.1", "<source_ip>2001:db8::7")
        .replace("<disposition>none", "<disposition>reject"),
    );
  await sendReport(stage, xml("1"));
  await sendReport(stage, xml("2"));
  const path = "/api/v1/dmarc/sources?period=2026-10";
  const body = await waitFor(async () => {
    const answer = await stage.call("GET", path);
    assert.equal(answer.status, 200, answer.text);
    return answer.body.sources[0]?.total_messages === 20 ? answer.body : undefined;
  });
  assert.deepEqual(body.sources, [
    {
      source_ip: "2001:db8::7",
      total_messages: 20,
      aligned: 20,
      spf: { pass: 20, fail: 0 },
      dkim: { pass: 20, fail: 0 },
      dispositions: { none: 0, quarantine: 0, reject: 20 },
      domains: ["shop.example"],
      reporters: ["Reporter"],
    },
    {
      source_ip: "192.0.2.1",
      total_messages: 16,
      aligned: 10,
      spf: { pass: 0, fail: 16 },
      dkim: { pass: 10, fail: 6 },
      dispositions: { none: 16, quarantine: 0, reject: 0 },
      domains: ["shop.example"],
      reporters: ["Reporter"],
    },
  ]);
  const first = await stage.call("GET", `${path}&limit=1`);
  const second = await stage.call("GET", `${path}&limit=1&cursor=${first.body.next_cursor}`);
  assert.equal(second.body.sources[0].source_ip, "192.0.2.1");
  assert.equal(second.body.next_cursor, null);
  const other = await stage.call("GET", `${path}&domain=other.example`);
  assert.deepEqual(other.body.sources, []);
  const report = `/api/v1/dmarc/report?period=2026-10&source=`;
  const one = await stage.call("GET", `${report}192.0.2.1`);
  assert.deepEqual([one.body.total_messages, one.body.aligned, one.body.failed_dkim], [16, 10, 6]);
  const none = await stage.call("GET", `${report}192.0.2.99`);
  assert.equal(none.body.total_messages, 0);
  assert.equal((await stage.call("GET", `${report}localhost`)).status, 400);
  assert.equal((await stage.call("GET", `${path}&cursor=eyJ`)).status, 400);
});

test("reports in gzip, ZIP and plain XML are summed by month; a repeated one counts once", async () => {
  const stage = await start();
  await sendReport(stage, gzipSync(createXml("1")));
  await sendReport(stage, gzipSync(createXml("1")));
  await sendReport(stage, createZip([Buffer.from(createXml("2"))]), { type: "application/zip" });
  await sendReport(stage, Buffer.from(createXml("3")), { type: "text/xml" });
  const month = await waitFor(async () => {
    const body = await readMonth(stage);
    return body.total_messages === 54 ? body : undefined;
  });
  const { inbound, ...totals } = month;
  assert.deepEqual(totals, {
    period: "2026-10",
    total_messages: 54,
    aligned: 45,
    failed_spf: 24,
    failed_dkim: 9,
  });
  assert.equal(inbound.total_messages, 0);
  const { body } = await stage.call("GET", "/api/v1/dmarc/reports?period=2026-10");
  assert.equal(body.reports.length, 3);
  assert.equal(body.reports[0].sources[0].source_ip, "192.0.2.1");
  const current = await stage.call("GET", "/api/v1/dmarc/report");
  assert.deepEqual(current.body.inbound, {
    total_messages: 4,
    aligned: 4,
    failed_spf: 0,
    failed_dkim: 4,
  });
});

describe("refused reports", () => {
  const bomb = (): Buffer => Buffer.alloc(64 * 1024 * 1024, " ");
  const cases: [name: string, create: () => Buffer, expected: RegExp][] = [
    ["a gzip bomb", () => gzipSync(bomb()), /larger than|too large/i],
    ["a ZIP bomb", () => createZip([bomb()]), /larger than|too large/i],
    ["a ZIP with two files", () => createZip([Buffer.from("a"), Buffer.from("b")]), /2 files/],
    ["a damaged ZIP", () => createZip([Buffer.from("a")]).subarray(0, 40), /damaged/],
    ["no XML", () => gzipSync("<feedback><a></feedback>"), /not XML/],
    [
      "entities",
      () => gzipSync(`<!DOCTYPE a [<!ENTITY x "y">]>${createXml("1")}`),
      /document type/,
    ],
    ["another domain", () => gzipSync(createXml("1", "bank.example")), /another domain: bank/],
    [
      "missing members",
      () => gzipSync("<feedback><version>1.0</version></feedback>"),
      /report_metadata/,
    ],
  ];
  for (const [name, create, expected] of cases) {
    test(name, async () => {
      const stage = await start();
      await sendReport(stage, create());
      await waitForRefusal(stage, expected);
    });
  }

  test("a report that passes for another domain than that of From", async () => {
    const stage = await start();
    await sendReport(stage, gzipSync(createXml("1")), { from: "a@bank.example" });
    await waitForRefusal(stage, /not authenticated .* for the domain of From/);
  });

  test("a report whose sender is not authenticated", async () => {
    const stage = await start();
    await sendReport(stage, gzipSync(createXml("1")), { sender: "a@forger.example" });
    await waitForRefusal(stage, /not authenticated/);
  });
});

test("the period belongs to the identity of a report; bytes behind its gzip data are ignored", async () => {
  const stage = await start();
  const pack = (begin: number, rest = "") =>
    Buffer.concat([
      gzipSync(createXml("same", "shop.example", begin)),
      Buffer.from(rest, "latin1"),
    ]);
  const waitForTotal = (total: number) =>
    waitFor(async () => (await readMonth(stage)).total_messages === total);
  await sendReport(stage, pack(BEGIN));
  await waitForTotal(18);
  for (const [index, rest] of ["\r\n", "\n", "\0\0\0", "\x1f\x8b\x08"].entries()) {
    await sendReport(stage, pack(BEGIN + (index + 1) * 86_400, rest));
    await waitForTotal(18 * (index + 2));
  }
  await sendReport(stage, pack(BEGIN));
  await sendReport(stage, pack(BEGIN + 9 * 86_400));
  await waitForTotal(18 * 6);
});

test("an invalid period is refused", async () => {
  const stage = await start();
  assert.equal((await stage.call("GET", "/api/v1/dmarc/report?period=2026-13")).status, 400);
});
