// Callers, ACLs, keys and budgets.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { expandCannedAcl } from "../../src/access/acl.ts";
import { type AccessQuestion, Authorizer, type Caller } from "../../src/access/authorizer.ts";
import { TenantBudgets } from "../../src/access/budget.ts";
import { Directory } from "../../src/access/directory.ts";
import { compilePolicy } from "../../src/access/policy.ts";
import { deriveBoxKey, loadMasterKey, SecretBox } from "../../src/access/secret-box.ts";
import type { Bucket } from "../../src/model/bucket.ts";
import type { BucketSettings } from "../../src/model/bucket-settings.ts";

const account = { canonicalId: "c".repeat(64), displayName: "platform", accountId: "000000000001" };
const authorizer = new Authorizer(account);
const root: Caller = { kind: "root", accessKey: "R" };
const anonymous: Caller = { kind: "anonymous" };
const everyone = { Principal: "*", Resource: ["arn:aws:s3:::b", "arn:aws:s3:::b/*"] };

function createBucket(settings: Partial<BucketSettings> = {}): Bucket {
  return {
    name: "b",
    createdMs: 0,
    owner: { id: account.canonicalId, displayName: "platform" },
    region: "us-east-1",
    versioning: "Unset",
    objectLockEnabled: false,
    settings,
  };
}

function createBox(keyPath: string): SecretBox {
  const key = deriveBoxKey(loadMasterKey(keyPath));
  return new SecretBox(() => [key]);
}

function createUser(...statements: object[]): Caller {
  const policies = [compilePolicy({ Statement: statements }, undefined)];
  return { kind: "user", accessKey: "U", name: "ada", policies, namespaces: [] };
}

function may(caller: Caller, bucket: Bucket, question: Partial<AccessQuestion> = {}): boolean {
  return authorizer.isAllowed({
    caller,
    bucket,
    bucketName: "b",
    action: "s3:GetObject",
    key: "k",
    values: new Map(),
    ...question,
  });
}

describe("access", () => {
  const denyAll = { policy: { Statement: [{ ...everyone, Effect: "Deny", Action: "s3:*" }] } };
  const allowRead = {
    policy: { Statement: [{ ...everyone, Effect: "Allow", Action: "s3:GetObject" }] },
  };

  test("without a policy, root only", () => {
    assert.ok(may(root, createBucket()));
    assert.ok(!may(anonymous, createBucket()));
    assert.ok(
      !may(createUser({ Effect: "Allow", Action: "s3:ListBucket", Resource: "*" }), createBucket()),
    );
  });

  test("a user is allowed by their own policy or the bucket's, unless either denies", () => {
    const reader = createUser({ Effect: "Allow", Action: "s3:Get*", Resource: "arn:aws:s3:::b/*" });
    const denied = createUser({ Effect: "Deny", Action: "*", Resource: "*" });
    assert.ok(may(reader, createBucket()));
    assert.ok(!may(reader, createBucket(denyAll)));
    assert.ok(!may(denied, createBucket(allowRead)));
    assert.ok(
      may(
        createUser({ Effect: "Allow", Action: "s3:List*", Resource: "*" }),
        createBucket(allowRead),
      ),
    );
  });

  test("an explicit deny applies to root, but root can always remove the policy", () => {
    const bucket = createBucket(denyAll);
    assert.ok(!may(root, bucket));
    assert.ok(may(root, bucket, { action: "s3:DeleteBucketPolicy", key: "" }));
  });

  test("anonymous callers are allowed by policy or ACL, until public access is blocked", () => {
    assert.ok(may(anonymous, createBucket(allowRead)));
    const restricted = {
      blockPublicAcls: false,
      ignorePublicAcls: true,
      blockPublicPolicy: false,
      restrictPublicBuckets: true,
    };
    assert.ok(!may(anonymous, createBucket({ ...allowRead, publicAccessBlock: restricted })));
    const acl = {
      of: "object",
      permission: "READ",
      objectAcl: expandCannedAcl("public-read", { id: account.canonicalId, displayName: "" }),
    } as const;
    assert.ok(may(anonymous, createBucket(), { acl }));
    assert.ok(!may(anonymous, createBucket({ publicAccessBlock: restricted }), { acl }));
    const enforced = { ownership: { objectOwnership: "BucketOwnerEnforced" } } as const;
    assert.ok(!may(anonymous, createBucket(enforced), { acl }));
    assert.ok(!may(anonymous, createBucket(), { acl: { ...acl, permission: "WRITE" } }));
  });

  test("authenticated-read applies to users, not to anonymous callers", () => {
    const acl = {
      of: "object",
      permission: "READ",
      objectAcl: expandCannedAcl("authenticated-read", { id: "x", displayName: "" }),
    } as const;
    assert.ok(
      may(createUser({ Effect: "Allow", Action: "s3:PutObject", Resource: "*" }), createBucket(), {
        acl,
      }),
    );
    assert.ok(!may(anonymous, createBucket(), { acl }));
  });
});

describe("users and keys", () => {
  const folder = mkdtempSync(join(tmpdir(), "vault-access-"));
  test.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "access", "directory.json");
  const keyPath = join(folder, "access", "master.key");
  const open = () =>
    new Directory({
      path,
      box: createBox(keyPath),
      clock: createManualClock(5),
      rootKey: "root",
    });

  test("outlive a restart, and their secrets are nowhere in the file", () => {
    const directory = open();
    directory.putUser({ name: "ada", enabled: true, policies: {}, namespaces: [] });
    const key = directory.createKey({ user: "ada" });
    assert.equal(key.accessKey.length, 20);
    assert.equal(open().findKey(key.accessKey)?.secret, key.secretKey);
    assert.ok(!readFileSync(path, "utf8").includes(key.secretKey));
    assert.equal(statSync(path).mode & 0o077, 0);
    assert.equal(statSync(keyPath).mode & 0o077, 0);
  });

  test("that are disabled or deleted grant no access", () => {
    const directory = open();
    const key = directory.createKey({
      user: "ada",
      accessKey: "chosen",
      secretKey: "chosen-secret",
    });
    directory.updateKey("chosen", { enabled: false });
    assert.equal(directory.findKey("chosen"), undefined);
    directory.updateKey("chosen", { enabled: true });
    assert.equal(directory.findKey("chosen")?.secret, key.secretKey);
    directory.updateKey("chosen", { expiresMs: 6 });
    assert.equal(open().findKey("chosen")?.secret, key.secretKey, "until its end");
    directory.updateKey("chosen", { expiresMs: 5 });
    assert.equal(open().findKey("chosen"), undefined, "expired");
    directory.updateKey("chosen", { expiresMs: null });
    assert.equal(directory.findKey("chosen")?.secret, key.secretKey);
    directory.deleteUser("ada");
    assert.equal(directory.findKey("chosen"), undefined);
    assert.deepEqual(open().listKeys(), []);
  });

  test("cannot use the id of the root key, whose requests would never be theirs", () => {
    const directory = open();
    directory.putUser({ name: "bob", enabled: true, policies: {}, namespaces: [] });
    assert.throws(() => directory.createKey({ user: "bob", accessKey: "root" }), {
      code: "conflict",
    });
    directory.deleteUser("bob");
  });

  test("with an invalid policy are not created", () => {
    assert.throws(
      () =>
        open().putUser({
          name: "eve",
          enabled: true,
          policies: { p: { Statement: 1 } },
          namespaces: [],
        }),
      { code: "MalformedPolicy" },
    );
    assert.deepEqual(open().listUsers(), []);
  });

  test("a secret cannot be decrypted under the name of another key", () => {
    const box = createBox(keyPath);
    assert.throws(() => box.open(box.seal("s", "a"), "b"));
  });
});

describe("a tenant's budget", () => {
  test("allows a burst, then the rate, and returns the time to wait", () => {
    const clock = createManualClock();
    const budgets = new TenantBudgets({ ratePerSecond: 10, burst: 20, clock });
    for (let count = 0; count < 20; count += 1) assert.equal(budgets.take("a"), 0);
    assert.equal(budgets.take("a"), 1);
    assert.equal(budgets.take("b"), 0);
    clock.advance(100);
    assert.equal(budgets.take("a"), 0);
    assert.equal(budgets.take("a"), 1);
  });

  test("is kept for a bounded number of tenants", () => {
    const clock = createManualClock();
    const budgets = new TenantBudgets({ ratePerSecond: 1, burst: 1, clock, tenantsMax: 2 });
    budgets.take("a");
    for (const tenant of ["b", "c"]) budgets.take(tenant);
    assert.equal(budgets.take("a"), 0, "the oldest was forgotten");
    assert.equal(budgets.take("a"), 1);
  });
});
