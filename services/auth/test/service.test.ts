// The service as a whole: start, probes, secrets, restart.
import assert from "node:assert/strict";
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { STAGE_KINDS, startStage } from "./stage.ts";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`the service on ${kind}`, { skip }, () => {
    test("answers probes, serves metrics locally, and restarts on its database", async () => {
      const settings = await prepare();
      for (let start = 0; start < 2; start += 1) {
        const stage = await startStage(settings);
        const ready = await fetch(`${stage.url}/readyz`);
        assert.equal(ready.status, 200);
        assert.equal(((await ready.json()) as { service: string }).service, "auth");
        const metrics = await fetch(`${stage.url}/metrics`);
        const text = await metrics.text();
        assert.match(text, /platform_http_requests_total\{route="\/readyz"/);
        assert.match(text, /^platform_auth_sessions_active 0$/m);
        assert.match(text, /^platform_auth_key_age_seconds \d/m);
        const missing = await fetch(`${stage.url}/nothing`);
        assert.equal(missing.status, 404);
        assert.equal(missing.headers.get("content-type"), "application/problem+json");
        await stage.close();
      }
    });

    test("requests of the OAuth endpoints are measured, traced and logged like all others", async () => {
      const stage = await startStage(await prepare());
      const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
      for (const path of ["/api/v1/auth/token", "/api/v1/auth/oauth/register/some-client"]) {
        const answer = await fetch(`${stage.url}${path}`, {
          headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
        });
        await answer.text();
      }
      const metrics = await (await fetch(`${stage.url}/metrics`)).text();
      assert.match(
        metrics,
        /_requests_total\{route="\/api\/v1\/auth\/token",method="GET",status="405"\} 1/,
      );
      assert.match(metrics, /_requests_total\{route="\/api\/v1\/auth\/oauth\/register\/\{id\}"/);
      assert.ok(!metrics.includes("some-client"));
      const lines = stage.log.filter((line) => line.includes(`"route":"/api/v1/auth/token"`));
      assert.equal(lines.length, 1);
      const line = JSON.parse(lines[0]!) as Record<string, unknown>;
      assert.deepEqual([line["trace_id"], line["status"]], [traceId, 405]);
      await stage.close();
    });

    test("metrics are not shown to a browser page or through a proxy", async () => {
      const stage = await startStage(await prepare());
      for (const headers of [
        { Origin: "https://evil.example" },
        { "X-Forwarded-For": "1.2.3.4" },
      ]) {
        assert.equal((await fetch(`${stage.url}/metrics`, { headers })).status, 401);
      }
      await stage.close();
    });
  });
}

test("generated secrets are readable by their owner only, and a damaged or lost file fails the start", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  await (await startStage(settings)).close();
  const path = join(String(settings["data_dir"]), "secrets.json");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  writeFileSync(path, "{}");
  await assert.rejects(startStage(settings), /secrets\.json is damaged/);
  rmSync(path);
  await assert.rejects(startStage(settings), /secrets\.json is missing/);
  assert.ok(!existsSync(path), "no other secrets take the place of the lost ones");
});

test("weak secrets fail the start and are named", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  for (const secret of ["short", "hex:zz", "base64:aGVsbG8="]) {
    await assert.rejects(
      startStage({ ...settings, session_secret: secret }),
      /PLATFORM_AUTH_SESSION_SECRET: at least 32 bytes/,
    );
  }
  await assert.rejects(
    startStage({ ...settings, encryption_keys: `hex:${"aa".repeat(32)},hex:00` }),
    /PLATFORM_AUTH_ENCRYPTION_KEYS: each key must have 32 bytes/,
  );
});

test("unknown paths return a page to browsers and a problem document to programs", async () => {
  const stage = await startStage(await STAGE_KINDS[0]!.prepare());
  const ask = (path: string, accept: string) => fetch(stage.url + path, { headers: { accept } });
  const html = "text/html,application/xhtml+xml,*/*;q=0.8";
  for (const path of ["/nothing", "/account/nothing/at/all", "/favicon.ico"]) {
    const page = await ask(path, html);
    assert.equal(page.status, 404);
    assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
    assert.match(await page.text(), /<html lang="en"/);
    const problem = await ask(path, "*/*");
    assert.equal(problem.status, 404);
    assert.equal(problem.headers.get("content-type"), "application/problem+json");
  }
  const api = await ask("/api/v1/nothing", html);
  assert.equal(api.headers.get("content-type"), "application/problem+json");
  assert.equal((await ask("/healthz", html)).status, 200);
  const dead = await ask("/setup?token=dead", html);
  assert.equal(dead.status, 403);
  const text = await dead.text();
  assert.equal(dead.headers.get("content-type"), "text/html; charset=utf-8");
  assert.ok(!text.includes('name="password"'), "no form that leads nowhere");
  await stage.close();
});

test("only an https public URL sets Strict-Transport-Security, on every response", async () => {
  for (const [publicUrl, expected] of [
    ["https://id.example", "max-age=31536000"],
    [undefined, null],
  ] as const) {
    const settings = await STAGE_KINDS[0]!.prepare();
    const stage = await startStage({
      ...settings,
      ...(publicUrl === undefined ? {} : { public_url: publicUrl }),
    });
    for (const path of ["/healthz", "/sign-in", "/nothing", "/.well-known/openid-configuration"]) {
      const answer = await fetch(stage.url + path);
      assert.equal(answer.headers.get("strict-transport-security"), expected, path);
    }
    await stage.close();
  }
});
