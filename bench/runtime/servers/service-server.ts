// `service-server.ts PORT`: the application on the service API.
import { HttpError, route, server } from "@platform/service";

const notes = new Map<string, { id: string; text: string }>();
for (let id = 1; id <= 1_000; id++) notes.set(String(id), { id: String(id), text: `note ${id}` });

route("GET", "/notes/:id", ({ params, query }) => {
  const note = notes.get(params.id);
  if (note === undefined) throw new HttpError(404, "No such note");
  return { ...note, lang: query.get("lang") ?? "en" };
});

route("POST", "/notes", ({ body }) => {
  const { text } = body as { text?: unknown };
  if (typeof text !== "string") throw new HttpError(400, "text must be a string");
  return { id: "1001", text };
});

await server({ port: Number(process.argv[2]), host: "127.0.0.1" }).start();
