// Conversions of single values of a JSON payload to another type, without loss.
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import { patchPayload, readValue, type Json, type JsonPatch } from "./json-patch.ts";

const CONVERSIONS_MAX = 100;
const POINTER_CHARACTERS_MAX = 1_024;

/** Types to which a value can be converted. */
export const CONVERTED_TYPES = ["string", "number", "integer", "boolean"] as const;
export type ConvertedType = (typeof CONVERTED_TYPES)[number];

/** Conversions in a request; `path` is a JSON Pointer (RFC 6901). */
export const conversionsSchema = z
  .array(
    z.strictObject({
      path: z.string().max(POINTER_CHARACTERS_MAX),
      to: z.enum(CONVERTED_TYPES),
    }),
  )
  .max(CONVERSIONS_MAX);
type Conversions = z.output<typeof conversionsSchema>;

/** Changes to the payload of a dead letter: conversions first. */
export interface LetterChange {
  readonly convert?: Conversions | undefined;
  readonly patch?: JsonPatch | undefined;
}

/** Applies a change; undefined if there is none. Throws `unprocessable` with the step that failed. */
export function changePayload(
  payload: Buffer,
  { convert = [], patch }: LetterChange,
): Buffer | undefined {
  const converted = convert.length === 0 ? payload : convertPayload(payload, convert);
  if (patch !== undefined) return patchPayload(converted, patch);
  return convert.length === 0 ? undefined : converted;
}

function convertPayload(payload: Buffer, conversions: Conversions): Buffer {
  // Each conversion is a replacement by what is there, in another type.
  let changed = payload;
  for (const { path, to } of conversions) {
    const value = readValue(changed, path);
    const converted = value === undefined ? undefined : convertValue(value, to);
    if (converted === undefined) {
      const reason = value === undefined ? "does not exist" : `is not ${to} in another form`;
      throw new PlatformError("unprocessable", `The value at ${path || "the root"} ${reason}.`);
    }
    changed = patchPayload(changed, [{ op: "replace", path, value: converted }]);
  }
  return changed;
}

/** The value in another type; undefined if something would be lost: `"12"` is 12, `"12a"` and `"1e400"` are no numbers. */
export function convertValue(value: Json, to: ConvertedType): Json | undefined {
  switch (to) {
    case "string":
      return typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : asIs(value, to);
    case "boolean":
      return value === "true" ? true : value === "false" ? false : asIs(value, to);
    case "number":
    case "integer": {
      const number =
        typeof value === "string" && String(Number(value)) === value ? Number(value) : value;
      if (typeof number !== "number" || !Number.isFinite(number)) return undefined;
      return to === "number" || Number.isSafeInteger(number) ? number : undefined;
    }
    default:
      return to satisfies never;
  }
}

function asIs(value: Json, type: "string" | "boolean"): Json | undefined {
  return typeof value === type ? value : undefined;
}
