// SQL on the metadata of buckets, over HTTP: views, forms, rights, freshness, and statements that try to see more.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Answer, Ask } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;

/** `VAULT_SQL_WRITES=500` is the long form. */
const OWN_WRITES = Number(process.env["VAULT_SQL_WRITES"] ?? 20);
const VERSIONING = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_SQL_TIMEOUT_MS: "4000" } });
  const { s3 } = serving;
  for (const bucket of ["data", "other", "fresh"]) await s3.must("PUT", `/${bucket}`);
  await s3.must("PUT", "/data?versioning", { body: VERSIONING });
  await s3.must("PUT", "/data/a/one.txt", {
    body: "12345",
    headers: {
      "content-type": "text/plain",
      "x-amz-meta-team": "red",
      "x-amz-tagging": "kind=note&year=2026",
    },
  });
  await s3.must("PUT", "/data/a/b/two.tar.gz", { body: "x".repeat(100) });
  await s3.must("PUT", `/data/${encodeURIComponent("ö'\"; drop")}`, { body: "" });
  await s3.must("PUT", "/data/gone", { body: "1" });
  await s3.must("DELETE", "/data/gone");
  await s3.must("PUT", "/data/a/one.txt", { body: "123456" });
  await s3.must("PUT", "/other/secret-of-other", { body: "x" });
});
after(() => serving[Symbol.asyncDispose]());

function ask(
  sql: string,
  { bucket = "data", more = "", ...rest }: Ask & { bucket?: string; more?: string } = {},
): Promise<Answer> {
  const encoded = encodeURIComponent(sql).replaceAll(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return serving.s3.send("GET", `/${bucket}?sql=${encoded}${more}`, rest);
}

interface Table {
  columns: { name: string }[];
  rows: unknown[][];
  truncated: boolean;
  elapsed_ms: number;
}

async function rows(sql: string, more?: Parameters<typeof ask>[1]): Promise<unknown[][]> {
  const answer = await ask(sql, more);
  assert.equal(answer.status, 200, answer.text);
  return (JSON.parse(answer.text) as Table).rows;
}

test("the view of objects has a row for each live object", async () => {
  const answer = await ask("select * from objects order by key");
  assert.equal(answer.headers["content-type"], "application/json");
  const { columns, rows: found, truncated } = JSON.parse(answer.text) as Table;
  assert.equal(truncated, false);
  assert.equal(
    columns.map(({ name }) => name).join(),
    "bucket,key,size,etag,content_type,last_modified,version_id,storage_class,tags,metadata,prefix,extension",
  );
  assert.deepEqual(
    found.map((row) => row[1]),
    ["a/b/two.tar.gz", "a/one.txt", "ö'\"; drop"],
  );
  const [
    bucket,
    key,
    size,
    etag,
    type,
    modified,
    version,
    storage,
    tags,
    metadata,
    prefix,
    extension,
  ] = found[0]!;
  assert.deepEqual(
    [bucket, key, size, type, storage],
    ["data", "a/b/two.tar.gz", 100, "binary/octet-stream", "STANDARD"],
  );
  assert.deepEqual([tags, metadata, prefix, extension], ["{}", "{}", "a/b/", "gz"]);
  const head = await serving.s3.must("HEAD", "/data/a/b/two.tar.gz");
  assert.equal(`"${String(etag)}"`, head.headers.etag);
  assert.equal(version, head.headers["x-amz-version-id"]);
  assert.match(String(modified), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const seconds = Math.floor(Date.parse(String(modified)) / 1000) * 1000;
  assert.equal(new Date(seconds).toUTCString(), head.headers["last-modified"]);
  assert.deepEqual(await rows("select prefix, extension from objects where size = 0"), [
    ["", null],
  ]);
});

test("the view of versions has older versions and delete markers", async () => {
  assert.deepEqual(
    await rows(
      "select key, size, is_latest, is_delete_marker, content_type from versions order by key, last_modified, size",
    ),
    [
      ["a/b/two.tar.gz", 100, 1, 0, "binary/octet-stream"],
      ["a/one.txt", 5, 0, 0, "text/plain"],
      ["a/one.txt", 6, 1, 0, "binary/octet-stream"],
      ["gone", 1, 0, 0, "binary/octet-stream"],
      ["gone", 0, 1, 1, null],
      ["ö'\"; drop", 0, 1, 0, "binary/octet-stream"],
    ],
  );
  assert.deepEqual(
    await rows(
      "select tags ->> 'kind', metadata ->> 'team' from versions where key = 'a/one.txt' and not is_latest",
    ),
    [["note", "red"]],
  );
});

test("statements are in the URL or in the body, answers are JSON, lines or CSV", async () => {
  const sql =
    "select key, size, size * 4611686018427387904 / 100 as large, null as none, x'00ff' as bytes from objects where size = 100";
  const post = (headers: Record<string, string> = {}, body = sql) =>
    serving.s3.send("POST", "/data?sql=", {
      body,
      headers: { "content-type": "text/plain", ...headers },
    });
  const json = await post();
  assert.deepEqual((JSON.parse(json.text) as Table).rows[0]!.slice(0, 2), ["a/b/two.tar.gz", 100]);
  const exact = await post({}, "select 9007199254740993 as n, 'a,\"b' as t, 'c' as t");
  assert.match(exact.text, /"rows":\[\[9007199254740993,/);
  const lines = await post(
    { accept: "application/x-ndjson" },
    "select 1 as n, 'x' as n, null as z from objects limit 2",
  );
  assert.equal(lines.text, '{"n":1,"n_2":"x","z":null}\n{"n":1,"n_2":"x","z":null}\n');
  assert.equal(lines.headers["content-type"], "application/x-ndjson");
  const csv = await post(
    { accept: "text/csv" },
    "select 'a,\"b' as \"x y\", null as z, '' as e, 1.5 as n, x'00ff' as b",
  );
  assert.equal(csv.text, 'x y,z,e,n,b\r\n"a,""b",,"",1.5,AP8=\r\n');
  const many =
    "with d(n) as (values (1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(11),(12)) select a.n from d a, d b, d c, d d";
  const cut = await post({ accept: "text/csv" }, many);
  assert.deepEqual(
    [
      cut.text.split("\r\n").length,
      cut.headers["x-amz-answer-truncated"],
      cut.headers["x-store-answer-truncated"],
    ],
    [10_002, "true", "true"],
  );
  assert.equal((JSON.parse((await post({}, many)).text) as Table).truncated, true);
  assert.deepEqual(
    [(await post({ "content-type": "image/png" })).code, (await post({}, "é".repeat(40_000))).code],
    ["InvalidRequest", "MaxMessageLengthExceeded"],
  );
  const named = await serving.s3.send("POST", "/data?sql=select", { body: sql });
  assert.equal(named.code, "InvalidRequest");
});

test("a prefix narrows the views", async () => {
  const keys = async (prefix: string) =>
    (
      await rows("select key from versions order by key, size", { more: `&prefix=${prefix}` })
    ).flat();
  assert.deepEqual(await keys("a/b/"), ["a/b/two.tar.gz"]);
  assert.deepEqual(await keys("go"), ["gone", "gone"]);
  assert.deepEqual(await keys("%C3%B6"), ["ö'\"; drop"]);
  assert.deepEqual(await keys("zz"), []);
  const post = await serving.s3.must("POST", "/data?sql=&prefix=a/b/", {
    body: "select count(*) from objects",
  });
  assert.deepEqual((JSON.parse(post.text) as Table).rows, [[1]]);
});

const HOSTILE = [
  "select key from objects union select name from main.buckets",
  "select name from buckets",
  "select cast(key as text) from main.current",
  "select count(*) from current",
  "select cipher from blobs",
  "select data from main.blobs",
  "select key from objects union all select cipher from blobs",
  "select (select cipher from blobs limit 1)",
  "select upload_id from uploads",
  "select record from events",
  "select * from meta",
  "select * from usage",
  "with objects as (select cast(key as text) as key from current) select key from objects",
  "with objects as (select cipher from blobs) select * from objects",
  "with versions as (select document from buckets) select * from versions",
  "select * from (select document from buckets) as objects",
  "select rowid from blobs",
  "select rowid from objects",
  "select detail from objects",
  "select blob from objects",
  "select owner from objects",
  "select seal from versions",
  "select * from sqlite_master",
  "select sql from main.sqlite_schema",
  "select * from temp.sqlite_schema",
  "select * from sqlite_temp_master",
  "select * from dbstat",
  "select * from sqlite_dbpage",
  "select * from pragma_table_list",
  "select * from pragma_table_info('current')",
  "select * from pragma_database_list",
  "select * from json_tree('[]')",
  "pragma database_list",
  "explain select * from objects",
  "attach '/tmp/x' as x",
  "vacuum into '/tmp/sql-test-copy'",
  "delete from objects",
  "insert into objects values (1)",
  "update main.current set size = 0",
  "create temp table t as select * from main.current",
  "with recursive n(x) as (values(1) union all select x + 1 from n) select max(x) from n",
  "select load_extension('x')",
  "select 1; select document from buckets",
  "select * from secret_of_other",
  "select abs('x' || (select name from buckets))",
  "select json_extract((select document from buckets), '$[')",
];

test("statements see neither other buckets nor the rest of the index", async () => {
  for (const sql of HOSTILE) {
    const answer = await ask(sql);
    assert.equal(answer.status, 400, `${sql}: ${answer.text}`);
    assert.match(answer.code ?? "", /^(?:InvalidQuery|UnsupportedSqlOperation)$/, sql);
    assert.doesNotMatch(answer.text, /secret-of-other|[0-9a-f]{32}_/, sql);
  }
  const seen = await ask("select * from versions");
  assert.doesNotMatch(seen.text, /secret-of-other/);
  assert.deepEqual(await rows("select key from objects", { bucket: "other" }), [
    ["secret-of-other"],
  ]);
});

test("a statement that needs too much is ended, and the next one is answered", async () => {
  const d = "(values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))";
  const product = Array.from({ length: 16 }, (_, n) => `${d} as t${n}`).join(", ");
  const limits: [sql: string, reason: RegExp][] = [
    [`select count(*) from ${product}`, /more than 4 s/],
    ["select printf('%.*c', 500000000, 'x')", /too long/],
    [`select group_concat(hex(randomblob(400000))) from ${d}, ${d}`, /too long/],
    [`select ${Array.from({ length: 3_000 }, () => "1").join("+")}`, /complex/],
  ];
  for (const [sql, reason] of limits) {
    const answer = await ask(sql);
    assert.deepEqual([answer.status, answer.code], [400, "QueryLimitExceeded"], answer.text);
    assert.match((JSON.parse(answer.text) as { message: string }).message, reason);
  }
  const empty = await ask("");
  assert.deepEqual([empty.status, empty.code], [400, "InvalidQuery"]);
  assert.deepEqual(await rows("select count(*) from objects"), [[3]]);
  assert.match(
    (await serving.admin.must("GET", "/metrics")).text,
    /platform_vault_sql_requests_total\{outcome="killed"\} 4/,
  );
});

test("a question sees each write that was acknowledged before it", async () => {
  const { s3 } = serving;
  const done = new AbortController();
  const noise = Promise.all(
    [0, 1].map(async (writer) => {
      for (let n = 0; !done.signal.aborted; n += 1)
        await s3.must("PUT", `/fresh/noise-${writer}-${n % 50}`, { body: "x".repeat(n % 9_000) });
    }),
  );
  let seen = 0;
  for (let n = 0; n < OWN_WRITES; n += 1) {
    await s3.must("PUT", `/fresh/own-${n}`, { body: "x" });
    if (n % 10 === 9) await s3.must("DELETE", `/fresh/own-${n - 5}`);
    const gone = Math.floor((n + 1) / 10);
    const [[count]] = (await rows("select count(*) from objects where key like 'own-%'", {
      bucket: "fresh",
    })) as [[number]];
    if (count === n + 1 - gone) seen += 1;
  }
  done.abort();
  await noise;
  assert.equal(seen, OWN_WRITES);
});

test("a question beside a busy writer delays no write, and ends before the log is long", async () => {
  await using busy = await serve({
    env: {
      PLATFORM_VAULT_INDEX_LOG_LIMIT: String(8 * 1024 * 1024),
      PLATFORM_VAULT_SQL_TIMEOUT_MS: "60000",
    },
  });
  await busy.s3.must("PUT", "/data");
  const digits = "(values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))";
  const sql = `select count(*) from ${Array.from({ length: 16 }, (_, n) => `${digits} as t${n}`).join(", ")}`;
  const question = busy.s3.send("POST", "/data?sql=", { body: sql });
  const ended = new AbortController();
  void question.then(() => ended.abort());
  let bytes = 0;
  let longestMs = 0;
  for (let n = 0; !ended.signal.aborted && n < 3_000; n += 4) {
    const begunMs = performance.now();
    const body = Buffer.alloc(15_000, n);
    await Promise.all([0, 1, 2, 3].map((one) => busy.s3.must("PUT", `/data/${n + one}`, { body })));
    longestMs = Math.max(longestMs, performance.now() - begunMs);
    bytes = Math.max(bytes, statSync(join(busy.vault.dataDir, "index.sqlite-wal")).size);
  }
  const answer = await question;
  assert.deepEqual(
    [answer.code, (JSON.parse(answer.text) as { message: string }).message],
    ["QueryLimitExceeded", "Too much has changed during the question."],
  );
  assert.ok(bytes < 64 * 1024 * 1024, `${bytes} bytes`);
  // Waiting for the end of the question took ten seconds.
  assert.ok(longestMs < 8_000, `${longestMs} ms`);
});

test("the right is an action of its own, which a policy can give for one folder", async () => {
  const { s3 } = serving;
  const anonymous = (more = "") =>
    ask("select count(*) from objects", { key: null, bucket: "other", more });
  assert.equal((await anonymous()).status, 403);
  const allow = {
    Effect: "Allow",
    Principal: "*",
    Action: "s3:*",
    Resource: ["arn:aws:s3:::other", "arn:aws:s3:::other/*"],
  };
  const putPolicy = (statement: object) =>
    s3.must("PUT", "/other?policy", {
      body: JSON.stringify({ Version: "2012-10-17", Statement: [statement] }),
    });
  await putPolicy(allow);
  assert.equal((await s3.send("GET", "/other", { key: null })).status, 200);
  assert.equal((await anonymous()).status, 403, "anonymous callers never ask");
  await putPolicy({
    Effect: "Deny",
    Principal: "*",
    Action: "s3:QueryBucketMetadata",
    Resource: "arn:aws:s3:::other",
    Condition: { StringNotEquals: { "s3:prefix": "public/" } },
  });
  assert.equal((await ask("select 1", { bucket: "other" })).code, "AccessDenied");
  assert.equal((await ask("select 1", { bucket: "other", more: "&prefix=public/" })).status, 200);
  await s3.must("DELETE", "/other?policy");
  assert.equal((await ask("select 1", { bucket: "missing" })).code, "NoSuchBucket");
});

test("stores on several drives answer as well, and no files stay behind", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-sql-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const drives = [0, 1, 2].map((slot) => join(folder, `drive-${slot}`));
  for (const drive of drives) mkdirSync(drive);
  await using several = await serve({ folder, env: { PLATFORM_VAULT_DRIVES: drives.join(",") } });
  await several.s3.must("PUT", "/data");
  await several.s3.must("PUT", "/data/x", { body: "123" });
  const answer = await several.s3.must("GET", "/data?sql=select%20sum%28size%29%20from%20objects");
  assert.deepEqual((JSON.parse(answer.text) as Table).rows, [[3]]);
  const left = [serving.vault.dataDir, ...drives]
    .flatMap((path) => readdirSync(path))
    .filter((name) => name.includes("question"));
  assert.deepEqual(left, []);
});
