// The admin API as its clients call it: JSON in both directions, and a user that may only read.
import assert from "node:assert/strict";
import type { Answer, Ask, Key } from "./s3-client.ts";
import type { Serving } from "./serving.ts";

/** Sends a request with a JSON body, or with the one of `ask`. */
export function callJson(
  { admin }: Serving,
  method: string,
  path: string,
  body?: object,
  ask: Ask = {},
): Promise<Answer> {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "content-type": "application/json" };
  return admin.send(method, path, { ...content, ...ask, headers: { ...type, ...ask.headers } });
}

/** Reads the JSON of an answer, whose status must be `status`. */
export async function readJson<T = Record<string, unknown>>(
  answer: Promise<Answer>,
  status = 200,
): Promise<T> {
  const { text, status: got } = await answer;
  assert.equal(got, status, text);
  return JSON.parse(text) as T;
}

/** Adds the user `reader` with these actions on one bucket; the key of the user. */
export async function addReader(
  serving: Serving,
  bucket: string,
  actions: readonly string[],
): Promise<Key> {
  const resource = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`];
  const statement = { Effect: "Allow", Action: actions, Resource: resource };
  await callJson(serving, "PUT", "/api/v1/users/reader", {
    policies: { main: { Version: "2012-10-17", Statement: [statement] } },
    namespaces: [],
  });
  const made = await readJson(callJson(serving, "POST", "/api/v1/keys", { user: "reader" }), 201);
  return { accessKey: String(made["access_key"]), secretKey: String(made["secret_key"]) };
}
