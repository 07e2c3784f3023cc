// Keys of sealed cookies: configured, or generated and stored before their first use.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { COOKIE_KEY_BYTES } from "../shared-state/index.ts";
import type { StateFile } from "./state-file.ts";

export const cookieKeysSchema = z.array(z.base64url());

/** The keys of a gateway: the first seals, all of them open. */
export class CookieKeys {
  readonly #file: StateFile<string[]>;
  readonly #configured: readonly Uint8Array[] | undefined;
  #keys: readonly Uint8Array[] = [];
  #isStored = false;

  constructor(file: StateFile<string[]>, configured: readonly Uint8Array[] | undefined) {
    this.#file = file;
    this.#configured = configured;
  }

  get keys(): readonly Uint8Array[] {
    return this.#keys;
  }

  /** False if the keys would be lost on a restart. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** Reads or generates the keys. Keys in use stay: the workers have them. */
  async load(): Promise<void> {
    if (this.#keys.length > 0) return;
    const configured = this.#configured;
    const stored = configured === undefined ? await this.#file.read() : undefined;
    this.#isStored = configured !== undefined || stored !== undefined;
    this.#keys = configured ??
      stored?.map((text) => Buffer.from(text, "base64url")) ?? [randomBytes(COOKIE_KEY_BYTES)];
  }

  async store(): Promise<void> {
    if (this.#isStored) return;
    await this.#file.write(this.#keys.map((key) => Buffer.from(key).toString("base64url")));
    this.#isStored = true;
  }
}
