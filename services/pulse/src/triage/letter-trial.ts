// Tries what a dead letter's payload would do today: the topic's schema, then its transform in the sandbox.
import { toPlatformError } from "@platform/kernel/errors";
import { changePayload, type LetterChange } from "../deadletter/convert.ts";
import type { Breach, CompiledSchema } from "../schema/schema.ts";
import type { TransformResult } from "../transform/transforms.ts";

/** Result of a trial. */
export type TrialResult =
  | { kind: "passes" }
  /** The change cannot be applied. */
  | { kind: "change"; reason: string }
  | { kind: "schema"; breaches: readonly Breach[] }
  | { kind: "transform"; reason: string };

/** A letter that is tried. */
export interface TriedLetter {
  readonly messageId: string;
  readonly payload: Buffer;
  /** As it was written, with the numbers that its cause leaves out. */
  readonly reason: string;
}

/** Tries and passes of a cluster, and examples. */
export interface Evidence {
  tried: number;
  pass: number;
  fail: number;
  examples: { message_id: string; result: string }[];
}

const EXAMPLES_MAX = 3;

/** Tries payloads of one topic against its rules of this moment. */
export class LetterTrial {
  readonly #schema: CompiledSchema | undefined;
  readonly #transform: ((payload: Buffer) => Promise<TransformResult>) | undefined;
  readonly #endsMs: number;

  /** `endsMs`: `performance.now()` after which no further letter is tried. */
  constructor(
    schema: CompiledSchema | undefined,
    transform: ((payload: Buffer) => Promise<TransformResult>) | undefined,
    endsMs: number,
  ) {
    this.#schema = schema;
    this.#transform = transform;
    this.#endsMs = endsMs;
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsMs;
  }

  get schema(): CompiledSchema | undefined {
    return this.#schema;
  }

  /** The same trial with another schema. */
  withSchema(schema: CompiledSchema): LetterTrial {
    return new LetterTrial(schema, this.#transform, this.#endsMs);
  }

  async run(payload: Buffer, change: LetterChange = {}): Promise<TrialResult> {
    let changed: Buffer;
    try {
      changed = changePayload(payload, change) ?? payload;
    } catch (error) {
      return { kind: "change", reason: toPlatformError(error).detail };
    }
    const breaches = this.#schema === undefined ? [] : explainPayload(this.#schema, changed);
    if (breaches.length > 0) return { kind: "schema", breaches };
    const result = await this.#transform?.(changed);
    return result?.kind === "failed"
      ? { kind: "transform", reason: result.reason }
      : { kind: "passes" };
  }

  /** Tries the letters in their order until the time is over, at least one. */
  async runAll(
    letters: readonly TriedLetter[],
    change?: LetterChange,
  ): Promise<{ results: TrialResult[]; evidence: Evidence }> {
    const results: TrialResult[] = [];
    const evidence: Evidence = { tried: 0, pass: 0, fail: 0, examples: [] };
    for (const { messageId, payload } of letters) {
      if (results.length > 0 && this.isOver) break;
      const result = await this.run(payload, change);
      results.push(result);
      evidence.tried++;
      if (result.kind === "passes") evidence.pass++;
      else evidence.fail++;
      if (evidence.examples.length < EXAMPLES_MAX) {
        evidence.examples.push({ message_id: messageId, result: describe(result) });
      }
    }
    return { results, evidence };
  }
}

/** Share of passes, drawn towards a half while few letters were tried. */
export function toConfidence({ pass, tried }: Evidence): number {
  return Math.round(((pass + 1) / (tried + 2)) * 1_000) / 1_000;
}

function describe(result: TrialResult): string {
  switch (result.kind) {
    case "passes":
      return "passes";
    case "schema": {
      const [{ pointer, keyword }] = result.breaches as [Breach];
      return `breaks ${keyword} at ${pointer || "the root"}`;
    }
    case "change":
    case "transform":
      return result.reason;
    default:
      return result satisfies never;
  }
}

function explainPayload(schema: CompiledSchema, payload: Buffer): readonly Breach[] {
  try {
    return schema.explain(JSON.parse(payload.toString("utf8")));
  } catch {
    return [{ pointer: "", keyword: "json", schemaPointer: "" }];
  }
}
