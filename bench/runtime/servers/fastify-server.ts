// `fastify-server.ts PORT`: the application on Fastify.
import fastify from "fastify";

const notes = new Map<string, { id: string; text: string }>();
for (let id = 1; id <= 1_000; id++) notes.set(String(id), { id: String(id), text: `note ${id}` });

const app = fastify({ logger: false });

app.get<{ Params: { id: string }; Querystring: { lang?: string } }>(
  "/notes/:id",
  ({ params, query }, reply) => {
    const note = notes.get(params.id);
    if (note === undefined) return reply.status(404).send({ error: "No such note" });
    return reply.send({ ...note, lang: query.lang ?? "en" });
  },
);

app.post<{ Body: { text?: unknown } }>("/notes", ({ body: { text } }, reply) => {
  if (typeof text !== "string") {
    return reply.status(400).send({ error: "text must be a string" });
  }
  return reply.send({ id: "1001", text });
});

await app.listen({ host: "127.0.0.1", port: Number(process.argv[2]) });
