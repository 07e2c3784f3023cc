// Random values of a type of the protocol, made from its shape.
import fc from "fast-check";
import type { WireMessage } from "../../../src/kafka/protocol/message.ts";
import * as messages from "../../../src/kafka/protocol/messages/index.ts";
import type { FieldShape, Shape } from "../../../src/kafka/protocol/schema.ts";

/** A message whose types are not known. */
export type AnyMessage = WireMessage<unknown, unknown, unknown, unknown>;

/** Every message, by name. */
export const allMessages: readonly AnyMessage[] = Object.values(messages).filter(
  (value): value is AnyMessage & typeof value => "request" in value,
);

/** The versions of a message. */
export function versionsOf(message: AnyMessage): number[] {
  const [first, last] = message.versions;
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Values of `shape` as reading gives them in `version`: fields that are not there have their fallback. */
export function valueOf(shape: Shape, version: number, flexible: boolean): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case "int8":
      return fc.integer({ min: -128, max: 127 });
    case "int16":
      return fc.integer({ min: -0x8000, max: 0x7fff });
    case "int32":
      return fc.integer();
    case "int64":
      return fc.maxSafeInteger();
    case "boolean":
      return fc.boolean();
    case "uuid":
      return fc
        .uint8Array({ minLength: 16, maxLength: 16 })
        .map((bytes) => Buffer.from(bytes).toString("hex"));
    case "string": {
      const text = fc.string({ unit: "binary", maxLength: 12 });
      return shape.nullable ? fc.option(text) : text;
    }
    case "bytes": {
      const bytes = fc.uint8Array({ maxLength: 12 }).map((value) => Buffer.from(value));
      return shape.nullable ? fc.option(bytes) : bytes;
    }
    case "records":
      return fc.option(fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value)));
    case "array": {
      const list = fc.array(valueOf(shape.item, version, flexible), { maxLength: 3 });
      return shape.nullable ? fc.option(list) : list;
    }
    case "struct":
      return fc.record(
        Object.fromEntries(
          shape.fields.map((field) => [field.name, fieldOf(field, version, flexible)]),
        ),
        { noNullPrototype: true },
      );
    default:
      return shape satisfies never;
  }
}

function fieldOf(field: FieldShape, version: number, flexible: boolean): fc.Arbitrary<unknown> {
  const isThere = version >= field.since && version <= field.until;
  if (!isThere || (field.tag !== undefined && !flexible)) return fc.constant(field.fallback);
  const value = valueOf(field.shape, version, flexible);
  return field.tag === undefined ? value : fc.oneof(fc.constant(field.fallback), value);
}

/** Input of writing, where records are lists of buffers. */
export function toWritten(shape: Shape, value: unknown): unknown {
  if (value === null || value === undefined) return value;
  if (shape.kind === "records") return [value];
  if (shape.kind === "array")
    return (value as unknown[]).map((item) => toWritten(shape.item, item));
  if (shape.kind !== "struct") return value;
  const given = value as Record<string, unknown>;
  return Object.fromEntries(
    shape.fields.map(({ name, shape: inner, fallback }) => [
      name,
      given[name] === fallback ? fallback : toWritten(inner, given[name]),
    ]),
  );
}
