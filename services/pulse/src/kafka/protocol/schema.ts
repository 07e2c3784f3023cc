// The schema language of the message files: primitive types, arrays, structs with version ranges.
import { ProtocolError } from "./error.ts";
import type { Reader } from "./reader.ts";
import { Writer } from "./writer.ts";

/**
 * A type of the protocol: reads and writes its values. `T` is the result of reading, `I` the input of writing (fields
 * with a fallback are optional there). Reader and writer know whether the encoding is classic or flexible; the version
 * decides which fields exist.
 */
export interface Type<T, I = T> {
  read(reader: Reader, version: number): T;
  write(writer: Writer, value: I, version: number): void;
  /** The structure, for code that walks through a message. */
  readonly shape: Shape;
}

/** The structure of a type. */
export type Shape =
  | { kind: "int8" | "int16" | "int32" | "int64" | "boolean" | "uuid" }
  | { kind: "string" | "bytes"; nullable: boolean }
  | { kind: "records" }
  | { kind: "array"; nullable: boolean; item: Shape }
  | { kind: "struct"; fields: readonly FieldShape[] };

/** A field of a struct: the versions that have it, and its value in the others. */
export interface FieldShape {
  name: string;
  since: number;
  until: number;
  /** The number of a tagged field (KIP-482). */
  tag: number | undefined;
  fallback: unknown;
  shape: Shape;
}

/** A field that is not in every version, or is tagged; without it, reading returns `fallback`. */
export interface Field<T, I = T> {
  type: Type<T, I>;
  since: number;
  until: number;
  tag: number | undefined;
  fallback: T;
}

/** The result of reading a type. */
export type Read<D> = D extends Type<infer T, infer _I> ? T : never;
/** The input of writing a type. */
export type Written<D> = D extends Type<infer _T, infer I> ? I : never;

export const int8: Type<number> = {
  read: (reader) => reader.readInt8(),
  write: (writer, value) => writer.writeInt8(value),
  shape: { kind: "int8" },
};
export const int16: Type<number> = {
  read: (reader) => reader.readInt16(),
  write: (writer, value) => writer.writeInt16(value),
  shape: { kind: "int16" },
};
export const int32: Type<number> = {
  read: (reader) => reader.readInt32(),
  write: (writer, value) => writer.writeInt32(value),
  shape: { kind: "int32" },
};
export const int64: Type<number> = {
  read: (reader) => reader.readInt64(),
  write: (writer, value) => writer.writeInt64(value),
  shape: { kind: "int64" },
};
export const boolean: Type<boolean> = {
  read: (reader) => reader.readBoolean(),
  write: (writer, value) => writer.writeBoolean(value),
  shape: { kind: "boolean" },
};
/** 32 hexadecimal digits. */
export const uuid: Type<string> = {
  read: (reader) => reader.readUuid(),
  write: (writer, value) => writer.writeUuid(value),
  shape: { kind: "uuid" },
};
/** The null UUID. */
export const UUID_ZERO = "0".repeat(32);
export const string: Type<string> = {
  read: (reader) => reader.readString(),
  write: (writer, value) => writer.writeNullableString(value),
  shape: { kind: "string", nullable: false },
};
export const nullableString: Type<string | null> = {
  read: (reader) => reader.readNullableString(),
  write: (writer, value) => writer.writeNullableString(value),
  shape: { kind: "string", nullable: true },
};
export const bytes: Type<Buffer> = {
  read: (reader) => reader.readBytes(),
  write: (writer, value) => writer.writeNullableBytes(value),
  shape: { kind: "bytes", nullable: false },
};
/** Record batches: read as one view, written from any number of buffers without copying. */
export const records: Type<Buffer | null, readonly Buffer[] | null> = {
  read: (reader) => reader.readNullableBytes(),
  write: (writer, value) => writer.writeRecords(value),
  shape: { kind: "records" },
};

/** An array that may not be null. */
export function array<T, I>(item: Type<T, I>): Type<T[], readonly I[]> {
  const nullable = nullableArray(item);
  return {
    read: (reader, version) => {
      const values = nullable.read(reader, version);
      if (values === null) throw new ProtocolError("an array is null");
      return values;
    },
    write: (writer, values, version) => nullable.write(writer, values, version),
    shape: { kind: "array", nullable: false, item: item.shape },
  };
}

/** An array or null. */
export function nullableArray<T, I>(item: Type<T, I>): Type<T[] | null, readonly I[] | null> {
  return {
    read: (reader, version) => {
      const length = reader.readArrayLength();
      if (length === -1) return null;
      const values: T[] = [];
      for (let index = 0; index < length; index++) values.push(item.read(reader, version));
      return values;
    },
    write: (writer, values, version) => {
      writer.writeArrayLength(values === null ? -1 : values.length);
      for (const value of values ?? []) item.write(writer, value, version);
    },
    shape: { kind: "array", nullable: true, item: item.shape },
  };
}

/** A field that exists from version `since` on. */
export function from<T, I>(since: number, type: Type<T, I>, fallback: T): Field<T, I> {
  return between(since, Infinity, type, fallback);
}

/** A field that exists up to and including version `until`. */
export function until<T, I>(last: number, type: Type<T, I>, fallback: T): Field<T, I> {
  return between(0, last, type, fallback);
}

/** A field that exists from version `since` up to and including version `last`. */
export function between<T, I>(
  since: number,
  last: number,
  type: Type<T, I>,
  fallback: T,
): Field<T, I> {
  return { type, since, until: last, tag: undefined, fallback };
}

/** A tagged field (KIP-482) from version `since` on; omitted if it equals its fallback. */
export function tagged<T, I, F>(
  tag: number,
  since: number,
  type: Type<T, I>,
  fallback: F,
): Field<T | F, I | F> {
  return { type, since, until: Infinity, tag, fallback };
}

type Fields = Record<string, Type<never, never> | Field<never, never>>;
type AnyFields = { [K in string]: Type<unknown, never> | Field<unknown, never> };
type ReadFields<F> = {
  -readonly [K in keyof F]: F[K] extends Field<infer T, infer _I>
    ? T
    : F[K] extends Type<infer T, infer _I>
      ? T
      : never;
};
type OptionalKeys<F> = { [K in keyof F]: F[K] extends { fallback: unknown } ? K : never }[keyof F];
type WrittenField<D> =
  D extends Field<infer _T, infer I> ? I : D extends Type<infer _U, infer J> ? J : never;
type WrittenFields<F> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: WrittenField<F[K]>;
} & {
  readonly [K in OptionalKeys<F>]?: WrittenField<F[K]> | undefined;
};

interface Slot {
  name: string;
  type: Type<unknown, unknown>;
  since: number;
  until: number;
  tag: number | undefined;
  fallback: unknown;
}

/**
 * A struct: its fields in the order of the wire. In flexible versions a buffer of tagged fields
 * follows; unknown tags are skipped.
 *
 * ```ts
 * const heartbeatRequest = struct({
 *   groupId: string,
 *   groupInstanceId: from(3, nullableString, null),
 * });
 * ```
 */
export function struct<const F extends AnyFields | Fields>(
  fields: F,
): Type<ReadFields<F>, WrittenFields<F>> {
  const slots = Object.entries(fields).map(([name, field]) => toSlot(name, field));
  const plain = slots.filter((slot) => slot.tag === undefined);
  const withTag = slots
    .filter((slot) => slot.tag !== undefined)
    .sort((one, other) => one.tag! - other.tag!);
  return {
    read: (reader, version) => {
      const value: Record<string, unknown> = {};
      // All fields are set in a fixed order, so that all values of a struct have the same shape.
      for (const slot of plain) {
        const isThere = version >= slot.since && version <= slot.until;
        value[slot.name] = isThere ? slot.type.read(reader, version) : slot.fallback;
      }
      for (const slot of withTag) value[slot.name] = slot.fallback;
      if (reader.flexible) readTags(reader, version, withTag, value);
      return value as ReadFields<F>;
    },
    write: (writer, value, version) => {
      const values = value as Record<string, unknown>;
      for (const slot of plain) {
        if (version < slot.since || version > slot.until) continue;
        const given = values[slot.name];
        slot.type.write(writer, given === undefined ? toWritten(slot) : given, version);
      }
      if (writer.flexible) writeTags(writer, version, withTag, values);
    },
    shape: {
      kind: "struct",
      fields: slots.map(({ type, ...rest }) => ({ ...rest, shape: type.shape })),
    },
  };
}

function toSlot(name: string, field: unknown): Slot {
  if ("fallback" in (field as object)) return { name, ...(field as Field<unknown>) };
  const type = field as Type<unknown>;
  return { name, type, since: 0, until: Infinity, tag: undefined, fallback: undefined };
}

function toWritten(slot: Slot): unknown {
  return slot.type.shape.kind === "records" && slot.fallback !== null ? [] : slot.fallback;
}

function readTags(
  reader: Reader,
  version: number,
  known: readonly Slot[],
  value: Record<string, unknown>,
): void {
  const count = reader.readUnsignedVarint();
  let last = -1;
  for (let index = 0; index < count; index++) {
    const tag = reader.readUnsignedVarint();
    if (tag <= last) throw new ProtocolError("tagged fields are not in ascending order");
    last = tag;
    const content = reader.readSlice(reader.readUnsignedVarint());
    const slot = known.find((candidate) => candidate.tag === tag && version >= candidate.since);
    if (slot === undefined) continue;
    value[slot.name] = slot.type.read(content, version);
    content.expectEnd();
  }
}

function writeTags(
  writer: Writer,
  version: number,
  known: readonly Slot[],
  values: Record<string, unknown>,
): void {
  const given = known.filter((slot) => {
    const value = values[slot.name];
    return version >= slot.since && value !== undefined && value !== slot.fallback;
  });
  writer.writeUnsignedVarint(given.length);
  for (const slot of given) {
    const content = new Writer();
    content.flexible = true;
    slot.type.write(content, values[slot.name], version);
    writer.writeUnsignedVarint(slot.tag!);
    writer.writeUnsignedVarint(content.bytes);
    for (const chunk of content.finish()) writer.writeRaw(chunk);
  }
}
