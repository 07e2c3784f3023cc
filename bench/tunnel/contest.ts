// Opens the tunnels once, then loads them in turn, round by round.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fetchAnswer, judgeAnswer } from "../harness/answer.ts";
import type { BenchContext, Workspace } from "../harness/case.ts";
import type { Row } from "../harness/report.ts";
import { readTreeCpu } from "../harness/usage.ts";
import { SMALL_BODY_BYTES, startLocalService } from "./local-service.ts";
import { localtunnel } from "./tunnels/localtunnel.ts";
import { makePlatformTunnel } from "./tunnels/platform-tunnel.ts";
import { ssh } from "./tunnels/ssh.ts";
import type { OpenTunnel, Tunnel } from "./tunnels/tunnel.ts";

const ATTEMPTS_MAX = 50;
const NOTE_CHARS_MAX = 400;

/** A tunnel with correct responses; `open` is absent if it does not take part. */
interface Entrant {
  row: Row;
  open?: OpenTunnel;
}

/** A tunnel that takes part. */
export interface OpenEntrant extends Entrant {
  open: OpenTunnel;
}

/** Opens all tunnels to one local service and checks a response of each. */
export async function openTunnels(
  context: BenchContext,
  workspace: Workspace,
): Promise<{ rows: Row[]; entrants: OpenEntrant[] }> {
  const local = await startLocalService(workspace.folder, context.cores.all);
  workspace.keep(local.process);
  const tunnels = [...context.builds.map((build) => makePlatformTunnel(build)), ssh, localtunnel];
  const entrants: Entrant[] = [];
  for (const [index, tunnel] of tunnels.entries()) {
    const folder = join(workspace.folder, `tunnel-${index}`);
    entrants.push(await openOne(context, workspace, tunnel, local.port, folder));
  }
  return {
    rows: entrants.map(({ row }) => row),
    entrants: entrants.filter((entrant): entrant is OpenEntrant => entrant.open !== undefined),
  };
}

/** CPU time of both sides in ms. */
export function readCpuMs({ pids }: OpenTunnel): number {
  return pids.reduce((sum, pid) => sum + readTreeCpu(pid).cpuMs, 0);
}

async function openOne(
  context: BenchContext,
  workspace: Workspace,
  tunnel: Tunnel,
  localPort: number,
  folder: string,
): Promise<Entrant> {
  const absence = tunnel.explainAbsence();
  const row: Row = {
    name: tunnel.name,
    isOurs: tunnel.isOurs,
    version: absence === undefined ? tunnel.readVersion() : "",
    rounds: [],
  };
  if (absence !== undefined) {
    row.note = absence;
    return { row };
  }
  try {
    const { cores } = context;
    const open = await tunnel.open({ localPort, cores: cores.all, folder, workspace });
    await awaitRightAnswer(open);
    return { row, open };
  } catch (error) {
    row.note = String(error).replaceAll(/\s+/g, " ").slice(0, NOTE_CHARS_MAX);
    context.say(`  ${row.name} is skipped: ${row.note}`);
    return { row };
  }
}

// The first answers may be errors while a tunnel is being opened.
async function awaitRightAnswer({ port, host }: OpenTunnel): Promise<void> {
  const url = `http://127.0.0.1:${port}/small`;
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetchAnswer(url, { Host: host }).catch((error: Error) => error);
    const expected = { status: 200, bodyBytes: SMALL_BODY_BYTES };
    const fault = answer instanceof Error ? answer.message : judgeAnswer(answer, expected);
    if (fault === undefined) return;
    if (attempt === ATTEMPTS_MAX) throw new Error(`wrong answer: ${fault}`);
    await sleep(100);
  }
}
