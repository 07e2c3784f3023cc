// Double clicks on cells. What the first click opens may move or cover the cell before the second one.
import { type RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A cell, by the id of its row and the name of its column. */
export interface CellPlace {
  readonly row: string;
  readonly column: string;
}

/** Calls `onDouble` with the cell of the table that the first of two clicks has hit, wherever the second one ends. */
export function useDoubleClick(
  table: RefObject<HTMLElement | null>,
  onDouble: ((place: CellPlace) => void) | undefined,
): void {
  const latest = useRef(onDouble);
  latest.current = onDouble;
  const isWanted = onDouble !== undefined;
  useEffect(() => {
    if (!isWanted) return undefined;
    let first: CellPlace | undefined;
    const note = (event: MouseEvent): void => {
      if (event.detail <= 1) first = findPlace(table.current, event.target);
    };
    const end = (): void => {
      if (first !== undefined) latest.current?.(first);
      first = undefined;
    };
    document.addEventListener("click", note, true);
    document.addEventListener("dblclick", end);
    return () => {
      document.removeEventListener("click", note, true);
      document.removeEventListener("dblclick", end);
    };
  }, [isWanted]);
}

function findPlace(table: HTMLElement | null, target: EventTarget | null): CellPlace | undefined {
  const cell = (target as Element | null)?.closest<HTMLElement>("td[data-column]");
  const row = cell?.closest<HTMLElement>("tr[data-row]");
  if (!cell || !row || table?.contains(cell) !== true) return undefined;
  return { row: row.dataset["row"]!, column: cell.dataset["column"]! };
}
