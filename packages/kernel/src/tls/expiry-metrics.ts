// The ends of certificates' validity, for alerts.
import { X509Certificate } from "node:crypto";
import type { LabelPairs, MetricRegistry, ScalarSample } from "../metrics/index.ts";
import type { CertificatePair } from "./certificate-pair.ts";
import type { CertificateWatch } from "./certificate-watch.ts";

/** Certificates of a folder with a series: those that end first. */
const NAMED_MAX = 20;

/**
 * Registers `platform_certificate_expiry_timestamp_seconds{certificate}`, with the path of the file, or the name in a folder
 * of certificates. `find` returns what is in use at the time of a scrape.
 */
export function collectExpiry(
  registry: MetricRegistry,
  name: string,
  find: () => CertificateWatch | undefined,
): void {
  const known = new WeakMap<CertificatePair, number>();
  const readEnd = (pair: CertificatePair): number => {
    let end = known.get(pair);
    if (end === undefined) {
      end = new X509Certificate(pair.cert).validToDate.getTime() / 1_000;
      known.set(pair, end);
    }
    return end;
  };
  registry.collect({
    name: `certificates of ${name}`,
    collect: () => [
      {
        type: "gauge",
        name: "platform_certificate_expiry_timestamp_seconds",
        help: `End of a certificate's validity, in seconds since 1970; in a folder of certificates, of the ${NAMED_MAX} that end first.`,
        samples: listSamples(find(), readEnd),
      },
    ],
  });
}

function listSamples(
  watch: CertificateWatch | undefined,
  readEnd: (pair: CertificatePair) => number,
): ScalarSample[] {
  if (watch === undefined) return [];
  const { pairs, named } = watch.current;
  const sample = (certificate: string, pair: CertificatePair): ScalarSample => {
    const labels: LabelPairs = [["certificate", certificate]];
    return { labels, value: readEnd(pair) };
  };
  const first = [...named]
    .map(([name, pair]) => sample(name, pair))
    .toSorted((a, b) => a.value - b.value)
    .slice(0, NAMED_MAX);
  return [...watch.paths.map((path, at) => sample(path, pairs[at]!)), ...first];
}
