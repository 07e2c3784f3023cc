// No payload of the corpus makes ours and nginx or HAProxy disagree on where a request ends.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { test } from "node:test";
import { requestCorpus } from "../corpus/requests.ts";
import type { CorpusEntry } from "../corpus/requests.ts";
import { SeenConnection } from "../parse/connection.ts";
import { haproxy, nginx, reasonToSkip, startPeer } from "./peer.ts";
import type { Lane, PeerKind, RecordedRequest } from "./peer.ts";

const LANES = 8;
const IDLE_MS = 400;
const MARKER = "GET /marker HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const LEDGER = new URL("../corpus/ledger.json", import.meta.url);

/** What a peer made of a payload, seen from what ours made of it. */
type Agreement =
  /** Both saw the same requests, or refused at the same place. */
  | "same"
  /** The peer refused, or still waits, where ours went on. */
  | "peer is stricter"
  /** Ours refused; the peer saw the same requests before, and went on. */
  | "ours is stricter"
  /** A boundary differs. */
  | "DISAGREE";

interface LedgerRow {
  ours: string;
  [peer: string]: string;
}

for (const kind of [nginx, haproxy]) {
  const skip = reasonToSkip(kind);
  test(`ours and ${kind.name} agree on where requests end`, { skip }, async () => {
    const verdicts = await judgeCorpus(kind);
    const ledger = await readLedger();
    if (process.env.PLATFORM_LEDGER === "update") await updateLedger(ledger, kind, verdicts);
    for (const entry of requestCorpus) {
      const agreement = verdicts.get(entry.name)!;
      assert.notEqual(agreement, "DISAGREE", entry.name);
      const row = ledger[entry.name];
      assert.ok(
        row !== undefined,
        `${entry.name} is not in the ledger: set PLATFORM_LEDGER=update`,
      );
      assert.equal(row.ours, ourVerdict(entry), `${entry.name}: the ledger has another verdict`);
    }
  });
}

async function judgeCorpus(kind: PeerKind): Promise<Map<string, Agreement>> {
  const verdicts = new Map<string, Agreement>();
  const queue = [...requestCorpus];
  const peer = await startPeer(kind, LANES);
  try {
    await Promise.all(
      peer.lanes.map(async (lane) => {
        for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) {
          verdicts.set(entry.name, await judgeEntry(entry, lane));
        }
      }),
    );
  } finally {
    await peer.stop();
  }
  return verdicts;
}

async function judgeEntry(entry: CorpusEntry, lane: Lane): Promise<Agreement> {
  const bytes = Buffer.from(entry.payload + MARKER, "latin1");
  const ours = new SeenConnection();
  ours.push(bytes);
  lane.recorded.length = 0;
  await sendAll(lane.socketPath, bytes);
  const mine = ours.requests.map((request) => ({
    method: request.method,
    target: originForm(request.target),
    body: request.body,
  }));
  return compareRequests(
    mine,
    ours.refusal !== null,
    lane.recorded.map((request) => ({
      ...request,
      target: originForm(request.target),
    })),
  );
}

function compareRequests(
  ours: RecordedRequest[],
  isRefused: boolean,
  theirs: RecordedRequest[],
): Agreement {
  const shared = Math.min(ours.length, theirs.length);
  try {
    assert.deepEqual(theirs.slice(0, shared), ours.slice(0, shared));
  } catch {
    return "DISAGREE";
  }
  if (theirs.length < ours.length) return "peer is stricter";
  if (theirs.length === ours.length) return "same";
  return isRefused ? "ours is stricter" : "DISAGREE";
}

async function sendAll(path: string, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect({ path });
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve());
    socket.resume();
    socket.write(bytes);
  });
}

function originForm(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, "");
  return path.startsWith("/") || path === "*" ? path : `/${path}`;
}

function ourVerdict(entry: CorpusEntry): string {
  const { expected } = entry;
  return typeof expected === "number" ? `accepts ${expected}` : `refuses ${expected.join(" ")}`;
}

async function readLedger(): Promise<Record<string, LedgerRow>> {
  return JSON.parse(await readFile(LEDGER, "utf8")) as Record<string, LedgerRow>;
}

async function updateLedger(
  ledger: Record<string, LedgerRow>,
  kind: PeerKind,
  verdicts: Map<string, Agreement>,
): Promise<void> {
  for (const name of Object.keys(ledger)) if (!verdicts.has(name)) delete ledger[name];
  for (const entry of requestCorpus) {
    ledger[entry.name] = {
      ...ledger[entry.name],
      ours: ourVerdict(entry),
      [kind.name]: verdicts.get(entry.name)!,
    };
  }
  await writeFile(LEDGER, `${JSON.stringify(ledger, null, 2)}\n`);
}
