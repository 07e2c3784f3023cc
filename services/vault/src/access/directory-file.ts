// The document of users, roles and keys on disk: two copies with a checksum and a generation, replaced as a whole.
import { mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { crc32c } from "@node-rs/crc32";
import { createFileDraft, type FileDraft } from "@platform/kernel/files";
import { z } from "zod";

/** Version 2 added roles, version 3 the generation, the checksum and the second copy. */
const FORMAT_VERSION = 3;

/** Members besides the tables; `crc` is the CRC32C of the document without it. */
const envelopeSchema = z.looseObject({
  version: z.literal(FORMAT_VERSION),
  generation: z.int().min(1),
  crc: z.int(),
});
const oldEnvelopeSchema = z.looseObject({ version: z.union([z.literal(1), z.literal(2)]) });

/** A copy of the document: intact with `tables`, unreadable with `damage`, or missing. */
interface Copy<T> {
  path: string;
  /** 0 in files of earlier versions, which have none. */
  generation: number;
  tables?: T;
  damage?: string;
}

/** A copy that was found damaged; the other one was used. */
export interface DirectoryDamage {
  path: string;
  reason: string;
}

/** The document and the state of its copies. */
interface Found<T> {
  /** `undefined` in a new folder. */
  tables: T | undefined;
  generation: number;
  damages: DirectoryDamage[];
  /** Both copies are intact and equal. */
  isWhole: boolean;
}

/** The path of the second copy. */
function nameDirectoryCopy(path: string): string {
  return path.replace(/(\.[^./]+)?$/, "-copy$1");
}

/** The document at `path`, and its copy next to it. `schema` describes the tables. */
export class DirectoryFile<T extends Readonly<Record<string, unknown>>> {
  readonly #path: string;
  readonly #schema: z.ZodType<T>;
  readonly #what: string;
  #generation = 0;

  /** `what` names the content in errors. */
  constructor(path: string, schema: z.ZodType<T>, what = "users and keys") {
    this.#path = path;
    this.#schema = schema;
    this.#what = what;
  }

  /** Reads without changing anything. Throws an Error that names a remedy if a copy exists and no copy is intact. */
  inspect(): Found<T> {
    const main = this.#readCopy(this.#path);
    const copy = this.#readCopy(nameDirectoryCopy(this.#path));
    const { tables, generation } = copy.generation > main.generation || !main.tables ? copy : main;
    // The copy is replaced first: an interrupted change leaves the other one a generation behind. Backups have no copy.
    const reasons = [
      describeDamage(main, generation, { lagMax: 1, mayBeMissing: tables === undefined }),
      describeDamage(copy, generation, { lagMax: 0, mayBeMissing: true }),
    ];
    const damages = [main, copy].flatMap(({ path }, at) => {
      const reason = reasons[at];
      return reason === undefined ? [] : [{ path, reason }];
    });
    if (tables === undefined && damages.length > 0) throw refuse(damages, this.#what);
    const isEqual = main.generation === copy.generation;
    const isWhole = main.tables !== undefined && copy.tables !== undefined && isEqual;
    return { tables, generation, damages, isWhole };
  }

  /** Like `inspect`; restores what is missing or damaged, and keeps damaged files next to it as `.damaged`. */
  read(): Pick<Found<T>, "tables" | "damages"> {
    const { tables, generation, damages, isWhole } = this.inspect();
    this.#generation = generation;
    if (tables === undefined || isWhole || generation === 0) return { tables, damages };
    for (const { path } of damages) keepDamaged(path);
    this.write(tables);
    return { tables, damages };
  }

  /** Replaces both copies; they are on disk when this returns. On a full disk neither changes. */
  write(tables: T): void {
    const generation = this.#generation + 1;
    const text = encode(generation, tables);
    const folder = dirname(this.#path);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const paths = [nameDirectoryCopy(this.#path), this.#path];
    const drafts: FileDraft[] = [];
    try {
      for (const path of paths) {
        const draft = createFileDraft(path);
        drafts.push(draft);
        draft.write(text);
      }
    } catch (error) {
      for (const draft of drafts) draft.discard();
      throw error;
    }
    for (const draft of drafts) draft.commit();
    this.#generation = generation;
  }

  #readCopy(path: string): Copy<T> {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { path, generation: 0 };
      throw error;
    }
    try {
      return { path, ...this.#decode(text) };
    } catch (error) {
      return { path, generation: 0, damage: (error as Error).message };
    }
  }

  #decode(text: string): { generation: number; tables: T } {
    const document = JSON.parse(text) as Record<string, unknown>;
    const old = oldEnvelopeSchema.safeParse(document);
    if (old.success) {
      const { version: _version, ...tables } = old.data;
      return { generation: 0, tables: this.#parse(tables) };
    }
    const { version: _version, generation, crc: _crc, ...tables } = parse(envelopeSchema, document);
    if (encode(generation, tables) !== text) throw new Error("its checksum does not match");
    return { generation, tables: this.#parse(tables) };
  }

  #parse(tables: unknown): T {
    return parse(this.#schema, tables);
  }
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
  return parsed.data;
}

/** The reason why a copy is not the one of `generation`; `undefined` if it is, or may differ. */
function describeDamage(
  copy: Copy<unknown>,
  generation: number,
  { lagMax, mayBeMissing }: { lagMax: number; mayBeMissing: boolean },
): string | undefined {
  if (copy.damage !== undefined) return copy.damage;
  if (copy.tables === undefined) return mayBeMissing ? undefined : "it is missing";
  const lag = generation - copy.generation;
  return lag > lagMax ? `it is ${lag} generations older than the other copy` : undefined;
}

function encode(generation: number, tables: Readonly<Record<string, unknown>>): string {
  const content = { version: FORMAT_VERSION, generation, ...tables };
  return JSON.stringify({ ...content, crc: crc32c(JSON.stringify(content)) });
}

function refuse(damages: readonly DirectoryDamage[], what: string): Error {
  const listed = damages.map(({ path, reason }) => `${path}: ${reason}`).join("; ");
  return new Error(
    `${what} cannot be read (${listed}). Nothing was changed: put the folder access back from a backup, or move ` +
      `these files away to start without ${what}`,
  );
}

function keepDamaged(path: string): void {
  try {
    renameSync(path, `${path}.damaged`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
