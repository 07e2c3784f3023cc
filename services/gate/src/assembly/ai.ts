// The parts of the control plane for AI routes: figures, ledger and budgets.
import { AiBudgets, type AiBudgetsOptions } from "../control/ai-budgets.ts";
import { AiFigures } from "../control/ai-figures.ts";
import { AiLedger } from "../control/ai-ledger.ts";
import { AiAccounts, type SharedBuffers } from "../shared-state/index.ts";
import type { WorkerSources } from "../worker/worker-pool.ts";
import type { Base } from "./base.ts";

/** Figures, ledger and budgets of one gateway. */
export interface AiControl {
  readonly figures: AiFigures;
  readonly ledger: AiLedger;
  readonly budgets: AiBudgets;
}

/** Reads what is stored; the spending of today is in shared memory before the first worker starts. */
export async function openAi(
  { config, folder, log, lifecycle }: Base,
  { accounts, seed }: Pick<SharedBuffers, "accounts" | "seed">,
  { apply, runExclusive }: Pick<AiBudgetsOptions, "apply" | "runExclusive">,
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
  lifecycle.onDrain("AI ledger", () => ledger.close());
  return { figures: new AiFigures(), ledger, budgets };
}

/** The sources of new worker threads. */
export function describeAiSources({
  figures,
  ledger,
  budgets,
}: AiControl): Pick<WorkerSources, "listBudgets" | "onAiFigures" | "onLedgerEnded" | "openLedger"> {
  let threads = 0;
  return {
    listBudgets: () => budgets.listForWorkers(),
    onAiFigures: (reported) => figures.add(reported),
    openLedger: () => {
      const instance = `${Date.now()}-${process.pid}-${++threads}`;
      ledger.addInstance(instance);
      return { folder: ledger.folder, instance };
    },
    onLedgerEnded: (instance) => ledger.removeInstance(instance),
  };
}
