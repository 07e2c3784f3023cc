// Challenges that are pending: every worker answers them before the CA is told.
import { type ChallengeCertificate, createChallengeCertificate } from "./certificate-request.ts";
import type { Proof } from "./order.ts";

/** Pending challenges as the workers answer them. */
export interface PendingChallenges {
  /** Certificates of TLS-ALPN-01 by name. */
  certificates: Readonly<Record<string, ChallengeCertificate>>;
  /** Key authorizations of HTTP-01 by token. */
  tokens: Readonly<Record<string, string>>;
}

/** Pending challenges of one gateway. */
export class ChallengeBoard {
  readonly #certificates = new Map<string, ChallengeCertificate>();
  readonly #tokens = new Map<string, string>();
  #others: PendingChallenges = { certificates: {}, tokens: {} };
  #othersText = "[]";
  readonly #apply: () => Promise<void>;
  readonly #readNowMs: () => number;

  /** `apply` resolves when every worker has the present challenges. */
  constructor(apply: () => Promise<void>, readNowMs: () => number) {
    this.#apply = apply;
    this.#readNowMs = readNowMs;
  }

  /** The present challenges. */
  list(): PendingChallenges {
    return {
      certificates: { ...this.#others.certificates, ...Object.fromEntries(this.#certificates) },
      tokens: { ...this.#others.tokens, ...Object.fromEntries(this.#tokens) },
    };
  }

  /** Sets the challenges of other gateways; resolves when all workers answer them. */
  async setOthers(proofs: readonly Proof[]): Promise<void> {
    const text = JSON.stringify(proofs);
    if (text === this.#othersText) return;
    const certificates: Record<string, ChallengeCertificate> = {};
    const tokens: Record<string, string> = {};
    for (const { type, name, token, keyAuthorization } of proofs) {
      if (type === "http-01") tokens[token] = keyAuthorization;
      else {
        certificates[name] = createChallengeCertificate(name, keyAuthorization, this.#readNowMs());
      }
    }
    const before = [this.#others, this.#othersText] as const;
    this.#others = { certificates, tokens };
    this.#othersText = text;
    try {
      await this.#apply();
    } catch (error) {
      [this.#others, this.#othersText] = before;
      throw error;
    }
  }

  /** Adds a challenge; resolves with its removal when all workers answer it. One that a worker refuses is not kept. */
  async add(proof: Proof): Promise<() => Promise<void>> {
    const remove = this.#set(proof);
    try {
      await this.#apply();
    } catch (error) {
      // All further changes of the gateway would be refused with it.
      remove();
      throw error;
    }
    return () => {
      remove();
      return this.#apply();
    };
  }

  #set({ type, name, token, keyAuthorization }: Proof): () => void {
    if (type === "http-01") {
      this.#tokens.set(token, keyAuthorization);
      return () => void this.#tokens.delete(token);
    }
    const certificate = createChallengeCertificate(name, keyAuthorization, this.#readNowMs());
    this.#certificates.set(name, certificate);
    return () => {
      if (this.#certificates.get(name) === certificate) this.#certificates.delete(name);
    };
  }
}
