// Addresses of services: SRV records of a name, and the document of an HTTP endpoint.
import { isIP } from "node:net";
import { z } from "zod";
import type { NameServer } from "../config/discovery-address.ts";
import type { ServiceTarget } from "../config/service-target.ts";
import { upstreamUrl } from "../config/value.ts";
import { type DnsRecord, RecordType } from "../dns/message.ts";
import { DnsError, lookUp } from "../dns/query.ts";
import { isServerName } from "../shared-state/index.ts";

/** One address of a service. */
export type ServiceAddress =
  /** `name:port` of a record, and `IP:port` if the configured server resolves names. */
  | { kind: "record"; authority: string; resolved: readonly string[]; weight: number }
  | { kind: "url"; url: string };

/** Addresses of one service, sorted, with the time for which they hold. */
export interface ResolvedService {
  addresses: readonly ServiceAddress[];
  ttlSeconds: number;
  /** Reason for which a host of the records could not be resolved; it has the addresses of before, if any. */
  fault: string | undefined;
}

/** Options of {@link readServiceRecords}. */
export interface ServiceLookup {
  name: string;
  domain: string;
  servers: readonly NameServer[];
  /** The servers resolve the hosts of the records, too. */
  resolvesNames: boolean;
  /** The addresses of the last answer. */
  known?: readonly ServiceAddress[] | undefined;
}

/** More addresses of a service are not used. */
const ADDRESSES_MAX = 256;
const TTL_SECONDS_MIN = 1;
const TTL_SECONDS_MAX = 300;
/** A service without an address is looked for again soon. */
const EMPTY_TTL_SECONDS_MAX = 10;
/** A host that could not be resolved is looked for again soon. */
const FAULTY_TTL_SECONDS_MAX = 10;
const NAMES_AT_ONCE = 8;
/** Hosts whose servers are silent hold up the others no longer. */
const NAMES_MS = 10_000;
const IPS_OF_NAME_MAX = 16;

/**
 * Reads the SRV records of a service. Throws DnsError if they cannot be read, or none of their hosts can be resolved; a
 * service without records has no address.
 */
export async function readServiceRecords({
  name,
  domain,
  servers,
  resolvesNames,
  known = [],
}: ServiceLookup): Promise<ResolvedService> {
  const answer = await lookUp(servers, `_${name}._tcp.${domain}`, RecordType.SRV);
  const found = answer.records.flatMap(({ data }) => (data.kind === "srv" ? [data] : []));
  const usable = found.filter(({ target, port }) => port > 0 && isServerName(target));
  const lowest = Math.min(...usable.map(({ priority }) => priority));
  const used = usable.filter(({ priority }) => priority === lowest).slice(0, ADDRESSES_MAX);
  if (used.length === 0) {
    const ttlSeconds = clamp(answer.ttlSeconds, EMPTY_TTL_SECONDS_MAX);
    return { addresses: [], ttlSeconds, fault: undefined };
  }
  const names = [...new Set(used.map(({ target }) => target))];
  const { ips, fault } = resolvesNames
    ? await resolveNames(names, servers, answer.additionals)
    : { ips: undefined, fault: undefined };
  const before = listResolved(known);
  const weights = scaleWeights(used.map(({ weight }) => weight));
  const distinct = new Map<string, ServiceAddress>();
  for (const [index, { target, port }] of used.entries()) {
    const authority = `${target}:${port}`;
    const resolved =
      ips?.get(target)?.map((ip) => joinPort(ip, port)) ?? before.get(authority) ?? [];
    if (ips !== undefined && resolved.length === 0) continue;
    distinct.set(authority, { kind: "record", authority, resolved, weight: weights[index]! });
  }
  if (distinct.size === 0 && fault !== undefined) throw new DnsError(fault);
  const addresses = [...distinct].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    addresses: addresses.map(([, address]) => address),
    ttlSeconds: clamp(
      answer.ttlSeconds,
      fault === undefined ? TTL_SECONDS_MAX : FAULTY_TTL_SECONDS_MAX,
    ),
    fault,
  };
}

/** The places of each host and port. */
function listResolved(known: readonly ServiceAddress[]): Map<string, readonly string[]> {
  const entries = known.flatMap((address) =>
    address.kind === "record" ? [[address.authority, address.resolved] as const] : [],
  );
  return new Map(entries);
}

const documentSchema = z.object({ services: z.record(z.string(), z.unknown()) });
const urlsSchema = z.array(upstreamUrl());

/** Services of a document; `fault` names the first one whose addresses are not valid, which is not among them. */
export interface ServiceDocument {
  services: ReadonlyMap<string, readonly ServiceAddress[]>;
  faulty: ReadonlyMap<string, string>;
}

/** Parses a document. Throws an Error if it is none; services that are not valid are named in `faulty`. */
export function parseServiceDocument(text: string): ServiceDocument {
  const parsed = documentSchema.safeParse(parseJsonText(text));
  if (!parsed.success) throw new Error('expected {"services": {"NAME": ["URL"]}}');
  const services = new Map<string, readonly ServiceAddress[]>();
  const faulty = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed.data.services)) {
    const urls = urlsSchema.safeParse(value);
    if (urls.success) {
      const distinct = [...new Set(urls.data)].sort().slice(0, ADDRESSES_MAX);
      services.set(
        name,
        distinct.map((url) => ({ kind: "url", url })),
      );
    } else {
      const [issue] = urls.error.issues;
      faulty.set(name, `services.${name}[${issue?.path.join(".") ?? ""}]: ${issue?.message}`);
    }
  }
  return { services, faulty };
}

/** URLs of upstreams with the weights of a service's addresses. */
export function describeUpstreams(
  { path, scheme }: ServiceTarget,
  addresses: readonly ServiceAddress[],
): { url: string; weight: number }[] {
  const upstreams = addresses.flatMap((address) => {
    if (address.kind === "url") {
      return [{ url: `${address.url.replace(/\/+$/, "")}${path}`, weight: 1 }];
    }
    const { authority, resolved, weight } = address;
    // A certificate is that of a name.
    const places = scheme === "https" || resolved.length === 0 ? [authority] : resolved;
    return places.map((place) => ({ url: `${scheme}://${place}${path}`, weight }));
  });
  const distinct = new Map(upstreams.map((upstream) => [upstream.url, upstream]));
  return [...distinct.values()].slice(0, ADDRESSES_MAX);
}

/** Addresses by host; one that cannot be resolved has no entry, and is the `fault`. */
async function resolveNames(
  names: readonly string[],
  servers: readonly NameServer[],
  additionals: readonly DnsRecord[],
): Promise<{ ips: Map<string, string[]>; fault: string | undefined }> {
  const found = new Map<string, string[]>();
  for (const { name, data } of additionals) {
    if (data.kind === "address") found.set(name, [...(found.get(name) ?? []), data.address]);
  }
  const rest = names.filter((name) => !found.has(name));
  const endMs = performance.now() + NAMES_MS;
  let fault: string | undefined;
  const work = async (): Promise<void> => {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      try {
        if (performance.now() > endMs) throw new DnsError(`${name}: not resolved in time`);
        found.set(name, await resolveName(name, servers));
      } catch (error) {
        if (!(error instanceof DnsError)) throw error;
        fault ??= error.message;
      }
    }
  };
  await Promise.all(Array.from({ length: NAMES_AT_ONCE }, work));
  const ips = [...found].map(
    ([name, all]) => [name, [...new Set(all)].sort().slice(0, IPS_OF_NAME_MAX)] as const,
  );
  return { ips: new Map(ips), fault };
}

/** Throws DnsError if neither kind of address can be read. */
async function resolveName(name: string, servers: readonly NameServer[]): Promise<string[]> {
  const answers = await Promise.allSettled([
    lookUp(servers, name, RecordType.A),
    lookUp(servers, name, RecordType.AAAA),
  ]);
  const ips = answers.flatMap((answer) =>
    answer.status === "fulfilled"
      ? answer.value.records.flatMap(({ data }) => (data.kind === "address" ? [data.address] : []))
      : [],
  );
  // A server that knows only one kind may refuse the question for the other one.
  const failed = answers.find((answer) => answer.status === "rejected");
  if (ips.length === 0 && failed !== undefined) throw failed.reason;
  return ips;
}

/** RFC 2782: a record of weight 0 among others is used rarely, and alone normally. */
function scaleWeights(weights: readonly number[]): number[] {
  if (weights.every((weight) => weight === 0)) return weights.map(() => 1);
  if (!weights.includes(0)) return [...weights];
  return weights.map((weight) => Math.max(1, weight * 100));
}

function clamp(ttlSeconds: number | undefined, max: number): number {
  return Math.min(Math.max(ttlSeconds ?? TTL_SECONDS_MIN, TTL_SECONDS_MIN), max);
}

function joinPort(ip: string, port: number): string {
  return isIP(ip) === 6 ? `[${ip}]:${port}` : `${ip}:${port}`;
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error("the answer is not JSON", { cause });
  }
}
