// Vectors of objects over HTTP: the index, values in all forms, versions, copies, searches and their filters.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import type { Answer, Ask } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

/** `VAULT_VECTOR_KILLS=50` is the long form. */
const KILL_ROUNDS = Number(process.env["VAULT_VECTOR_KILLS"] ?? 2);

let serving: Serving;

const encode = (numbers: readonly number[]): Buffer =>
  Buffer.from(Float32Array.from(numbers).buffer);
const json = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

async function makeBucket(name: string, document: object, versioned = false): Promise<void> {
  const { s3 } = serving;
  await s3.must("PUT", `/${name}`);
  if (versioned) {
    await s3.must("PUT", `/${name}?versioning`, {
      body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    });
  }
  await s3.must("PUT", `/${name}?vector-index`, { body: JSON.stringify(document) });
}

function put(
  bucket: string,
  key: string,
  vector: readonly number[],
  headers: Ask["headers"] = {},
): Promise<Answer> {
  return serving.s3.must("PUT", `/${bucket}/${key}`, {
    body: key,
    headers: { "x-store-vector": JSON.stringify(vector), ...headers },
  });
}

interface Result {
  key: string;
  version_id: string;
  distance: number;
}

async function search(bucket: string, document: object, query = ""): Promise<Result[]> {
  const answer = await serving.s3.send("POST", `/${bucket}?vector-search=${query}`, {
    body: JSON.stringify(document),
  });
  assert.equal(answer.status, 200, answer.text);
  return json(answer.text)["results"] as Result[];
}

const keys = (results: Result[]): string[] => results.map(({ key }) => key);

before(async () => {
  serving = await serve();
});
after(() => serving[Symbol.asyncDispose]());

test("an index is put, read, and changed on conditions", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/settings");
  const missing = await s3.send("GET", "/settings?vector-index");
  assert.deepEqual([missing.status, missing.code], [404, "NoSuchVectorIndex"]);
  const document = { dimension: 3, metric: "euclidean" };
  const made = await s3.must("PUT", "/settings?vector-index", { body: JSON.stringify(document) });
  const found = await s3.must("GET", "/settings?vector-index");
  assert.deepEqual([json(found.text), found.headers.etag], [document, made.headers.etag]);
  const stale = await s3.send("PUT", "/settings?vector-index", {
    body: JSON.stringify(document),
    headers: { "if-match": '"00"' },
  });
  assert.equal(stale.code, "PreconditionFailed");
  for (const [body, place] of [
    ["{", /not a JSON document/],
    ["[]", /expected object/],
    ['{"dimension":0,"metric":"dot"}', /^dimension:/],
    ['{"dimension":4097,"metric":"dot"}', /^dimension:/],
    ['{"dimension":3,"metric":"manhattan"}', /^metric:/],
    ['{"dimension":3,"metric":"dot","graph":true}', /graph/],
    ['{"dimension":3,"dimension":4,"metric":"dot"}', /dimension/],
  ] as const) {
    const answer = await s3.send("PUT", "/settings?vector-index", { body });
    assert.equal(answer.status, 400, body);
    assert.match(String(json(answer.text)["message"]), place, body);
  }
});

const REFUSED_VALUES: [value: string, status: number][] = [
  ["[1,2]", 400],
  ["[1,2,3,4]", 400],
  ["[0,0,0]", 400],
  ["[1,2,null]", 400],
  ['[1,2,"3"]', 400],
  ["[1,2,1e39]", 400],
  ["[1,2,3", 400],
  ["1,2,3", 400],
  ["{}", 400],
  [encode([1, NaN, 1]).toString("base64"), 400],
  [encode([1, Infinity, 1]).toString("base64"), 400],
  [Buffer.alloc(13, 1).toString("base64"), 400],
];

test("vectors come in headers and bodies, and wrong ones are refused", async () => {
  const { s3 } = serving;
  await makeBucket("values", { dimension: 3, metric: "cosine" });
  await put("values", "json", [1, 2, 3]);
  await s3.must("PUT", "/values/base64", {
    body: "x",
    headers: { "x-amz-vector": encode([1, 0.5, -2]).toString("base64") },
  });
  await s3.must("PUT", "/values/later", { body: "x" });
  await s3.must("PUT", "/values/later?vector", { body: "[0.25, 0, 1]" });
  const binary = { "content-type": "application/octet-stream" };
  await s3.must("PUT", "/values/binary", { body: "x" });
  await s3.must("PUT", "/values/binary?vector", { body: encode([3, 4, 5]), headers: binary });
  const read = async (key: string) => json((await s3.must("GET", `/values/${key}?vector`)).text);
  assert.deepEqual(await read("json"), { dimension: 3, vector: [1, 2, 3] });
  assert.deepEqual((await read("base64"))["vector"], [1, 0.5, -2]);
  assert.deepEqual((await read("later"))["vector"], [0.25, 0, 1]);
  const floats = await s3.must("GET", "/values/binary?vector", {
    headers: { accept: binary["content-type"] },
  });
  assert.deepEqual(floats.body, encode([3, 4, 5]));
  for (const [value, status] of REFUSED_VALUES) {
    const answer = await s3.send("PUT", "/values/refused", {
      body: "x",
      headers: { "x-store-vector": value },
    });
    assert.deepEqual([answer.status, answer.code], [status, "InvalidArgument"], value);
  }
  assert.equal(
    (await s3.send("GET", "/values/refused")).code,
    "NoSuchKey",
    "nothing of a refused PUT is stored",
  );
  const trailing = await s3.send("PUT", "/values/later?vector", {
    body: Buffer.concat([encode([1, 2, 3]), Buffer.alloc(1)]),
    headers: binary,
  });
  assert.equal(trailing.code, "InvalidArgument");
  await s3.must("DELETE", "/values/later?vector");
  assert.deepEqual(
    [
      (await s3.send("GET", "/values/later?vector")).code,
      (await s3.send("GET", "/values/none?vector")).code,
    ],
    ["NoSuchVector", "NoSuchKey"],
  );
  await s3.must("PUT", "/plain");
  const unindexed = await s3.send("PUT", "/plain/x", {
    body: "x",
    headers: { "x-store-vector": "[1]" },
  });
  assert.deepEqual([unindexed.status, unindexed.code], [409, "InvalidBucketState"]);
});

test("a search ranks live versions by each metric, with and without their details", async () => {
  for (const [metric, distances] of [
    ["cosine", [0, 1 - Math.SQRT1_2, 1, 2]],
    ["euclidean", [0, Math.SQRT2, Math.hypot(1, 3), 4]],
    ["dot", [-3, -3, 0, 3]],
  ] as const) {
    const bucket = `rank-${metric}`;
    await makeBucket(bucket, { dimension: 2, metric }, true);
    const points: [string, number[]][] =
      metric === "euclidean"
        ? [
            ["same", [1, 0]],
            ["near", [2, 1]],
            ["side", [0, 3]],
            ["far", [-3, 0]],
          ]
        : [
            ["same", [3, 0]],
            ["near", [3, 3]],
            ["side", [0, 2]],
            ["far", [-3, 0]],
          ];
    for (const [key, vector] of points) await put(bucket, key, vector);
    // Neither replaced nor deleted versions are found.
    await put(bucket, "gone", [1, 0]);
    await serving.s3.must("DELETE", `/${bucket}/gone`);
    await put(bucket, "moved", [1, 0]);
    await put(bucket, "moved", [-5, 0]);
    for (const exact of [true, false]) {
      const found = await search(bucket, { vector: [1, 0], k: 4, exact });
      assert.deepEqual(
        keys(found).toSorted(),
        ["far", "near", "same", "side"],
        `${metric} ${exact}`,
      );
      for (const [index, { distance }] of found.entries()) {
        assert.ok(Math.abs(distance - distances[index]!) < 1e-6, `${metric}: ${distance}`);
      }
    }
  }
});

test("results have the details that were asked for, and like objects are found by their keys", async () => {
  const { s3 } = serving;
  await put("rank-dot", "tagged", [9, 0], { "x-amz-meta-team": "red", "x-amz-tagging": "a=1" });
  const full = await search("rank-dot", {
    key: "tagged",
    k: 2,
    include: ["metadata", "tags", "vector"],
  });
  assert.deepEqual(
    keys(full).toSorted(),
    ["near", "same"],
    "the object itself is not similar to itself",
  );
  const [own] = await search("rank-dot", {
    vector: [1, 0],
    k: 1,
    include: ["metadata", "tags", "vector"],
  });
  const head = await s3.must("HEAD", "/rank-dot/tagged");
  assert.deepEqual(own, {
    key: "tagged",
    version_id: head.headers["x-amz-version-id"],
    distance: -9,
    metadata: { team: "red" },
    tags: { a: "1" },
    vector: [9, 0],
  });
  const similar = await s3.must("GET", "/rank-dot?similar=tagged&k=2");
  assert.equal(keys(json(similar.text)["results"] as Result[]).length, 2);
});

test("filters come before the ranking", async () => {
  await makeBucket("filters", { dimension: 2, metric: "euclidean" });
  await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      put(
        "filters",
        `${n % 2 === 0 ? "even" : "odd"}/${String(n).padStart(2, "0")}.${n % 3 === 0 ? "png" : "txt"}`,
        [n, 1],
        {
          "x-amz-tagging": `n=${n}&ten=${Math.floor(n / 10)}`,
          "x-amz-meta-n": String(n),
          "content-type": n % 3 === 0 ? "image/png" : "text/plain",
        },
      ),
    ),
  );
  const find = async (filter: object, more: object = {}): Promise<number[]> => {
    const found = await search("filters", { vector: [0, 1], k: 5, filter, ...more });
    return keys(found).map((key) => Number(/\d\d/.exec(key)![0]));
  };
  assert.deepEqual(await find({ "tags.ten": "5" }), [50, 51, 52, 53, 54]);
  assert.deepEqual(
    await find({ "tags.ten": { $in: ["3", "4"] }, kind: "image" }),
    [30, 33, 36, 39, 42],
  );
  assert.deepEqual(await find({ "tags.ten": { $nin: ["0", "1", "2"] } }), [30, 31, 32, 33, 34]);
  assert.deepEqual(await find({ key: { $gte: "odd/" } }), [1, 3, 5, 7, 9]);
  assert.deepEqual(await find({ prefix: "odd/" }), [1, 3, 5, 7, 9]);
  assert.deepEqual(await find({}, { prefix: "odd/" }), [1, 3, 5, 7, 9]);
  assert.deepEqual(
    await find({ $or: [{ "metadata.n": "59" }, { "metadata.n": { $eq: "58" } }] }),
    [58, 59],
  );
  assert.deepEqual(
    await find({ $and: [{ "metadata.n": { $ne: "0" } }, { $not: { "tags.n": "1" } }] }),
    [2, 3, 4, 5, 6],
  );
  assert.deepEqual(await find({ "tags.none": { $exists: true } }), []);
  assert.deepEqual(
    await find({ "tags.none": { $exists: false }, size: { $gt: 0, $lt: 100 } }),
    [0, 1, 2, 3, 4],
  );
  assert.deepEqual(
    await find({ content_type: "image/png", last_modified: { $gt: "2026-01-01" } }),
    [0, 3, 6, 9, 12],
  );
  assert.deepEqual(keys(await search("filters", { vector: [0, 1], k: 3 }, "&prefix=odd/")), [
    "odd/01.txt",
    "odd/03.png",
    "odd/05.txt",
  ]);
});

test("wrong filters and documents are refused with the place of the fault", async () => {
  const { s3 } = serving;
  for (const [filter, place] of [
    [{ secret: 1 }, /filter\.secret is no field/],
    [{ size: { $near: 1 } }, /filter\.size\.\$near is no operator/],
    [{ $and: [] }, /filter\.\$and is not a list/],
    [{ key: [1] }, /filter\.key is a list/],
    [{ kind: "house" }, /filter\.kind is none of image/],
    [{ "tags.a": { $exists: 1 } }, /is neither true nor false/],
    [{ $or: Array.from({ length: 65 }, (_, n) => ({ "tags.a": `${n}` })) }, /more than 64 terms/],
  ] as const) {
    const answer = await s3.send("POST", "/filters?vector-search", {
      body: JSON.stringify({ vector: [0, 1], filter }),
    });
    assert.deepEqual([answer.status, answer.code], [400, "InvalidArgument"]);
    assert.match(String(json(answer.text)["message"]), place);
  }
  for (const document of [
    {},
    { vector: [1, 2], key: "x" },
    { vector: [1] },
    { vector: [1, 2], k: 0 },
    { vector: [1, 2], k: 101 },
    { vector: [1, 2], some: 1 },
  ]) {
    const answer = await s3.send("POST", "/filters?vector-search", {
      body: JSON.stringify(document),
    });
    assert.equal(answer.status, 400, JSON.stringify(document));
  }
});

test("versions and copies have their vectors, deletion and a new index remove them", async () => {
  const { s3, admin } = serving;
  await makeBucket("lives", { dimension: 2, metric: "dot" }, true);
  await makeBucket("other", { dimension: 3, metric: "dot" });
  const first = await put("lives", "a", [1, 1]);
  await put("lives", "a", [2, 2]);
  const version = String(first.headers["x-amz-version-id"]);
  const vectorOf = async (target: string) => {
    const answer = await s3.send("GET", target);
    return answer.status === 200 ? json(answer.text)["vector"] : answer.code;
  };
  assert.deepEqual(await vectorOf(`/lives/a?vector&versionId=${version}`), [1, 1]);
  assert.deepEqual(await vectorOf("/lives/a?vector"), [2, 2]);
  await s3.must("PUT", "/lives/copy", {
    headers: { "x-amz-copy-source": `/lives/a?versionId=${version}` },
  });
  assert.deepEqual(await vectorOf("/lives/copy?vector"), [1, 1]);
  await s3.must("PUT", "/other/copy", { headers: { "x-amz-copy-source": "/lives/a" } });
  assert.equal(
    await vectorOf("/other/copy?vector"),
    "NoSuchVector",
    "it does not fit the other index",
  );
  const marker = await s3.must("DELETE", "/lives/a");
  assert.deepEqual(keys(await search("lives", { vector: [1, 1] })), ["copy"]);
  await s3.must("DELETE", `/lives/a?versionId=${String(marker.headers["x-amz-version-id"])}`);
  assert.deepEqual(keys(await search("lives", { vector: [1, 1] })), ["a", "copy"]);

  const started = await s3.must("POST", "/lives/parts?uploads");
  const id = /<UploadId>([^<]*)</.exec(started.text)![1]!;
  const part = await s3.must("PUT", `/lives/parts?uploadId=${id}&partNumber=1`, { body: "x" });
  await s3.must("POST", `/lives/parts?uploadId=${id}`, {
    body: `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${String(part.headers.etag)}</ETag></Part></CompleteMultipartUpload>`,
    headers: { "x-store-vector": "[7,7]" },
  });
  assert.deepEqual(await vectorOf("/lives/parts?vector"), [7, 7]);

  const usage = async (): Promise<number> => {
    const answer = await admin.must("GET", "/api/v1/buckets/lives");
    return json(answer.text)["bytes"] as number;
  };
  assert.equal(await usage(), 1 + 1 + 1 + 1 + 4 * 8);
  const other = { body: JSON.stringify({ dimension: 3, metric: "dot" }) };
  const refused = await s3.send("PUT", "/lives?vector-index", other);
  assert.deepEqual([refused.status, refused.code], [409, "InvalidBucketState"]);
  await s3.must("DELETE", "/lives?vector-index");
  assert.equal(
    (await s3.send("POST", "/lives?vector-search", { body: '{"vector":[1,1]}' })).code,
    "NoSuchVectorIndex",
  );
  await waitFor(async () => (await s3.send("PUT", "/lives?vector-index", other)).status === 200);
  assert.equal(await vectorOf("/lives/a?vector"), "NoSuchVector");
  assert.equal(await usage(), 4);
});

test("a form carries a vector, and stores nothing with a wrong one", async () => {
  const { s3 } = serving;
  await makeBucket("forms", { dimension: 2, metric: "dot" });
  await s3.must("PUT", "/forms?policy", {
    body: '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:PutObject","Resource":"arn:aws:s3:::forms/*"}]}',
  });
  const field = (name: string, value: string) =>
    `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const send = (vector: string) =>
    s3.send("POST", "/forms", {
      key: null,
      headers: { "content-type": "multipart/form-data; boundary=x" },
      body: `${field("key", "a")}${field("x-store-vector", vector)}${field("file", "x")}--x--\r\n`,
    });
  assert.equal((await send("[5]")).code, "InvalidArgument");
  assert.equal((await s3.send("GET", "/forms/a")).code, "NoSuchKey");
  assert.equal((await send("[5,6]")).status, 204);
  assert.deepEqual(json((await s3.must("GET", "/forms/a?vector")).text)["vector"], [5, 6]);
});

test("searches need the right to ask about metadata, and the prefix of their policy", async () => {
  const { s3 } = serving;
  await makeBucket("rights", { dimension: 1, metric: "dot" });
  await put("rights", "public/a", [1]);
  await put("rights", "private/b", [2]);
  const find = (query: string, document: object, key?: null) =>
    s3.send("POST", `/rights?vector-search${query}`, {
      body: JSON.stringify(document),
      ...(key === null ? { key } : {}),
    });
  assert.equal((await find("", { vector: [1] }, null)).status, 403);
  const deny = {
    Effect: "Deny",
    Principal: "*",
    Action: "s3:QueryBucketMetadata",
    Resource: "arn:aws:s3:::rights",
    Condition: { StringNotEquals: { "s3:prefix": "public/" } },
  };
  await s3.must("PUT", "/rights?policy", {
    body: JSON.stringify({ Version: "2012-10-17", Statement: [deny] }),
  });
  assert.equal((await find("", { vector: [1] })).code, "AccessDenied");
  assert.equal(
    (await find("", { vector: [1], prefix: "public/" })).code,
    "AccessDenied",
    "policies see the prefix of the request",
  );
  const allowed = await find("&prefix=public/", { vector: [1] });
  assert.deepEqual(keys(json(allowed.text)["results"] as Result[]), ["public/a"]);
  assert.equal((await find("&prefix=public/", { key: "private/b" })).code, "AccessDenied");
  assert.equal(
    (await s3.send("GET", "/rights?similar=private/b&prefix=public/")).code,
    "AccessDenied",
  );
});

test("an acknowledged vector survives kills, and a failed PUT leaves none", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-vectors-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await using killed = await serve({ folder });
  const { s3, vault } = killed;
  await s3.must("PUT", "/kills");
  await s3.must("PUT", "/kills?vector-index", { body: '{"dimension":2,"metric":"euclidean"}' });
  const acknowledged = new Set<number>();
  let next = 0;
  let known = 0;
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const writers = Array.from({ length: 4 }, async () => {
      for (;;) {
        const n = next;
        next += 1;
        const headers = { "x-store-vector": `[${n},1]` };
        const answer = await s3
          .send("PUT", `/kills/${n}`, { body: `${n}`, headers })
          .catch(() => undefined);
        if (answer?.status !== 200) return;
        acknowledged.add(n);
      }
    });
    const wanted = acknowledged.size + 20;
    await waitFor(() => acknowledged.size >= wanted);
    await vault.kill();
    await Promise.all(writers);
    await vault.start();
    const found = new Set<string>();
    // All of them after the last kill, before it those of the round.
    const isLast = round === KILL_ROUNDS - 1;
    for (const n of isLast ? acknowledged : [...acknowledged].slice(known)) {
      const [nearest] = json(
        (
          await s3.must("POST", "/kills?vector-search", {
            body: JSON.stringify({ vector: [n, 1], k: 1, exact: n % 2 === 0 }),
          })
        ).text,
      )["results"] as Result[];
      assert.deepEqual([nearest!.key, nearest!.distance], [`${n}`, 0]);
      found.add(nearest!.key);
    }
    const all = await s3.must("POST", "/kills?sql=", { body: "select count(*) from objects" });
    const [[objects]] = json(all.text)["rows"] as [[number]];
    const searched = await s3.must("POST", "/kills?vector-search", { body: '{"vector":[0,0]}' });
    assert.equal(json(searched.text)["searched"], objects, "objects and vectors come together");
    assert.ok(found.size <= objects);
    known = acknowledged.size;
  }
});
