// (a) Mail from the API to an SMTP sink, compared with Postfix.
import { Workspace, type BenchCase } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import {
  MAIL_COLUMNS,
  measure,
  runPosts,
  runSource,
  startSink,
  TEXT_BYTES,
  type LoadResult,
} from "../contest.ts";
import { startPlatformNotify } from "../servers/platform-notify.ts";
import { awaitEmptyQueue, withPostfix } from "../servers/postfix.ts";

const CONNECTIONS = 20;
const TO = "user@recipient.example";
const MAIL = {
  to: TO,
  subject: "Your order",
  text: `${"x".repeat(78)}\r\n`.repeat(TEXT_BYTES / 80),
};

interface Entrant {
  row: Row;
  pid: number;
  load: (seconds: number) => Promise<LoadResult>;
}

export const send: BenchCase = {
  name: "send",
  title: "Mail from the API to an SMTP sink",
  run: async (context) => {
    await using workspace = new Workspace();
    const sinkPort = await startSink(context, workspace);
    const entrants: Entrant[] = [];
    for (const build of context.builds) {
      const { origin, pid, version } = await startPlatformNotify(workspace, {
        build,
        cores: context.cores.test,
        env: {
          PLATFORM_NOTIFY_SMTP_HOST: "127.0.0.1",
          PLATFORM_NOTIFY_SMTP_PORT: String(sinkPort),
          PLATFORM_NOTIFY_SMTP_TLS: "off",
        },
      });
      const row = { name: `notify (${build.label})`, isOurs: true, version, rounds: [] };
      const posts = { url: `${origin}/api/v1/send`, connections: CONNECTIONS, body: MAIL };
      const load = (seconds: number) =>
        runPosts(context, workspace, { ...posts, seconds, expected: '"sent"' });
      entrants.push({ row, pid, load });
    }
    const rows = await withPostfix(context.cores.test, sinkPort, async (postfix, row) => {
      if (postfix !== undefined) {
        const { pid, port } = postfix;
        const source = { port, connections: CONNECTIONS, to: TO };
        const load = (seconds: number) =>
          runSource(context, { ...source, seconds }, () => awaitEmptyQueue(postfix));
        entrants.push({ row, pid, load });
      }
      for (const { load } of entrants) await load(1);
      await runRounds(
        context,
        entrants,
        ({ pid, load }) => measure(pid, () => load(context.seconds)),
        ({ perS, cpuUs }) => `${perS!.toFixed(0)} mails/s, ${cpuUs!.toFixed(0)} CPU µs each`,
      );
      return [...new Set([...entrants.map((one) => one.row), row])];
    });
    return {
      work:
        `Mail with a text of 10 KB to smtp-sink. Ours: POST /api/v1/send on ${CONNECTIONS} connections, signed by DKIM (RSA-2048), durable on SQLite; ` +
        `the response follows the sink's reply. Postfix: smtp-source on ${CONNECTIONS} connections, not signed, until its queue is empty. ` +
        "Each server runs on one core, load and sink on the others.",
      columns: MAIL_COLUMNS,
      rows,
      ratioColumns: ["perS", "perCpuS"],
      goals: [{ column: "perCpuS", against: "Postfix", atLeast: 1 }],
    };
  },
};
