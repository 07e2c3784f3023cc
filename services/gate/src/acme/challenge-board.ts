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
    this.#others = { certificates, tokens };
    this.#othersText = text;
    await this.#apply();
  }

  /** Adds a challenge; resolves with its removal when all workers answer it. */
  async add({ type, name, token, keyAuthorization }: Proof): Promise<() => Promise<void>> {
    if (type === "http-01") {
      this.#tokens.set(token, keyAuthorization);
      await this.#apply();
      return () => {
        this.#tokens.delete(token);
        return this.#apply();
      };
    }
    const nowMs = this.#readNowMs();
    const certificate = createChallengeCertificate(name, keyAuthorization, nowMs);
    this.#certificates.set(name, certificate);
    await this.#apply();
    return () => {
      if (this.#certificates.get(name) === certificate) this.#certificates.delete(name);
      return this.#apply();
    };
  }
}
