// Checked answers: one that differs from its schema fails the request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { HealthRegistry } from "@platform/kernel/health";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";

process.env["PLATFORM_CHECK_ANSWERS"] = "true";
const { createApi, defineRoute, StatusAnswer } = await import("@platform/kernel/http");

const noteAnswer = z.object({ id: z.string(), tags: z.array(z.string()).optional() });

async function ask(note: unknown): Promise<{ status: number; logged: string[] }> {
  const logged: string[] = [];
  const resource = { service: "notes", version: "1" };
  const api = createApi({
    ...resource,
    routes: [
      defineRoute({
        method: "GET",
        path: "/api/v1/note",
        summary: "A note",
        access: "public",
        status: [200, 202],
        answer: noteAnswer,
        handle: () => note as z.input<typeof noteAnswer>,
      }),
    ],
    guard: () => ({ kind: "anonymous" }),
    health: new HealthRegistry(resource),
    metrics: new MetricRegistry(),
    logger: createLogger({ ...resource, format: "json", write: (line) => void logged.push(line) }),
    tracer: createTracer({ ids: createIdSource(), clock: systemClock }),
    clock: systemClock,
  });
  const { status } = await api.fetch(new Request("http://localhost/api/v1/note"));
  return { status, logged };
}

test("answers that match their schema are sent", async () => {
  for (const note of [{ id: "1" }, { id: "1", tags: ["a"] }, { id: "1", tags: undefined }]) {
    assert.equal((await ask(note)).status, 200);
  }
  assert.equal((await ask(new StatusAnswer(202, { id: "1" }))).status, 202);
});

test("answers with a missing, a wrong or an undeclared member fail, and the log names it", async () => {
  for (const [note, fault] of [
    [{}, /at id/],
    [{ id: 1 }, /at id/],
    [{ id: "1", owner: "ada" }, /\.owner is not declared/],
    [new StatusAnswer(202, { id: "1", owner: "ada" }), /\.owner is not declared/],
  ] as const) {
    const { status, logged } = await ask(note);
    assert.equal(status, 500);
    assert.match(logged.join("\n"), fault);
  }
});
