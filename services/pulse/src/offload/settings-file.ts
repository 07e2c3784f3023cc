// The object store that was set over the API, in the data folder.
import { readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { replaceFile, syncFolder } from "@platform/kernel/files";
import { isBucket, isEndpoint, isPrefix, isRegion, parseToken } from "../offload-target.ts";

const stored = z.object({
  version: z.literal(1),
  endpoint: z.string().refine(isEndpoint),
  bucket: z.string().refine(isBucket),
  region: z.string().refine(isRegion),
  prefix: z.string().refine(isPrefix),
  token: z.string().refine((token) => parseToken(token) !== undefined),
  enabled: z.boolean(),
});

/** The stored form. */
export type StoredOffload = Omit<z.output<typeof stored>, "version">;

/** `offload.json` of a data folder. Only its owner may read it. */
export class OffloadFile {
  readonly #path: string;

  constructor(dataDir: string) {
    this.#path = join(dataDir, "offload.json");
  }

  /** Reads the file; undefined if there is none. Rejects if it is damaged: remote records would be unavailable. */
  async read(): Promise<StoredOffload | undefined> {
    let text: string;
    try {
      text = await readFile(this.#path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw new Error(`${this.#path} is damaged; restore it, or remove it and set it again`, {
        cause,
      });
    }
    const parsed = stored.safeParse(value);
    if (!parsed.success) {
      throw new Error(`${this.#path} is damaged; restore it, or remove it and set it again`);
    }
    const { version: _version, ...offload } = parsed.data;
    return offload;
  }

  /** Replaces the file durably. */
  async write(offload: StoredOffload): Promise<void> {
    await replaceFile(this.#path, `${JSON.stringify({ version: 1, ...offload }, null, 2)}\n`);
  }

  /** Removes the file durably. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
    await syncFolder(dirname(this.#path));
  }
}
