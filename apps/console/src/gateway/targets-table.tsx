// The targets of a route: their share, figures and state.
import { formatNumber, splitFigure } from "../format/format.ts";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { hueOfTarget } from "./route-charts.tsx";
import { readTargetFigures, type RouteFigures } from "./route-figures.ts";
import { TargetState } from "./route-state.tsx";
import type { Route, Target } from "./routes.ts";

/** Share of failed attempts that is shown as bad. */
const FAILED_BAD = 0.01;

export function TargetsTable({ route, figures }: { route: Route; figures: RouteFigures }) {
  const { targets } = route.status;
  const series = figures.loaded.data.value;
  const read = ({ url }: Target) => readTargetFigures(series, url);
  const isShared = targets.length > 1;
  return (
    <Table
      label={t("Targets")}
      rows={targets}
      idOf={({ url }) => url}
      columns={[
        { title: t("Target"), kind: "mono", render: ({ url }) => url },
        ...(isShared
          ? [
              {
                title: t("Share"),
                kind: "w-m wide-only",
                render: (target: Target) => (
                  <Share target={target} hue={hueOfTarget(targets.indexOf(target))} />
                ),
              },
            ]
          : []),
        {
          title: t("req/s"),
          kind: "w-xs",
          isNumber: true,
          render: (target) => formatNumber(read(target)?.requests),
        },
        {
          title: "p99",
          kind: "w-xs wide-only",
          isNumber: true,
          render: (target) => splitFigure(read(target)?.p99Ms, "ms").join("\u00A0"),
        },
        {
          title: t("Errors"),
          kind: "w-xs",
          isNumber: true,
          render: (target) => <Failed share={read(target)?.failed} />,
        },
        {
          title: t("Active"),
          kind: "w-xs wide-only",
          isNumber: true,
          render: ({ active }) => formatNumber(active),
        },
        { title: t("State"), kind: "w-m", render: (target) => <TargetState target={target} /> },
      ]}
    />
  );
}

function Share({ target: { share }, hue }: { target: Target; hue: string }) {
  return (
    <span class={`share hue hue-${hue}`}>
      <span class="meter" aria-hidden="true">
        <i style={{ width: `${share}%` }} />
      </span>
      <span class="mono">{formatShare(share)}</span>
    </span>
  );
}

/** Small shares keep a digit: a canary may begin with half a percent. */
function formatShare(percent: number): string {
  return `${formatNumber(percent, Number.isInteger(percent) ? 0 : 1)}\u00A0%`;
}

function Failed({ share }: { share: number | null | undefined }) {
  if (share === null || share === undefined) return <>–</>;
  const digits = share === 0 || share === 1 ? 0 : share < 0.1 ? 2 : 1;
  const text = `${formatNumber(share * 100, digits)}\u00A0%`;
  return <span class={share > FAILED_BAD ? "bad" : ""}>{text}</span>;
}
