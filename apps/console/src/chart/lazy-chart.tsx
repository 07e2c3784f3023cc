// A chart whose library is loaded after the first paint of its page.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Chart } from "./chart.tsx";

type ChartProps = Parameters<typeof Chart>[0];

/** A chart; nothing until its library is loaded. */
export function LazyChart(props: ChartProps) {
  const [loaded, setLoaded] = useState<{ Chart: ComponentType<ChartProps> } | undefined>(undefined);
  useEffect(() => {
    void import("./chart.tsx").then(setLoaded);
  }, []);
  return loaded === undefined ? null : <loaded.Chart {...props} />;
}
