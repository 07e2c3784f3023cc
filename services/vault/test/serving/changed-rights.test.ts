// Readers in a loop over HTTP: a right that was withdrawn, and a key that was disabled or deleted, open nothing after the
// answer, however often the object was read before.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Key } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

const OBJECT = "/shared/object";
const BODY = "the object";
const ROUNDS = 3;
const READERS = 3;
const JSON_TYPE = { "content-type": "application/json" };

let serving: Serving;
before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_TENANT_RATE: "0" } });
  await serving.s3.must("PUT", "/shared");
  await serving.s3.must("PUT", OBJECT, { body: BODY });
});
after(() => serving[Symbol.asyncDispose]());

async function callAdmin(method: string, path: string, body?: object): Promise<string> {
  const content = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
  return (await serving.admin.must(method, path, content)).text;
}

/** Reads in a loop while `change` opens and closes the object in turn. */
async function readAcross(
  key: Key | null,
  change: (isOpen: boolean) => Promise<unknown>,
): Promise<void> {
  // True, false, or undefined while a change is in flight; with the number of changes, by which a read sees that it overlapped.
  let state: { isOpen: boolean | undefined; changes: number } = { isOpen: false, changes: 0 };
  const over = new AbortController();
  const wrong: string[] = [];
  const look = async () => {
    const { isOpen, changes } = state;
    const answer = await serving.s3.send("GET", OBJECT, { key });
    if (isOpen === undefined || state.changes !== changes) return;
    const isRight = isOpen ? answer.text === BODY : answer.status === 403;
    if (!isRight) wrong.push(`open: ${isOpen}, ${answer.status} ${answer.text}`);
  };
  const readers = Array.from({ length: READERS }, async () => {
    while (!over.signal.aborted) {
      await look();
      await nextTurn();
    }
  });
  try {
    for (let round = 0; round < 2 * ROUNDS; round += 1) {
      const isOpen = round % 2 === 0;
      state = { isOpen: undefined, changes: state.changes + 1 };
      await change(isOpen);
      state = { isOpen, changes: state.changes };
      for (let reads = 0; reads < 3; reads += 1) await look();
    }
  } finally {
    over.abort();
    await Promise.all(readers);
  }
  assert.deepEqual(wrong, []);
}

test("a policy of the bucket", async () => {
  const Resource = "arn:aws:s3:::shared/*";
  const statement = { Effect: "Allow", Principal: "*", Action: "s3:GetObject", Resource };
  const body = JSON.stringify({ Version: "2012-10-17", Statement: [statement] });
  await readAcross(null, (isOpen) =>
    isOpen
      ? serving.s3.must("PUT", "/shared?policy", { body })
      : serving.s3.must("DELETE", "/shared?policy"),
  );
});

test("the ACL of the object", async () => {
  await readAcross(null, (isOpen) => {
    const acl = isOpen ? "public-read" : "private";
    return serving.s3.must("PUT", `${OBJECT}?acl`, { headers: { "x-amz-acl": acl } });
  });
});

test("the policy of a user, and its key", async () => {
  const statement = {
    Effect: "Allow",
    Action: ["s3:GetObject"],
    Resource: "arn:aws:s3:::shared/*",
  };
  const main = { Version: "2012-10-17", Statement: [statement] };
  const write = (policies: object) =>
    callAdmin("PUT", "/api/v1/users/reader", { policies, namespaces: [] });
  await write({});
  const made = JSON.parse(await callAdmin("POST", "/api/v1/keys", { user: "reader" })) as {
    access_key: string;
    secret_key: string;
  };
  const key = { accessKey: made.access_key, secretKey: made.secret_key };
  await readAcross(key, (isOpen) => write(isOpen ? { main } : {}));
  await write({ main });
  const path = `/api/v1/keys/${key.accessKey}`;
  await readAcross(key, (enabled) => callAdmin("PATCH", path, { enabled }));
  await callAdmin("PATCH", path, { enabled: true });
  assert.equal((await serving.s3.send("GET", OBJECT, { key })).text, BODY);
  await callAdmin("DELETE", path);
  assert.equal((await serving.s3.send("GET", OBJECT, { key })).code, "InvalidAccessKeyId");
});
