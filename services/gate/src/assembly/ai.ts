// The parts of the control plane for AI routes: figures, ledger and budgets.
import { randomUUID } from "node:crypto";
import { AiBudgets, type AiBudgetsOptions } from "../control/ai-budgets.ts";
import { AiFigures } from "../control/ai-figures.ts";
import { AiLedger } from "../control/ai-ledger.ts";
import { EmbeddingClient } from "../control/embedding-client.ts";
import { SemanticIndex } from "../control/semantic-index.ts";
import { readGatewayName, SharedSpending } from "../control/shared-spending.ts";
import { AiAccounts, type GlobalSpec, readDay, type SharedBuffers } from "../shared-state/index.ts";
import type { WorkerSources } from "../worker/worker-pool.ts";
import type { Base } from "./base.ts";

/** Figures, ledger and budgets of one gateway. */
export interface AiControl {
  readonly figures: AiFigures;
  readonly ledger: AiLedger;
  readonly budgets: AiBudgets;
  readonly index: SemanticIndex;
  /** Name of this gateway in Redis. */
  readonly gateway: string;
}

/** Reads what is stored; the spending of today is in shared memory before the first worker starts. */
export async function openAi(
  { config, folder, log, lifecycle }: Base,
  { accounts, seed }: Pick<SharedBuffers, "accounts" | "seed">,
  {
    apply,
    runExclusive,
    readGlobals,
  }: Pick<AiBudgetsOptions, "apply" | "runExclusive"> & { readGlobals: () => GlobalSpec },
): Promise<AiControl> {
  const isEphemeral = config.ephemeral;
  const budgets = new AiBudgets({ folder, isEphemeral, log, apply, runExclusive });
  await budgets.load();
  const ledger = new AiLedger({
    folder,
    accounts: new AiAccounts(accounts),
    seed,
    readTimeMs: Date.now,
    log,
    hasBudget: (tenant) => budgets.has(tenant),
  });
  await ledger.open();
  ledger.start();
  const { limits_redis_url: url } = config;
  const gateway =
    url === undefined ? randomUUID() : await readGatewayName(folder, isEphemeral, log);
  if (url !== undefined) {
    const readSpending = () => {
      const day = readDay(Date.now());
      return { day, spending: ledger.listSpending(day) };
    };
    const spending = new SharedSpending({ url, gateway, readSpending, log });
    spending.raise();
    ledger.onAdjusted = (day, adjusted) => spending.add(day, adjusted);
    lifecycle.onDrain("shared spending", () => spending.close());
  }
  lifecycle.onDrain("AI ledger", () => ledger.close());
  const readNowMs = (): number => performance.now();
  const client = new EmbeddingClient({
    readService: () => readGlobals().embedding,
    readNowMs,
    onFault: (fault) => log.warn("the service of embeddings failed", { fault }),
  });
  const index = new SemanticIndex({ embed: (text) => client.embed(text), readNowMs });
  return { figures: new AiFigures(), ledger, budgets, index, gateway };
}

/** The sources of new worker threads. */
export function describeAiSources({
  figures,
  ledger,
  budgets,
  index,
  gateway,
}: AiControl): Pick<
  WorkerSources,
  "listBudgets" | "onAiFigures" | "onLedgerEnded" | "openLedger" | "questions"
> {
  let threads = 0;
  return {
    listBudgets: () => budgets.listForWorkers(),
    onAiFigures: (reported) => figures.add(reported),
    openLedger: () => {
      const instance = `${Date.now()}-${process.pid}-${++threads}`;
      ledger.addInstance(instance);
      return { folder: ledger.folder, instance, gateway };
    },
    questions: index,
    onLedgerEnded: (instance) => ledger.removeInstance(instance),
  };
}
