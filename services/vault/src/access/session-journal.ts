// The journal of session keys: a file of checksummed lines, appended with one sync for all waiting writers, and rewritten
// when most of its lines are obsolete. A mark beside it shows what it held, so that a lost part is noticed.
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { replaceFile } from "@platform/kernel/files";
import { z } from "zod";
import { EMPTY_FILE, extendState, JournalMark, type FileState } from "./journal-mark.ts";

/** First line of a file: format and version. */
const HEAD = "platform-vault session keys 1";
const OTHER_HEAD = /^platform-vault session keys \d+$/;
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
  readonly #mark: JournalMark;
  readonly #listLive: () => Iterable<StoredSession>;
  #pending: string[] = [];
  /** The next write, which all appends until its start share. */
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();
  #lines = 0;
  #state: FileState = EMPTY_FILE;
  /** The loss that `read` has found. */
  damage: string | undefined;

  /** `listLive` returns the keys that a rewritten file keeps. */
  constructor(path: string, listLive: () => Iterable<StoredSession>) {
    this.#path = path;
    this.#mark = new JournalMark(path);
    this.#listLive = listLive;
  }

  /**
   * Reads the keys that have not ended. Damaged lines are skipped: `damage` describes what is lost, and the file is kept as
   * `.damaged` before it is changed. Throws if another version has written it.
   */
  read(): StoredSession[] {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const bytes = existsSync(this.#path) ? readFileSync(this.#path) : Buffer.alloc(0);
    const [head = "", ...lines] = bytes.toString("utf8").split("\n");
    if (head !== HEAD && OTHER_HEAD.test(head)) {
      throw new Error(
        `${this.#path} was written by another version ("${head}"): run that one, or remove the file, which ends all session keys`,
      );
    }
    // A line that a crash has cut was not acknowledged; the mark shows others.
    const { sessions, damaged } = readLines(lines.slice(0, -1));
    this.#lines = lines.length;
    this.#state = extendState(EMPTY_FILE, bytes);
    this.damage = this.#mark.findLoss(bytes);
    if (damaged > 0) this.damage ??= `damaged lines: ${damaged}`;
    if (this.damage === undefined) return sessions;
    if (bytes.length > 0) copyFileSync(this.#path, `${this.#path}.damaged`);
    // The next record rewrites it.
    this.#lines = Number.POSITIVE_INFINITY;
    return sessions;
  }

  /** Appends a record; resolves when it is on disk. */
  append(record: JournalRecord): Promise<void> {
    this.#pending.push(encode(record));
    return this.#schedule();
  }

  #schedule(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => this.#write());
      this.#last = this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  /** True if the file has no line with a key, live or ended. */
  get isEmpty(): boolean {
    return this.#lines === 0;
  }

  /** Writes the file again with the live keys as they are now. */
  rewrite(): Promise<void> {
    this.#lines = Number.POSITIVE_INFINITY;
    return this.#schedule();
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
    const text = Buffer.from(`\n${lines.join("\n")}\n`);
    const size = await appendSynced(this.#path, text);
    this.#lines += lines.length;
    // Otherwise a failed write has left bytes that the mark does not cover.
    this.#state =
      size === this.#state.bytes + text.length
        ? extendState(this.#state, text)
        : extendState(EMPTY_FILE, readFileSync(this.#path));
    this.#mark.save(this.#state);
  }

  async #rewrite(lines: readonly string[]): Promise<void> {
    const text = Buffer.from(`${[HEAD, ...lines].join("\n")}\n`);
    const next = extendState(EMPTY_FILE, text);
    this.#mark.announce(this.#state, next);
    await replaceFile(this.#path, text);
    this.#lines = lines.length;
    this.#state = next;
    this.#mark.save(next);
  }
}

function readLines(lines: readonly string[]): { sessions: StoredSession[]; damaged: number } {
  const found = new Map<string, StoredSession>();
  let damaged = 0;
  for (const line of lines) {
    if (line === "") continue;
    const record = decode(line);
    if (record === undefined) damaged++;
    else if ("issued" in record) found.set(record.issued.accessKey, record.issued);
    else for (const accessKey of record.ended) found.delete(accessKey);
  }
  return { sessions: [...found.values()], damaged };
}

// Returns the size of the file.
async function appendSynced(path: string, text: Buffer): Promise<number> {
  const file = await open(path, "a", 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
    return (await file.stat()).size;
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
