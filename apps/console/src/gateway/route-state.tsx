// States of routes and targets.
import { State } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { CanaryState } from "./canary.tsx";
import { leaving, nameOf, type Route, type Target } from "./routes.ts";

/** State of a route: what needs attention first. */
export function RouteState({ route }: { route: Route }) {
  const { canary } = route.status;
  if (leaving.value.has(nameOf(route))) return <State kind="off">{t("being deleted")}</State>;
  const bad = route.status.targets.filter(({ ejected, circuit }) => ejected || circuit === "open");
  if (bad.length === 0) {
    if (canary !== undefined) return <CanaryState canary={canary} />;
    return <State kind="ok">{t("Serving")}</State>;
  }
  const isAll = bad.length === route.status.targets.length;
  return (
    <State kind={isAll ? "bad" : "warn"}>
      {t("{n} of {all} targets out", { n: bad.length, all: route.status.targets.length })}
    </State>
  );
}

/** State of a target: its circuit, and whether it was ejected. */
export function TargetState({ target }: { target: Target }) {
  if (target.ejected) return <State kind="bad">{t("ejected")}</State>;
  if (target.circuit === undefined || target.circuit === "closed")
    return <State kind="ok">{t("in use")}</State>;
  return (
    <State kind={target.circuit === "open" ? "bad" : "warn"}>
      {target.circuit === "open" ? t("circuit open") : t("circuit half open")}
    </State>
  );
}
