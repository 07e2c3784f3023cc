// `hono-server.ts PORT [log]`: the application by hand on Hono and @hono/node-server, optionally with Hono's request log.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { logger } from "hono/logger";

const notes = new Map<string, { id: string; text: string }>();
for (let id = 1; id <= 1_000; id++) notes.set(String(id), { id: String(id), text: `note ${id}` });

const [port, log] = process.argv.slice(2);
const app = new Hono();
if (log === "log") app.use(logger());

app.get("/notes/:id", (c) => {
  const note = notes.get(c.req.param("id"));
  if (note === undefined) return c.json({ error: "No such note" }, 404);
  return c.json({ ...note, lang: c.req.query("lang") ?? "en" });
});

app.post("/notes", async (c) => {
  const { text } = await c.req.json<{ text?: unknown }>();
  if (typeof text !== "string") return c.json({ error: "text must be a string" }, 400);
  return c.json({ id: "1001", text });
});

serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" });
