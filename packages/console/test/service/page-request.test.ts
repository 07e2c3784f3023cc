// Requests with the session's cookie that do not come from the console's page: each is refused.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { startStage, TOKEN } from "../stage.ts";

const FOREIGN: Record<string, Record<string, string | null>> = {
  "a form of another site": { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
  "a page of another port": { origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" },
  "a page without an origin": { origin: "null", "sec-fetch-site": "cross-site" },
  "a sandboxed page": { origin: "null", "sec-fetch-site": "same-origin" },
  "no Origin": { origin: null },
  "an Origin that begins alike": { origin: "http://127.0.0.1.evil.example" },
  "the address bar": { origin: null, "sec-fetch-site": "none" },
};

test("a write of a foreign page does not reach the service", async (t) => {
  const { call, signIn, reached } = await startStage(t);
  const cookie = await signIn();
  for (const [name, headers] of Object.entries(FOREIGN)) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const answer = await call(method, "/api/v1/samples", {}, { ...headers, cookie });
      assert.deepEqual([answer.status, answer.body.reason], [403, "foreign_origin"], name);
    }
  }
  assert.deepEqual(reached, []);
});

test("a read of a foreign page does not reach the service, one from the address bar does", async (t) => {
  const { call, signIn, reached } = await startStage(t);
  const cookie = await signIn();
  for (const site of ["cross-site", "same-site"]) {
    const headers = { cookie, "sec-fetch-site": site };
    const answer = await call("GET", "/api/v1/samples", undefined, headers);
    assert.equal(answer.status, 403, site);
    assert.equal((await call("GET", "/console/session", undefined, headers)).status, 403);
  }
  assert.deepEqual(reached, []);
  const typed = { cookie, "sec-fetch-site": "none" };
  assert.equal((await call("GET", "/api/v1/samples", undefined, typed)).status, 200);
});

test("a foreign page can neither sign in nor sign out", async (t) => {
  const { call, signIn } = await startStage(t);
  const cookie = await signIn();
  for (const [name, headers] of Object.entries(FOREIGN)) {
    if (name === "no Origin") continue;
    const login = await call("POST", "/console/login", { token: TOKEN }, headers);
    assert.equal(login.status, 403, name);
    const logout = await call("POST", "/console/logout", {}, { ...headers, cookie });
    assert.equal(logout.status, 403, name);
  }
  assert.equal((await call("GET", "/console/session", undefined, { cookie })).status, 200);
});

test("bodies that a form can send are refused", async (t) => {
  const { call, signIn } = await startStage(t);
  const cookie = await signIn();
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=a",
    null,
  ]) {
    const headers = { cookie, "content-type": type };
    assert.equal((await call("POST", "/api/v1/samples", "{}", headers)).status, 415, String(type));
  }
  for (const type of ["application/json; charset=utf-8", "application/octet-stream"]) {
    const headers = { cookie, "content-type": type };
    assert.equal((await call("POST", "/api/v1/samples", "{}", headers)).status, 200, type);
  }
});

test("the live feed opens for the page, and not for a foreign one", async (t) => {
  const { url, signIn } = await startStage(t);
  const cookie = await signIn();
  const open = (headers: Record<string, string>) =>
    new WebSocket(`${url.replace("http", "ws")}/console/live`, { headers });
  for (const headers of [
    { cookie },
    { cookie, origin: "https://evil.example" },
    { cookie, origin: url, "sec-fetch-site": "cross-site" },
    { origin: url },
  ]) {
    const socket = open(headers);
    const [error] = (await once(socket, "error")) as [Error];
    assert.match(error.message, /40[13]/, JSON.stringify(headers));
  }
  const socket = open({ cookie, origin: url, "sec-fetch-site": "same-origin" });
  const [data] = (await once(socket, "message")) as [Buffer];
  const hello = JSON.parse(data.toString()) as { type: string; service: string };
  assert.deepEqual([hello.type, hello.service], ["hello", "notify"]);
  const [next] = (await once(socket, "message")) as [Buffer];
  assert.equal((JSON.parse(next.toString()) as { service: string }).service, "notify");
  socket.terminate();
});

test("a configured address is the only origin, whatever the Host says", async (t) => {
  const { call } = await startStage(t, { publicUrl: "https://mail.example.com/some/path" });
  const login = (origin: string, host: string) =>
    call("POST", "/console/login", { token: TOKEN }, { origin, host });
  assert.equal((await login("https://mail.example.com", "10.0.0.1")).status, 200);
  assert.equal((await login("https://evil.example", "evil.example")).status, 403);
  assert.equal((await login("http://mail.example.com", "mail.example.com")).status, 403);
});
