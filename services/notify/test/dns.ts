// A DNS server for tests (RFC 1035): answers from a table, over UDP.
import { createSocket } from "node:dgram";

/** Records of a name; `fail` answers SERVFAIL. */
export interface DnsRecords {
  a?: string[];
  mx?: [priority: number, host: string][];
  txt?: string[];
  fail?: boolean;
}

/** A running server. */
export interface DnsServer {
  /** `127.0.0.1:port` */
  address: string;
  records: Record<string, DnsRecords>;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, "a" | "mx" | "txt">> = { 1: "a", 15: "mx", 16: "txt" };
const HEADER_BYTES = 12;

/** Starts a server; names without records do not exist. */
export async function startDns(records: Record<string, DnsRecords>): Promise<DnsServer> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) =>
    socket.send(answer(query, records), from.port, from.address),
  );
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  return {
    address: `127.0.0.1:${port}`,
    records,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function answer(query: Buffer, records: Record<string, DnsRecords>): Buffer {
  let at = HEADER_BYTES;
  const labels: string[] = [];
  while (query[at] !== 0) {
    const length = query[at]!;
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = query.readUInt16BE(at + 1);
  const question = query.subarray(HEADER_BYTES, at + 5);
  const found = records[labels.join(".").toLowerCase()];
  const kind = TYPES[type];
  const data = found === undefined || kind === undefined ? [] : encodeAll(kind, found);
  const code = found === undefined ? 3 : found.fail === true ? 2 : 0;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(0x8580 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(data.length, 6);
  const answers = data.map((one) => {
    const head = Buffer.alloc(12);
    head.writeUInt16BE(0xc00c, 0);
    head.writeUInt16BE(type, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt32BE(60, 6);
    head.writeUInt16BE(one.length, 10);
    return Buffer.concat([head, one]);
  });
  return Buffer.concat([header, question, ...answers]);
}

function encodeAll(kind: "a" | "mx" | "txt", { a = [], mx = [], txt = [] }: DnsRecords): Buffer[] {
  switch (kind) {
    case "a":
      return a.map((address) => Buffer.from(address.split(".").map(Number)));
    case "mx":
      return mx.map(([priority, host]) =>
        Buffer.concat([Buffer.from([priority >> 8, priority & 255]), encodeName(host)]),
      );
    case "txt":
      return txt.map((text) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]));
    default:
      return kind satisfies never;
  }
}

function encodeName(name: string): Buffer {
  const labels = name.split(".").filter((label) => label !== "");
  const parts = labels.map((label) =>
    Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]),
  );
  return Buffer.concat([...parts, Buffer.from([0])]);
}
