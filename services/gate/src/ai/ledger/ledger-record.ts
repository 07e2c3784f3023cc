// The records of the AI ledger: one line each, with a checksum. Workers append them; the control plane adds them up.
import { crc32 } from "node:zlib";
import { z } from "zod";

/** Version of the format, in the first line of each file. */
const FORMAT_VERSION = 1;
const TEXT_MAX = 4_096;
const CHECKSUM_CHARACTERS = 8;

const pico = z.string().regex(/^-?\d{1,30}$/);
const count = z.int().min(0);

const headSchema = z.object({ k: z.literal("head"), version: z.literal(FORMAT_VERSION) });
const reservedSchema = z.object({
  k: z.literal("reserved"),
  /** Number of the reservation, unique for its worker. */
  id: z.int().min(1),
  /** UTC day since 1970. */
  day: count,
  tenant: z.string().max(TEXT_MAX),
  route: z.string().max(TEXT_MAX),
  model: z.string().max(TEXT_MAX),
  /** Reserved cost in pico-USD, and tokens. */
  pico,
  tokens: count,
});
const settledSchema = z.object({
  k: z.literal("settled"),
  id: z.int().min(1),
  pico,
  tokens: count,
  /** Cost that a fallback or the cache has saved. */
  saved: pico.optional(),
});

const recordSchema = z.discriminatedUnion("k", [headSchema, reservedSchema, settledSchema]);

/** A request that is about to be forwarded. */
export type ReservedRecord = z.infer<typeof reservedSchema>;
/** The result of a request that has ended. */
export type SettledRecord = z.infer<typeof settledSchema>;
/** A line of a ledger file. */
export type LedgerRecord = z.infer<typeof recordSchema>;

/** The first record of each file. */
export const LEDGER_HEAD: LedgerRecord = { k: "head", version: FORMAT_VERSION };

/** A record as a line. */
export function formatRecord(record: LedgerRecord): string {
  const json = JSON.stringify(record);
  const sum = crc32(json).toString(16).padStart(CHECKSUM_CHARACTERS, "0");
  return `${sum} ${json}\n`;
}

/** The record of a line without its end; undefined if it is damaged. */
export function parseRecord(line: string): LedgerRecord | undefined {
  const json = line.slice(CHECKSUM_CHARACTERS + 1);
  const sum = crc32(json).toString(16).padStart(CHECKSUM_CHARACTERS, "0");
  if (line.slice(0, CHECKSUM_CHARACTERS) !== sum) return undefined;
  try {
    return recordSchema.parse(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** Name of a ledger file: the process and worker that write it, and its number. */
export interface LedgerFileName {
  /** Identifies a worker thread: start of its process, process ID, number of the thread. */
  readonly instance: string;
  readonly pid: number;
  readonly sequence: number;
}

const FILE_NAME = /^(\d+-(\d+)-\d+)\.(\d{6})\.ledger$/;

/** Formats the name of a file. */
export function formatFileName(instance: string, sequence: number): string {
  return `${instance}.${String(sequence).padStart(6, "0")}.ledger`;
}

/** Reads the name of a file; undefined for other files. */
export function parseFileName(name: string): LedgerFileName | undefined {
  const [, instance, pid, sequence] = FILE_NAME.exec(name) ?? [];
  if (instance === undefined) return undefined;
  return { instance, pid: Number(pid), sequence: Number(sequence) };
}
