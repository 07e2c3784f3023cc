// A conformance case: one observable behaviour of an S3 operation.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import type { Answer, Ask, Client } from "./client.ts";
import { encode, type Credentials } from "./signature.ts";
import type { VaultStage } from "./stage.ts";

/** Context of a case: its own empty bucket in a shared store. */
export interface Scene {
  client: Client;
  stage: VaultStage;
  bucket: string;
  /** Sends a request to the bucket; `target` is appended to its path, such as `/key?acl` or `?versions`. */
  ask: (method: string, target?: string, ask?: Ask) => Promise<Answer>;
  /** Like `ask`, but throws unless the response is a success. */
  must: (method: string, target?: string, ask?: Ask) => Promise<Answer>;
  /** Puts an object; throws if it fails. */
  put: (key: string, body?: string | Buffer, headers?: Record<string, string>) => Promise<Answer>;
  /** Puts objects with their keys as bodies. */
  putAll: (...keys: string[]) => Promise<void>;
  /** Creates another bucket. */
  createBucket: (headers?: Record<string, string>) => Promise<string>;
  /** Sets the versioning of the bucket. */
  setVersioning: (status: "Enabled" | "Suspended") => Promise<void>;
  /** Creates a user with these policies; returns its key. */
  createUser: (...statements: object[]) => Promise<User>;
}

/** A user with a key. */
export interface User extends Credentials {
  /** Name in policies. */
  user: string;
}

/** A case. It throws if the store does not behave as the title says. */
export interface Case {
  /** Name of the operation in the API reference, or of a property of several operations. */
  operation: string;
  title: string;
  run(scene: Scene): Promise<void>;
}

/** A case of an operation. */
export type CaseRow = [title: string, run: (scene: Scene) => Promise<void>];

/** Shorthand for the cases of an operation. */
export function casesOf(operation: string, ...cases: readonly CaseRow[]): Case[] {
  return cases.map(([title, run]) => ({ operation, title, run }));
}

/** Returns an unused bucket name. */
export function createName(): string {
  return `b-${randomUUID()}`;
}

/** Creates the scene of a case. */
export async function setScene(stage: VaultStage): Promise<Scene> {
  const { client } = stage;
  const bucket = createName();
  const scene: Scene = {
    client,
    stage,
    bucket,
    ask: (method, target = "", ask = {}) => client.send(method, `/${bucket}${target}`, ask),
    async must(method, target = "", ask = {}) {
      const answer = await scene.ask(method, target, ask);
      if (answer.status >= 300) {
        throw new Error(`${method} ${target} is ${answer.status}: ${answer.text}`);
      }
      return answer;
    },
    put: (key, body = "", headers = {}) => scene.must("PUT", `/${key}`, { body, headers }),
    async putAll(...keys) {
      await Promise.all(keys.map((key) => scene.put(encode(key), key)));
    },
    async createBucket(headers = {}) {
      const name = createName();
      assert.equal((await client.send("PUT", `/${name}`, { headers })).status, 200);
      return name;
    },
    async setVersioning(status) {
      await scene.must("PUT", "?versioning", {
        body: `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`,
      });
    },
    createUser: (...statements) => createUser(stage, statements),
  };
  await scene.must("PUT");
  return scene;
}

async function createUser(stage: VaultStage, statements: object[]): Promise<User> {
  const name = `user-${randomUUID().slice(0, 8)}`;
  const policies =
    statements.length === 0 ? {} : { p: { Version: "2012-10-17", Statement: statements } };
  const headers = { "content-type": "application/json" };
  const user = await stage.admin.send("PUT", `/api/v1/users/${name}`, {
    headers,
    body: JSON.stringify({ policies }),
  });
  assert.equal(user.status, 200, user.text);
  const key = await stage.admin.send("POST", "/api/v1/keys", {
    headers,
    body: JSON.stringify({ user: name }),
  });
  assert.equal(key.status, 201, key.text);
  const { access_key: accessKey, secret_key: secretKey } = JSON.parse(key.text) as Record<
    "access_key" | "secret_key",
    string
  >;
  return { accessKey, secretKey, user: name };
}

/**
 * Expects an error as in the reference's "Error responses": status, document, and the same request id in both places.
 */
export function assertError(answer: Answer, status: number, code: string): void {
  assert.equal(`${answer.status} ${readCode(answer)}`, `${status} ${code}`);
  assert.equal(answer.headers["content-type"], "application/xml");
  const { document } = answer;
  assert.equal(document.name, "Error");
  assert.equal(document.attributes, "");
  assert.ok((document.get("Message") ?? "") !== "", "there is no Message");
  assert.equal(document.get("Resource"), answer.path);
  assert.ok(/^[0-9A-F]{16}$/.test(document.get("RequestId") ?? ""), "there is no RequestId");
  assert.equal(answer.headers["x-amz-request-id"], document.get("RequestId"));
}

function readCode(answer: Answer): string {
  try {
    return answer.document.get("Code") ?? "";
  } catch {
    return answer.text.slice(0, 200);
  }
}

/** Expects a response without a body, such as 204 and errors of HEAD. */
export function assertEmpty(answer: Answer, status: number): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.body.length, 0);
}

/** Expects success; checks the root element and returns the document. */
export function readResult(answer: Answer, root: string) {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["content-type"], "application/xml");
  const { document } = answer;
  assert.equal(document.name, root);
  assert.equal(document.attributes, 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"');
  return document;
}

/** MD5 in hexadecimal. */
export function md5(data: string | Buffer): string {
  return createHash("md5").update(data).digest("hex");
}

/** A digest in base64. */
export function digest(algorithm: "md5" | "sha1" | "sha256", data: string | Buffer): string {
  return createHash(algorithm).update(data).digest("base64");
}
