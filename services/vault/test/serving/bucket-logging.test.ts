// Access logs of buckets on a running service: their lines, their places, and who may have them written where.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { presignTarget } from "@platform/s3/signature";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import type { Ask, Key } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;
before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_BUCKET_LOGGING_INTERVAL_S: "1" } });
});
after(() => serving[Symbol.asyncDispose]());

const JSON_TYPE = { "content-type": "application/json" };
/** The fields of a line: a bracketed time, quoted texts and words. */
const FIELD = /\[[^\]]*\]|"[^"]*"|\S+/g;

function describeTarget(bucket: string, prefix: string, more = ""): string {
  const inner = `<TargetBucket>${bucket}</TargetBucket><TargetPrefix>${prefix}</TargetPrefix>${more}`;
  return `<BucketLoggingStatus><LoggingEnabled>${inner}</LoggingEnabled></BucketLoggingStatus>`;
}

async function setLogging(bucket: string, body: string, ask: Ask = {}) {
  return serving.s3.send("PUT", `/${bucket}?logging`, { body, ...ask });
}

async function makeBuckets(...names: string[]): Promise<void> {
  for (const name of names) await serving.s3.must("PUT", `/${name}`);
}

async function listKeys(bucket: string): Promise<string[]> {
  const { text } = await serving.s3.must("GET", `/${bucket}?list-type=2`);
  return [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!);
}

/** The fields of all lines below a prefix, when there are as many. */
async function readLines(bucket: string, prefix: string, count: number): Promise<string[][]> {
  let lines: string[][] = [];
  await waitFor(async () => {
    lines = [];
    for (const key of (await listKeys(bucket)).filter((one) => one.startsWith(prefix))) {
      const { text } = await serving.s3.must("GET", `/${bucket}/${key}`);
      lines.push(
        ...text
          .trimEnd()
          .split("\n")
          .map((line) => line.match(FIELD)!),
      );
    }
    return lines.length >= count;
  });
  return lines;
}

async function addUser(name: string, statement: object[]): Promise<Key> {
  const body = JSON.stringify({
    policies: { main: { Version: "2012-10-17", Statement: statement } },
  });
  await serving.admin.must("PUT", `/api/v1/users/${name}`, { headers: JSON_TYPE, body });
  const made = await serving.admin.must("POST", "/api/v1/keys", {
    headers: JSON_TYPE,
    body: JSON.stringify({ user: name }),
  });
  const key = JSON.parse(made.text) as { access_key: string; secret_key: string };
  return { accessKey: key.access_key, secretKey: key.secret_key };
}

test("each request has one, with what S3 says about it", async () => {
  await makeBuckets("source", "logs");
  assert.equal((await setLogging("source", describeTarget("logs", "web/"))).status, 200);
  const shown = await serving.s3.must("GET", "/source?logging");
  assert.ok(
    shown.text.includes("<TargetBucket>logs</TargetBucket><TargetPrefix>web/</TargetPrefix>"),
  );
  const agent = { "user-agent": 'a "quoted" agent', referer: "https://example.org/ä" };
  await serving.s3.must("PUT", "/source/a%20b%0Ac", { body: "hello", headers: agent });
  await serving.s3.must("GET", "/source/a%20b%0Ac", { headers: { range: "bytes=1-3" } });
  await serving.s3.send("GET", "/source/missing");
  await serving.s3.send("GET", "/source/a%20b%0Ac", { key: null });
  await serving.s3.must("GET", "/source?list-type=2");
  await serving.s3.must("DELETE", "/source/a%20b%0Ac");
  // The setting, its reading, and six more.
  const lines = await readLines("logs", "web/", 8);
  assert.equal(lines.length, 8);
  for (const line of lines) {
    assert.equal(line.length, 26, line.join(" "));
    assert.match(line[0]!, /^[0-9a-f]{64}$/);
    assert.equal(line[1], "source");
    assert.match(line[2]!, /^\[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\]$/);
    assert.equal(line[3], "127.0.0.1");
    assert.equal(line[18], "platform-vault");
  }
  const [, , put, get, missing, denied, list, remove] = lines.map((line) => ({
    requester: line[4],
    operation: line[6],
    key: line[7],
    uri: line[8],
    status: line[9],
    error: line[10],
    sent: line[11],
    size: line[12],
    referer: line[15],
    agent: line[16],
    version: line[19],
    kind: line[21],
  }));
  assert.deepEqual(
    [put!.operation, put!.key, put!.status, put!.size, put!.version, put!.kind],
    ["REST.PUT.OBJECT", "a%20b%0Ac", "200", "5", "SigV4", "AuthHeader"],
  );
  assert.equal(put!.agent, '"a %22quoted%22 agent"');
  assert.equal(put!.referer!.includes("example.org"), true);
  assert.equal(put!.uri, '"PUT /source/a%20b%0Ac HTTP/1.1"');
  assert.deepEqual(
    [get!.operation, get!.status, get!.sent, get!.size],
    ["REST.GET.OBJECT", "206", "3", "5"],
  );
  assert.deepEqual([missing!.status, missing!.error], ["404", "NoSuchKey"]);
  assert.deepEqual(
    [denied!.requester, denied!.status, denied!.error, denied!.version],
    ["-", "403", "AccessDenied", "-"],
  );
  assert.equal(list!.operation, "REST.GET.BUCKET");
  assert.deepEqual([remove!.operation, remove!.status], ["REST.DELETE.OBJECT", "204"]);
});

test("a presigned address cannot be used again by a reader of the log", async () => {
  await makeBuckets("signed", "signed-logs");
  await setLogging("signed", describeTarget("signed-logs", ""));
  await serving.s3.must("PUT", "/signed/key", { body: "x" });
  const host = `127.0.0.1:${serving.vault.port}`;
  const target = presignTarget(
    { accessKey: vaultRoot.accessKey, secret: vaultRoot.secretKey, region: "us-east-1" },
    {
      method: "GET",
      target: "/signed/key",
      headers: { host },
      expiresSeconds: 600,
      timeMs: Date.now(),
    },
  );
  const answer = await fetch(`http://${host}${target}`);
  assert.equal(answer.status, 200);
  const lines = await readLines("signed-logs", "", 3);
  const line = lines.find((one) => one[8]!.includes("X-Amz-Signature"))!;
  assert.match(line[8]!, /X-Amz-Signature=REDACTED/);
  assert.deepEqual([line[20] ?? "", line[21]], ["-", "QueryString"]);
  const signature = /X-Amz-Signature=([0-9a-f]{64})/.exec(target)![1]!;
  assert.ok(!lines.flat().join(" ").includes(signature));
});

test("logs of a bucket into itself do not log themselves, and have the keys of the chosen form", async () => {
  await makeBuckets("self");
  const format = (source: string): string =>
    `<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>${source}</PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>`;
  const set = await setLogging("self", describeTarget("self", "in/", format("EventTime")));
  assert.equal(set.status, 200, set.text);
  await readLines("self", "in/", 1);
  const [key] = (await listKeys("self")).filter((one) => one.startsWith("in/"));
  assert.match(
    key!,
    /^in\/\d{12}\/us-east-1\/self\/\d{4}\/\d\d\/\d\d\/\d{4}-\d\d-\d\d-00-00-00-[0-9A-F]{16}$/,
  );
  const lines = await readLines("self", "in/", 1);
  assert.ok(lines.every((line) => line[6] !== "REST.PUT.OBJECT"));
  const ended = await setLogging("self", "<BucketLoggingStatus/>");
  assert.equal(ended.status, 200);
  assert.ok(!(await serving.s3.must("GET", "/self?logging")).text.includes("LoggingEnabled"));
});

test("nobody has logs written where they may not write", async () => {
  await makeBuckets("mine", "theirs");
  const statement = [
    { Effect: "Allow", Action: ["s3:PutBucketLogging"], Resource: "*" },
    {
      Effect: "Allow",
      Action: ["s3:PutObject"],
      Resource: ["arn:aws:s3:::mine/*", "arn:aws:s3:::theirs/logs/*"],
    },
  ];
  const key = await addUser("logger", statement);
  const refused = await setLogging("mine", describeTarget("theirs", "other/"), { key });
  assert.deepEqual([refused.status, refused.code], [403, "AccessDenied"]);
  assert.equal((await setLogging("mine", describeTarget("theirs", "logs/"), { key })).status, 200);
});

test("targets that do not exist or are the store's own, grants, and documents that are none", async () => {
  await makeBuckets("faulty");
  const cases: [body: string, status: number, code: string][] = [
    [describeTarget("nowhere", ""), 400, "InvalidTargetBucketForLogging"],
    [describeTarget("system-modules", ""), 400, "InvalidTargetBucketForLogging"],
    [describeTarget("faulty", "", "<TargetGrants><Grant/></TargetGrants>"), 501, "NotImplemented"],
    [describeTarget("faulty", "", "<TargetObjectKeyFormat/>"), 400, "MalformedXML"],
    [describeTarget("faulty", "x".repeat(1_000)), 400, "InvalidArgument"],
    ["<BucketLoggingStatus><LoggingEnabled/></BucketLoggingStatus>", 400, "MalformedXML"],
  ];
  for (const [body, status, code] of cases) {
    const answer = await setLogging("faulty", body);
    assert.deepEqual([answer.status, answer.code], [status, code], body.slice(0, 200));
  }
});

test("a target that denies or is gone gets nothing, and the lines are counted", async () => {
  await makeBuckets("watched", "closed");
  await setLogging("watched", describeTarget("closed", ""));
  const policy = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Deny",
        Principal: "*",
        Action: "s3:PutObject",
        Resource: "arn:aws:s3:::closed/*",
      },
    ],
  };
  await serving.s3.must("PUT", "/closed?policy", { body: JSON.stringify(policy) });
  await serving.s3.must("GET", "/watched");
  await waitFor(async () => (await readDropped()) > 0);
  assert.deepEqual(await listKeys("closed"), []);
  const before = await readDropped();
  await serving.s3.must("DELETE", "/closed?policy");
  await serving.s3.must("DELETE", "/closed");
  await serving.s3.must("GET", "/watched");
  await waitFor(async () => (await readDropped()) > before);
});

async function readDropped(): Promise<number> {
  const { text } = await serving.admin.must("GET", "/metrics");
  return Number(/^platform_vault_bucket_log_lines_dropped_total (\d+)/m.exec(text)?.[1] ?? 0);
}
