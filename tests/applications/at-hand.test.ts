// The platform at hand: a service with the credentials of `platform app add`, without any, and with those of another one.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { findFreePort } from "../stage/process.ts";

const TEXT = { "Content-Type": "text/plain" };
const JSON_TYPE = { "Content-Type": "application/json" };
const folder = makeFolder();
const data = join(folder, "data");
let up: ReturnType<typeof run>;
let started: Started;
let notes: { url: string; env: Record<string, string> };
let otherEnv: Record<string, string>;

before(async () => {
  up = run(["up", "--json", "--data", data, ...anyPort]);
  started = await up.waitFor(findStarted);
  const port = await findFreePort();
  const env = await addApplication("notes", `http://localhost:${port}/callback`);
  otherEnv = await addApplication("other", "http://localhost:1/callback");
  const identity = find(started, "auth").url;
  notes = {
    url: await startService({
      ...env,
      PORT: String(port),
      PLATFORM_JWKS_URL: `${identity}/.well-known/jwks.json`,
      PLATFORM_JWT_ISSUER: env["OIDC_ISSUER"] ?? "",
      PLATFORM_JWT_AUDIENCE: "platform",
    }),
    env,
  };
});
after(async () => {
  up.child.kill("SIGTERM");
  await up.exit;
});

async function addApplication(name: string, redirect: string): Promise<Record<string, string>> {
  const scope = ["--bucket", name, "--topic", `${name}.#`, "--mail", "--redirect", redirect];
  const added = run(["app", "add", name, "--data", data, ...scope]);
  assert.equal(await added.exit, 0, added.output().err);
  return parseEnv(added.output().out);
}

/** Runs the service of this folder; returns its URL. */
async function startService(env: Record<string, string>): Promise<string> {
  const project = makeFolder();
  const file = join(project, "main.service.ts");
  copyFileSync(new URL("at-hand.service.ts", import.meta.url), file);
  const service = run(["run", file], { PORT: "0", PLATFORM_LOG_FORMAT: "json", ...env });
  const port = await service.waitFor((text) => /"msg":"ready".*"port":(\d+)/.exec(text)?.[1]);
  return `http://localhost:${port}`;
}

async function ask(url: string, path: string, init: RequestInit = {}) {
  const answer = await fetch(`${url}${path}`, { redirect: "manual", ...init });
  const text = await answer.text();
  return { status: answer.status, text, headers: answer.headers };
}

const post = (body: unknown): RequestInit => ({
  method: "POST",
  headers: JSON_TYPE,
  body: JSON.stringify(body),
});

test("objects are stored, read, listed by page and deleted", async () => {
  const { url } = notes;
  const key = encodeURIComponent("a!'(é b/*).txt");
  const put = await ask(url, `/objects/${key}`, { method: "PUT", headers: TEXT, body: "hello" });
  assert.equal(put.status, 204, put.text);
  assert.equal((await ask(url, `/objects/${key}`)).text, "text/plain: hello");
  await ask(url, "/objects/a!'(0", { method: "PUT", headers: TEXT, body: "2" });
  const page = JSON.parse((await ask(url, "/objects")).text) as {
    objects: { key: string; size: number }[];
    next?: string;
  };
  assert.deepEqual(
    page.objects.map(({ key: name, size }) => [name, size]),
    [["a!'(0", 1]],
  );
  assert.ok(page.next);
  assert.equal((await ask(url, `/objects/${key}`, { method: "DELETE" })).status, 204);
  assert.equal((await ask(url, `/objects/${key}`, { method: "DELETE" })).status, 204);
  assert.equal((await ask(url, `/objects/${key}`)).text, "missing");
});

test("a stream of unknown size is stored in parts and read back unchanged", async () => {
  assert.equal((await ask(notes.url, "/large")).text, "true");
});

test("a browser stores and reads an object by presigned URLs", async () => {
  const urls = JSON.parse((await ask(notes.url, "/urls")).text) as { put: string; get: string };
  const stored = await fetch(urls.put, { method: "PUT", body: "by url" });
  assert.equal(stored.status, 200, await stored.text());
  const read = await fetch(urls.get);
  assert.equal(await read.text(), "by url");
  const disposition = read.headers.get("content-disposition");
  assert.equal(disposition, "attachment; filename*=UTF-8''note%20%C3%A9.txt");
});

test("published messages arrive at a subscription, live and from the beginning", async () => {
  const { url } = notes;
  const aborted = new AbortController();
  const live = await fetch(`${url}/topics/notes.live?from=earliest`, { signal: aborted.signal });
  const published = await ask(url, "/topics/notes.live", post({ n: 1 }));
  const { id } = JSON.parse(published.text) as { id: string };
  let seen = "";
  for await (const chunk of live.body!.pipeThrough(new TextDecoderStream())) {
    seen += chunk;
    if (seen.includes("\n\n") && seen.includes("data:")) break;
  }
  aborted.abort();
  assert.deepEqual(JSON.parse(/data: (.*)/.exec(seen)![1]!), { id, value: { n: 1 } });
});

test("a message of a group is delivered again after a failure, and once after a success", async () => {
  const { url } = notes;
  for (const n of [1, 2]) await ask(url, "/topics/notes.work", post(n));
  const seen = JSON.parse((await ask(url, "/work/notes.work")).text) as string[];
  assert.deepEqual(seen.toSorted(), ["1/0", "1/1", "2/0"]);
});

test("a mail arrives in the inbox once for each idempotency key", async () => {
  const body = post({ to: "ada@example.com", key: "reminder-1" });
  const first = await ask(notes.url, "/mail", body);
  assert.equal(first.status, 200, first.text);
  assert.equal((await ask(notes.url, "/mail", body)).text, first.text);
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  const inbox = await fetch(`${find(started, "notify").url}/api/v1/inbox`, {
    headers: { Authorization: `Bearer ${credentials["PLATFORM_NOTIFY_TOKEN"]}` },
  });
  const text = await inbox.text();
  assert.equal(text.split('"Reminder"').length - 1, 1, text);
});

test("a route with a required scope answers as RFC 6750 says", async () => {
  const { url } = notes;
  const none = await ask(url, "/scoped");
  assert.equal(none.status, 401);
  assert.match(none.headers.get("www-authenticate") ?? "", /^Bearer/);
  const { text: token } = await ask(url, "/token");
  const lacking = await ask(url, "/scoped", { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(lacking.status, 403);
  assert.match(
    lacking.headers.get("www-authenticate") ?? "",
    /error="insufficient_scope", scope="notes:read"/,
  );
  const invalid = await ask(url, "/scoped", { headers: { Authorization: "Bearer x.y.z" } });
  assert.equal(invalid.status, 401);
  assert.match(invalid.headers.get("www-authenticate") ?? "", /error="invalid_token"/);
});

test("a forged sign-in, and a request without a session, are refused", async () => {
  const { url } = notes;
  assert.equal((await ask(url, "/me")).status, 401);
  const forged = await ask(url, "/callback?code=x&state=y");
  assert.equal(forged.status, 400);
  assert.match(forged.text, /expired, or began at another address/);
  assert.equal((await ask(url, "/sign-in?to=//evil.example/")).status, 500);
  const begun = await ask(url, "/sign-in");
  assert.equal(begun.status, 303);
  const [cookie = ""] = begun.headers.getSetCookie();
  assert.match(cookie, /HttpOnly; SameSite=Lax$/);
  const state = new URL(begun.headers.get("location")!).searchParams.get("state")!;
  const Cookie = cookie.split(";")[0]!;
  const guessed = await ask(url, `/callback?code=x&state=${state}`, { headers: { Cookie } });
  assert.ok(guessed.status === 400 || guessed.status === 403, guessed.text);
});

test(
  "a user signs in, is known to the service, and signs out",
  { skip: chromiumSkip },
  async () => {
    const added = run(["user", "add", "ada", "--email", "ada@example.com", "--data", data]);
    assert.equal(await added.exit, 0, added.output().err);
    const { PLATFORM_PASSWORD: password = "" } = parseEnv(added.output().out);
    const { url } = notes;
    const browser: Browser = await startChromium();
    try {
      const page = await browser.newPage();
      await page.goto(`${url}/sign-in`);
      await page.getByLabel("Username").first().fill("ada");
      await page.getByLabel("Password").first().fill(password);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      const allow = page.getByRole("button", { name: "Allow", exact: true });
      const back = page.waitForURL(`${url}/me`);
      await Promise.race([back, allow.waitFor().then(() => allow.click())]);
      await back;
      const user = JSON.parse(await page.locator("body").innerText()) as Record<string, unknown>;
      assert.equal(user["username"], "ada");
      assert.equal(user["email"], "ada@example.com");
      const cookies = await page.context().cookies(url);
      const Cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
      const send = (headers: Record<string, string>) =>
        ask(url, "/me", { method: "POST", headers: { Cookie, ...headers } });
      assert.equal((await send({ "Sec-Fetch-Site": "same-origin" })).status, 200);
      assert.equal((await send({ "Sec-Fetch-Site": "same-site" })).status, 403);
      const changed = Cookie.replace(
        /(session-[0-9a-f]+=v1\.[0-9a-f]+\.)(.)/,
        (_, before: string, first: string) => before + (first === "A" ? "B" : "A"),
      );
      assert.equal((await ask(url, "/me", { headers: { Cookie: changed } })).status, 401);
      await page.goto(`${url}/sign-out`).catch(() => undefined);
      assert.equal((await page.goto(`${url}/me`))?.status(), 401);
    } finally {
      await browser.close();
    }
  },
);

test("without settings, each part names the variables that are missing", async () => {
  const service = makeFolder();
  copyFileSync(new URL("at-hand.service.ts", import.meta.url), join(service, "main.service.ts"));
  const bare = run(["run", join(service, "main.service.ts")], {
    PORT: "0",
    PLATFORM_LOG_FORMAT: "json",
  });
  const port = await bare.waitFor((text) => /"msg":"ready".*"port":(\d+)/.exec(text)?.[1]);
  const url = `http://localhost:${port}`;
  for (const path of ["/objects", "/sign-in", "/token"]) {
    assert.equal((await ask(url, path)).status, 500);
  }
  await ask(url, "/topics/x", post(1));
  await ask(url, "/mail", post({}));
  for (const text of [
    "objects: AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, S3_BUCKET are not set",
    "auth: OIDC_REDIRECT_URL, OIDC_ISSUER",
    "messages: MESSAGING_URL is not set",
    "mail: MAIL_URL is not set",
  ]) {
    await bare.waitFor((out) => (out.includes(text) ? true : undefined));
  }
});

test("the credentials of one application are refused by bucket, topics and client of another", async () => {
  const own = await startService({ ...notes.env, S3_BUCKET: "other" });
  for (const init of [{}, { method: "PUT", headers: TEXT, body: "x" }, { method: "DELETE" }]) {
    assert.equal((await ask(own, "/objects/x", init)).status, 500);
  }
  const { url } = notes;
  assert.equal((await ask(url, "/topics/other.x", post(1))).status, 500);
  const secret = Buffer.from(
    `${otherEnv["OIDC_CLIENT_ID"]}:${notes.env["OIDC_CLIENT_SECRET"]}`,
  ).toString("base64");
  const token = await fetch(notes.env["OIDC_TOKEN_URL"]!, {
    method: "POST",
    headers: { Authorization: `Basic ${secret}` },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  assert.equal(token.status, 401);
});
