import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestService } from "@platform/service/testing";
import { readNote } from "./read-note.ts";
import "./main.service.ts";

const app = await startTestService({ fakes: true });
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

test("a note has its file, its owner only reads it, and its reminder is one mail", async () => {
  const ada = app.as({ id: "ada", email: "ada@example.com" });
  const post = (path: string, body: object): Promise<Response> =>
    ada.fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  const { key, url } = (await (await post("/api/uploads", {})).json()) as Record<string, string>;
  assert.equal((await fetch(url!, { method: "PUT", body: "a plan" })).status, 200);
  const note = { text: "water the plants", file: { key, name: "plan.txt" }, remindAt: Date.now() };
  const added = await post("/api/notes", note);
  assert.equal(added.status, 201);
  const { id } = (await added.json()) as { id: number };
  const link = (await ada.fetch(`/api/notes/${id}/file`)).headers.get("location")!;
  assert.equal(await (await fetch(link)).text(), "a plan");
  assert.equal((await app.as({ id: "eve" }).fetch(`/api/notes/${id}/file`)).status, 404);

  await app.clock.advance(5_000);
  await app.clock.advance(5_000);
  assert.deepEqual(
    app.mail.sent.map(({ to, subject }) => [to, subject]),
    [[["ada@example.com"], "Reminder: water the plants"]],
  );
});
