// argon2id password hashing with bounded concurrency, so that many sign-ins do not block the rest of the service.
import { hash, parseOptions, verify } from "@node-rs/argon2";
import { createRetryLaterError } from "@platform/kernel/errors";

/** OWASP's parameters for argon2id: 19 MiB, two passes, one lane. */
export const OWASP_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The cost of a hash; memory in KiB. */
export interface PasswordCost {
  memoryCost: number;
  timeCost: number;
  parallelism: number;
}

/** Options of the hasher. */
export interface HasherOptions {
  /** Concurrent hashes. */
  concurrency: number;
  /** Hashes for sign-ins that may wait; further ones fail with 503. */
  waitingMax: number;
  /** Hashes for registrations that may wait, in a separate queue. */
  registrationsWaitingMax: number;
  cost: PasswordCost;
}

/** The purpose of a hash. Registrations use at most half of the concurrent hashes and yield to sign-ins. */
export type HashLane = "sign-in" | "registration";

interface Lane {
  readonly runningMax: number;
  readonly waitingMax: number;
  running: number;
  readonly waiting: (() => void)[];
}

/** Sign-ins that may overtake a waiting registration. */
const SIGN_INS_PER_REGISTRATION = 4;

/** Hashes and verifies passwords. */
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
   * True if the password matches the hash. Without a hash it takes the same time and returns false, so that timing
   * does not reveal which names exist.
   */
  async verify(hashed: string | null | undefined, password: string): Promise<boolean> {
    this.#decoy ??= hash("decoy", this.#options.cost);
    const decoy = await this.#decoy;
    const isRight = await this.#run("sign-in", () => verify(hashed ?? decoy, prepare(password)));
    return isRight && typeof hashed === "string";
  }

  /** True if the hash was created with other parameters than the current ones. */
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

  // Hands the place to a waiting hash directly, before a later caller can take it.
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

// The same password typed on two keyboards may arrive composed or decomposed (NIST SP 800-63B-4 section 3.1.1.2).
function prepare(password: string): string {
  return password.normalize("NFKC");
}
