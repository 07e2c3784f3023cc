// A test client of the service: JSON in, JSON out, cookies by hand.
import assert from "node:assert/strict";
import { startStage, type Stage } from "./stage.ts";

/** A response. */
export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed; {} if it is empty. */
  // Tests read members that the service promises; a missing one fails there.
  body: Record<string, never>;
}

/** Optional parts of a request. */
export interface Ask {
  body?: unknown;
  /** Bearer token. */
  token?: string | undefined;
  headers?: Record<string, string>;
}

/** Sends one request. */
export async function call(
  stage: Pick<Stage, "url">,
  method: string,
  path: string,
  ask: Ask = {},
): Promise<Answer> {
  const response = await fetch(`${stage.url}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(ask.body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(ask.token === undefined ? {} : { Authorization: `Bearer ${ask.token}` }),
      ...ask.headers,
    },
    ...(ask.body === undefined ? {} : { body: JSON.stringify(ask.body) }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  return {
    status: response.status,
    headers: response.headers,
    body: (isJson && text !== "" ? JSON.parse(text) : {}) as Record<string, never>,
  };
}

/** As `call`, and asserts the status. */
export async function expectStatus(
  status: number,
  stage: Pick<Stage, "url">,
  method: string,
  path: string,
  ask: Ask = {},
): Promise<Answer> {
  const answer = await call(stage, method, path, ask);
  assert.equal(answer.status, status, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer;
}

/** The configured first administrator of `startWithAdmin`. */
export const ADMIN = { username: "root", password: "correct horse battery staple" };

/** A signed-in user. */
export interface Person {
  id: string;
  username: string;
  password: string;
  /** Access token. */
  token: string;
  session: string;
}

/** Starts with a configured administrator. */
export function startWithAdmin(
  settings: Record<string, unknown>,
  options?: Parameters<typeof startStage>[1],
): Promise<Stage> {
  const { username, password } = ADMIN;
  return startStage({ ...settings, admin_user: username, admin_password: password }, options);
}

/** Signs in. */
export async function signIn(
  stage: Pick<Stage, "url">,
  { username, password }: { username: string; password: string },
): Promise<Person> {
  const { body } = await expectStatus(200, stage, "POST", "/api/v1/auth/login", {
    body: { username, password },
  });
  const {
    user,
    access_token: token,
    session_token: session,
  } = body as never as {
    user: { id: string };
    access_token: string;
    session_token: string;
  };
  return { id: user.id, username, password, token, session };
}

/** Registers and signs in. */
export async function join(stage: Pick<Stage, "url">, username: string): Promise<Person> {
  const password = `${username} has a long password`;
  await expectStatus(201, stage, "POST", "/api/v1/auth/register", { body: { username, password } });
  return signIn(stage, { username, password });
}
