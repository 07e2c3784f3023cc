// Groups of a topic and how far they are behind, with the last minutes.
import type { Answer } from "../contract/answer.ts";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Spark } from "../chart/spark.tsx";
import { formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";
import { formatPartitions, type Lag } from "./messages.ts";

const EVERY_MS = 2_000;
const POINTS = 150;

/** A group of a topic, partitions added up. */
interface GroupLag {
  group: string;
  lag: number;
  /** Messages read since the last look, a second. */
  committed: number;
  partitions: number;
}

/** Adds the partitions of each group up; the largest lag first. */
function sumLags(lags: readonly Lag[]): GroupLag[] {
  const groups = new Map<string, GroupLag>();
  for (const { group, lag, committed_offset: committed } of lags) {
    const sum = groups.get(group) ?? { group, lag: 0, committed: 0, partitions: 0 };
    groups.set(group, {
      group,
      lag: sum.lag + lag,
      committed: sum.committed + committed,
      partitions: sum.partitions + 1,
    });
  }
  return [...groups.values()].sort((one, other) => other.lag - one.lag);
}

/** The section of the pane. */
export function LagList({ topic }: { topic: string }) {
  const loaded = useLoad(
    topic,
    async () => {
      const { groups } = await callBroker<Answer<"pulse", "GET /consumers/lag">>("/consumers/lag");
      return sumLags(groups.filter((lag) => lag.topic === topic));
    },
    EVERY_MS,
  );
  const history = useRef(new Map<string, number[]>());
  const version = useSignal(0);
  const data = loaded.data.value;
  useEffect(() => {
    for (const { group, lag } of data ?? []) {
      const kept = history.current.get(group) ?? [];
      history.current.set(group, [...kept, lag].slice(-POINTS));
    }
    version.value += 1;
  }, [data]);
  return (
    <Section title={t("Groups")} note={t("messages behind")}>
      <Loading of={loaded}>
        {(groups) => (
          <>
            {groups.length === 0 && <p class="lead">{t("No group reads this topic.")}</p>}
            {groups.map(({ group, lag, partitions }) => (
              <div key={group} class="lag">
                <span>
                  <a
                    class="mono cut"
                    href={href(`/messaging/groups?sel=${encodeURIComponent(group)}`)}
                  >
                    {group}
                  </a>
                  <small>{formatPartitions(partitions)}</small>
                </span>
                <Spark values={history.current.get(group) ?? []} hue="hue-pulse" />
                <span class={lag > 1000 ? "lag-n warn" : "lag-n"}>{formatNumber(lag)}</span>
              </div>
            ))}
          </>
        )}
      </Loading>
    </Section>
  );
}
