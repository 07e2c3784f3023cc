// (l) Streams of a model: what metering, guards and limits cost beside the plain route and a gateway for models.
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";
import { CONTEST_COLUMNS, type ContestLoad, runContest, startEntrants } from "../contest.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import { namePortkeyProvider, portkey } from "../proxies/portkey.ts";

const UPSTREAM = new URL("../model-upstream.ts", import.meta.url).pathname;
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

function makeCase(options: { name: string; title: string; mode: string; how: string }): BenchCase {
  const { name, title, mode, how } = options;
  return {
    name,
    title,
    run: async (context) => {
      await using workspace = new Workspace();
      const upstreamPort = await findFreePort();
      const upstream = startPinned({
        name: "model upstream",
        command: process.execPath,
        args: [UPSTREAM, String(upstreamPort), mode],
        cores: context.cores.load,
      });
      workspace.keep(upstream);
      await awaitPort(upstream, upstreamPort);
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
    // Events that arrive together may leave in one chunk.
    bytesTolerance: 0.05,
  };
}
