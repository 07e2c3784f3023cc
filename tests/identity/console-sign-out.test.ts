// Sign-in and sign-out of the platform's console at the real identity service.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Browser } from "@platform/testing/browser";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";

const ADMIN = { username: "root", password: "correct horse battery staple" };

test("signing out of the console ends the session at identity with one click", async () => {
  const flags = ["--json", "--data", makeFolder(), "--only", "identity,gateway", ...anyPort];
  const up = run(["up", ...flags], {
    PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
    PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
  });
  const started = await up.waitFor(findStarted);
  const { port } = find(started, "gate").listeners.find(({ name }) => name === "console")!;
  const origin = `http://localhost:${port}`;
  const browser = new Browser();
  const start = new URL("/console/oidc/start?to=/ui/identity/users", origin);
  const isBack = (url: URL): boolean => url.origin === origin && url.pathname.startsWith("/ui/");

  const form = await browser.open(start);
  assert.match(form.text, /name="password"/);
  // The page begins with a form for passkeys.
  const begin = form.text.lastIndexOf("<form", form.text.indexOf('name="password"'));
  const passwordForm = { ...form, text: form.text.slice(begin) };
  const signedIn = await browser.submit(passwordForm, ADMIN, isBack);
  // The answer of a form may not lead to another origin: the page does.
  const next = /http-equiv="refresh" content="0; ?url=([^"]+)"/.exec(signedIn.text)?.[1] ?? "";
  const onward = new URL(next.replaceAll("&amp;", "&"), signedIn.url);
  const inside = await browser.open(onward, isBack);
  assert.equal(inside.url.pathname, "/ui/identity/users");
  const again = await browser.open(start, isBack);
  assert.equal(again.url.pathname, "/ui/identity/users", "identity remembers the user");

  const answer = await browser.call(new URL("/console/logout", origin));
  assert.equal(answer.status, 200);
  const { end_session_url: leave } = (await answer.json()) as { end_session_url: string };
  const hint = new URL(leave).searchParams.get("id_token_hint")!;
  const claims = JSON.parse(Buffer.from(hint.split(".")[1]!, "base64url").toString());
  assert.match(String(claims.sid), /^.{16,}$/, "the ID token names the session");
  const out = await browser.open(leave, isBack);
  assert.equal(out.url.href, `${origin}/ui/sign-in`, "without a page of identity");
  const afterwards = await browser.open(start);
  assert.match(afterwards.text, /name="password"/, "identity asks for the password again");

  const { out: log, err } = up.output();
  assert.ok(!`${log}${err}`.includes(hint));
  up.child.kill("SIGTERM");
  await up.exit;
});
