// The figures and conditions of the dashboard, from the messages of the live feed.
import { z } from "zod";

/** Points of a trace. */
const TRACE_POINTS = 60;
const ITEMS_MAX = 100;
const TEXT_MAX = 500;

// A terminal would execute control characters.
const text = z.string().transform((value) => value.replaceAll(/\p{C}/gu, " ").slice(0, TEXT_MAX));
const itemSchema = z.object({
  id: z.string(),
  level: text,
  title: text,
  detail: text,
  since: text,
});
const valuesSchema = z.record(z.string(), z.number().nullable());
const messageSchema = z.union([
  z.object({
    type: z.literal("hello"),
    version: text,
    values: valuesSchema,
    attention: z.array(itemSchema),
  }),
  z.object({ type: z.literal("figures"), values: valuesSchema }),
  z.object({ type: z.literal("attention"), items: z.array(itemSchema) }),
]);

/** A condition that needs an operator. */
export type AttentionLine = z.infer<typeof itemSchema>;

/** The current figures, bounded however long the dashboard runs. */
export class LiveState {
  version = "";
  attention: readonly AttentionLine[] = [];
  /** Updates received. */
  updates = 0;
  #values: Readonly<Record<string, number | null>> = {};
  readonly #requests: number[] = [];

  /** Takes a message; returns true if it is an update of the figures. Unknown messages are ignored. */
  take(data: string): boolean {
    const message = messageSchema.safeParse(parseJson(data)).data;
    if (message === undefined) return false;
    if (message.type === "attention") {
      this.attention = message.items.slice(0, ITEMS_MAX);
      return false;
    }
    this.#values = message.values;
    if (message.type === "hello") {
      this.version = message.version;
      this.attention = message.attention.slice(0, ITEMS_MAX);
      return false;
    }
    this.updates += 1;
    this.#requests.push(this.read("requests") ?? 0);
    if (this.#requests.length > TRACE_POINTS) this.#requests.shift();
    return true;
  }

  /** A figure; undefined if there is no sample. */
  read(name: string): number | undefined {
    return this.#values[name] ?? undefined;
  }

  /** Requests per second of the last minute, oldest first. */
  get trace(): readonly number[] {
    return this.#requests;
  }
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
