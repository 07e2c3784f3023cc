// The journal of session keys: a file of checksummed lines, appended with one sync for all waiting writers, and rewritten
// when most of its lines are obsolete.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { replaceFile } from "@platform/kernel/files";
import { z } from "zod";

/** First line of a file: format and version. */
const HEAD = "platform-vault session keys 1";
/** Obsolete lines that are tolerated in addition to as many as there are keys. */
const OBSOLETE_LINES_MAX = 1_000;

const tokenSchema = z.strictObject({
  iss: z.string().optional(),
  jti: z.string().optional(),
  sid: z.string().optional(),
  client: z.string().optional(),
  kid: z.string().optional(),
  sub: z.string().optional(),
  epoch: z.number().optional(),
});
const sessionSchema = z.strictObject({
  accessKey: z.string(),
  /** Secret and session token, encrypted. */
  sealed: z.string(),
  role: z.string(),
  sessionName: z.string(),
  /** The user or client of the token that the key was issued for. */
  sub: z.string(),
  username: z.string().optional(),
  tenant: z.string().optional(),
  issuer: z.string(),
  /** The scopes of storage in the token. */
  scopes: z.array(z.string()),
  /** Revocations that match it end the key. */
  token: tokenSchema,
  /** A policy that limits the key in addition to the role. */
  policy: z.record(z.string(), z.unknown()).optional(),
  issuedMs: z.number(),
  expiresMs: z.number(),
});
const recordSchema = z.union([
  z.strictObject({ issued: sessionSchema }),
  z.strictObject({ ended: z.array(z.string()) }),
]);

/** A session key as stored. */
export type StoredSession = z.output<typeof sessionSchema>;
type JournalRecord = z.output<typeof recordSchema>;

/** The file. A resolved append means that the record is on disk. */
export class SessionJournal {
  readonly #path: string;
  readonly #listLive: () => Iterable<StoredSession>;
  #pending: string[] = [];
  /** The next write, which all appends until its start share. */
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();
  #lines = 0;
  /** Lines that could not be read at the start. */
  damagedLines = 0;

  /** `listLive` returns the keys that a rewritten file keeps. */
  constructor(path: string, listLive: () => Iterable<StoredSession>) {
    this.#path = path;
    this.#listLive = listLive;
  }

  /** Reads the keys that have not ended. A torn last line is what a crash leaves; damaged lines are skipped and counted. */
  read(): StoredSession[] {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    if (!existsSync(this.#path)) return [];
    const [head, ...lines] = readFileSync(this.#path, "utf8").split("\n");
    if (head !== HEAD) throw new Error(`${this.#path}: unknown format ${JSON.stringify(head)}`);
    const found = new Map<string, StoredSession>();
    for (const line of lines) {
      if (line === "") continue;
      this.#lines++;
      const record = decode(line);
      if (record === undefined) this.damagedLines++;
      else if ("issued" in record) found.set(record.issued.accessKey, record.issued);
      else for (const accessKey of record.ended) found.delete(accessKey);
    }
    return [...found.values()];
  }

  /** Appends a record; resolves when it is on disk. */
  append(record: JournalRecord): Promise<void> {
    this.#pending.push(encode(record));
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => this.#write());
      this.#last = this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  /** Waits for the writes in flight. */
  async close(): Promise<void> {
    await this.#last;
  }

  async #write(): Promise<void> {
    this.#next = undefined;
    const lines = this.#pending.splice(0);
    const live = [...this.#listLive()];
    const isNew = !existsSync(this.#path);
    if (isNew || this.#lines + lines.length > 2 * live.length + OBSOLETE_LINES_MAX) {
      const kept = live.map((issued) => encode({ issued }));
      await this.#rewrite([...kept, ...lines]);
      return;
    }
    // The leading newline ends a line that an earlier failed write may have left incomplete.
    await appendSynced(this.#path, `\n${lines.join("\n")}\n`);
    this.#lines += lines.length;
  }

  async #rewrite(lines: readonly string[]): Promise<void> {
    await replaceFile(this.#path, `${[HEAD, ...lines].join("\n")}\n`);
    this.#lines = lines.length;
  }
}

async function appendSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "a", 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
}

function encode(record: JournalRecord): string {
  const text = JSON.stringify(record);
  return `${formatChecksum(text)} ${text}`;
}

function decode(line: string): JournalRecord | undefined {
  const text = line.slice(9);
  if (line.slice(0, 8) !== formatChecksum(text)) return undefined;
  try {
    return recordSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function formatChecksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
