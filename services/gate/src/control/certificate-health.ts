// The certificates of the listener in metrics and in the readiness probe.
import type { Collector, ScalarSample } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import type { Certificates } from "./certificates.ts";

/** Names with a series: those whose certificates end first. */
const SERIES_MAX = 100;

/** Reports faults of certificates, which the gateway continues to use, and their ends. */
export class CertificateHealth implements Collector {
  readonly name = "certificates";
  readonly #certificates: Certificates;
  readonly #clock: Clock;

  constructor(certificates: Certificates, clock: Clock) {
    this.#certificates = certificates;
    this.#clock = clock;
  }

  /** The warning of `/readyz`; undefined if there is none. */
  describe(): string | undefined {
    for (const { use, file, status, last_error } of this.#list()) {
      if (use !== "listener") continue;
      if (last_error !== null) return last_error;
      if (status === "expired") return `the certificate ${file} has expired`;
    }
    return undefined;
  }

  collect() {
    const now = this.#clock.now();
    const ends = new Map<string, number>();
    for (const { use, serves, not_after: end } of this.#list()) {
      if (use !== "listener" || end === null) continue;
      for (const name of serves) ends.set(name, Math.round((Date.parse(end) - now) / 1_000));
    }
    const samples = [...ends]
      .sort(([, one], [, other]) => one - other)
      .slice(0, SERIES_MAX)
      .map(([name, value]): ScalarSample => ({ labels: [["name", name]], value }));
    return [
      {
        type: "gauge" as const,
        name: "platform_gate_certificate_expiry_seconds",
        help: `Seconds until the certificate of a name ends, negative after it; of the ${SERIES_MAX} names whose certificates end first. "*": names without a certificate of their own.`,
        samples,
      },
    ];
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  #list() {
    return this.#certificates.list(this.#clock.now());
  }
}
