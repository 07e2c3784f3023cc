// Residency: every exit of the store asks the rule of the bucket when it is configured, and the mark of the version when its
// bytes would leave.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import {
  findGeoRefusal,
  type GeoDestination,
  type GeoExit,
  isLooser,
  joinMarks,
  toMark,
} from "../../src/model/geo.ts";
import { identity, putModule } from "../guest/guests.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";

const BODY = makeBytes(200_000);
let serving: Serving;
let remote: LyingS3;

before(async () => {
  [serving, remote] = await Promise.all([serve(), LyingS3.start()]);
  for (const region of ["eu-1", "us-1"]) {
    const settings = {
      name: region,
      region,
      classes: [`CLASS_${region.slice(0, 2).toUpperCase()}`],
      bucket: "cold",
    };
    const body = {
      ...settings,
      endpoint: remote.endpoint,
      access_key: "a",
      secret_key: "s",
      allow: ["*"],
    };
    await readJson(callJson(serving, "POST", "/admin/remotes", body), 201);
  }
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await remote[Symbol.asyncDispose]();
});

const put = (
  bucket: string,
  setting: string,
  body: object | string,
  key?: { accessKey: string; secretKey: string },
) =>
  serving.s3.send("PUT", `/${bucket}?${setting}`, {
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(key === undefined ? {} : { key }),
  });
const tierTo = (name: string) => ({ days: 0, remote: name, bucket: "cold", minimum_size: 0 });
const moveTo = (storageClass: string): string =>
  `<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter/><Transition><Date>2020-01-01T00:00:00Z</Date><StorageClass>${storageClass}</StorageClass></Transition></Rule></LifecycleConfiguration>`;

async function makeBucket(name: string, rule?: object): Promise<void> {
  await serving.s3.must("PUT", `/${name}`);
  if (rule !== undefined) assert.equal((await put(name, "geo-placement", rule)).status, 200);
}

async function sweep(bucket: string) {
  const answer = serving.s3.must("POST", `/${bucket}?cold-tier&sweep`);
  return readJson<{ moved: number; skipped: number; details: { reason: string }[] }>(answer);
}

test("the table of exits: regions of the rule and of the mark, and replication that may leave", () => {
  const rule = { region: "eu", allowed: ["eu-1", "eu-2"], deny_replication_outside: true };
  const open = { ...rule, deny_replication_outside: false };
  const exits: GeoExit[] = ["tier", "replication", "backup", "federation"];
  for (const exit of exits) {
    const to = (region: string | undefined): GeoDestination => ({ exit, region });
    assert.equal(findGeoRefusal(undefined, undefined, to("us-1")), undefined, exit);
    assert.equal(findGeoRefusal(undefined, rule, to("eu-2")), undefined, exit);
    assert.match(findGeoRefusal(undefined, rule, to("us-1"))!, /rule eu .*region us-1/, exit);
    assert.match(findGeoRefusal(undefined, rule, to(undefined))!, /unknown region/, exit);
    assert.match(findGeoRefusal(toMark(rule), undefined, to("us-1"))!, /written under/, exit);
    const leaves = findGeoRefusal(toMark(open), open, to("us-1")) === undefined;
    assert.equal(leaves, exit === "replication", exit);
  }
  assert.deepEqual(toMark({ region: "eu-1", deny_replication_outside: true }), {
    allowed: ["eu-1"],
  });
  assert.deepEqual(joinMarks(toMark(rule), { allowed: ["eu-2", "us-1"], replicates: true }), {
    allowed: ["eu-2"],
  });
  assert.ok(isLooser(rule, open) && isLooser(rule, undefined) && !isLooser(open, rule));
});

test("a cold tier or a lifecycle rule outside of the regions is refused when it is set", async () => {
  await makeBucket("geo-config", { region: "eu-1" });
  for (const [setting, document] of [
    ["cold-tier", tierTo("us-1")],
    ["lifecycle", moveTo("CLASS_US")],
  ] as const) {
    const answer = await put("geo-config", setting, document);
    assert.equal(answer.code, "AccessDenied", setting);
    assert.match(answer.text, /geo-placement rule eu-1/);
  }
  assert.equal((await put("geo-config", "cold-tier", tierTo("eu-1"))).status, 200);
  assert.equal((await put("geo-config", "lifecycle", moveTo("CLASS_EU"))).status, 200);
});

test("a rule that forbids the cold tier or a lifecycle rule of its bucket is refused", async () => {
  await makeBucket("geo-late");
  assert.equal((await put("geo-late", "cold-tier", tierTo("us-1"))).status, 200);
  assert.equal((await put("geo-late", "geo-placement", { region: "eu-1" })).code, "AccessDenied");
  await serving.s3.must("DELETE", "/geo-late?cold-tier");
  assert.equal((await put("geo-late", "lifecycle", moveTo("CLASS_US"))).status, 200);
  assert.equal((await put("geo-late", "geo-placement", { region: "eu-1" })).code, "AccessDenied");
});

test("a version keeps the regions that it was written under, and gives them to its copies", async () => {
  const { s3 } = serving;
  await makeBucket("geo-source", { region: "eu-1" });
  await makeBucket("geo-free");
  await s3.must("PUT", "/geo-source/a", { body: BODY });
  await s3.must("PUT", "/geo-free/other", { body: BODY });
  await s3.must("PUT", "/geo-free/copy", { headers: { "x-amz-copy-source": "/geo-source/a" } });
  await putModule(serving, "same", identity);
  await s3.must(
    "POST",
    "/geo-source/a?module=same&target-bucket=geo-free&target-key=output&transform",
  );
  const started = await s3.must("POST", "/geo-free/parts?uploads");
  const id = /<UploadId>([^<]*)</.exec(started.text)![1]!;
  const part = await s3.must("PUT", `/geo-free/parts?partNumber=1&uploadId=${id}`, {
    headers: { "x-amz-copy-source": "/geo-source/a" },
  });
  const etag = /<ETag>([^<]*)</.exec(part.text)![1]!;
  await s3.must("POST", `/geo-free/parts?uploadId=${id}`, {
    body: `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`,
  });
  await put("geo-free", "cold-tier", tierTo("us-1"));
  const { moved, details } = await sweep("geo-free");
  assert.equal(moved, 1, "only the object that was written here");
  assert.equal(details.length, 3);
  for (const { reason } of details)
    assert.match(reason, /written under does not allow the region us-1/);
  assert.equal(remote.keys("cold").filter((key) => !key.endsWith(".json")).length, 1);
  await put("geo-free", "cold-tier", tierTo("eu-1"));
  assert.equal((await sweep("geo-free")).moved, 3, "inside of the regions they move");
});

test("a remote that turns out to be elsewhere gets no more bytes", async () => {
  await makeBucket("geo-moved", { region: "eu-1" });
  await put("geo-moved", "cold-tier", tierTo("eu-1"));
  await serving.s3.must("PUT", "/geo-moved/a", { body: BODY });
  await readJson(callJson(serving, "PATCH", "/admin/remotes/eu-1", { region: "us-9" }));
  const { moved, details } = await sweep("geo-moved");
  assert.equal(moved, 0);
  assert.match(details[0]!.reason, /rule eu-1 of the bucket does not allow the region us-9/);
  await readJson(callJson(serving, "PATCH", "/admin/remotes/eu-1", { region: "eu-1" }));
});

test("users may tighten a rule; only root loosens or removes it", async () => {
  await makeBucket("geo-rights", { region: "eu", allowed: ["eu-1", "eu-2"] });
  const key = await addReader(serving, "geo-rights", ["s3:*"]);
  const tight = { region: "eu", allowed: ["eu-1"], deny_replication_outside: true };
  assert.equal((await put("geo-rights", "geo-placement", tight, key)).status, 200);
  assert.deepEqual(
    await readJson(serving.s3.must("GET", "/geo-rights?geo-placement", { key })),
    tight,
  );
  for (const looser of [
    { region: "eu", allowed: ["eu-1", "eu-2"] },
    { ...tight, deny_replication_outside: false },
  ])
    assert.equal((await put("geo-rights", "geo-placement", looser, key)).code, "AccessDenied");
  assert.equal(
    (await serving.s3.send("DELETE", "/geo-rights?geo-placement", { key })).code,
    "AccessDenied",
  );
  assert.equal(
    (await put("geo-rights", "geo-placement", { region: "EU!" })).code,
    "InvalidArgument",
  );
  assert.equal((await serving.s3.send("DELETE", "/geo-rights?geo-placement")).status, 204);
  assert.equal(
    (await serving.s3.send("GET", "/geo-rights?geo-placement")).code,
    "NoSuchGeoPlacement",
  );
});
