// A DNS server (RFC 1035, UDP) with the records that a test chooses.
import { createSocket } from "node:dgram";

type RecordType = "A" | "TXT" | "MX";

/**
 * Records by name and type, such as `{ "example.org": { TXT: ["v=spf1 -all"] } }`. MX records are `10 host`, or `0 .`. Names
 * without an entry do not exist; `isFailing` answers SERVFAIL.
 */
export type Zone = Record<string, Partial<Record<RecordType, string[]>> & { isFailing?: boolean }>;

/** A running server. */
export interface DnsServer {
  /** For the setting `dns_servers`. */
  address: string;
  /** May be changed at any time. */
  zone: Zone;
  /** Queries in the form `TXT example.org`. */
  queries: string[];
  /** True: queries are not answered. */
  isSilent: boolean;
  close(): Promise<void>;
}

const TYPES: Record<number, RecordType> = { 1: "A", 15: "MX", 16: "TXT" };
const SERVER_FAILURE = 2;
const NAME_ERROR = 3;

/** Starts a server on a free port of the loopback interface. */
export async function startDnsServer(zone: Zone): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const server: DnsServer = {
    address: "",
    zone,
    queries: [],
    isSilent: false,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
  socket.on("message", (query, { port, address }) => {
    if (!server.isSilent) socket.send(answer(server, query), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  server.address = `127.0.0.1:${socket.address().port}`;
  return server;
}

function answer({ zone, queries }: DnsServer, query: Buffer): Buffer {
  let at = 12;
  const labels: string[] = [];
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const type = TYPES[query.readUInt16BE(at + 1)];
  const name = labels.join(".").toLowerCase();
  queries.push(`${type} ${name}`);
  const entry = zone[name];
  const records = (type === undefined ? undefined : entry?.[type]) ?? [];
  const code = entry === undefined ? NAME_ERROR : entry.isFailing === true ? SERVER_FAILURE : 0;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, question, ...records.map((one) => encodeRecord(type!, one))]);
}

function encodeRecord(type: RecordType, value: string): Buffer {
  const data = encodeData(type, value);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(Number(Object.entries(TYPES).find(([, one]) => one === type)![0]), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function encodeData(type: RecordType, value: string): Buffer {
  switch (type) {
    case "A":
      return Buffer.from(value.split(".").map(Number));
    case "TXT":
      return Buffer.concat(
        (value.match(/.{1,255}/g) ?? [""]).map((part) =>
          Buffer.concat([Buffer.from([part.length]), Buffer.from(part, "latin1")]),
        ),
      );
    case "MX": {
      const [priority, host] = value.split(" ");
      const labels = host!
        .split(".")
        .filter((label) => label !== "")
        .map((label) => `${String.fromCharCode(label.length)}${label}`);
      return Buffer.concat([
        Buffer.from([0, Number(priority)]),
        Buffer.from(`${labels.join("")}\0`, "latin1"),
      ]);
    }
    default:
      return type satisfies never;
  }
}
