// The effect of saving a route, as the gateway finds it without saving.
import { useEffect, useState } from "preact/hooks";
import type { ApiFailure } from "../api/api.ts";
import { Action, Section } from "../view/controls.tsx";
import { Diff } from "../view/diff.tsx";
import { toFailure } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { t } from "../words/words.ts";
import type { Settings } from "./route-versions.ts";
import { checkRoute, formatSettings, type RouteCheck } from "./routes.ts";

const CHECK_MS = 400;

/** State of the dry run of a text; neither while it is being tried. */
export interface Checked {
  check?: RouteCheck;
  failure?: ApiFailure;
}

/** Tries the text when it has been at rest, and again for another `round`. */
export function useDryRun(text: string, isValid: boolean, round: number): Checked {
  const tried = `${round} ${text}`;
  const [state, setState] = useState<Checked & { tried: string }>({ tried: "" });
  useEffect(() => {
    if (!isValid) return undefined;
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      try {
        const check = await checkRoute(text, abort.signal);
        if (!abort.signal.aborted) setState({ tried, check });
      } catch (error) {
        if (!abort.signal.aborted) setState({ tried, failure: toFailure(error) });
      }
    };
    const timer = setTimeout(() => void run(), CHECK_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [tried, isValid]);
  // Problems stay until the next answer; an older success must not be saved.
  return state.tried === tried || state.check === undefined ? state : {};
}

/** The difference that saving would make. */
export function DryRun(props: {
  checked: Checked;
  isNew: boolean;
  /** The route was changed since it was opened. */
  isStale: boolean;
  /** Name of the route that was opened, if the text names another one. */
  renamed: string;
  onCompare: () => void;
}) {
  const { check, failure } = props.checked;
  return (
    <Section title={t("Effect of saving")} note={t("tried by the gateway, not saved")}>
      <div class="effect" aria-live="polite">
        {failure !== undefined && <Problem failure={failure} />}
        {check === undefined && failure === undefined && <p class="i2">{t("Being checked …")}</p>}
        {check !== undefined && (
          <>
            <p>
              <Effect check={check} />
            </p>
            {props.isStale && (
              <p>
                <State kind="warn">{t("The route was changed meanwhile")}</State>{" "}
                <Action onClick={props.onCompare}>{t("Compare")}</Action>
              </p>
            )}
            {props.isNew && check.before !== null && (
              <p>
                <State kind="warn">{t("A route with this name exists and is replaced")}</State>
              </p>
            )}
            {props.renamed !== "" && (
              <p>
                <State kind="warn">
                  {t("Another name is another route: {name} stays as it is", {
                    name: props.renamed,
                  })}
                </State>
              </p>
            )}
            {check.warnings.map((warning) => (
              <p key={warning}>
                <State kind="warn">{warning}</State>
              </p>
            ))}
          </>
        )}
      </div>
      {check !== undefined && check.change !== "unchanged" && (
        <Diff before={formatVersion(check.before)} after={formatVersion(check.after)} />
      )}
    </Section>
  );
}

function Effect({ check: { change, fields } }: { check: RouteCheck }) {
  if (change === "added") return <State kind="ok">{t("adds a route")}</State>;
  if (change === "unchanged") return <State kind="off">{t("changes nothing")}</State>;
  return <State kind="ok">{t("changes {fields}", { fields: fields.join(", ") })}</State>;
}

function formatVersion(settings: Settings | null): string {
  return settings === null ? "" : formatSettings(settings);
}
