import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestService } from "@platform/service/testing";
import { readNote } from "./read-note.ts";
import "./main.service.ts";

const app = await startTestService({
  env: {
    OIDC_ISSUER: "http://localhost:1",
    OIDC_CLIENT_ID: "notes",
    OIDC_CLIENT_SECRET: "a secret of this test",
    OIDC_REDIRECT_URL: "http://localhost:3000/callback",
  },
});
after(() => app.stop());

test("the page and its assets are served to everyone", async () => {
  const page = await app.fetch("/");
  assert.match(await page.text(), /<title>Notes<\/title>/);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'self'/);
  assert.equal((await app.fetch("/assets/app.js")).status, 200);
});

for (const path of ["/api/me", "/api/notes", "/api/events", "/api/notes/1/file"]) {
  test(`${path} requires a session`, async () => {
    assert.equal((await app.fetch(path)).status, 401);
  });
}

test("a note has a text, a file of the same user, and a time", () => {
  const note = { text: " water the plants ", file: { key: "ada/1", name: "a.txt" }, remindAt: 5 };
  assert.deepEqual(readNote(note, "ada"), { ...note, text: "water the plants" });
  for (const wrong of [
    undefined,
    { text: " " },
    { text: "x", remindAt: "soon" },
    { text: "x", file: { key: "eve/1", name: "a.txt" } },
  ]) {
    assert.throws(() => readNote(wrong, "ada"), { status: 400 });
  }
});
