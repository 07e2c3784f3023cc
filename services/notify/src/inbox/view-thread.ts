// A thread that parses one message.
import { parentPort } from "node:worker_threads";
import { parseMail, renderView } from "./parse.ts";

/** A message to parse or to render. */
export interface ViewJob {
  kind: "parse" | "render";
  content: Uint8Array;
}

/** The parsed message, its HTML, or the reason why there is none. */
export type ViewReply = { ok: true; value: unknown } | { ok: false; message: string };

parentPort?.once("message", ({ kind, content }: ViewJob) => {
  void read(kind, content).then((reply) => parentPort?.postMessage(reply));
});

async function read(kind: ViewJob["kind"], content: Uint8Array): Promise<ViewReply> {
  try {
    const value = kind === "parse" ? await parseMail(content) : await renderView(content);
    return { ok: true, value };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}
