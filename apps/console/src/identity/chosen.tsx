// The selection of a list that is shown in pages: it may be on another page, or not exist.
import type { ComponentChildren } from "preact";
import { useLoad } from "../view/load.ts";
import { Loading, type Whole } from "../view/problem.tsx";

/** Options of {@link useChosen}. */
interface ChosenOptions<Item> {
  /** Empty without a selection. */
  id: string;
  /** The shown page; undefined until it is loaded. */
  page: readonly Item[] | undefined;
  idOf: (item: Item) => string;
  /** Reads one that is on another page. */
  read: (signal: AbortSignal) => Promise<Item>;
  whole: Whole;
}

/** The selection. */
interface Chosen<Item> {
  item: Item | undefined;
  /** Shown in its place until it is found, and if it does not exist. */
  notice: ComponentChildren;
}

/** Finds the selection. */
export function useChosen<Item>(options: ChosenOptions<Item>): Chosen<Item> {
  const { id, page, idOf, read, whole } = options;
  const listed = page?.find((one) => idOf(one) === id);
  const isElsewhere = id !== "" && page !== undefined && listed === undefined;
  const single = useLoad(isElsewhere ? id : "", async (signal) =>
    isElsewhere ? await read(signal) : undefined,
  );
  const item = listed ?? (isElsewhere ? single.data.value : undefined);
  if (item !== undefined || !isElsewhere) return { item, notice: undefined };
  const notice = (
    <Loading of={single} whole={whole}>
      {() => null}
    </Loading>
  );
  return { item, notice };
}
