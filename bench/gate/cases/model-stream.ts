// (l) Streams of a model: what metering, guards and limits cost beside the plain route and a gateway for models.
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { runPinned, startPinned } from "../../harness/process.ts";
import { judgeFigure } from "../../harness/report.ts";
import { takeMedian } from "../../harness/statistics.ts";
import {
  CONTEST_COLUMNS,
  type ContestLoad,
  type Entrant,
  runContest,
  startEntrants,
} from "../contest.ts";
import type { FirstEventsSummary } from "../first-events.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { namePortkeyProvider, portkey } from "../proxies/portkey.ts";

const UPSTREAM = new URL("../model-upstream.ts", import.meta.url).pathname;
const GENERATOR = new URL("../first-events.ts", import.meta.url).pathname;
const STREAMS_PER_S = 50;
const ADDED_P99_US_MAX = 2_000;
const PLAIN = "gate, plain route";
const METERED = "gate, metered and billed";
const GUARDED = "gate, guard, personal data and limits, too";
const SENTENCE =
  "The quarterly report lists what each team has shipped, where the numbers come from and what is open. ";
const PROMPT_BYTES = 2_048;
/** None of the limits is reached. */
const CONFIG = {
  ai_prices: { "m-*": { input: 10, output: 20, cached_input: 1, cache_write: 12 } },
};
const GUARDS = {
  prompt_guard: true,
  pii_redact: true,
  semantic_token_limit_per_min: 1_000_000_000,
};

const OURS = makePlatformGate(OURS_ON_NODE);
const CONTENDERS = [
  { proxy: OURS, name: PLAIN, isOurs: false },
  { proxy: OURS, name: METERED, setup: { models: { route: { ai: true }, config: CONFIG } } },
  { proxy: OURS, name: GUARDED, setup: { models: { route: GUARDS, config: CONFIG } } },
  { proxy: portkey },
];

/** A prompt of 2 KB, answered by a stream of 100 events that come one by one, as they do from providers. */
export const modelStream = makeCase({
  name: "model-stream",
  title: "A model's answer in 100 events",
  mode: "",
  how: "in a write each",
});

/** The same events at once: the work for each of them without the reads and writes of its own. */
export const modelBurst = makeCase({
  name: "model-burst",
  title: "A model's answer in 100 events at once",
  mode: "burst",
  how: "in one write",
});

/** Time by which the first text of a stream is later, at a rate that is no load. */
export const modelLatency: BenchCase = {
  name: "model-latency",
  title: "A model's first event: time that is added",
  run: async (context) => {
    await using workspace = new Workspace();
    const upstreamPort = await startModel(context, workspace, "");
    const load = makeLoad(upstreamPort);
    const entrants = await startEntrants(context, workspace, upstreamPort, CONTENDERS, load);
    const direct = await addPacedRounds(context, entrants, upstreamPort, load);
    const rows = entrants.map(({ row }) => row);
    return {
      work:
        `POST of a prompt of 2 KB, ${STREAMS_PER_S} streams of 100 events per second, each timed from the moment it was due to its first text. ` +
        `"Added" is the difference to the same load sent directly to the upstream (p50 ${direct.p50Us.toFixed(0)} µs, p99 ${direct.p99Us.toFixed(0)} µs).`,
      columns: [
        { key: "addedP50Us", title: "added p50 µs", digits: 0 },
        { key: "addedP99Us", title: "added p99 µs", digits: 0 },
        { key: "endAddedP50Us", title: "end, added p50 µs", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks: rows
        .filter(({ name }) => name === METERED || name === GUARDED)
        .map(({ name, rounds }) => {
          const added = rounds.flatMap((round) => round?.["addedP99Us"] ?? []);
          const figure = added.length === 0 ? Number.NaN : takeMedian(added);
          return judgeFigure(`${name}, added p99 µs`, figure, ADDED_P99_US_MAX);
        }),
    };
  },
};

async function addPacedRounds(
  context: BenchContext,
  entrants: readonly Entrant[],
  upstreamPort: number,
  load: ContestLoad,
): Promise<{ p50Us: number; p99Us: number }> {
  const direct: FirstEventsSummary[] = [];
  // Nothing that was compiled late is measured.
  for (const { url, process: started } of entrants)
    if (started !== undefined) await openStreams(context, url, load);
  for (let round = 1; round <= context.rounds; round++) {
    const base = await openStreams(context, `http://127.0.0.1:${upstreamPort}${load.path}`, load);
    direct.push(base);
    for (const { row, url, process: started } of entrants) {
      if (started === undefined) continue;
      const paced = await openStreams(context, url, load);
      const addedP99Us = paced.firstP99Us - base.firstP99Us;
      context.say(
        `  ${round}/${context.rounds} ${row.name}: added p99 ${addedP99Us.toFixed(0)} µs, ${paced.streams} streams`,
      );
      if (paced.failed > 0) row.note = `${paced.failed} streams have not ended`;
      row.rounds.push({
        addedP50Us: paced.firstP50Us - base.firstP50Us,
        addedP99Us,
        endAddedP50Us: paced.endP50Us - base.endP50Us,
      });
    }
  }
  return {
    p50Us: takeMedian(direct.map((one) => one.firstP50Us)),
    p99Us: takeMedian(direct.map((one) => one.firstP99Us)),
  };
}

async function openStreams(
  context: BenchContext,
  url: string,
  { headers, json }: ContestLoad,
): Promise<FirstEventsSummary> {
  const output = await runPinned({
    name: "streams",
    command: process.execPath,
    args: [
      GENERATOR,
      url,
      String(STREAMS_PER_S),
      String(context.seconds),
      JSON.stringify(headers),
      json!,
    ],
    cores: context.cores.load,
  });
  return JSON.parse(output) as FirstEventsSummary;
}

async function startModel(
  context: BenchContext,
  workspace: Workspace,
  mode: string,
): Promise<number> {
  const upstreamPort = await findFreePort();
  const upstream = startPinned({
    name: "model upstream",
    command: process.execPath,
    args: [UPSTREAM, String(upstreamPort), mode],
    cores: context.cores.load,
  });
  workspace.keep(upstream);
  await awaitPort(upstream, upstreamPort);
  return upstreamPort;
}

function makeCase(options: { name: string; title: string; mode: string; how: string }): BenchCase {
  const { name, title, mode, how } = options;
  return {
    name,
    title,
    run: async (context) => {
      await using workspace = new Workspace();
      const upstreamPort = await startModel(context, workspace, mode);
      const load = makeLoad(upstreamPort);
      const entrants = await startEntrants(context, workspace, upstreamPort, CONTENDERS, load);
      return {
        work: `POST of a prompt of 2 KB, answered by a stream of 100 events ${how}, on ${load.connections} connections. Guards: prompt guard, personal data, token limit. Portkey without guards, on Bun.`,
        columns: CONTEST_COLUMNS.slice(0, 4),
        rows: await runContest(context, workspace, entrants, load),
        ratioColumns: ["cpuUs", "perS"],
        goals: [
          { column: "cpuUs", against: PLAIN, ours: [METERED], atMost: 1.3 },
          { column: "cpuUs", against: PLAIN, ours: [GUARDED], atMost: 1.7 },
          { column: "cpuUs", against: portkey.name, ours: [METERED], atMost: 0.3 },
          { column: "cpuUs", against: portkey.name, ours: [GUARDED], atMost: 0.4 },
        ],
      };
    },
  };
}

function makeLoad(upstreamPort: number): ContestLoad {
  const content = SENTENCE.repeat(Math.ceil(PROMPT_BYTES / SENTENCE.length)).slice(0, PROMPT_BYTES);
  return {
    path: "/v1/chat/completions",
    connections: 16,
    headers: namePortkeyProvider(upstreamPort),
    json: JSON.stringify({
      model: "m-large",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "You are brief." },
        { role: "user", content },
      ],
    }),
    expected: { status: 200, bodyBytes: undefined },
    // Events that arrive together may leave in one chunk, and masked ones as one event.
    bytesTolerance: 1,
  };
}
