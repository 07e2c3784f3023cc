// The canary of a route: its share of the traffic, and the actions of an operator.
import { useState } from "preact/hooks";
import { callService } from "../session/session.ts";
import { segment } from "../api/api.ts";
import { useCommands } from "../stage/stage.ts";
import { Action, Section } from "../view/controls.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CanarySteps } from "./canary-steps.tsx";
import { CHANGE, nameOf, type Canary, type Route } from "./routes.ts";

type Step = "hold" | "resume" | "promote" | "rollback";

/** State of a canary: its phase with its share. */
export function CanaryState({ canary: { phase, weight } }: { canary: Canary }) {
  const [kind, word] = describePhase(phase, weight);
  return <State kind={kind}>{word}</State>;
}

function describePhase(phase: Canary["phase"], n: number): [kind: StateKind, word: string] {
  switch (phase) {
    case "promoting":
      return ["ok", t("canary {n} %, promoting", { n })];
    case "held":
      return ["warn", t("canary {n} %, held", { n })];
    case "rolled_back":
      return ["bad", t("canary rolled back")];
    case "promoted":
      return ["ok", t("canary promoted")];
    default:
      return phase satisfies never;
  }
}

/** Sends all traffic back to the stable target: in a list. */
export function RollBack({ route, onDone }: { route: Route; onDone: () => void }) {
  const { canary } = route.status;
  if (canary === undefined || canary.phase === "rolled_back") return null;
  return (
    <Action needs={CHANGE} kind="bad" onClick={() => void steer(route, "rollback", onDone)}>
      {t("Roll back")}
    </Action>
  );
}

/** The canary of a route with its actions. */
export function CanarySection({ route, onDone }: { route: Route; onDone: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const canary = route.status.canary!;
  const run = (step: Step): void => {
    setBusy(true);
    void steer(route, step, onDone).finally(() => setBusy(false));
  };
  const { phase } = canary;
  const isHeld = phase !== "promoting";
  useCommands([
    { label: t("Roll the canary back"), needs: CHANGE, icon: "back", run: () => run("rollback") },
    isHeld
      ? { label: t("Resume the canary"), needs: CHANGE, icon: "again", run: () => run("resume") }
      : { label: t("Hold the canary"), needs: CHANGE, icon: "pause", run: () => run("hold") },
    { label: t("Promote the canary"), needs: CHANGE, icon: "up", run: () => run("promote") },
  ]);
  const busy = isBusy ? t("Being changed") : undefined;
  return (
    <Section title={t("Canary")} note={lastTarget(route)}>
      <CanarySteps canary={canary} />
      <div class="acts">
        <Action
          needs={CHANGE}
          kind="primary"
          blocked={phase === "rolled_back" ? t("It is rolled back") : busy}
          onClick={() => run("rollback")}
        >
          {t("Roll back")}
        </Action>
        <Action needs={CHANGE} blocked={busy} onClick={() => run(isHeld ? "resume" : "hold")}>
          {isHeld ? t("Resume") : t("Hold")}
        </Action>
        <Action
          needs={CHANGE}
          blocked={phase === "promoted" ? t("It is promoted") : busy}
          onClick={() => run("promote")}
        >
          {t("Promote")}
        </Action>
      </div>
    </Section>
  );
}

function lastTarget({ status: { targets } }: Route): string {
  return targets.at(-1)?.url ?? "";
}

async function steer(route: Route, step: Step, onDone: () => void): Promise<void> {
  const { id } = route.status.canary!;
  const path = `/admin/canary/${segment(id)}/${step}`;
  const name = nameOf(route);
  const done = {
    hold: t("The canary of {name} keeps its share.", { name }),
    resume: t("The canary of {name} is promoted again.", { name }),
    promote: t("All traffic of {name} goes to the canary.", { name }),
    rollback: t("All traffic of {name} goes to the stable target.", { name }),
  }[step];
  await attempt(() => callService("gate", path, { method: "POST", json: {} }), done);
  onDone();
}
