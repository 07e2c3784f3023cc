// Replication between two running stores: what follows, in which order, and what a destination that is away changes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { makeBytes } from "../store/fixture.ts";
import {
  describeRule,
  listVersions,
  makeBucket,
  readStates,
  replicate,
  requireSame,
  settle,
  startTwoStores,
  type TwoStores,
} from "./stores.ts";

let stores: TwoStores;

before(async () => {
  stores = await startTwoStores();
});
after(() => stores[Symbol.asyncDispose]());

test("versions, markers and changes are the same in both stores", async () => {
  const { near, far } = stores;
  await makeBucket(near, "photos");
  await makeBucket(far, "photos");
  await replicate(near, "photos", "far");
  const first = await near.s3.must("PUT", "/photos/a%20b", {
    body: makeBytes(3_000_000),
    headers: {
      "content-type": "image/png",
      "cache-control": "no-store",
      "x-amz-meta-maker": "me",
      "x-amz-tagging": "team=red&x=%C3%A4",
      "x-amz-storage-class": "STANDARD_IA",
      "x-amz-acl": "public-read",
    },
  });
  await near.s3.must("PUT", "/photos/a%20b", { body: "second" });
  await near.s3.must("PUT", "/photos/gone", { body: "x" });
  await near.s3.must("DELETE", "/photos/gone");
  await settle(near, "photos");
  await requireSame(near, far, "photos");

  const id = String(first.headers["x-amz-version-id"]);
  const target = `/photos/a%20b?versionId=${id}`;
  const here = await near.s3.must("HEAD", target);
  const there = await far.s3.must("HEAD", target);
  assert.equal(here.headers["x-amz-replication-status"], "COMPLETED");
  assert.equal(there.headers["x-amz-replication-status"], "REPLICA");
  const names = [
    "etag",
    "content-type",
    "cache-control",
    "x-amz-meta-maker",
    "x-amz-tagging-count",
    "x-amz-storage-class",
    "last-modified",
  ];
  for (const name of names) assert.equal(there.headers[name], here.headers[name], name);
  const acls = await Promise.all(
    [near, far].map(({ s3 }) => s3.must("GET", `/photos/a%20b?acl&versionId=${id}`)),
  );
  assert.equal(acls[1]!.text, acls[0]!.text);
  assert.ok((await far.s3.must("GET", target)).body.equals(makeBytes(3_000_000)));

  const tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
  await near.s3.must("PUT", `/photos/a%20b?tagging&versionId=${id}`, { body: tags });
  await near.s3.must("PUT", `/photos/a%20b?acl&versionId=${id}`, {
    headers: { "x-amz-acl": "private" },
  });
  await settle(near, "photos");
  assert.match(
    (await far.s3.must("GET", `/photos/a%20b?tagging&versionId=${id}`)).text,
    /<Value>v</,
  );
  assert.ok(
    !(await far.s3.must("GET", `/photos/a%20b?acl&versionId=${id}`)).text.includes("AllUsers"),
  );
  await requireSame(near, far, "photos");
});

test("an object of parts has the same parts, entity tag and checksum", async () => {
  const { near, far } = stores;
  await makeBucket(near, "parts");
  await makeBucket(far, "parts");
  await replicate(near, "parts", "far");
  const { text } = await near.s3.must("POST", "/parts/big?uploads", {
    headers: { "x-amz-checksum-algorithm": "SHA256", "x-amz-meta-a": "b" },
  });
  const upload = /<UploadId>(.*?)</.exec(text)![1]!;
  const bodies = [makeBytes(6_000_000, 1), makeBytes(5_300_000, 2), makeBytes(10, 3)];
  const tags: string[] = [];
  for (const [index, body] of bodies.entries()) {
    const part = await near.s3.must(
      "PUT",
      `/parts/big?uploadId=${upload}&partNumber=${index * 2 + 1}`,
      { body },
    );
    tags.push(
      `<Part><PartNumber>${index * 2 + 1}</PartNumber><ETag>${String(part.headers["etag"])}</ETag></Part>`,
    );
  }
  await near.s3.must("POST", `/parts/big?uploadId=${upload}`, {
    body: `<CompleteMultipartUpload>${tags.join("")}</CompleteMultipartUpload>`,
  });
  await settle(near, "parts");
  await requireSame(near, far, "parts");
  const mode = { headers: { "x-amz-checksum-mode": "ENABLED" } };
  const [here, there] = await Promise.all(
    [near, far].map(({ s3 }) => s3.must("HEAD", "/parts/big?partNumber=3", mode)),
  );
  for (const name of ["content-length", "x-amz-mp-parts-count", "etag"]) {
    assert.equal(there!.headers[name], here!.headers[name], name);
  }
  const whole = await far.s3.must("GET", "/parts/big", mode);
  assert.ok(whole.body.equals(Buffer.concat(bodies)));
  const own = await near.s3.must("HEAD", "/parts/big", mode);
  assert.equal(whole.headers["x-amz-checksum-sha256"], own.headers["x-amz-checksum-sha256"]);
});

test("both directions send each version once, and both stores agree on the order", async () => {
  const { near, far } = stores;
  await makeBucket(near, "both");
  await makeBucket(far, "both");
  const back =
    "<SourceSelectionCriteria><ReplicaModifications><Status>Enabled</Status></ReplicaModifications></SourceSelectionCriteria>";
  await replicate(near, "both", "far", back);
  await replicate(far, "both", "near", back);
  for (let round = 0; round < 5; round += 1) {
    await Promise.all([
      near.s3.must("PUT", "/both/k", { body: `near ${round}` }),
      far.s3.must("PUT", "/both/k", { body: `far ${round}` }),
      near.s3.must("PUT", `/both/n${round}`, { body: "n" }),
      far.s3.must("DELETE", `/both/n${round}`),
    ]);
  }
  await settle(near, "both");
  await settle(far, "both");
  await settle(near, "both");
  assert.equal((await listVersions(near, "both")).length, 20);
  await requireSame(near, far, "both");
  const tags = "<Tagging><TagSet><Tag><Key>of</Key><Value>replica</Value></Tag></TagSet></Tagging>";
  const { headers } = await far.s3.must("PUT", "/both/only-far", { body: "x" });
  await settle(far, "both");
  await near.s3.must("PUT", "/both/only-far?tagging", { body: tags });
  await settle(near, "both");
  const version = String(headers["x-amz-version-id"]);
  assert.match(
    (await far.s3.must("GET", `/both/only-far?tagging&versionId=${version}`)).text,
    /replica/,
  );
});

const KMS = "x-amz-server-side-encryption";
const WITH_KEYS =
  "<SourceSelectionCriteria><SseKmsEncryptedObjects><Status>Enabled</Status></SseKmsEncryptedObjects></SourceSelectionCriteria>";

test("objects with named keys follow only where the rule says so, encrypted there", async () => {
  const { near, far } = stores;
  const make = (name: string) =>
    readJson<{ id: string }>(callJson(near, "POST", "/admin/encryption-keys", { name }), 201);
  const [own, other] = [await make("own"), await make("other")];
  for (const name of ["sealed", "sealed-copy"]) await makeBucket(near, name);
  await makeBucket(far, "sealed");
  const put = (key: string) =>
    near.s3.must("PUT", `/sealed/${key}`, {
      body: key,
      headers: { [KMS]: "aws:kms", [`${KMS}-aws-kms-key-id`]: own.id },
    });
  await replicate(near, "sealed", "far");
  const { headers } = await put("unnamed");
  assert.equal(headers["x-amz-replication-status"], undefined);
  await replicate(near, "sealed", "far", WITH_KEYS);
  await put("named");
  await settle(near, "sealed");
  assert.equal((await far.s3.send("GET", "/sealed/unnamed")).status, 404);
  const there = await far.s3.must("GET", "/sealed/named");
  assert.deepEqual([there.text, there.headers[KMS]], ["named", "AES256"]);

  const local = (key: string) =>
    near.s3.send("PUT", "/sealed?replication", {
      body: describeRule(
        "arn:aws:s3:::sealed-copy",
        WITH_KEYS,
        `<EncryptionConfiguration><ReplicaKmsKeyID>${key}</ReplicaKmsKeyID></EncryptionConfiguration>`,
      ),
    });
  assert.equal((await local("alias/nobody")).code, "KMS.NotFoundException");
  assert.equal((await local("alias/other")).status, 200);
  await put("local");
  await settle(near, "sealed");
  const copy = await near.s3.must("GET", "/sealed-copy/local");
  assert.equal(copy.text, "local");
  assert.match(String(copy.headers[`${KMS}-aws-kms-key-id`]), new RegExp(`${other.id}$`));
});

test("a version under a disabled key is FAILED with the reason, and holds up no later one", async () => {
  const { near, far } = stores;
  const path = "/admin/encryption-keys";
  const { id } = await readJson<{ id: string }>(
    callJson(near, "POST", path, { name: "shut" }),
    201,
  );
  for (const store of [near, far]) await makeBucket(store, "shut");
  // Without a rule nothing is sent before the key is disabled.
  const { headers } = await near.s3.must("PUT", "/shut/k", {
    body: "first",
    headers: { [KMS]: "aws:kms", [`${KMS}-aws-kms-key-id`]: id },
  });
  await readJson(callJson(near, "POST", `${path}/shut/disable`));
  await replicate(near, "shut", "far", WITH_KEYS);
  await near.s3.must("POST", "/shut/k?replicate");
  await near.s3.must("PUT", "/shut/k", { body: "second" });
  await settle(near, "shut");
  const [state] = await readStates(near, "shut");
  assert.deepEqual([state!.failed, state!.failures[0]?.reason.includes("is disabled")], [1, true]);
  assert.equal((await far.s3.must("GET", "/shut/k")).text, "second");
  await readJson(callJson(near, "POST", `${path}/shut/enable`));
  const version = String(headers["x-amz-version-id"]);
  await near.s3.must("POST", `/shut/k?replicate&versionId=${version}`);
  await settle(near, "shut");
  assert.equal((await far.s3.must("GET", `/shut/k?versionId=${version}`)).text, "first");
});

test("the sender of a rule needs the right to read what it sends", async () => {
  const { near } = stores;
  for (const name of ["guarded", "guarded-copy"]) await makeBucket(near, name);
  const policy = {
    Version: "2012-10-17",
    Statement: [{ Effect: "Deny", Principal: "*", Action: "kms:Decrypt", Resource: "*" }],
  };
  const { id } = await readJson<{ id: string }>(
    callJson(near, "POST", "/admin/encryption-keys", { name: "guarded", policy }),
    201,
  );
  const key = await addReader(near, "guarded*", ["s3:*"]);
  const body = describeRule("arn:aws:s3:::guarded-copy", WITH_KEYS);
  await near.s3.must("PUT", "/guarded?replication", { body, key });
  await near.s3.must("PUT", "/guarded/k", {
    body: "secret",
    headers: { [KMS]: "aws:kms", [`${KMS}-aws-kms-key-id`]: id },
  });
  await settle(near, "guarded");
  assert.match((await readStates(near, "guarded"))[0]!.failures[0]!.reason, /kms:Decrypt/);
  assert.equal((await near.s3.send("HEAD", "/guarded-copy/k")).status, 404);
});

test("the sender of a rule needs the right to read the object then, by policy and by its tags", async () => {
  const { near } = stores;
  for (const name of ["readable", "readable-copy"]) await makeBucket(near, name);
  const key = await addReader(near, "readable*", ["s3:*"]);
  await near.s3.must("PUT", "/readable?replication", {
    body: describeRule("arn:aws:s3:::readable-copy"),
    key,
  });
  const deny = {
    Effect: "Deny",
    Principal: "*",
    Action: "s3:GetObject",
    Resource: "arn:aws:s3:::readable/*",
    Condition: { StringEquals: { "s3:ExistingObjectTag/secret": "yes" } },
  };
  const policy = JSON.stringify({ Version: "2012-10-17", Statement: [deny] });
  await near.s3.must("PUT", "/readable?policy", { body: policy });
  await near.s3.must("PUT", "/readable/open", { body: "text" });
  await near.s3.must("PUT", "/readable/shut", {
    body: "text",
    headers: { "x-amz-tagging": "secret=yes" },
  });
  await settle(near, "readable");
  assert.equal((await near.s3.must("GET", "/readable-copy/open")).text, "text");
  assert.equal((await near.s3.send("HEAD", "/readable-copy/shut")).status, 404);
  const [state] = await readStates(near, "readable");
  assert.match(state!.failures[0]!.reason, /may not read the object/);
  assert.deepEqual([state!.completed, state!.failed], [1, 1], "counts are those of the rule");
});

test("replicas belong to the owner of their bucket where the rule says so, without the ACL of their source", async () => {
  const { near, far } = stores;
  const ownership = `<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>`;
  for (const [at, names] of [
    [near, ["owned", "owned-copy"]],
    [far, ["owned"]],
  ] as const)
    for (const name of names) {
      await makeBucket(at, name);
      await at.s3.must("PUT", `/${name}?ownershipControls`, { body: ownership });
      await at.s3.must("DELETE", `/${name}?publicAccessBlock`);
    }
  const translate = `<Account>000000000001</Account><AccessControlTranslation><Owner>Destination</Owner></AccessControlTranslation>`;
  const put = (body: string) => near.s3.send("PUT", "/owned?replication", { body });
  const local = describeRule("arn:aws:s3:::owned-copy", "", translate);
  const remote = describeRule("arn:objstore:replication::far:owned", "", translate)
    .replace("<ID>r</ID><Priority>1", "<ID>far</ID><Priority>2")
    .replace(/^.*?(<Rule>.*<\/Rule>).*$/, "$1");
  const both = local.replace("</ReplicationConfiguration>", `${remote}</ReplicationConfiguration>`);
  assert.equal((await put(both)).status, 200);
  assert.ok((await near.s3.must("GET", "/owned?replication")).text.includes(translate));
  for (const [wrong, code] of [
    [translate.replace(/<Account>.*<\/Account>/, ""), "InvalidRequest"],
    [translate.replace("Destination", "Source"), "MalformedXML"],
    [translate.replace("000000000001", "me"), "MalformedXML"],
  ] as const)
    assert.equal((await put(local.replace(translate, wrong))).code, code);
  await near.s3.must("PUT", "/owned/k", {
    body: "text",
    headers: { "x-amz-acl": "public-read" },
  });
  await near.s3.must("PUT", "/owned/k?acl", { headers: { "x-amz-acl": "public-read-write" } });
  await settle(near, "owned");
  assert.match((await near.s3.must("GET", "/owned/k?acl")).text, /AllUsers/);
  for (const answer of [
    await near.s3.must("GET", "/owned-copy/k?acl"),
    await far.s3.must("GET", "/owned/k?acl"),
  ])
    assert.doesNotMatch(answer.text, /AllUsers/);
  assert.equal((await far.s3.must("GET", "/owned/k")).text, "text");
});
