// A thread that renders templates whose rendering takes long.
import { parentPort } from "node:worker_threads";
import type { TemplatePlace } from "./engine.ts";
import {
  JobRenderer,
  PartError,
  type Part,
  type RenderJob,
  type RenderResult,
} from "./render-job.ts";

/** Time for all parts of a template. */
const RENDER_MS = 1_000;

/** The reply to a job. */
export type RenderReply =
  | ({ kind: "rendered" } & RenderResult)
  | {
      kind: "failed";
      part: Part;
      reason: "syntax" | "render" | "limit";
      message: string;
      place: TemplatePlace | undefined;
    }
  | { kind: "broken"; message: string };

const renderer = new JobRenderer();
parentPort?.on("message", (job: RenderJob) => parentPort?.postMessage(render(job)));

function render(job: RenderJob): RenderReply {
  try {
    const limits = { ms: RENDER_MS, plainTextCharacters: Number.POSITIVE_INFINITY };
    const paths = job.findsVariables === true ? renderer.findVariables(job) : [];
    return { kind: "rendered", ...renderer.render(job, limits), paths };
  } catch (error) {
    if (!(error instanceof PartError)) return { kind: "broken", message: String(error) };
    const { part, cause } = error;
    return { kind: "failed", part, reason: cause.kind, message: cause.message, place: cause.place };
  }
}
