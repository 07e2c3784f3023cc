// Spans that the processes of projects report, by project.
import type { KeptSpan } from "@platform/kernel/feeds";
import { SpanKeeper, type FinishedSpan } from "@platform/kernel/trace";
import { z } from "zod";

const PROJECTS_MAX = 64;
const TEXT_MAX = 4_096;
const text = z.string().max(TEXT_MAX);
const attribute = z.tuple([text, z.union([text, z.number(), z.boolean(), z.array(text).max(64)])]);

/** A message is of the code of a project, which may send anything. */
const messageSchema = z.object({
  spans: z
    .array(
      z.object({
        traceId: z.string().regex(/^[0-9a-f]{32}$/),
        spanId: z.string().regex(/^[0-9a-f]{16}$/),
        parentSpanId: z.string().regex(/^(?:[0-9a-f]{16})?$/),
        name: text,
        kind: z.enum(["internal", "server", "client", "producer", "consumer"]),
        startMs: z.number(),
        endMs: z.number(),
        status: z.enum(["unset", "ok", "error"]),
        statusMessage: text,
        attributes: z.array(attribute).max(64),
        events: z.array(z.object({ name: text, atMs: z.number() })).max(64),
      }),
    )
    .max(256),
});

/** The spans of all projects, at most 1 MiB of each. */
export class ProjectSpans {
  readonly #readMonotonicMs: () => number;
  readonly #keepers = new Map<string, SpanKeeper>();

  constructor(readMonotonicMs: () => number) {
    this.#readMonotonicMs = readMonotonicMs;
  }

  /** Adds the spans of a message; one that is not of the form is ignored. */
  note(project: string, message: unknown): void {
    const { data } = messageSchema.safeParse(message);
    if (data === undefined) return;
    const keeper = this.#open(project);
    for (const { traceId, spanId, attributes, events, ...span } of data.spans) {
      keeper.export({
        ...span,
        context: { traceId, spanId, sampled: true, traceState: "" },
        attributes: new Map(attributes),
        attributesDropped: 0,
        events: events.map((event) => ({ ...event, attributes: {} })),
      } satisfies FinishedSpan);
    }
  }

  /** The spans of a trace, of all projects. */
  find(traceId: string): KeptSpan[] {
    return [...this.#keepers].flatMap(([service, keeper]) =>
      keeper.find(traceId).map((span) => ({ service, span })),
    );
  }

  #open(project: string): SpanKeeper {
    const known = this.#keepers.get(project);
    if (known !== undefined) return known;
    const [oldest] = this.#keepers.keys();
    if (this.#keepers.size >= PROJECTS_MAX) this.#keepers.delete(oldest!);
    const keeper = new SpanKeeper({ readMonotonicMs: this.#readMonotonicMs });
    this.#keepers.set(project, keeper);
    return keeper;
  }
}
