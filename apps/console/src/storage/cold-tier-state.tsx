// The remote of a bucket's cold tier, and its last sweep; a sweep moves what is due now.
import type { Answer } from "../contract/answer.ts";
import { formatAgo, formatBytes, formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";
import { describeRemoteState, REMOTE_STATES } from "./remote-state.ts";

type Status = Answer<"vault", "GET /buckets/{bucket}/config/cold-tier/status">;
type Sweep = NonNullable<Status["sweep"]>;

const REFRESH_MS = 5_000;
/** Of the objects that stayed. */
const SHOWN_MAX = 20;

const SWEEPS: Readonly<Record<Sweep["state"], StateKind>> = {
  running: "warn",
  done: "ok",
  failed: "bad",
};

function describeSweepState(state: Sweep["state"]): string {
  const words: Record<Sweep["state"], string> = {
    running: t("running"),
    done: t("completed"),
    failed: t("failed"),
  };
  return words[state];
}

/** Remote, blocked rules and the last sweep; nothing for a bucket that moves no objects. */
export function ColdTierState(props: { bucket: Bucket; denial: string | undefined }) {
  const { bucket, denial } = props;
  const { name, settings } = bucket;
  const loaded = useLoad(
    `cold tier status ${name} ${settings.join()}`,
    (signal) =>
      callService<Status>("vault", bucketPath(name, "/config/cold-tier/status"), { signal }),
    REFRESH_MS,
  );
  const status = loaded.data.value;
  if (status?.remote === null && status.sweep === null && status.blocked.length === 0) return null;
  const isRunning = status?.sweep?.state === "running";
  const sweep = (): void =>
    void attempt(async () => {
      const path = bucketPath(name, "/config/cold-tier/sweep");
      await callService("vault", path, { method: "POST", json: {} });
      await loaded.reload();
    });
  return (
    <Section
      title={t("State of the cold tier")}
      action={
        <Action
          kind="quiet"
          onClick={sweep}
          blocked={denial ?? (isRunning ? t("A sweep is running") : undefined)}
        >
          {t("Move what is due now")}
        </Action>
      }
    >
      <Loading of={loaded}>{(found) => <TierFacts of={found} />}</Loading>
    </Section>
  );
}

function TierFacts({ of: { remote, blocked, sweep } }: { of: Status }) {
  return (
    <>
      <Facts>
        {remote !== null && (
          <FactRow term={t("Remote")}>
            <a href={href(`/storage/remotes?sel=${encodeURIComponent(remote.name)}`)}>
              <span class="mono wrap">{remote.name}</span>
            </a>{" "}
            <State kind={REMOTE_STATES[remote.state]}>{describeRemoteState(remote.state)}</State>
          </FactRow>
        )}
        <FactRow term={t("Last sweep")}>
          {sweep === null ? t("none since the start of storage") : <SweepLine sweep={sweep} />}
        </FactRow>
      </Facts>
      {remote?.reason !== undefined && remote.reason !== null && (
        <p class="bad wrap">{remote.reason}</p>
      )}
      {blocked.map(({ rule, storage_class: name }) => (
        <p key={`${rule} ${name}`} class="bad wrap">
          {t("The lifecycle rule {rule} moves nothing: no remote has the class {name}.", {
            rule,
            name,
          })}
        </p>
      ))}
      {sweep !== null && sweep.details.length > 0 && (
        <ul class="plain-list" aria-label={t("Objects that stayed")}>
          {sweep.details.slice(0, SHOWN_MAX).map(({ key, version_id: version, reason }) => (
            <li key={`${key} ${version}`} class="wrap">
              <span class="mono">{key}</span> <span class="i2">{reason}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function SweepLine({ sweep }: { sweep: Sweep }) {
  const { state, moved, bytes, skipped, failed, ended_at: at, reason } = sweep;
  return (
    <>
      <State kind={SWEEPS[state]}>{describeSweepState(state)}</State>{" "}
      <span class="i2">
        {t("{n} moved ({size}), {skipped} stayed, {failed} failed", {
          n: formatNumber(moved),
          size: formatBytes(bytes),
          skipped: formatNumber(skipped),
          failed: formatNumber(failed),
        })}
        {at !== null && ` · ${formatAgo(at)}`}
      </span>
      {reason !== null && <p class="bad wrap">{reason}</p>}
    </>
  );
}
