// Validation by any library that implements Standard Schema: zod, valibot, arktype and others. https://standardschema.dev
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { createValidationError } from "@platform/kernel/http-parts";

/** A schema of any library that implements Standard Schema version 1. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;

/** Type of a value after its validation. */
export type OutputOf<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : never;

/** Part of a request that a schema describes. */
export type ValidatedPart = "path" | "query" | "body";

/**
 * Validates a value and returns the schema's output; a promise only if the schema is asynchronous. Throws
 * `validation_failed` (400), which lists each invalid member.
 */
export function validate(schema: Schema, part: ValidatedPart, value: unknown): unknown {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) return result.then((late) => readResult(late, part));
  return readResult(result, part);
}

/**
 * The JSON Schema of a schema's input, for documentation; undefined if its library cannot express it
 * (https://standardschema.dev/json-schema).
 */
export function toJsonSchema(schema: Schema): Record<string, unknown> | undefined {
  const { jsonSchema } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props>;
  try {
    return jsonSchema?.input({ target: "draft-2020-12" });
  } catch {
    // The libraries throw for types without an equivalent, such as transforms of dates.
    return undefined;
  }
}

/** True if a value is a Standard Schema. */
export function isSchema(value: unknown): value is Schema {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  if (!isObject || !("~standard" in value)) return false;
  const standard = value["~standard"] as Partial<StandardSchemaV1.Props> | null;
  return typeof standard?.validate === "function";
}

function readResult(result: StandardSchemaV1.Result<unknown>, part: ValidatedPart): unknown {
  if (result.issues === undefined) return result.value;
  throw createValidationError(
    result.issues.map(({ message, path }) => ({ in: part, path: formatPath(path), message })),
  );
}

function formatPath(path: StandardSchemaV1.Issue["path"]): string {
  const keys = (path ?? []).map((part) => (typeof part === "object" ? part.key : part));
  return keys.map(String).join(".");
}
