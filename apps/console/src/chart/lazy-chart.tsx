// A chart whose library is loaded after the first paint of its page.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { retryDelayMs } from "../api/retry.ts";
import type { Chart } from "./chart.tsx";

type ChartProps = Parameters<typeof Chart>[0];

/** A chart; its place until its library is loaded. */
export function LazyChart(props: ChartProps) {
  const [loaded, setLoaded] = useState<{ Chart: ComponentType<ChartProps> } | undefined>(undefined);
  useEffect(() => {
    let timer = 0;
    const load = (attempts: number): void => {
      import("./chart.tsx").then(setLoaded, () => {
        timer = window.setTimeout(load, retryDelayMs(attempts), attempts + 1);
      });
    };
    load(0);
    return () => clearTimeout(timer);
  }, []);
  if (loaded === undefined) return <div style={{ height: `${props.heightPx}px` }} />;
  return <loaded.Chart {...props} />;
}
