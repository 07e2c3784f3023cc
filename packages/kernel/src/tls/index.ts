// Certificates of listeners, read from files and followed while the service runs.
export { type AlternativeName, listAlternativeNames, listDnsNames } from "./alternative-names.ts";
export {
  type CertificateFiles,
  type CertificatePair,
  checkUsable,
  pickCertificateFiles,
  readCertificatePair,
} from "./certificate-pair.ts";
export {
  type Certificates,
  CertificateWatch,
  type CertificateWatchOptions,
} from "./certificate-watch.ts";
export { collectExpiry } from "./expiry-metrics.ts";
