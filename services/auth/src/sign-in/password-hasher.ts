// Passwords hashed with argon2id, a bounded number at a time, so that a flood of logins leaves the rest of the service alone.
import { hash, parseOptions, verify } from "@node-rs/argon2";
import { createRetryLaterError } from "@platform/kernel/errors";

/** OWASP's parameters for argon2id: 19 MiB, two passes, one lane. */
export const OWASP_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

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
  /** Hashes for sign-ins that wait; one more is refused with 503. */
  waitingMax: number;
  /** The same for registrations, which wait in a queue of their own. */
  registrationsWaitingMax: number;
  cost: PasswordCost;
}

/** The purpose of a hash. Registrations use half of the places, and give way to sign-ins. */
export type HashLane = "sign-in" | "registration";

interface Lane {
  readonly runningMax: number;
  readonly waitingMax: number;
  running: number;
  readonly waiting: (() => void)[];
}

/** Sign-ins that may pass a registration that waits. */
const SIGN_INS_PER_REGISTRATION = 4;

/** Hashes and checks passwords. */
export class PasswordHasher {
  readonly #options: HasherOptions;
  readonly #lanes: Readonly<Record<HashLane, Lane>>;
  #running = 0;
  #signInsInRow = 0;
  #decoy: Promise<string> | undefined;

  constructor(options: HasherOptions) {
    this.#options = options;
    const { concurrency, waitingMax, registrationsWaitingMax } = options;
    this.#lanes = {
      "sign-in": { runningMax: concurrency, waitingMax, running: 0, waiting: [] },
      registration: {
        runningMax: Math.ceil(concurrency / 2),
        waitingMax: registrationsWaitingMax,
        running: 0,
        waiting: [],
      },
    };
  }

  /** The password in PHC form, salted. */
  hash(password: string, lane: HashLane = "sign-in"): Promise<string> {
    return this.#run(lane, () => hash(prepare(password), this.#options.cost));
  }

  /**
   * Whether the password is the one that was hashed. Without a hash it takes the same time and says no, so that nobody can
   * measure which names exist.
   */
  async verify(hashed: string | null | undefined, password: string): Promise<boolean> {
    this.#decoy ??= hash("decoy", this.#options.cost);
    const decoy = await this.#decoy;
    const isRight = await this.#run("sign-in", () => verify(hashed ?? decoy, prepare(password)));
    return isRight && typeof hashed === "string";
  }

  /** Whether the hash was made with other parameters than today's. */
  isStale(hashed: string): boolean {
    const used = parseOptions(hashed);
    const { memoryCost, timeCost } = this.#options.cost;
    return used.memoryCost !== memoryCost || used.timeCost !== timeCost;
  }

  async #run<T>(name: HashLane, work: () => Promise<T>): Promise<T> {
    const lane = this.#lanes[name];
    if (this.#running < this.#options.concurrency && lane.running < lane.runningMax) {
      this.#running += 1;
      lane.running += 1;
    } else {
      if (lane.waiting.length >= lane.waitingMax) {
        throw createRetryLaterError("overloaded", "Too many passwords are being checked.", 1);
      }
      await new Promise<void>((resolve) => lane.waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      lane.running -= 1;
      this.#passOn();
    }
  }

  // The place goes to one that waits, before anybody who comes later can take it.
  #passOn(): void {
    const lane = this.#chooseLane();
    const next = lane?.waiting.shift();
    if (lane === undefined || next === undefined) {
      this.#running -= 1;
      return;
    }
    lane.running += 1;
    this.#signInsInRow = lane === this.#lanes.registration ? 0 : this.#signInsInRow + 1;
    next();
  }

  #chooseLane(): Lane | undefined {
    const { registration, "sign-in": signIn } = this.#lanes;
    const canRegister =
      registration.waiting.length > 0 && registration.running < registration.runningMax;
    if (signIn.waiting.length === 0) return canRegister ? registration : undefined;
    return canRegister && this.#signInsInRow >= SIGN_INS_PER_REGISTRATION ? registration : signIn;
  }
}

// The same password typed on two keyboards may arrive composed and decomposed (NIST SP 800-63B-4 section 3.1.1.2).
function prepare(password: string): string {
  return password.normalize("NFKC");
}
