// Asks servers of DNS: over UDP, and over TCP if a response does not fit.
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { getServers } from "node:dns";
import { createConnection } from "node:net";
import {
  type DnsMessage,
  type DnsRecord,
  DnsFormatError,
  encodeQuery,
  parseMessage,
  ResponseCode,
  RecordType,
} from "./message.ts";
import { type NameServer, parseNameServer } from "../config/discovery-address.ts";

/** A server that did not answer, or not with a result. */
export class DnsError extends Error {
  override readonly name = "DnsError";
}

/** Result of a query: the records of its type, those of aliases included. */
export interface DnsAnswer {
  records: DnsRecord[];
  additionals: DnsRecord[];
  authorities: DnsRecord[];
  /** ms until it should be asked for again, of an empty answer by the SOA record; undefined if there is none. */
  ttlSeconds: number | undefined;
}

const TIMEOUT_MS = 2_000;
const TRIES = 2;
const TCP_BYTES_MAX = 65_535;

/** The servers of the system. */
export function listSystemServers(): NameServer[] {
  return getServers().flatMap((text) => parseNameServer(text) ?? []);
}

/** Looks up records. An unknown name has none. Throws DnsError if no server answers. */
export async function lookUp(
  servers: readonly NameServer[],
  name: string,
  type: number,
  options: { recursion: boolean } = { recursion: true },
): Promise<DnsAnswer> {
  let fault: unknown = new DnsError("no server of DNS is known");
  for (let tries = 0; tries < TRIES; tries++) {
    for (const server of servers) {
      try {
        return readAnswer(await ask(server, name, type, options), name, type);
      } catch (error) {
        fault = error;
      }
    }
  }
  const reason = fault instanceof Error ? fault.message : String(fault);
  throw new DnsError(`${name}: ${reason}`, { cause: fault });
}

/** Sends a message over TCP, and returns the response as it came. Throws DnsError. */
export async function exchangeOverTcp(
  { host, port }: NameServer,
  message: Buffer,
  timeoutMs = TIMEOUT_MS,
): Promise<Buffer> {
  const socket = createConnection({ host, port, timeout: timeoutMs });
  const deadline = setTimeout(() => socket.destroy(new DnsError("no response in time")), timeoutMs);
  try {
    const head = Buffer.alloc(2);
    head.writeUInt16BE(message.length, 0);
    socket.write(Buffer.concat([head, message]));
    const chunks: Buffer[] = [];
    let received = 0;
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      received += chunk.length;
      if (received < 2) continue;
      const all = Buffer.concat(chunks);
      const length = all.readUInt16BE(0);
      if (received >= 2 + length || received > 2 + TCP_BYTES_MAX)
        return all.subarray(2, 2 + length);
    }
    throw new DnsError("the server closed the connection");
  } catch (error) {
    if (error instanceof DnsError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new DnsError(`${host}:${port}: ${reason}`, { cause: error });
  } finally {
    clearTimeout(deadline);
    socket.destroy();
  }
}

async function ask(
  server: NameServer,
  name: string,
  type: number,
  options: { recursion: boolean },
): Promise<DnsMessage> {
  const id = randomInt(65_536);
  const query = encodeQuery(id, name, type, options);
  const fits = (message: DnsMessage): boolean =>
    message.isResponse &&
    message.id === id &&
    message.question?.name === name.toLowerCase() &&
    message.question.type === type;
  const short = await exchangeOverUdp(server, query, fits);
  if (!short.isTruncated) return short;
  const long = parseMessage(await exchangeOverTcp(server, query));
  if (!fits(long)) throw new DnsError("the response belongs to another query");
  return long;
}

// The socket is connected: datagrams of others do not reach it.
function exchangeOverUdp(
  { host, port }: NameServer,
  query: Buffer,
  fits: (message: DnsMessage) => boolean,
): Promise<DnsMessage> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    let isDone = false;
    const end = (settle: () => void): void => {
      if (isDone) return;
      isDone = true;
      clearTimeout(deadline);
      socket.close();
      settle();
    };
    const fail = (reason: string): void =>
      end(() => reject(new DnsError(`${host}:${port}: ${reason}`)));
    const deadline = setTimeout(() => fail("no response in time"), TIMEOUT_MS);
    socket.on("error", (error) => fail(error.message));
    socket.on("message", (bytes) => {
      const message = parseQuietly(bytes);
      if (message !== undefined && fits(message)) end(() => resolve(message));
    });
    socket.connect(port, host, () => socket.send(query));
  });
}

function parseQuietly(bytes: Buffer): DnsMessage | undefined {
  try {
    return parseMessage(bytes);
  } catch (error) {
    if (error instanceof DnsFormatError) return undefined;
    throw error;
  }
}

function readAnswer(message: DnsMessage, name: string, type: number): DnsAnswer {
  const { code, answers, authorities, additionals } = message;
  if (code !== ResponseCode.noError && code !== ResponseCode.nameError) {
    throw new DnsError(`the server answers with code ${code}`);
  }
  const names = new Set([name.toLowerCase()]);
  const chain: DnsRecord[] = [];
  // Aliases come before what they lead to.
  for (const record of answers) {
    if (record.data.kind !== "name" || record.type !== RecordType.CNAME) continue;
    if (!names.has(record.name)) continue;
    names.add(record.data.name);
    chain.push(record);
  }
  const records = answers.filter((record) => record.type === type && names.has(record.name));
  const times = [...chain, ...records].map(({ ttlSeconds }) => ttlSeconds);
  const [start] = authorities.filter(({ type: other }) => other === RecordType.SOA);
  const empty =
    start?.data.kind === "soa" ? Math.min(start.ttlSeconds, start.data.minimumSeconds) : undefined;
  const ttlSeconds = records.length > 0 ? Math.min(...times) : empty;
  return { records, additionals, authorities, ttlSeconds };
}
