// Named keys of the store, made by its admin API.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Scene } from "./case.ts";
import type { Answer } from "./client.ts";

export const SSE = "x-amz-server-side-encryption";
export const KEY_ID = `${SSE}-aws-kms-key-id`;
export const CONTEXT = `${SSE}-context`;
export const BUCKET_KEY = `${SSE}-bucket-key-enabled`;

/** A named key. */
export interface NamedKey {
  id: string;
  name: string;
  arn: string;
  alias: string;
}

/** Creates a key. */
export async function createKey({ stage }: Scene, more: object = {}): Promise<NamedKey> {
  const name = `key-${randomUUID().slice(0, 8)}`;
  const answer = await stage.admin.send("POST", "/admin/encryption-keys", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, ...more }),
  });
  assert.equal(answer.status, 201, answer.text);
  return JSON.parse(answer.text) as NamedKey;
}

/** Disables, enables or rotates a key. */
export async function changeKey(
  { stage }: Scene,
  { name }: NamedKey,
  action: "disable" | "enable" | "rotate",
): Promise<void> {
  const answer = await stage.admin.send("POST", `/admin/encryption-keys/${name}/${action}`);
  assert.ok(answer.status < 300, answer.text);
}

/** Plans the deletion of a key. */
export async function deleteKey({ stage }: Scene, { name }: NamedKey): Promise<void> {
  const answer = await stage.admin.send("DELETE", `/admin/encryption-keys/${name}?days=7`);
  assert.equal(answer.status, 202, answer.text);
}

/** The headers that ask for a key, or for the default one. */
export function withKey(keyId?: string): Record<string, string> {
  return { [SSE]: "aws:kms", ...(keyId === undefined ? {} : { [KEY_ID]: keyId }) };
}

/** Expects the headers of an object under a key. */
export function assertKey(answer: Answer, { arn }: NamedKey): void {
  assert.equal(answer.headers[SSE], "aws:kms");
  assert.equal(answer.headers[KEY_ID], arn);
}

/** The document of a bucket's default encryption. */
export function toDefault(algorithm: string, keyId?: string, isBucketKey?: boolean): string {
  const id = keyId === undefined ? "" : `<KMSMasterKeyID>${keyId}</KMSMasterKeyID>`;
  const key =
    isBucketKey === undefined ? "" : `<BucketKeyEnabled>${isBucketKey}</BucketKeyEnabled>`;
  return `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>${algorithm}</SSEAlgorithm>${id}</ApplyServerSideEncryptionByDefault>${key}</Rule></ServerSideEncryptionConfiguration>`;
}
