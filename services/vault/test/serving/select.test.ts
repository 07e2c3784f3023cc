// Questions about the content of objects, over HTTP: both forms, rights, kinds of storage, and clients that leave.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createHash, randomBytes } from "node:crypto";
import { request as sendHttp } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { waitFor } from "@platform/testing/wait";
import { S3Client, SelectObjectContentCommand } from "@aws-sdk/client-s3";
import { signRequest } from "@platform/s3/signature";
import type { Answer, Ask } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

const CSV = "id,name,n\n1,Ann,5\n2,Bob,7\n3,Eve,9\n";
const XML = { "content-type": "application/xml" };

let serving: Serving;

before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_SELECT_TIMEOUT_MS: "3000" } });
  await serving.s3.must("PUT", "/data");
  await serving.s3.must("PUT", "/data/a.csv", { body: CSV });
});
after(() => serving[Symbol.asyncDispose]());

interface Asked extends Omit<Ask, "body"> {
  input?: object;
  output?: object;
  query?: string;
  more?: object;
  at?: Serving;
}

function ask(key: string, expression: string, asked: Asked = {}): Promise<Answer> {
  const { input = { CSV: { FileHeaderInfo: "USE" } }, output = { JSON: {} }, query = "" } = asked;
  const body = {
    Expression: expression,
    ExpressionType: "SQL",
    InputSerialization: input,
    OutputSerialization: output,
    ...asked.more,
  };
  const { s3 } = asked.at ?? serving;
  return s3.send("POST", `/data/${key}?select${query}`, { ...asked, body: JSON.stringify(body) });
}

function askXml(expression: string, more = "", input = "<CSV/>"): Promise<Answer> {
  const text = expression.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const body = `<SelectObjectContentRequest xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Expression>${text}</Expression><ExpressionType>SQL</ExpressionType><InputSerialization>${input}</InputSerialization><OutputSerialization><CSV/></OutputSerialization>${more}</SelectObjectContentRequest>`;
  return serving.s3.send("POST", "/data/a.csv?select&select-type=2", { body, headers: XML });
}

interface Message {
  headers: Record<string, string>;
  payload: string;
}

/** The messages of an event stream, whose checksums are verified. */
function readMessages(bytes: Buffer): Message[] {
  const messages: Message[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at);
    const headersSize = bytes.readUInt32BE(at + 4);
    assert.equal(bytes.readUInt32BE(at + 8), crc32(bytes.subarray(at, at + 8)));
    const end = at + size - 4;
    assert.equal(bytes.readUInt32BE(end), crc32(bytes.subarray(at, end)));
    const headers: Record<string, string> = {};
    for (let cursor = at + 12; cursor < at + 12 + headersSize;) {
      const nameEnd = cursor + 1 + bytes[cursor]!;
      const valueEnd = nameEnd + 3 + bytes.readUInt16BE(nameEnd + 1);
      assert.equal(bytes[nameEnd], 7);
      headers[bytes.toString("utf8", cursor + 1, nameEnd)] = bytes.toString(
        "utf8",
        nameEnd + 3,
        valueEnd,
      );
      cursor = valueEnd;
    }
    messages.push({ headers, payload: bytes.toString("utf8", at + 12 + headersSize, end) });
    at += size;
  }
  return messages;
}

test("records are answered as NDJSON or CSV", async () => {
  const json = await ask(
    "a.csv",
    "SELECT s.name, CAST(s.n AS INT) * 2 AS d FROM S3Object s WHERE s.n > 5",
  );
  assert.deepEqual(
    [json.status, json.text],
    [200, '{"name":"Bob","d":14}\n{"name":"Eve","d":18}\n'],
  );
  assert.equal(json.headers["content-type"], "application/x-ndjson; charset=utf-8");
  const csv = await ask("a.csv", "SELECT * FROM S3Object LIMIT 1", {
    output: { CSV: { FieldDelimiter: "\t", QuoteFields: "ALWAYS" } },
  });
  assert.deepEqual(
    [csv.text, csv.headers["content-type"]],
    ['"1"\t"Ann"\t"5"\n', "text/csv; charset=utf-8"],
  );
});

test("errors before the first record are JSON with status, line and column", async () => {
  const fault = await ask("a.csv", "SELECT name\nFROM S3Object WHERE ;");
  assert.equal(fault.status, 400);
  const { request_id: id, ...error } = JSON.parse(fault.text) as Record<string, unknown>;
  assert.deepEqual(error, {
    code: "ParseUnexpectedToken",
    message: 'Unexpected ";".',
    line: 2,
    column: 21,
  });
  assert.equal(typeof id, "string");
  const missing = await ask("none.csv", "SELECT 1 FROM S3Object");
  assert.deepEqual([missing.status, missing.code], [404, "NoSuchKey"]);
});

test("faults of the document have S3's codes", async () => {
  const FAULTS: [object, string][] = [
    [{ Expression: undefined }, "MissingRequiredParameter"],
    [{ ExpressionType: "PRQL" }, "InvalidExpressionType"],
    [{ InputSerialization: {} }, "InvalidDataSource"],
    [{ InputSerialization: { CSV: {}, JSON: { Type: "LINES" } } }, "ObjectSerializationConflict"],
    [{ InputSerialization: { JSON: { Type: "ROWS" } } }, "InvalidJsonType"],
    [{ InputSerialization: { CSV: { FileHeaderInfo: "YES" } } }, "InvalidFileHeaderInfo"],
    [{ InputSerialization: { CSV: { FieldDelimiter: "abcde" } } }, "InvalidRequestParameter"],
    [{ InputSerialization: { CSV: { FieldDelimiter: '"' } } }, "InvalidRequestParameter"],
    [{ InputSerialization: { CSV: { Sep: "," } } }, "InvalidRequestParameter"],
    [{ InputSerialization: { CSV: {}, CompressionType: "LZMA" } }, "InvalidCompressionFormat"],
    [{ InputSerialization: { Parquet: {}, CompressionType: "GZIP" } }, "InvalidCompressionFormat"],
    [{ OutputSerialization: { CSV: { QuoteFields: "NEVER" } } }, "InvalidQuoteFields"],
    [{ OutputSerialization: { CSV: {}, JSON: {} } }, "ObjectSerializationConflict"],
    [{ ScanRange: { Start: 9, End: 2 } }, "InvalidScanRange"],
    [{ ScanRange: { Start: -1 } }, "InvalidScanRange"],
    [{ Expression: `SELECT '${"a".repeat(300_000)}' FROM S3Object` }, "ExpressionTooLong"],
    [{ Expression: ["SELECT"] }, "InvalidRequestParameter"],
  ];
  for (const [more, code] of FAULTS) {
    const answer = await ask("a.csv", "SELECT 1 FROM S3Object", { more });
    assert.deepEqual([answer.status, answer.code], [400, code], JSON.stringify(more).slice(0, 100));
  }
  const ranged = await ask("a.csv", "SELECT 1 FROM S3Object", { headers: { range: "bytes=0-1" } });
  assert.match(ranged.text, /UnsupportedRangeHeader/);
});

test("select-type 2 is an event stream with right checksums", async () => {
  const answer = await askXml(
    "SELECT _2 FROM S3Object WHERE _1 <> 'id'",
    "<RequestProgress><Enabled>true</Enabled></RequestProgress>",
  );
  assert.equal(answer.status, 200, answer.text);
  const messages = readMessages(answer.body);
  assert.deepEqual(
    messages.map(({ headers }) => headers[":event-type"]),
    ["Records", "Progress", "Stats", "End"],
  );
  assert.equal(messages[0]!.payload, "Ann\nBob\nEve\n");
  assert.match(
    messages[2]!.payload,
    new RegExp(
      `<BytesScanned>${CSV.length}</BytesScanned><BytesProcessed>${CSV.length}</BytesProcessed><BytesReturned>12<`,
    ),
  );
});

test("errors of select-type 2 are XML, and a message after the first records", async () => {
  const early = await askXml("SELECT FROM S3Object");
  assert.deepEqual([early.status, early.code], [400, "ParseEmptySelect"]);
  assert.match(early.text, /<Line>1<\/Line><Column>8<\/Column>/);
  await serving.s3.must("PUT", "/data/late.csv", { body: `${"1\n".repeat(200_000)}x\n` });
  const body = `<SelectObjectContentRequest><Expression>SELECT CAST(_1 AS INT) FROM S3Object</Expression><ExpressionType>SQL</ExpressionType><InputSerialization><CSV/></InputSerialization><OutputSerialization><JSON/></OutputSerialization></SelectObjectContentRequest>`;
  const late = await serving.s3.send("POST", "/data/late.csv?select&select-type=2", {
    body,
    headers: XML,
  });
  const { headers } = readMessages(late.body).at(-1)!;
  assert.deepEqual(
    [late.status, headers[":message-type"], headers[":error-code"]],
    [200, "error", "CastFailed"],
  );
  // Without event stream, the connection ends without the last chunk.
  await assert.rejects(
    ask("late.csv", "SELECT CAST(_1 AS INT) FROM S3Object", { input: { CSV: {} } }),
    { code: "ECONNRESET" },
  );
  const other = await serving.s3.send("POST", "/data/a.csv?select&select-type=3", {
    body,
    headers: XML,
  });
  assert.deepEqual([other.status, other.code], [400, "InvalidRequest"]);
});

test("the SDK of AWS reads the events", async () => {
  const client = new S3Client({
    endpoint: serving.vault.url,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: vaultRoot.accessKey, secretAccessKey: vaultRoot.secretKey },
  });
  const { Payload } = await client.send(
    new SelectObjectContentCommand({
      Bucket: "data",
      Key: "a.csv",
      Expression: "SELECT COUNT(*) AS c FROM S3Object s WHERE s.name LIKE '%n%' OR s.id = '3'",
      ExpressionType: "SQL",
      InputSerialization: { CSV: { FileHeaderInfo: "USE" } },
      OutputSerialization: { JSON: {} },
    }),
  );
  let text = "";
  for await (const { Records } of Payload!) text += Buffer.from(Records?.Payload ?? []).toString();
  assert.equal(text, '{"c":2}\n');
  client.destroy();
});

test("versions, encrypted objects and those of several parts are read", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/data?versioning", {
    body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
  });
  const first = await s3.must("PUT", "/data/v.csv", { body: "n\n1\n" });
  await s3.must("PUT", "/data/v.csv", { body: "n\n2\n" });
  const sum = "SELECT SUM(n) AS s FROM S3Object";
  assert.equal((await ask("v.csv", sum)).text, '{"s":2}\n');
  const query = `&versionId=${String(first.headers["x-amz-version-id"])}`;
  assert.equal((await ask("v.csv", sum, { query })).text, '{"s":1}\n');

  const key = randomBytes(32);
  const customer = {
    "x-amz-server-side-encryption-customer-algorithm": "AES256",
    "x-amz-server-side-encryption-customer-key": key.toString("base64"),
    "x-amz-server-side-encryption-customer-key-md5": createHash("md5").update(key).digest("base64"),
  };
  const numbers = `n\n${"1\n".repeat(300_000)}`;
  await s3.must("PUT", "/data/c.csv", { body: numbers, headers: customer });
  assert.equal((await ask("c.csv", sum, { headers: customer })).text, '{"s":300000}\n');
  assert.equal((await ask("c.csv", sum)).status, 400);
  await s3.must("PUT", "/data/e.csv", {
    body: numbers,
    headers: { "x-amz-server-side-encryption": "AES256" },
  });
  assert.equal((await ask("e.csv", sum)).text, '{"s":300000}\n');

  const created = await s3.must("POST", "/data/m.csv?uploads");
  const id = /<UploadId>([^<]*)</.exec(created.text)![1]!;
  const part = `${"1".repeat(9)}\n`.repeat(600_000);
  const etags: string[] = [];
  for (const number of [1, 2]) {
    const put = await s3.must("PUT", `/data/m.csv?uploadId=${id}&partNumber=${number}`, {
      body: number === 1 ? `n\n${part}` : part,
    });
    etags.push(String(put.headers.etag));
  }
  const parts = etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  await s3.must("POST", `/data/m.csv?uploadId=${id}`, {
    body: `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`,
  });
  assert.equal((await ask("m.csv", "SELECT COUNT(*) AS c FROM S3Object")).text, '{"c":1200000}\n');
});

test("objects on several drives are read", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-select-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const drives = [0, 1, 2].map((slot) => join(folder, `drive-${slot}`));
  for (const drive of drives) mkdirSync(drive);
  await using several = await serve({ folder, env: { PLATFORM_VAULT_DRIVES: drives.join(",") } });
  await several.s3.must("PUT", "/data");
  await several.s3.must("PUT", "/data/d.csv", { body: `n\n${"1\n".repeat(1_500_000)}` });
  const answer = await ask("d.csv", "SELECT SUM(n) AS s FROM S3Object", { at: several });
  assert.equal(answer.text, '{"s":1500000}\n');
});

test("a question needs the right to read the object", async () => {
  const { s3 } = serving;
  const anonymous = (query = ""): Promise<Answer> =>
    ask("a.csv", "SELECT COUNT(*) AS c FROM S3Object", { key: null, query });
  assert.equal((await anonymous()).status, 403);
  const statement = {
    Effect: "Allow",
    Principal: "*",
    Action: "s3:GetObject",
    Resource: "arn:aws:s3:::data/a.csv",
  };
  await s3.must("PUT", "/data?policy", {
    body: JSON.stringify({ Version: "2012-10-17", Statement: [statement] }),
  });
  assert.equal((await anonymous()).text, '{"c":3}\n');
  // A version is another right.
  assert.equal((await anonymous("&versionId=null")).status, 403);
  const denied = { ...statement, Effect: "Deny" };
  await s3.must("PUT", "/data?policy", {
    body: JSON.stringify({ Version: "2012-10-17", Statement: [denied] }),
  });
  assert.equal((await ask("a.csv", "SELECT 1 FROM S3Object")).status, 403);
  await s3.must("DELETE", "/data?policy");
});

test("LIMIT reads a small part of a large object", async () => {
  const line = `${"x".repeat(99)}\n`;
  await serving.s3.must("PUT", "/data/large.csv", { body: line.repeat(600_000) });
  const before = await readMetric("platform_vault_select_scanned_bytes_total");
  const answer = await ask("large.csv", "SELECT * FROM S3Object LIMIT 10", {
    input: { CSV: {} },
    output: { CSV: {} },
  });
  assert.equal(answer.text, line.repeat(10));
  const scanned = (await readMetric("platform_vault_select_scanned_bytes_total")) - before;
  assert.ok(scanned > 0 && scanned <= 4 * 1024 * 1024, String(scanned));
});

test("a client that leaves ends its question", async () => {
  const body = JSON.stringify({
    Expression: "SELECT * FROM S3Object",
    InputSerialization: { CSV: {} },
    OutputSerialization: { CSV: {} },
  });
  const before = await readMetric('platform_vault_select_requests_total{outcome="aborted"}');
  const { vault } = serving;
  const target = "/data/large.csv?select";
  const headers = { host: `127.0.0.1:${vault.port}` };
  const payloadHash = createHash("sha256").update(body).digest("hex");
  const signed = signRequest(
    { accessKey: vaultRoot.accessKey, secret: vaultRoot.secretKey, region: "us-east-1" },
    { method: "POST", target, headers, payloadHash, timeMs: Date.now() },
  ).headers;
  const sent = sendHttp(
    {
      port: vault.port,
      method: "POST",
      path: target,
      headers: { ...signed, "content-length": body.length },
    },
    (answer) => {
      answer.once("data", () => sent.destroy());
    },
  );
  sent.on("error", () => undefined);
  sent.end(body);
  await waitFor(
    async () =>
      (await readMetric('platform_vault_select_requests_total{outcome="aborted"}')) === before + 1,
  );
});

test("hostile questions end within their limits, and the service goes on", async () => {
  const { s3, vault } = serving;
  const long = `n\n${`${"a".repeat(60_000)}\n`.repeat(30)}`;
  await s3.must("PUT", "/data/long.csv", { body: long });
  const slow = Array.from({ length: 200 }, (_, n) => `n LIKE '%a%a%a%a%a%a%a%a%b${n}'`).join(
    " OR ",
  );
  const HOSTILE = [
    `SELECT COUNT(*) FROM S3Object WHERE ${slow}`,
    `SELECT ${Array.from({ length: 400 }, () => "n || n || n || n").join(" || ")} FROM S3Object`,
    `SELECT DISTINCT n || n || n || n || n || n || n || n || n || n || n || n || n || n || n || n || n || n || n || n FROM S3Object`,
    `SELECT ${"(".repeat(100_000)} FROM S3Object`,
    "SELECT CAST(n AS INT) FROM S3Object",
  ];
  const before = readMemory(vault.pid);
  let longestMs = 0;
  const ended = new AbortController();
  const reading = (async () => {
    while (!ended.signal.aborted) {
      const startedMs = performance.now();
      assert.equal((await s3.must("GET", "/data/a.csv")).text, CSV);
      await s3.must("PUT", "/data/put.csv", { body: CSV });
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  })();
  const codes = await Promise.all(
    HOSTILE.flatMap((expression) => [expression, expression]).map(async (expression) => {
      const { status, code } = await ask("long.csv", expression);
      return status === 200 ? "200" : code;
    }),
  );
  ended.abort();
  await reading;
  assert.deepEqual(
    new Set(codes),
    new Set(["QueryLimitExceeded", "200", "MaxOperatorsExceeded", "CastFailed"]).difference(
      new Set(codes.includes("200") ? [] : ["200"]),
    ),
  );
  assert.ok(longestMs < 2_000, `${longestMs} ms`);
  const growth = readMemory(vault.pid) - before;
  assert.ok(growth < 700 * 1024 * 1024, `${growth} bytes`);
  assert.equal((await ask("a.csv", "SELECT COUNT(*) AS c FROM S3Object")).text, '{"c":3}\n');
});

async function readMetric(name: string): Promise<number> {
  const { text } = await serving.admin.must("GET", "/metrics");
  const line = text
    .split("\n")
    .find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

function readMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
