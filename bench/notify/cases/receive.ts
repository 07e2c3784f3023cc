// (b) Inbound mail, compared with Postfix.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { startDnsServer } from "../../../services/notify/test/dns-server.ts";
import { MAIL_COLUMNS, measure, runSource } from "../contest.ts";
import { startPlatformNotify } from "../servers/platform-notify.ts";
import { awaitEmptyQueue, withPostfix } from "../servers/postfix.ts";

const CONNECTIONS = 50;
const TO = "postmaster@bench.example";

interface Entrant {
  row: Row;
  pid: number;
  port: number;
  settle: () => Promise<void>;
}

export const receive: BenchCase = {
  name: "receive",
  title: "Inbound mail",
  run: async (context) => {
    await using workspace = new Workspace();
    const dns = await startDnsServer({
      "bench.example": { TXT: ["v=spf1 ip4:127.0.0.1 -all"] },
      "_dmarc.bench.example": { TXT: ["v=DMARC1; p=reject"] },
    });
    try {
      const entrants = await startOurs(context, workspace, dns.address);
      const rows = await withPostfix(context.cores.test, undefined, async (postfix, row) => {
        if (postfix !== undefined) {
          const { pid, port } = postfix;
          entrants.push({ row, pid, port, settle: () => awaitEmptyQueue(postfix) });
        }
        const load = ({ port, settle }: Entrant, seconds: number) =>
          runSource(context, { port, connections: CONNECTIONS, seconds, to: TO }, settle);
        for (const entrant of entrants) await load(entrant, 1);
        await runRounds(
          context,
          entrants,
          (entrant) => measure(entrant.pid, () => load(entrant, context.seconds)),
          ({ perS, cpuUs }) => `${perS!.toFixed(0)} mails/s, ${cpuUs!.toFixed(0)} CPU µs each`,
        );
        return [...new Set([...entrants.map((one) => one.row), row])];
      });
      return {
        work:
          `smtp-source sends mail of 10 KB on ${CONNECTIONS} connections. Ours checks SPF, DKIM and DMARC with a local DNS server and stores the mail in ` +
          "SQLite before its 250. Postfix checks nothing, writes the mail to its queue before its 250, and then discards it. Each server runs on one core, " +
          "load and DNS on the others.",
        columns: MAIL_COLUMNS,
        rows,
        ratioColumns: ["perS", "perCpuS"],
        goals: [{ column: "perCpuS", against: "Postfix", atLeast: 0.7 }],
      };
    } finally {
      await dns.close();
    }
  },
};

async function startOurs(
  context: BenchContext,
  workspace: Workspace,
  dns: string,
): Promise<Entrant[]> {
  const started: Entrant[] = [];
  for (const build of context.builds) {
    const { pid, version, smtpPort } = await startPlatformNotify(workspace, {
      build,
      cores: context.cores.test,
      env: {
        PLATFORM_NOTIFY_DNS_SERVERS: dns,
        PLATFORM_NOTIFY_INBOUND_CONNECTIONS_PER_ADDRESS_MAX: "200",
        PLATFORM_NOTIFY_INBOUND_RATE_PER_MINUTE: "0",
      },
    });
    const row: Row = { name: `notify (${build.label})`, isOurs: true, version, rounds: [] };
    started.push({ row, pid, port: smtpPort, settle: async () => {} });
  }
  return started;
}
