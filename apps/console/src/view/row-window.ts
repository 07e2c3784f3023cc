// The visible part of a long table: rows near it are rendered, the others are two spacers.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";

/** Tables up to this length are rendered whole. */
const WHOLE_MAX = 150;
/** Rows above and below the visible ones. */
const AHEAD = 30;
/** The window moves by so many rows, so that most frames of a scroll render nothing. */
const STEP = 10;
/** Rows before the end at which the next page is asked for. */
const END_ROWS = 100;

/** Rows `first` to `last - 1` are rendered. */
export interface RowWindow {
  first: number;
  last: number;
  rowPx: number;
}

/**
 * Follows the scrolling element around a table. All rows must have the same height. `onEnd` is called when the end comes
 * near.
 */
export function useRowWindow(count: number, onEnd: (() => void) | undefined) {
  const table = useRef<HTMLTableElement>(null);
  const window = useSignal<RowWindow>({ first: 0, last: WHOLE_MAX, rowPx: 32 });
  const isWhole = count <= WHOLE_MAX;
  useEffect(() => {
    const element = table.current;
    const scroller = element === null ? undefined : findScroller(element);
    if (element === null || scroller === undefined) return undefined;
    const update = (): void => {
      const found = measure(element, scroller, count);
      if (found.last >= count - END_ROWS) onEnd?.();
      const { first, last, rowPx } = window.value;
      if (found.first !== first || found.last !== last || found.rowPx !== rowPx) {
        window.value = found;
      }
    };
    update();
    scroller.addEventListener("scroll", update, { passive: true });
    const observer = new ResizeObserver(update);
    observer.observe(scroller);
    return () => {
      scroller.removeEventListener("scroll", update);
      observer.disconnect();
    };
  }, [count, onEnd]);
  return { table, window: isWhole ? undefined : window.value };
}

function measure(table: HTMLElement, scroller: Element, count: number): RowWindow {
  const row = table.querySelector<HTMLElement>("tbody tr[data-row]");
  const rowPx = row?.getBoundingClientRect().height || 32;
  const above = scroller.getBoundingClientRect().top - table.getBoundingClientRect().top;
  const top = Math.max(0, Math.floor(above / rowPx / STEP) * STEP - AHEAD);
  const visible = Math.ceil(scroller.clientHeight / rowPx / STEP) * STEP;
  return { first: Math.min(top, count), last: Math.min(count, top + visible + 2 * AHEAD), rowPx };
}

function findScroller(element: HTMLElement): Element | undefined {
  let parent = element.parentElement;
  while (parent !== null) {
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY)) return parent;
    parent = parent.parentElement;
  }
  return document.scrollingElement ?? undefined;
}
