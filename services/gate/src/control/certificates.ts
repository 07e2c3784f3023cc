// The certificates that the gateway uses: those of its listener, its client certificates, and the authorities it trusts.
import { createHash, X509Certificate } from "node:crypto";
import { listAlternativeNames } from "@platform/kernel/tls";
import type { CertificateSource, TlsContextSpec, TlsSpec } from "../shared-state/index.ts";
import type { GateState } from "./gate-state.ts";
import type { RenewalState } from "./listener-certificate.ts";
import type { ResolvedRoute } from "../resolve/resolve-route.ts";

/** Use of a certificate: for clients of the gateway, for its upstreams, or to verify upstreams. */
type CertificateUse = "listener" | "client" | "ca";

/** Validity of a certificate. `unreadable`: it cannot be parsed. */
type CertificateStatus = "valid" | "not_yet_valid" | "expiring" | "expired" | "unreadable";

/** A certificate, or a block of its file that cannot be parsed. */
export interface CertificateView {
  id: string;
  use: CertificateUse;
  source: CertificateSource;
  /** Names that clients of the listener get it for; `*` stands for all that no other certificate has. */
  serves: string[];
  /** Time of the next renewal, ISO 8601; null if another program renews it. */
  renew_at: string | null;
  /** Fault of the last renewal, or of the last version of the file; null without one. */
  last_error: string | null;
  /** Labels of the routes that use it; none for `listener`. */
  routes: string[];
  subject: string;
  issuer: string;
  /** DNS names and addresses that it is valid for. */
  names: string[];
  serial: string;
  fingerprint_sha256: string;
  /** ISO 8601, UTC; null if it cannot be parsed. */
  not_before: string | null;
  not_after: string | null;
  /** Whole days until its end; negative after it. */
  days_left: number | null;
  /** Path of its file, as configured. */
  file: string;
  status: CertificateStatus;
  detail?: string;
}

const DAY_MS = 86_400_000;
/** Certificates with fewer days left need attention. */
const EXPIRING_DAYS = 14;
/** A bundle of authorities has some 150 certificates. */
const CERTIFICATES_MAX = 1_000;
const ROUTES_SHOWN_MAX = 100;
const NAMES_SHOWN_MAX = 100;
const SHOWN_KINDS: ReadonlySet<string> = new Set(["DNS", "IP Address", "URI"]);
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** A file's content with its use. */
interface Material {
  use: CertificateUse;
  source: CertificateSource;
  serves: string[];
  file: string;
  pem: string;
  routes: string[];
}

/** A view without what depends on the time. */
type Parsed = Omit<
  CertificateView,
  "days_left" | "status" | "detail" | "renew_at" | "last_error"
> & {
  fault?: string;
  /** The certificate of its chain that expires first, if it does so before this one. */
  firstToExpire?: { subject: string; at: string };
};

/** Finds the state of the renewal of a certificate of the listener. */
export type FindRenewal = (source: CertificateSource, file: string) => RenewalState | undefined;

/** Lists the certificates of the active state; they are parsed once per state. */
export class Certificates {
  readonly #readState: () => GateState;
  readonly #findRenewal: FindRenewal;
  #state: GateState | undefined;
  #parsed: readonly Parsed[] = [];

  constructor(readState: () => GateState, findRenewal: FindRenewal = () => undefined) {
    this.#readState = readState;
    this.#findRenewal = findRenewal;
  }

  /** At most 1 000, those of the listener first. */
  list(nowMs: number): CertificateView[] {
    const state = this.#readState();
    if (state !== this.#state) {
      this.#state = state;
      this.#parsed = listMaterial(state).flatMap(parseMaterial).slice(0, CERTIFICATES_MAX);
    }
    return this.#parsed.map((one) => {
      const renewal = one.use === "listener" ? this.#findRenewal(one.source, one.file) : undefined;
      const renewAtMs = renewal?.renewAtMs;
      return {
        ...judge(one, nowMs),
        renew_at: renewAtMs === undefined ? null : new Date(renewAtMs).toISOString(),
        last_error: renewal?.lastError ?? null,
      };
    });
  }
}

type Judged = Omit<CertificateView, "renew_at" | "last_error">;

function listMaterial({ globals, resolved }: GateState): Material[] {
  const found = new Map<string, Material>();
  for (const route of resolved.values()) {
    for (const { use, file, pem } of listRouteMaterial(route)) {
      // Routes may have read different versions of the same file.
      const key = `${use} ${file} ${pem}`;
      const known = found.get(key);
      if (known === undefined) {
        const routes = [route.label];
        found.set(key, { use, source: "file", serves: [], file, pem, routes });
      } else if (known.routes.length < ROUTES_SHOWN_MAX) known.routes.push(route.label);
    }
  }
  return [...listListenerMaterial(globals.tls), ...found.values()];
}

function listListenerMaterial(tls: TlsSpec | undefined): Material[] {
  if (tls === undefined) return [];
  const describe = ({ source, file, certPem, names }: TlsContextSpec): Material => ({
    use: "listener",
    source,
    serves: names.slice(0, NAMES_SHOWN_MAX),
    file,
    pem: certPem,
    routes: [],
  });
  const { fallback, contexts } = tls;
  return contexts.map((context) => {
    const material = describe(context);
    const isFallback = context.source === "file" && context.certPem === fallback?.certPem;
    return isFallback ? { ...material, serves: [...material.serves, "*"] } : material;
  });
}

function listRouteMaterial({
  config,
  spec,
}: ResolvedRoute): Pick<Material, "use" | "file" | "pem">[] {
  const { certPem, caPem } = spec.upstreamTls ?? {};
  const { client_cert_path: certPath = "", root_ca_path: caPath = "" } = config;
  return [
    ...(certPem === undefined ? [] : [{ use: "client", file: certPath, pem: certPem } as const]),
    ...(caPem === undefined ? [] : [{ use: "ca", file: caPath, pem: caPem } as const]),
  ];
}

// Of a chain, the first certificate is shown; authorities are independent of each other.
function parseMaterial({ pem, ...material }: Material): Parsed[] {
  const { use } = material;
  const blocks = pem.match(PEM_BLOCK) ?? [];
  const all = blocks.slice(0, CERTIFICATES_MAX).map((block) => parse(block, material));
  const [first, ...chain] = all;
  if (use === "ca" || first === undefined) return all;
  const [earliest] = chain
    .filter(({ not_after: end }) => end !== null && end < (first.not_after ?? ""))
    .sort((one, other) => (one.not_after! < other.not_after! ? -1 : 1));
  if (earliest === undefined) return [first];
  return [{ ...first, firstToExpire: { subject: earliest.subject, at: earliest.not_after! } }];
}

function parse(block: string, material: Omit<Material, "pem">): Parsed {
  const { use, file } = material;
  const id = createHash("sha256").update(`${use} ${file} ${block}`).digest("hex").slice(0, 16);
  try {
    const certificate = new X509Certificate(block);
    return {
      id,
      ...material,
      subject: joinName(certificate.subject),
      issuer: joinName(certificate.issuer),
      names: listNames(certificate),
      serial: certificate.serialNumber,
      fingerprint_sha256: certificate.fingerprint256,
      not_before: new Date(certificate.validFrom).toISOString(),
      not_after: new Date(certificate.validTo).toISOString(),
    };
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : String(cause);
    const unknown = { subject: "", issuer: "", names: [], serial: "", fingerprint_sha256: "" };
    return { id, ...material, ...unknown, not_before: null, not_after: null, fault };
  }
}

function judge({ fault, firstToExpire, ...view }: Parsed, nowMs: number): Judged {
  const { not_before: start, not_after: end } = view;
  if (fault !== undefined || start === null || end === null) {
    return { ...view, days_left: null, status: "unreadable", detail: fault ?? "" };
  }
  const daysLeft = countDays(end, nowMs);
  if (nowMs < Date.parse(start)) {
    return {
      ...view,
      days_left: daysLeft,
      status: "not_yet_valid",
      detail: `it is valid from ${start}`,
    };
  }
  const own = rate(end, nowMs);
  const ofChain = firstToExpire === undefined ? "valid" : rate(firstToExpire.at, nowMs);
  if (own === ofChain || ofChain === "valid") return { ...view, days_left: daysLeft, status: own };
  const { subject, at } = firstToExpire!;
  const detail = `the certificate ${subject} of its chain ends at ${at}`;
  return { ...view, days_left: daysLeft, status: ofChain, detail };
}

function rate(end: string, nowMs: number): "valid" | "expiring" | "expired" {
  if (Date.parse(end) <= nowMs) return "expired";
  return countDays(end, nowMs) < EXPIRING_DAYS ? "expiring" : "valid";
}

function countDays(end: string, nowMs: number): number {
  return Math.floor((Date.parse(end) - nowMs) / DAY_MS);
}

// Node writes one attribute per line.
function joinName(name: string | undefined): string {
  return (name ?? "").split("\n").join(", ");
}

function listNames(certificate: X509Certificate): string[] {
  return listAlternativeNames(certificate)
    .flatMap(({ kind, value }) => (SHOWN_KINDS.has(kind) ? [value] : []))
    .slice(0, NAMES_SHOWN_MAX);
}
