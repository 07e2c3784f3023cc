// No payload of the corpus makes ours and nginx or HAProxy disagree on where a request ends.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { type CorpusEntry, requestCorpus } from "../corpus/requests.ts";
import { SeenConnection } from "../parse/connection.ts";
import { type Lane, type PeerKind, haproxy, nginx, reasonToSkip, startPeer } from "./peer.ts";
import type { RecordedRequest } from "./recorder.ts";

const LANES = 8;
/** A longer search: PLATFORM_FUZZ_PAYLOADS=20000 PLATFORM_FUZZ_SEED=7. */
const FUZZ_PAYLOADS = Number(process.env.PLATFORM_FUZZ_PAYLOADS ?? 300);
const FUZZ_SEED = Number(process.env.PLATFORM_FUZZ_SEED ?? 1);
const IDLE_MS = 400;
const MARKER = "GET /marker HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const LEDGER = new URL("../corpus/ledger.json", import.meta.url);

/** The result of a peer compared with the result of the engine. */
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
    const verdicts = await judgeEntries(kind, requestCorpus);
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

for (const kind of [nginx, haproxy]) {
  const skip = reasonToSkip(kind);
  test(`ours and ${kind.name} agree on payloads with random damage`, { skip }, async () => {
    const entries = damagedEntries();
    const verdicts = await judgeEntries(kind, entries);
    const disagreed = entries.filter((entry) => verdicts.get(entry.name) === "DISAGREE");
    assert.deepEqual(disagreed, []);
  });
}

/** Payloads that ours accepts, with one to three bytes put in, put over or taken out. */
function damagedEntries(): CorpusEntry[] {
  const sound = requestCorpus.filter((entry) => typeof entry.expected === "number");
  const bytes = "\0\t\n\v\r !\"',-/0159:;=@ACTXacg\\_\x7f\x80\xa0\xff".split("");
  const damage = fc.tuple(
    fc.nat(),
    fc.constantFrom(...bytes, "\r\n", "\r\n ", "0\r\n\r\n"),
    fc.constantFrom("insert", "replace", "remove"),
  );
  const damaged = fc
    .tuple(fc.constantFrom(...sound), fc.array(damage, { minLength: 1, maxLength: 3 }))
    .map(([entry, hits]) => {
      let text = entry.payload;
      for (const [where, piece, kind] of hits) {
        const at = where % text.length;
        const rest = text.slice(at + (kind === "insert" ? 0 : 1));
        text = text.slice(0, at) + (kind === "remove" ? "" : piece) + rest;
      }
      return text;
    });
  const payloads = fc.sample(damaged, { numRuns: FUZZ_PAYLOADS, seed: FUZZ_SEED });
  return payloads.map((payload, index) => ({ name: `${index}`, payload, expected: 0 }));
}

async function judgeEntries(
  kind: PeerKind,
  entries: readonly CorpusEntry[],
): Promise<Map<string, Agreement>> {
  const verdicts = new Map<string, Agreement>();
  const queue = [...entries];
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
