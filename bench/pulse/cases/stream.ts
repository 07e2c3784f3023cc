// Latency from an HTTP publisher to an SSE subscriber; the message is durable in between.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import { runPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import type { StreamSummary } from "../stream-load.ts";

const LOAD = new URL("../stream-load.ts", import.meta.url).pathname;
const RATE = 1_000;

/** Publish to SSE at a steady rate. */
export const stream: BenchCase = {
  name: "stream",
  title: `From HTTP to SSE at ${RATE} messages/s`,
  run: async (context) => {
    await using workspace = new Workspace();
    const rows: Row[] = [];
    for (const build of context.builds) {
      const broker = makePlatformPulse(build);
      const folder = join(workspace.folder, build.label);
      mkdirSync(folder);
      const running = await broker.start({ cores: context.cores.test, folder, workspace });
      const row: Row = {
        name: broker.name,
        isOurs: true,
        version: broker.readVersion(),
        rounds: [],
      };
      for (let round = 1; round <= context.rounds; round += 1) {
        const run = await runPinned({
          name: "publisher and subscriber",
          command: process.execPath,
          args: [
            LOAD,
            `http://127.0.0.1:${running.ports.http}`,
            String(RATE),
            String(context.seconds),
          ],
          cores: context.cores.load,
        });
        const { p50Ms, p99Ms, missing } = JSON.parse(run) as StreamSummary;
        row.rounds.push(missing === 0 ? { p50Ms, p99Ms } : undefined);
        if (missing > 0) row.note = `${missing} messages did not arrive`;
        context.say(`  ${round}/${context.rounds} ${row.name}: p99 ${p99Ms.toFixed(1)} ms`);
      }
      rows.push(row);
    }
    return {
      work: "One publisher process on 32 connections and one subscriber; each message timed from the moment it was due, including its fdatasync.",
      columns: [
        { key: "p50Ms", title: "p50 ms", digits: 1 },
        { key: "p99Ms", title: "p99 ms", digits: 1 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks: ["- goal: p99 < 10 ms"],
    };
  },
};
