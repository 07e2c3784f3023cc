// Passwords hashed with argon2id, a bounded number at a time, so that a flood of logins leaves the rest of the service alone.
import { hash, parseOptions, verify } from "@node-rs/argon2";
import { createRetryLaterError } from "@platform/kernel/errors";

/** OWASP's parameters for argon2id: 19 MiB, two passes, one lane. */
export const owaspCost: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** What a hash costs; memory in KiB. */
export interface PasswordCost {
  memoryCost: number;
  timeCost: number;
  parallelism: number;
}

/** Bounds of the hasher. */
export interface HasherOptions {
  /** Hashes at the same time. */
  concurrency: number;
  /** Hashes that wait; one more is refused with 503. */
  waitingMax: number;
  cost: PasswordCost;
}

/** Hashes and checks passwords. */
export class PasswordHasher {
  readonly #options: HasherOptions;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #decoy: Promise<string> | undefined;

  constructor(options: HasherOptions) {
    this.#options = options;
  }

  /** The password in PHC form, salted. */
  hash(password: string): Promise<string> {
    return this.#run(() => hash(prepare(password), this.#options.cost));
  }

  /**
   * Whether the password is the one that was hashed. Without a hash it takes the same time and says no, so that nobody can
   * measure which names exist.
   */
  async verify(hashed: string | null | undefined, password: string): Promise<boolean> {
    this.#decoy ??= hash("decoy", this.#options.cost);
    const decoy = await this.#decoy;
    const isRight = await this.#run(() => verify(hashed ?? decoy, prepare(password)));
    return isRight && typeof hashed === "string";
  }

  /** Whether the hash was made with other parameters than today's. */
  isStale(hashed: string): boolean {
    const used = parseOptions(hashed);
    const { memoryCost, timeCost } = this.#options.cost;
    return used.memoryCost !== memoryCost || used.timeCost !== timeCost;
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#options.concurrency) {
      if (this.#waiting.length >= this.#options.waitingMax) {
        throw createRetryLaterError("overloaded", "Too many passwords are being checked.", 1);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody who comes now gets ahead of those who wait.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

// The same password typed on two keyboards may arrive composed and decomposed (NIST SP 800-63B-4 section 3.1.1.2).
function prepare(password: string): string {
  return password.normalize("NFKC");
}
