// The check of all stored files: its progress and last result.
import { formatBytes, formatMoment, formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

interface Scrub {
  state: string;
  progress: Record<string, number> | null;
  last: {
    started_at: string;
    ended_at: string;
    files: number;
    bytes: number;
    healed: number;
    damaged: number;
    missing: number;
  } | null;
}

/** The page. */
export function DrivesPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Drives") }]);
  const loaded = useLoad("scrub", () => callService<Scrub>("vault", "/scrub"), 3_000);
  const start = (): void => {
    void attempt(async () => {
      await callService("vault", "/scrub", { method: "POST", json: {} });
      await loaded.reload();
    }, t("The check of all files has begun."));
  };
  return (
    <Split>
      <Title
        actions={
          <Action onClick={start} icon="again">
            {t("Check all files")}
          </Action>
        }
      >
        {t("Drives")}
      </Title>
      <Loading of={loaded}>
        {({ state, progress, last }) => (
          <div class="narrow">
            <Section title={t("Now")}>
              <State kind={state === "idle" ? "ok" : "warn"}>{state}</State>
              {progress !== null && <p class="mono i2">{JSON.stringify(progress)}</p>}
            </Section>
            {last !== null && (
              <Section title={t("Last check")} note={formatMoment(last.ended_at)}>
                <Facts>
                  <FactRow term={t("Files")}>{formatNumber(last.files)}</FactRow>
                  <FactRow term={t("Size")}>{formatBytes(last.bytes)}</FactRow>
                  <FactRow term={t("Healed")}>{formatNumber(last.healed)}</FactRow>
                  <FactRow term={t("Damaged")}>
                    <span class={last.damaged > 0 ? "bad" : ""}>{formatNumber(last.damaged)}</span>
                  </FactRow>
                  <FactRow term={t("Missing")}>
                    <span class={last.missing > 0 ? "bad" : ""}>{formatNumber(last.missing)}</span>
                  </FactRow>
                </Facts>
              </Section>
            )}
          </div>
        )}
      </Loading>
    </Split>
  );
}
